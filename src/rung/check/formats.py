"""Reports: text for people, JSON for programs, SARIF 2.1.0 for code scanning, GitHub annotations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

from rung.check.finding import Finding
from rung.check.rules import RULES
from rung.errors import InputError, names

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render(findings: Sequence[Finding], format: str) -> str:
    """A report in one of `FORMATS`. Raises InputError for another."""
    if format not in FORMATS:
        raise InputError(f"`{format}` is no format (known: {names(FORMATS)})", field="format")
    return _WRITERS[format](findings)


def _text(findings: Sequence[Finding]) -> str:
    parts: list[str] = []
    for found in findings:
        parts.append(f"{found.place}: {found.rule} {RULES[found.rule].level}: {found.message}\n")
        parts.append(f"    why:  {found.why}\n    mend: {found.mend}\n")
        for step in found.flow:
            parts.append(f"    {found.path}:{step.line}:{step.col}: {step.note}\n")
    files = len({found.path for found in findings})
    count = len(findings)
    if count:
        parts.append(f"{count} finding{'s' if count > 1 else ''} in {files} file{'s' if files > 1 else ''}\n")
    else:
        parts.append("no findings\n")
    return "".join(parts)


def _json(findings: Sequence[Finding]) -> str:
    rows = [
        {
            "rule": found.rule,
            "level": RULES[found.rule].level,
            "path": found.path,
            "line": found.line,
            "col": found.col,
            "end_line": found.end_line,
            "end_col": found.end_col,
            "message": found.message,
            "why": found.why,
            "mend": found.mend,
            "flow": [{"line": step.line, "col": step.col, "note": step.note} for step in found.flow],
        }
        for found in findings
    ]
    return json.dumps({"version": 1, "findings": rows}, indent=2, ensure_ascii=False) + "\n"


def _sarif(findings: Sequence[Finding]) -> str:
    order = {rule: place for place, rule in enumerate(RULES)}
    rules = [
        {
            "id": rule.id,
            "name": "".join(word.capitalize() for word in rule.name.split("-")),
            "shortDescription": {"text": rule.title},
            "fullDescription": {"text": f"{rule.title}: {rule.why}"},
            "help": {
                "text": f"{rule.why}. {rule.mend}.",
                "markdown": f"{rule.why}.\n\n**Mend:** {rule.mend}.",
            },
            "defaultConfiguration": {"level": rule.level},
            "properties": {
                "tags": ["security", "prompt-injection"],
                "precision": "high" if rule.level == "error" else "medium",
            },
        }
        for rule in RULES.values()
    ]
    seen: dict[str, int] = {}
    results: list[dict[str, Any]] = []
    for found in findings:
        results.append(_result(found, order[found.rule], seen))
    run: dict[str, Any] = {
        "tool": {"driver": {"name": "rung check", "semanticVersion": "1.0.0", "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _result(found: Finding, place: int, seen: dict[str, int]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": found.rule,
        "ruleIndex": place,
        "level": RULES[found.rule].level,
        "message": {"text": f"{found.message}. Mend: {found.mend}"},
        "locations": [
            _location(found.path, found.line, found.col, found.end_line, found.end_col),
        ],
        "partialFingerprints": {"primaryLocationLineHash": _fingerprint(found, seen)},
    }
    if found.flow:
        steps = [
            {"location": {**_location(found.path, step.line, step.col), "message": {"text": step.note}}}
            for step in found.flow
        ]
        result["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
    return result


def _location(
    path: str, line: int, col: int, end_line: int | None = None, end_col: int | None = None
) -> dict[str, Any]:
    region: dict[str, int] = {"startLine": line, "startColumn": col}
    if end_line is not None and end_col is not None:
        region |= {"endLine": end_line, "endColumn": end_col}
    uri = quote(path.replace("\\", "/").removeprefix("./"), safe="/~")
    if path.startswith("/"):
        uri = "file://" + uri
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}


def _fingerprint(found: Finding, seen: dict[str, int]) -> str:
    """Stays the same when lines move: rule, file and message, with a counter for equal ones."""
    text = f"{found.rule}\0{found.path}\0{found.message}"
    count = seen[text] = seen.get(text, 0) + 1
    return f"{hashlib.sha256(text.encode('utf-8', errors='replace')).hexdigest()[:16]}:{count}"


def _github(findings: Sequence[Finding]) -> str:
    parts: list[str] = []
    for found in findings:
        level = {"error": "error", "warning": "warning"}.get(RULES[found.rule].level, "notice")
        place = f"file={_property(found.path)},line={found.line},col={found.col},endLine={found.end_line}"
        if found.end_line == found.line:
            place += f",endColumn={found.end_col}"
        title = _property(f"{found.rule} {RULES[found.rule].title}")
        parts.append(f"::{level} {place},title={title}::{_data(f'{found.message}. Mend: {found.mend}')}\n")
    return "".join(parts)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


_WRITERS: dict[str, Callable[[Sequence[Finding]], str]] = {
    "text": _text,
    "json": _json,
    "sarif": _sarif,
    "github": _github,
}
FORMATS: tuple[str, ...] = tuple(_WRITERS)
"""The names of the formats."""
