"""Newer syntax, read on an older Python.

The interpreter's own parser reads up to its own version. libcst reads all of them, so where the parser gives
up libcst finds the newer pieces (PEP 695 and 696 type parameters, PEP 701 f-strings, PEP 750 t-strings and
PEP 758's `except A, B`). They are replaced, byte for byte in the same place, by older syntax that means the
same to the linter: a string becomes a list of its expressions and is turned back into a string in the tree.
libcst is the extra `rung[check]`; without it such a file is reported as RUNG000.

libcst's parser is native code that ends its process on deep nesting. So it runs in a child process, one for many
files: if the child dies, that file is unreadable and the run goes on. This module imports only the standard
library at its top, because the child runs it as a script, without the current folder on its path.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import json
import re
import subprocess
import sys
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any

SECONDS = 4.0
"""How long the child may take to start and to read a small file."""
CHARACTERS_PER_SECOND = 20_000
"""How fast the child must be on a large file; it is ten times faster on a free machine."""


_NEWER = re.compile(r"""[fFtT][rR]?["']|\btype\b|\bexcept\b|\b(?:def|class)\s+\w+\s*\[""")
"""Where nothing of this stands in a file, its syntax is broken and not newer."""


@dataclass(frozen=True, slots=True)
class _String:
    start: int
    template: bool
    literals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Downleveled:
    """The rewritten text, and which lists in it were strings (by line and byte column)."""

    text: str
    strings: dict[tuple[int, int], _String]

    def restore(self, tree: ast.Module) -> ast.Module:
        """Turns the lists back into f-strings; a t-string stays apart from text."""
        # A NodeTransformer that keeps the root returns what it was given; typeshed says Any.
        return _Restore(self.strings).visit(tree)  # type: ignore[no-any-return]


class _Restore(ast.NodeTransformer):
    def __init__(self, strings: dict[tuple[int, int], _String]) -> None:
        self.strings = strings

    def visit_List(self, node: ast.List) -> ast.AST:
        self.generic_visit(node)
        string = self.strings.get((node.lineno, node.col_offset))
        if string is None:
            return node
        if string.template:
            func = ast.copy_location(ast.Name(id="__template__", ctx=ast.Load()), node)
            return ast.copy_location(ast.Call(func=func, args=node.elts, keywords=[]), node)
        values: list[ast.expr] = [ast.copy_location(ast.Constant(value=text), node) for text in string.literals]
        for element in node.elts:
            values.append(
                ast.copy_location(ast.FormattedValue(value=element, conversion=-1, format_spec=None), element)
            )
        return ast.copy_location(ast.JoinedStr(values=values), node)


class Downleveler:
    """Asks a child process to rewrite newer syntax; starts it when first needed, ends it on leaving the block."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._possible = importlib.util.find_spec("libcst") is not None

    def __enter__(self) -> Downleveler:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._end()

    def __call__(self, text: str) -> Downleveled | None:
        """The text with newer syntax replaced; None where libcst is missing, refuses it or dies of it."""
        if not self._possible or not _NEWER.search(text):
            return None
        child = self._child
        if child is None:
            command = [sys.executable, "-P", __file__]
            child = self._child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        assert child.stdin is not None
        assert child.stdout is not None
        # Some hostile texts take it exponential time, so a clock ends the child; that reads as a closed pipe.
        clock = threading.Timer(SECONDS + len(text) / CHARACTERS_PER_SECOND, child.kill)
        clock.start()
        try:
            _send(child.stdin, text)
            reply = _receive(child.stdout)
        except (OSError, EOFError):
            self._end()
            return None
        finally:
            clock.cancel()
        return _unpacked(json.loads(reply))

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                # A dead child's pipe cannot be flushed, and there is nothing left that anyone would read.
                with contextlib.suppress(OSError):
                    stream.close()
        try:
            child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _send(stream: IO[bytes], text: str) -> None:
    data = text.encode("utf-8", errors="surrogatepass")
    stream.write(len(data).to_bytes(8, "big") + data)
    stream.flush()


def _receive(stream: IO[bytes]) -> str:
    size = stream.read(8)
    if len(size) < 8:
        raise EOFError
    data = stream.read(int.from_bytes(size, "big"))
    if len(data) < int.from_bytes(size, "big"):
        raise EOFError
    return data.decode("utf-8", errors="surrogatepass")


def _packed(result: Downleveled | None) -> Any:
    if result is None:
        return None
    rows = [[line, col, one.start, one.template, one.literals] for (line, col), one in result.strings.items()]
    return {"text": result.text, "strings": rows}


def _unpacked(reply: Any) -> Downleveled | None:
    if reply is None:
        return None
    strings = {(line, col): _String(start, made, tuple(parts)) for line, col, start, made, parts in reply["strings"]}
    return Downleveled(reply["text"], strings)


def downlevel(text: str) -> Downleveled | None:
    """The rewritten text, made in this process. A hostile text can end the process: see `Downleveler`."""
    import libcst
    from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

    try:
        module = libcst.parse_module(text)
        wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
        spans: Any = wrapper.resolve(ByteSpanPositionProvider)
        rewrite = _Rewrite(text.encode("utf-8"), spans)
        rewrite.visit(module)
    except (Exception, RecursionError):  # a refusal comes as many classes, and each means: no second reading
        return None
    return rewrite.result()


class _Rewrite:
    """Blanks and replaces stretches of bytes; every replacement keeps its length and its line breaks."""

    def __init__(self, data: bytes, spans: Any) -> None:
        self.data = bytearray(data)
        self.original = data
        self.spans = spans
        self.found: list[_String] = []

    def span(self, node: Any) -> tuple[int, int]:
        span = self.spans[node]
        return span.start, span.start + span.length

    def blank(self, start: int, end: int) -> None:
        for place in range(start, end):
            if self.data[place] not in b"\n":
                self.data[place] = 32

    def visit(self, node: Any, inside: bool = False) -> None:
        kind = type(node).__name__
        if kind in ("ConcatenatedString", "FormattedString", "TemplatedString") and self._formatted(node):
            self._string(node)
            return
        if kind == "TypeParameters":
            self.blank(*self.span(node))
            return
        if kind == "TypeAlias":
            start, end = self.span(node)
            self.blank(start, end)
            self.data[start : start + 4] = b"pass"
            return
        if kind == "ExceptHandler" and type(node.type).__name__ == "Tuple" and not node.type.lpar:
            start, end = self.span(node.type)
            _, first = self.span(node.type.elements[0].value)
            self.blank(first, end)
        for child in node.children:
            self.visit(child)

    def _formatted(self, node: Any) -> bool:
        kind = type(node).__name__
        if kind == "ConcatenatedString":
            return self._formatted(node.left) or self._formatted(node.right)
        return kind in ("FormattedString", "TemplatedString")

    def _string(self, node: Any) -> None:
        start, end = self.span(node)
        keep: list[tuple[int, int]] = []
        commas: list[int] = []
        literals: list[str] = []
        template = self._collect(node, keep, commas, literals)
        inner = {place: bytes(self.data[place:stop]) for place, stop in keep}
        self.blank(start, end)
        for place, stop in keep:
            self.data[place:stop] = inner[place]
        for place in commas:
            self.data[place] = 44
        self.data[start] = 91
        self.data[end - 1] = 93
        self.found.append(_String(start, template, tuple(literals)))

    def _collect(self, node: Any, keep: list[tuple[int, int]], commas: list[int], literals: list[str]) -> bool:
        kind = type(node).__name__
        if kind == "ConcatenatedString":
            left = self._collect(node.left, keep, commas, literals)
            return self._collect(node.right, keep, commas, literals) or left
        if kind == "SimpleString":
            literals.append(str(node.value).lstrip("rRbBuU").strip("'\""))
            return False
        self._parts(node.parts, keep, commas, literals)
        return kind == "TemplatedString"

    def _parts(self, parts: Any, keep: list[tuple[int, int]], commas: list[int], literals: list[str]) -> None:
        for part in parts:
            if type(part).__name__.endswith("Text"):
                literals.append(str(part.value))
                continue
            self.visit(part.expression)
            start, end = self.span(part.expression)
            for bracket in part.expression.lpar:
                start = min(start, self.span(bracket)[0])
            for bracket in part.expression.rpar:
                end = max(end, self.span(bracket)[1])
            keep.append((start, end))
            # The closing brace, conversion, `=` or colon comes right after the expression: room for a comma.
            commas.append(self.original.index(b"}", end) if self.original[end : end + 1].isspace() else end)
            if part.format_spec:
                self._parts(part.format_spec, keep, commas, [])

    def result(self) -> Downleveled:
        text = self.data.decode("utf-8", errors="replace")
        starts = [0]
        for place, byte in enumerate(self.data):
            if byte == 10:
                starts.append(place + 1)
        strings: dict[tuple[int, int], _String] = {}
        line = 0
        for string in sorted(self.found, key=lambda found: found.start):
            while line + 1 < len(starts) and starts[line + 1] <= string.start:
                line += 1
            strings[(line + 1, string.start - starts[line])] = string
        return Downleveled(text, strings)


def _serve() -> None:
    """The child's loop: a text in, a rewriting out, until the pipe closes."""
    while True:
        try:
            text = _receive(sys.stdin.buffer)
        except EOFError:
            return
        _send(sys.stdout.buffer, json.dumps(_packed(downlevel(text))))


if __name__ == "__main__":
    _serve()
