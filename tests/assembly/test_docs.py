"""Every example of the page runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "assembly.md"


def test_the_examples_run_in_order() -> None:
    found = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(found) >= 6
    names: dict[str, Any] = {}
    for i, example in enumerate(found):
        exec(compile(example, f"{PAGE.name}:{i}", "exec"), names)
