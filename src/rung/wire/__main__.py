"""`python -m rung.wire FOLDER` writes the JSON Schemas that the code defines."""

from __future__ import annotations

import sys
from pathlib import Path

from rung.wire.schema import schemas


def main(folder: str = "docs/schemas") -> None:
    """Write each schema into the folder."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, text in schemas().items():
        Path(folder, name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
