"""From bytes to a syntax tree, whatever the file holds: encodings, newer syntax, depth, broken code."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
import warnings
from dataclasses import dataclass

from rung.check.downlevel import Downleveler


@dataclass(frozen=True, slots=True)
class Parsed:
    """A file's lines and its tree, or the reason why there is none and where."""

    lines: tuple[str, ...]
    tree: ast.Module | None
    problem: str = ""
    line: int = 1
    col: int = 1


def decode(data: bytes) -> str:
    """The text of a file by its mark or coding line (PEP 263). Raises SyntaxError, UnicodeDecodeError."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    text = data.decode(encoding)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def parse(data: bytes, downlevel: Downleveler) -> Parsed:
    """Parses a file; never raises for what is in it. `downlevel` is asked where the own parser gives up."""
    try:
        text = decode(data)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        return Parsed((), None, f"the file cannot be decoded: {_first(error)}")
    lines = tuple(text.split("\n"))
    try:
        return Parsed(lines, _tree(text))
    except SyntaxError as error:
        newer = downlevel(text)
        if newer is not None:
            try:
                return Parsed(lines, newer.restore(_tree(newer.text)))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                pass
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        problem = f"the file is no Python {version}: {_first(error)}"
        return Parsed(lines, None, problem, max(error.lineno or 1, 1), max(error.offset or 1, 1))
    except ValueError as error:
        return Parsed(lines, None, f"the file cannot be parsed: {_first(error)}")
    except (RecursionError, MemoryError):
        return Parsed(lines, None, "the file is nested too deeply for the parser")


def _tree(text: str) -> ast.Module:
    with warnings.catch_warnings():
        # A checked file's own invalid escapes are not our matter.
        warnings.simplefilter("ignore")
        return ast.parse(text)


def _first(error: Exception) -> str:
    return (error.msg if isinstance(error, SyntaxError) else str(error)).split("\n")[0].rstrip(".")
