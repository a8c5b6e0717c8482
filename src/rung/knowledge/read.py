"""Files into structure: what is accepted, how it is decoded, and what is refused by name."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from rung.errors import InputError
from rung.knowledge.blocks import Parsed

Format = Literal["markdown", "text", "html", "pdf"]

FORMATS: dict[str, Format] = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".txt": "text",
    ".text": "text",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".pdf": "pdf",
}
MAX_BYTES = 20_000_000


class FileContent(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes of a file, its format, and when it was last changed, in microseconds."""

    name: str
    format: Format
    data: bytes
    changed: int


def read_file(path: Path, *, name: str | None = None, max_bytes: int = MAX_BYTES) -> FileContent:
    """A file's bytes, if it is a regular file of a known kind and of bounded size.

    Raises:
        InputError: no such file, no regular file, an unknown kind, or larger than `max_bytes`.
    """
    shown = name or path.name
    kind = FORMATS.get(path.suffix.lower())
    if kind is None:
        raise InputError(f"`{shown}` is of no known kind (one of {', '.join(FORMATS)})", field="path")
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"`{shown}` is no regular file", field="path")
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise InputError(f"`{shown}` cannot be read: {error.strerror or 'no reason given'}", field="path") from error
    if len(data) > max_bytes:
        raise InputError(f"`{shown}` has more than {max_bytes:,} bytes (split it, or raise max_bytes)", field="path")
    return FileContent(name=shown, format=kind, data=data, changed=status.st_mtime_ns // 1000)


def parse(content: FileContent) -> Parsed:
    """The structure of a file.

    Raises:
        InputError: it is not what its name says: binary, not UTF-8, a broken PDF.
        MissingExtraError: the package for its format is not installed.
    """
    if content.format == "pdf":
        from rung.knowledge.pdf import read_pdf

        return read_pdf(content.data, content.name)
    return parse_text(decoded(content.data, content.name), content.format)


def parse_text(text: str, kind: Format) -> Parsed:
    """The structure of a text."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if kind == "html":
        from rung.knowledge.html import read_html

        return read_html(text)
    from rung.knowledge.markdown import read_markdown, read_text

    return read_markdown(text) if kind == "markdown" else read_text(text)


def decoded(data: bytes, name: str) -> str:
    """UTF-8 with or without a mark, or UTF-16 with one.

    Raises:
        InputError: anything else; the message names the file and the place.
    """
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError(
            f"`{name}` is not {encoding.removesuffix('-sig').upper()}: byte {error.start} (save it as UTF-8)",
            field="path",
        ) from error
    if "\x00" in text:
        raise InputError(
            f"`{name}` is binary: NUL at character {text.index(chr(0))} (add its text instead)", field="path"
        )
    return text


def walk(folder: Path) -> Iterator[tuple[str, Path]]:
    """The files of a folder in the order of their names, each with its path below the folder.

    Symbolic links are not followed and names that begin with a dot are left out, so a loop, or a link
    to somewhere else, brings nothing in.
    """
    for where, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(where, name)
            if not name.startswith(".") and not path.is_symlink():
                yield path.relative_to(folder).as_posix(), path
