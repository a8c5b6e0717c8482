from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from rung.errors import ConfigError, InputError, MissingExtraError
from rung.tokens import (
    BlockCounter,
    CallableTokenizer,
    EstimateTokenizer,
    HuggingFaceTokenizer,
    TiktokenTokenizer,
    Tokenizer,
    tokenizer_for,
)

from .hostile import ENGLISH, SCRIPTS, hostile_text


def trained() -> Any:
    from tokenizers import Tokenizer as Fast
    from tokenizers import decoders, models, pre_tokenizers, trainers

    fast = Fast(models.BPE())
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    fast.train_from_iterator([ENGLISH], trainer)
    return fast


FAST = trained()


@settings(max_examples=60, deadline=None)
@given(text=hostile_text)
def test_hugging_face_counts_any_text_whole_and_in_blocks(text: str) -> None:
    tokenizer = HuggingFaceTokenizer(FAST)
    assert BlockCounter(tokenizer).count(text) == tokenizer.count(text) >= (len(text) > 0)


@pytest.mark.parametrize("text", SCRIPTS.values(), ids=SCRIPTS)
def test_hugging_face_counts_control_tokens_as_text(text: str) -> None:
    tokenizer = HuggingFaceTokenizer(FAST)
    assert tokenizer.count(text + "<|endoftext|>") > tokenizer.count(text) + 1


def test_hugging_face_ignores_truncation_and_padding_and_leaves_yours_alone() -> None:
    fast = trained()
    fast.enable_truncation(4)
    fast.enable_padding(length=64)
    tokenizer = HuggingFaceTokenizer(fast)
    assert tokenizer.count("a") == 1
    assert tokenizer.count(ENGLISH * 2) > 64
    assert len(fast.encode("a").ids) == 64


def test_hugging_face_reads_a_file_and_takes_its_folder_as_name(tmp_path: Path) -> None:
    folder = tmp_path / "small-model"
    folder.mkdir()
    FAST.save(str(folder / "tokenizer.json"))
    tokenizer = HuggingFaceTokenizer(folder / "tokenizer.json")
    assert tokenizer.name == "hf:small-model"
    assert tokenizer.count(ENGLISH) == HuggingFaceTokenizer(FAST, name="mine").count(ENGLISH)
    assert HuggingFaceTokenizer(FAST, name="mine").name == "mine"
    assert tokenizer.exact
    assert not tokenizer.additive_newline
    assert isinstance(tokenizer, Tokenizer)
    assert "small-model" in repr(tokenizer)


def test_hugging_face_takes_the_tokenizer_inside_another() -> None:
    class Wrapped:
        backend_tokenizer = FAST
        name_or_path = "acme/model"

    assert HuggingFaceTokenizer(Wrapped()).name == "hf:acme/model"


def test_hugging_face_refuses_other_things(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"`gone\.json` is not a readable tokenizer file"):
        HuggingFaceTokenizer(tmp_path / "gone.json")
    with pytest.raises(ConfigError, match="`dict` is not a tokenizer"):
        HuggingFaceTokenizer({})


def without(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def importing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".")[0] == package:
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", importing)


def test_hugging_face_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    without("tokenizers", monkeypatch)
    with pytest.raises(MissingExtraError, match=r"install 'rung\[hf\]'"):
        HuggingFaceTokenizer("tokenizer.json")


def test_a_callable_counts_by_number_or_by_sequence() -> None:
    assert CallableTokenizer(len, name="chars").count("abc") == 3
    assert CallableTokenizer(str.split, name="words", exact=True).count("a b") == 2
    assert CallableTokenizer(len, name="chars").exact is False
    assert isinstance(CallableTokenizer(len, name="chars"), Tokenizer)
    assert "chars" in repr(CallableTokenizer(len, name="chars"))


def test_a_callable_never_sees_a_lone_surrogate() -> None:
    assert CallableTokenizer(lambda text: len(text.encode()), name="bytes").count("\ud800é") == 5


@pytest.mark.parametrize("answer", [None, -1, 1.5, True])
def test_a_callable_that_returns_no_count_is_an_error(answer: Any) -> None:
    with pytest.raises(InputError, match="tokenizer `odd` returned"):
        CallableTokenizer(lambda _: answer, name="odd").count("a")


MODELS = {
    "o200k_base": "o200k_base",
    "cl100k_base": "cl100k_base",
    "gpt-4o": "o200k_base",
    "gpt-4o-mini-2024-07-18": "o200k_base",
    "gpt-4.1-nano": "o200k_base",
    "gpt-5": "o200k_base",
    "gpt-5.1-codex": "o200k_base",
    "o1": "o200k_base",
    "o3-mini": "o200k_base",
    "o4-mini": "o200k_base",
    "gpt-4": "cl100k_base",
    "gpt-4-turbo": "cl100k_base",
    "gpt-3.5-turbo-0125": "cl100k_base",
    "gpt-35-turbo": "cl100k_base",
    "text-embedding-3-small": "cl100k_base",
    "openai/gpt-4o": "o200k_base",
    "ft:gpt-4o:acme::x": "o200k_base",
    "GPT-4o": "o200k_base",
}
ESTIMATES = ["claude-sonnet-4-5", "us.anthropic.claude-3-haiku", "gemini-2.5-pro", "llama3.2", "qwen2.5-7b"]


@pytest.mark.parametrize(("model", "encoding"), MODELS.items())
def test_a_model_is_counted_by_its_published_encoding(model: str, encoding: str) -> None:
    tokenizer = tokenizer_for(model)
    assert isinstance(tokenizer, TiktokenTokenizer)
    assert tokenizer.name == encoding
    assert tokenizer_for(model) is tokenizer


@pytest.mark.parametrize("model", ESTIMATES)
def test_a_model_without_a_published_encoding_is_estimated_and_says_so(model: str) -> None:
    tokenizer = tokenizer_for(model)
    assert isinstance(tokenizer, EstimateTokenizer)
    assert (tokenizer.name, tokenizer.exact) == (f"estimate({model})", False)


@pytest.mark.parametrize("name", ["gpt-4omega", "davinci", "o11", "phi-3", "word"])
def test_an_unknown_model_is_an_error_unless_an_estimate_is_wanted(name: str) -> None:
    with pytest.raises(ConfigError, match=f"no tokenizer is known for `{name}`"):
        tokenizer_for(name)
    assert tokenizer_for(name, fallback="estimate").name == f"estimate({name})"


def test_no_name_is_an_error() -> None:
    assert tokenizer_for("estimate").name == "estimate"
    with pytest.raises(InputError, match="name of an encoding or a model"):
        tokenizer_for("")
