"""From paths to findings, and the command: choose files, check each, write the report, say the exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import TextIO

from rung.check.comments import Ignore, ignores
from rung.check.config import DEFAULT_EXCLUDE, CheckConfig, load_config
from rung.check.downlevel import Downleveler
from rung.check.finding import Finding, Step
from rung.check.formats import FORMATS, render
from rung.check.names import tables_for
from rung.check.parse import parse
from rung.check.rules import RULES
from rung.check.scope import Hit
from rung.check.statements import analyse
from rung.errors import ConfigError, InputError, names

EXIT_CLEAN, EXIT_FINDINGS, EXIT_USAGE = 0, 1, 2


def check_source(data: bytes, path: str, config: CheckConfig | None = None) -> list[Finding]:
    """Checks one file's bytes; `path` is only named. Never raises for what is in the file."""
    with Downleveler() as downlevel:
        return _check(data, path, config or CheckConfig(), downlevel)


def _check(data: bytes, path: str, config: CheckConfig, downlevel: Downleveler) -> list[Finding]:
    parsed = parse(data, downlevel)
    if parsed.tree is None:
        return _kept([_unreadable(path, parsed.problem, parsed.line, parsed.col)], [], path, config)
    try:
        hits = analyse(parsed.tree, tables_for(config))
    except RecursionError:
        problem = "the file is nested too deeply to be followed"
        return _kept([_unreadable(path, problem, 1, 1)], [], path, config)
    comments = ignores(parsed.lines)
    pairs = [(_finding(hit, path, parsed.lines), _lines_of(hit)) for hit in hits]
    findings = [finding for finding, lines in pairs if not _ignored(finding, lines, comments, config)]
    return _kept(findings, comments, path, config)


def check_paths(paths: Iterable[str | Path], config: CheckConfig | None = None) -> list[Finding]:
    """Checks files, and every `.py` and `.pyi` file below folders; findings come in order of place.

    A file that cannot be read or parsed is a finding (RUNG000). Raises InputError for a missing path.
    """
    config = config or CheckConfig()
    findings: list[Finding] = []
    with Downleveler() as downlevel:
        for file, shown in _files(paths, config):
            try:
                data = file.read_bytes()
            except OSError as error:
                problem = f"the file cannot be read: {error.strerror or 'unknown reason'}"
                findings.extend(_kept([_unreadable(shown, problem, 1, 1)], [], shown, config))
                continue
            findings.extend(_check(data, shown, config, downlevel))
    return sorted(findings, key=lambda finding: finding.sort_key)


def run_check(
    paths: Sequence[str | Path],
    format: str = "text",
    config_path: str | Path | None = None,
    out: TextIO | None = None,
) -> int:
    """The command `rung check`: writes a report to `out` (standard output) and returns the exit code.

    0: no findings; 1: findings; 2: a path that does not exist, an unknown format, or a configuration that
    cannot be read; its reason goes to standard error, so that a report in `out` stays whole.
    """
    stream = out if out is not None else sys.stdout
    try:
        if not paths:
            raise InputError("no path given (name a file or a folder)", field="paths")
        if format not in FORMATS:
            raise InputError(f"`{format}` is no format (known: {names(FORMATS)})", field="format")
        first = Path(paths[0])
        config = load_config(config_path, start=first if first.is_dir() else first.parent)
        findings = check_paths(paths, config)
    except (ConfigError, InputError) as error:
        print(f"rung check: {error}", file=sys.stderr)
        return EXIT_USAGE
    stream.write(render(findings, format))
    return EXIT_FINDINGS if findings else EXIT_CLEAN


def _files(paths: Iterable[str | Path], config: CheckConfig) -> Iterator[tuple[Path, str]]:
    seen: set[Path] = set()
    for given in paths:
        root = Path(given)
        if root.is_file():
            candidates: Iterable[Path] = [root]
        elif root.is_dir():
            candidates = _walk(root, config)
        else:
            raise InputError(f"`{root}` does not exist", field="paths")
        for file in candidates:
            real = file.resolve()
            if real not in seen:
                seen.add(real)
                yield file, file.as_posix()


def _walk(root: Path, config: CheckConfig) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        base = Path(folder)
        folders[:] = sorted(
            name
            for name in folders
            if name not in DEFAULT_EXCLUDE and not _excluded((base / name).relative_to(root).as_posix(), config)
        )
        for name in sorted(files):
            file = base / name
            if name.endswith((".py", ".pyi")) and not _excluded(file.relative_to(root).as_posix(), config):
                yield file


def _excluded(path: str, config: CheckConfig) -> bool:
    name = path.rpartition("/")[2]
    return any(fnmatch(path, pattern.rstrip("/")) or fnmatch(name, pattern) for pattern in config.exclude)


def _finding(hit: Hit, path: str, lines: tuple[str, ...]) -> Finding:
    span = hit.span
    steps = tuple(
        Step(line=mark.span.line, col=_column(lines, mark.span.line, mark.span.col), note=mark.note)
        for mark in hit.taint.steps
    )
    begin = span.line, _column(lines, span.line, span.col)
    end = span.end_line, _column(lines, span.end_line, span.end_col)
    return _reported(hit.rule, path, begin, end, hit.message, steps)


def _reported(
    rule: str, path: str, begin: tuple[int, int], end: tuple[int, int], message: str, flow: tuple[Step, ...] = ()
) -> Finding:
    """A finding from one line and column to another, with what its rule says."""
    return Finding(
        rule=rule,
        path=path,
        line=begin[0],
        col=begin[1],
        end_line=end[0],
        end_col=end[1],
        message=message,
        why=RULES[rule].why,
        mend=RULES[rule].mend,
        flow=flow,
    )


def _column(lines: tuple[str, ...], line: int, col: int) -> int:
    """The tree counts UTF-8 bytes from 0; people and SARIF count characters from 1."""
    if not 0 < line <= len(lines):
        return col + 1
    text = lines[line - 1]
    if text.isascii():
        return col + 1
    return len(text.encode("utf-8")[:col].decode("utf-8", errors="ignore")) + 1


def _lines_of(hit: Hit) -> set[int]:
    spans = (hit.span, hit.sink)
    return {line for span in spans for line in range(span.line, min(span.end_line, span.line + 400) + 1)}


def _ignored(finding: Finding, lines: set[int], comments: list[Ignore], config: CheckConfig) -> bool:
    ignored = False
    for comment in comments:
        if comment.covers(finding.rule, lines):
            comment.used.add(finding.rule)
            ignored = True
    return ignored


def _kept(findings: list[Finding], comments: list[Ignore], path: str, config: CheckConfig) -> list[Finding]:
    if config.report_unused_ignores:
        findings = findings + list(_unused(comments, path, config))
    return sorted((found for found in findings if config.wants(found.rule)), key=lambda found: found.sort_key)


def _unused(comments: list[Ignore], path: str, config: CheckConfig) -> Iterator[Finding]:
    for comment in comments:
        idle = [
            name for name in comment.rules if name not in comment.used and (config.wants(name) or name not in RULES)
        ]
        if comment.rules and not idle:
            continue
        if not comment.rules and comment.used:
            continue
        what = names(idle) if idle else "any rule"
        begin, end = (comment.line, comment.col), (comment.line, comment.col + 1)
        yield _reported("RUNG001", path, begin, end, f"the ignore comment silences nothing of {what}")


def _unreadable(path: str, problem: str, line: int, col: int) -> Finding:
    return _reported("RUNG000", path, (line, col), (line, col), problem)
