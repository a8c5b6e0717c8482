"""Offline questions on manifests."""

from rung.observe.questions import Answer, Change, diff, expand, why

__all__ = ["Answer", "Change", "diff", "expand", "why"]
