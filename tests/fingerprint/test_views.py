"""Views: how a text is read, and how each character leads back to the original."""

from __future__ import annotations

import base64
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.ledger.fingerprint import normalise, views
from rung.ledger.fingerprint.fold import fold, fold_origins
from rung.ledger.fingerprint.joint import long_runs

LONG = "this text is long enough to carry forty letters and more"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, World!", "helloworld"),
        ("Il1| O0 m", "llloorn"),
        ("ﬁne ½ ℃ Ⅷ", "flnel2cvlll"),
        ("Ｆｕｌｌ", "full"),
        ("𝐛𝐨𝐥𝐝", "bold"),
        ("naïve", "nalve"),
        ("Straße", "strasse"),
        ("раураl", "paypal"),
        ("\u202e\u200b\ufeff\u00ad", ""),
        ("١٢٣", "l23"),
    ],
)
def test_the_fold_keeps_letters_and_digits_in_one_form(text: str, expected: str) -> None:
    assert normalise(text).text == expected


@given(st.text(), st.text())
def test_the_fold_of_a_passage_is_a_part_of_the_fold_of_the_whole(left: str, right: str) -> None:
    assert fold(left + right) == fold(left) + fold(right)


@given(st.text())
def test_each_normalised_character_leads_back_to_one_that_folds_to_it(text: str) -> None:
    folded, origins = fold(text), fold_origins(text)
    assert len(folded) == len(origins)
    assert all(folded[i] in fold(text[origin]) for i, origin in enumerate(origins))


@given(st.text())
def test_case_makes_no_difference(text: str) -> None:
    mine = {fold(text.upper(), variant) for variant in ("look", "case")}
    assert mine & {fold(text.upper().casefold(), variant) for variant in ("look", "case")}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (LONG, "plain"),
        (LONG.replace(" ", "\\n"), "escapes"),
        (f"<p>{LONG}</p>", "markup"),
        ("".join(chr(0xE0000 + ord(c)) for c in LONG), "tags"),
        (base64.b64encode(LONG.encode()).decode(), "base64"),
        (LONG.encode().hex(), "hex"),
        (base64.b64encode(LONG.encode().hex().encode()).decode(), "base64>hex"),
        (base64.b64encode(LONG.replace(" ", "%20").encode()).decode(), "base64>escapes"),
    ],
)
def test_a_view_names_its_way_and_leads_back(text: str, path: str) -> None:
    whole = f"Log: {text}."
    (view,) = [v for v in views(whole) if v.path == path and fold(LONG) in v.text]
    at = view.text.index(fold(LONG))
    start, end = view.span(at, at + len(fold(LONG)))
    assert whole[start:end] in text
    assert end - start >= len(text) - 8
    assert view.origin(at) == start


def test_three_encodings_are_not_undone() -> None:
    text = LONG
    for _ in range(3):
        text = base64.b64encode(text.encode()).decode()
    assert not any(fold(LONG) in view.text for view in views(text))


@given(st.text("ab", max_size=200), st.sampled_from((15, 16, 24, 40)))
def test_long_runs_are_all_found(text: str, least: int) -> None:
    marks = bytes(1 if char == "a" else 0 for char in text.replace("b", "aaaaaaab"))
    expected = [m.span() for m in re.finditer(b"\x01{%d,}" % least, marks)]
    assert long_runs(np.frombuffer(marks, dtype=np.bool_), least) == expected


def test_views_do_not_depend_on_the_hash_seed() -> None:
    text = "<b>é И</b> &amp; 1234567890 http://a.b/c @ x" * 9
    code = f"from rung.ledger.fingerprint import *;print(FingerprintIndex().prints({text!r}).hex())"
    runs = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(runs) == 1


def test_importing_the_package_loads_no_numpy() -> None:
    code = "import sys, rung; print('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
