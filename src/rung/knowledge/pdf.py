"""PDF into blocks: the text of each page under a section `page N`."""

from __future__ import annotations

import io
import logging
import re

from rung.errors import InputError, missing_extra
from rung.knowledge.blocks import Block, Parsed


def read_pdf(data: bytes, name: str) -> Parsed:
    """The text layer of a PDF; a scanned page without one gives nothing.

    Raises:
        InputError: the file is broken, encrypted, or no page of it holds text.
        MissingExtraError: `pypdf` is not installed.
    """
    try:
        import pypdf
    except ImportError:
        raise missing_extra("pypdf", "knowledge") from None
    # The reader reports every repaired flaw; what matters is whether text came out.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    blocks: list[Block] = []
    try:
        reader = pypdf.PdfReader(io.BytesIO(data), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise InputError(f"`{name}` is encrypted (add a copy without password)", field="path")
        title = None if reader.metadata is None else reader.metadata.title
        for number, page in enumerate(reader.pages, 1):
            text = page.extract_text().replace("\x00", "\ufffd")
            paragraphs = [part.strip() for part in re.split(r"\n[ \t]*\n", text) if part.strip()]
            if paragraphs:
                blocks.append(Block(kind="heading", text=f"# page {number}", level=1))
                blocks += (Block(kind="text", text=part) for part in paragraphs)
    except InputError:
        raise
    except Exception as error:
        # A broken file fails in many places of the reader, with errors of many kinds.
        raise InputError(
            f"`{name}` cannot be read as PDF: {type(error).__name__} (save it again with another program)", field="path"
        ) from error
    if not blocks:
        raise InputError(f"`{name}` holds no text (a scan needs character recognition first)", field="path")
    return Parsed(title=str(title).strip() or None if title else None, blocks=tuple(blocks))
