"""Ways to hide a passage: each takes the passage and a source of chance and gives what the protected text says."""

from __future__ import annotations

import base64
import codecs
import random
import unicodedata
from collections.abc import Callable
from urllib.parse import quote

Evasion = Callable[[str, random.Random], str]

CYRILLIC = str.maketrans("aceopxyABCEHKMOPTXi", "асеорхуАВСЕНКМОРТХі")
GREEK = str.maketrans("oABEHIKMNOPTXYZv", "οΑΒΕΗΙΚΜΝΟΡΤΧΥΖν")
SPACES = (
    "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u202f\u205f\u3000\t\n\v\f\r\x85\u2028\u2029"
)
ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff\u180e\u2061\u2062\u2063\u2064\u115f\u1160\u3164\uffa0\u034f\u17b4\u17b5"
BIDI = "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
SELECTORS = "\ufe00\ufe0f\U000e0100\U000e01ef"


def every(mark: str, gap: int = 3) -> Evasion:
    """A mark after every few characters."""
    return lambda text, _: "".join(c + (mark if i % gap == 0 else "") for i, c in enumerate(text))


def mathematical(text: str, _: random.Random) -> str:
    """Bold mathematical letters and digits."""
    return "".join(
        chr(0x1D400 + ord(c) - 65) if "A" <= c <= "Z" else chr(0x1D41A + ord(c) - 97) if "a" <= c <= "z" else c
        for c in text
    )


def wrapped(text: str, width: int) -> str:
    return "\n".join(text[i : i + width] for i in range(0, len(text), width))


CHARACTER_EVASIONS: dict[str, Evasion] = {
    "identical": lambda text, _: text,
    "upper case": lambda text, _: text.upper(),
    "swapped case": lambda text, _: text.swapcase(),
    "white space added": lambda text, _: " ".join(text),
    "white space removed": lambda text, _: text.replace(" ", ""),
    "line breaks": lambda text, _: text.replace(" ", "\r\n\r\n"),
    "punctuation added": lambda text, _: text.replace(" ", " ... "),
    "punctuation removed": lambda text, _: "".join(c for c in text if unicodedata.category(c)[0] != "P"),
    "quotes": lambda text, _: "> “" + text.replace(" ", "” 'and' “").replace("'and'", "") + "”",
    "bullets": lambda text, _: "".join(f"\n- • * {word}" for word in text.split()),
    "underscores": lambda text, _: text.replace(" ", "_"),
    "Markdown": lambda text, _: " ".join(f"**{word}**" for word in text.split()),
    "numbered list": lambda text, _: "".join(f"\n{i}. {word}" for i, word in enumerate(text.split(), 1)),
    "HTML": lambda text, _: " ".join(f'<b class="x">{word}</b><br/>' for word in text.split()),
    "HTML inside words": lambda text, _: "".join(f"<i>{c}</i>" for c in text),
    "soft hyphens": every("\u00ad"),
    "combining marks": every("\u0301"),
    "many combining marks": every("\u0335\u0301\u0327", 1),
    "composed accents": lambda text, _: unicodedata.normalize("NFC", every("\u0301", 1)(text, _)),
    "tag characters": every("\U000e0041\U000e007f"),
    "Cyrillic look-alikes": lambda text, _: text.translate(CYRILLIC),
    "Greek look-alikes": lambda text, _: text.translate(GREEK),
    "full width": lambda text, _: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text),
    "mathematical letters": mathematical,
    "circled letters": lambda text, _: "".join(chr(0x24D0 + ord(c) - 97) if "a" <= c <= "z" else c for c in text),
    "small capitals": lambda text, _: text.translate(str.maketrans("abcdeghjkmnoptuvwz", "ᴀʙᴄᴅᴇɢʜᴊᴋᴍɴᴏᴘᴛᴜᴠᴡᴢ")),
    "rn for m": lambda text, _: text.replace("m", "rn"),
    "1 and | for l, 0 for o": lambda text, _: text.replace("l", "1").replace("o", "0"),
    "capital I for l": lambda text, _: text.replace("l", "I"),
    "entities": lambda text, _: "".join(f"&#{ord(c)};" for c in text),
    "hex entities": lambda text, _: "".join(f"&#x{ord(c):x};" for c in text),
    "percent": lambda text, _: quote(text),
    "percent everywhere": lambda text, _: "".join(f"%{ord(c):02X}" for c in text),
    "double percent": lambda text, _: quote(quote(text)),
    "backslash x": lambda text, _: "".join(f"\\x{ord(c):02x}" for c in text),
    "backslash u": lambda text, _: "".join(f"\\u{ord(c):04x}" for c in text),
    "backslash n": lambda text, _: text.replace(" ", "\\n"),
    **{f"space U+{ord(c):04X}": (lambda text, _, c=c: text.replace(" ", c)) for c in SPACES},
    **{f"zero width U+{ord(c):04X}": every(c) for c in ZERO_WIDTH},
    **{f"bidi U+{ord(c):04X}": every(c) for c in BIDI},
    **{f"selector U+{ord(c):04X}": every(c) for c in SELECTORS},
}

ENCODINGS: dict[str, Evasion] = {
    "hidden in tag characters": lambda text, _: "".join(chr(0xE0000 + ord(c)) for c in text if ord(c) < 127),
    "base64": lambda text, _: base64.b64encode(text.encode()).decode(),
    "base64 without padding": lambda text, _: base64.b64encode(text.encode()).decode().rstrip("="),
    "base64 URL-safe": lambda text, _: base64.urlsafe_b64encode(text.encode()).decode(),
    "base64 wrapped at 76": lambda text, _: wrapped(base64.b64encode(text.encode()).decode(), 76),
    "base64 wrapped at 5": lambda text, _: wrapped(base64.b64encode(text.encode()).decode(), 5),
    "base64 URL-safe wrapped at 24": lambda text, _: wrapped(base64.urlsafe_b64encode(text.encode()).decode(), 24),
    "base64 with dashes": lambda text, _: "-".join(wrapped(base64.b64encode(text.encode()).decode(), 9).split()),
    "base64 at another alignment": lambda text, _: base64.b64encode(b"z" + text.encode()).decode(),
    "base64 at a third alignment": lambda text, _: base64.b64encode(b"zz" + text.encode()).decode(),
    "base64 after letters": lambda text, _: "abc" + base64.b64encode(text.encode()).decode(),
    "base64 of UTF-16": lambda text, _: base64.b64encode(text.encode("utf-16-le")).decode(),
    "hex": lambda text, _: text.encode().hex(),
    "hex in capitals": lambda text, _: text.encode().hex().upper(),
    "hex spaced": lambda text, _: text.encode().hex(" "),
    "hex with colons": lambda text, _: text.encode().hex(":"),
    "hex with 0x": lambda text, _: ", ".join(f"0x{b:02x}" for b in text.encode()),
    "hex after a digit": lambda text, _: "f" + text.encode().hex(),
    "rot13": lambda text, _: codecs.encode(text, "rot13"),
}
