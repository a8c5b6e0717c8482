"""Whatever a file holds, the linter answers: with findings or with RUNG000, and in time."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rung.check import check_paths, check_source
from rung.check.downlevel import Downleveler, downlevel

SINK = "import requests\ndef ask(url):\n    return SystemMessage(content=requests.get(url).text)\n"


def rules(data: bytes) -> list[str]:
    return [found.rule for found in check_source(data, "x.py")]


ENCODINGS = [
    ("empty", b"", []),
    ("only a comment", b"# nothing", []),
    ("byte order mark", b"\xef\xbb\xbf" + SINK.encode(), ["RUNG102"]),
    ("latin-1 by its coding line", b"# -*- coding: latin-1 -*-\nx = '\xe9'\n" + SINK.encode(), ["RUNG102"]),
    ("latin-1 without a coding line", b"x = '\xe9'\n", ["RUNG000"]),
    ("unknown coding", b"# coding: klingon\n", ["RUNG000"]),
    ("mark against coding line", b"\xef\xbb\xbf# coding: latin-1\n", ["RUNG000"]),
    ("windows line ends", SINK.replace("\n", "\r\n").encode(), ["RUNG102"]),
    ("old mac line ends", SINK.replace("\n", "\r").encode(), ["RUNG102"]),
    ("form feed", b"\f" + SINK.encode(), ["RUNG102"]),
    ("null byte", b"x = 1\0\n", ["RUNG000"]),
    ("no end of line", SINK.rstrip().encode(), ["RUNG102"]),
    ("binary", bytes(range(256)), ["RUNG000"]),
]


@pytest.mark.parametrize(("data", "expected"), [row[1:] for row in ENCODINGS], ids=[row[0] for row in ENCODINGS])
def test_every_encoding_is_read_or_reported(data, expected):
    assert rules(data) == expected


DEEP = [
    ("parentheses", "x=" + "(" * 5000 + "1" + ")" * 5000),
    ("sums", "x=" + "+".join(["a"] * 20_000)),
    ("method chains", "x=a" + ".b()" * 3000),
    ("calls in calls", "x=" + "a(" * 190 + ")" * 190),
    ("lists", "x=" + "[" * 190 + "]" * 190),
    ("dicts", "x=" + "{1:" * 190 + "1" + "}" * 190),
    ("lambdas", "x=" + "lambda: " * 900 + "1"),
    ("elif", "if a:\n pass\n" + "elif b:\n pass\n" * 20_000),
    ("blocks", "".join(" " * depth + "if a:\n" for depth in range(99)) + " " * 99 + "pass\n"),
    ("functions", "".join(" " * depth + "def f(a):\n" for depth in range(99)) + " " * 99 + "pass\n"),
    ("classes", "".join(" " * depth + "class A:\n" for depth in range(99)) + " " * 99 + "pass\n"),
    ("newer strings before parentheses", 'x=f"{d["a"]}"\ny=' + "(" * 3000 + "1" + ")" * 3000),
    ("newer strings before sums", 'x=f"{d["a"]}"\ny=' + "+".join("a" * 1_000)),
    ("newer strings before nots", 'x=f"{d["a"]}"\ny=' + "not " * 30_000 + "a"),
    ("newer strings before minuses", 'x=f"{d["a"]}"\ny=' + "-" * 30_000 + "a"),
    ("newer strings before attributes", 'x=f"{d["a"]}"\ny=a' + ".b" * 1_000),
    ("newer strings before lambdas", 'x=f"{d["a"]}"\ny=' + "lambda: " * 30_000 + "a"),
    ("newer strings before conditions", 'x=f"{d["a"]}"\ny=' + "a if b else " * 30_000 + "a"),
    ("newer strings before awaits", 'x=f"{d["a"]}"\nasync def f():\n y=' + "await " * 30_000 + "a"),
]


@pytest.mark.parametrize("text", [row[1] for row in DEEP], ids=[row[0] for row in DEEP])
def test_deep_nesting_is_followed_or_reported(text):
    assert rules(text.encode()) in ([], ["RUNG000"])


def test_an_unreadable_place_is_named():
    (found,) = check_source(b"x = 1\ndef broken(:\n", "x.py")
    assert (found.rule, found.line) == ("RUNG000", 2)
    assert found.message.startswith("the file is no Python")


NEWER = [
    ("quotes of the same kind", 'SystemMessage(content=f"{d["k"]} {requests.get(u).text}")'),
    ("nested f-strings", 'SystemMessage(content=f"{f"{requests.get(u).text}"}")'),
    ("conversion and width", 'SystemMessage(content=f"{requests.get(u).text!r:>{d["w"]}}")'),
    ("debugging form", 'SystemMessage(content=f"{d["k"]=}" + requests.get(u).text)'),
    ("beside a plain string", 'SystemMessage(content="é" f"{d["k"]}{requests.get(u).text}" "c")'),
    ("several lines", 'SystemMessage(content=f"""a{\n  d["k"]  # why\n}\n{requests.get(u).text}""")'),
    ("type parameters with defaults", "def f[T = int](a: T) -> T: return a\nSystemMessage(requests.get(u).text)"),
    ("type statement", "type A[T] = list[\n  T]\nSystemMessage(requests.get(u).text)"),
    ("exceptions without parentheses", "try: pass\nexcept A, B: pass\nSystemMessage(requests.get(u).text)"),
    ("t-string elsewhere", 't = t"{u}"\nSystemMessage(requests.get(u).text)'),
]


def test_newer_syntax_is_read_on_an_older_python(tmp_path):
    for place, (_, body) in enumerate(NEWER):
        (tmp_path / f"case{place:02}.py").write_text("import requests\n" + body, encoding="utf-8")
    found = check_paths([tmp_path])
    assert [(one.rule, one.path[-9:]) for one in found] == [
        ("RUNG102", f"case{n:02}.py"[-9:]) for n in range(len(NEWER))
    ]


def test_without_libcst_newer_syntax_is_not_rewritten(monkeypatch):
    text = 'x = f"{d["a"]}"\n'
    with Downleveler() as ask:
        assert ask(text) is not None
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with Downleveler() as ask:
        assert ask(text) is None


def test_a_child_that_dies_or_hangs_costs_one_file_and_not_the_run(monkeypatch):
    monkeypatch.setattr("rung.check.downlevel.SECONDS", 1.5)
    with Downleveler() as ask:
        assert ask('x=f"{d["a"]}"\ny=' + "(" * 30_000 + "1" + ")" * 30_000) is None
        assert ask('x = f"{d["a"]}"\n') is not None


def test_a_t_string_given_to_instruct_keeps_its_values_apart():
    text = (
        "from rung import ContextStore\nstore = ContextStore()\ndef f(order):\n    store.instruct(t'About {order}')\n"
    )
    assert rules(text.encode()) == []


def test_downlevelling_keeps_every_line_and_byte_in_its_place():
    text = 'é = f"a{d["k"]!r}b" + x\ntype A = int\ny = 1\n'
    result = downlevel(text)
    assert result is not None
    before, after = text.encode().split(b"\n"), result.text.encode().split(b"\n")
    assert [len(line) for line in before] == [len(line) for line in after]
    assert after[2] == before[2]


BLOCK = """
class C{n}:
    def ask(self, q):
        docs = self.retriever.invoke(q)
        for i in range(3):
            for d in docs:
                if d.x: text = "a" + d.page_content
                else: text = f"{{d}} {{i}}"
        return {{"role": "system", "content": text}}
"""
SHAPES = [
    ("many classes", lambda size: "".join(BLOCK.format(n=place) for place in range(size // 10))),
    ("one function", lambda size: "def f(q):\n" + "".join(f" if q: v{n} = 'a' + str(q)\n" for n in range(size // 2))),
    (
        "one growing text",
        lambda size: "def f(t):\n p = ''\n" + "".join(f" p += t.run({n})\n" for n in range(size // 2)),
    ),
    ("one growing list", lambda size: "def f(tool):\n p = []\n" + " p.append(tool.run(1))\n" * (size // 2)),
    ("chain of helpers", lambda size: "".join(f"def f{n}(a):\n return f{n + 1}(a) + a\n" for n in range(size // 4))),
]


@pytest.mark.parametrize("shape", [row[1] for row in SHAPES], ids=[row[0] for row in SHAPES])
def test_work_grows_with_the_file_and_not_with_its_square(shape):
    def seconds(size: int) -> float:
        best = 99.9
        for _ in range(2):
            start = time.process_time()
            check_source(shape(size).encode(), "x.py")
            best = min(best, time.process_time() - start)
        return best

    seconds(200)
    assert seconds(2_400) < 10 * max(seconds(600), 0.02)


def test_ten_thousand_lines_take_a_few_seconds():
    text = SHAPES[0][1](10_000)
    start = time.process_time()
    found = check_source(text.encode(), "x.py")
    assert time.process_time() - start < 10
    assert len(found) == 1_000


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_give_an_answer(data):
    assert all(rule.startswith("RUNG") for rule in rules(data))


LINES = ["import requests", "x = requests.get(u).text", "y = f'{x}'", "def f(a): return a + x", "z = f(y)", "x = 1",
         "SystemMessage(y)", "if x in (1, 2): y = x", "for x in y: z = x", "with open(x) as y: z = y.read()",
         "y, *z = x, 1, 2", "x += y", "x[0]['content'] = y", "system_prompt = 'a' + y", "y = [x for x in y if x]",
         "class A: x = y", "lambda x: y", "x = {**y, 'role': 'system', 'content': x}", "match x:\n case [y]: z = y",
         "y = '%s %s' % (x, y)", "y = ','.join(x)", "y = y.format(x=x)", "del x", "x: A[str] = y",
         "a.b.c = x"]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(LINES), max_size=25))
def test_the_same_file_gives_the_same_findings(lines):
    data = "\n".join(lines).encode()
    first = check_source(data, "x.py")
    assert first == check_source(data, "x.py")
    count = len(lines) * 3 + 1
    assert all(1 <= found.line <= count and found.col >= 1 for found in first)
