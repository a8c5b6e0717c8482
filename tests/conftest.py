"""Settings of all tests: every compiled turn is counted anew, and properties are not judged by a slow machine."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

os.environ.setdefault("RUNG_VERIFY", "full")

settings.register_profile("rung", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("rung")
