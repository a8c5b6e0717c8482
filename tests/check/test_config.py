"""Configuration: what it adds, what it leaves out, and how a wrong one is refused."""

from pathlib import Path

import pytest

import rung
from rung.check import CheckConfig, Sink, Source, check_paths, check_source, load_config, rule_pages
from rung.errors import ConfigError

HTTP = b"import requests\ndef ask(url):\n    return SystemMessage(content=requests.get(url).text)\n"


def rules(data: bytes, **fields) -> list[str]:
    return [found.rule for found in check_source(data, "x.py", CheckConfig(**fields))]


def test_select_and_ignore_take_ids_and_prefixes_and_the_longer_one_wins():
    assert rules(HTTP, select=("RUNG1",)) == ["RUNG102"]
    assert rules(HTTP, select=("RUNG2",)) == []
    assert rules(HTTP, ignore=("RUNG102",)) == []
    assert rules(HTTP, select=("RUNG102",), ignore=("RUNG1",)) == ["RUNG102"]
    assert rules(HTTP, select=("RUNG1",), ignore=("RUNG102",)) == []


def test_a_configured_call_is_a_source():
    data = b"import acme\ndef ask():\n    return SystemMessage(content=acme.feed.latest())\n"
    assert rules(data) == []
    assert rules(data, sources=(Source(kind="custom", call="acme.feed.*"),)) == ["RUNG108"]
    assert rules(data, sources=(Source(kind="memory", call="acme.feed.*"),)) == ["RUNG105"]


def test_attributes_annotations_and_decorators_are_sources_too():
    attribute = b"def ask(bot):\n    return SystemMessage(content=bot.diary)\n"
    assert rules(attribute, sources=(Source(kind="memory", attribute="*.diary"),)) == ["RUNG105"]
    annotation = b"from acme import Page\ndef ask(page: Page):\n    return SystemMessage(content=page.body)\n"
    assert rules(annotation, sources=(Source(kind="http", annotation="acme.page"),)) == ["RUNG102"]
    decorator = b"@action\ndef look(): return 1\ndef ask():\n    return SystemMessage(content=look())\n"
    assert rules(decorator, sources=(Source(kind="tool", decorator="action"),)) == ["RUNG101"]


def test_a_configured_argument_is_a_sink():
    data = b"import requests\ndef ask(url):\n    acme.Bot(rules='Use ' + requests.get(url).text)\n"
    assert rules(data) == []
    assert rules(data, sinks=(Sink(call="*acme.bot", argument="rules", channel="a bot's rules"),)) == ["RUNG102"]
    place = b"import requests\ndef ask(url):\n    acme.start(1, requests.get(url).text)\n"
    assert rules(place, sinks=(Sink(call="acme.start", position=1),)) == ["RUNG102"]


def test_a_sanitizer_ends_a_flow_and_a_carrier_continues_it():
    data = (
        b"import requests, acme\ndef ask(url):\n    return SystemMessage(content=acme.clean(requests.get(url).text))\n"
    )
    assert rules(data) == []
    assert rules(data, carriers=("acme.clean",)) == ["RUNG102"]
    assert rules(data, carriers=("acme.clean",), sanitizers=("acme.*",)) == []


UNUSED = [
    ("used", b"  # rung: ignore[RUNG102]", []),
    ("used, all rules", b"  # rung: ignore", []),
    ("one of two idle", b"  # rung: ignore[RUNG102, RUNG301]", ["RUNG001"]),
    ("another rule", b"  # rung: ignore[RUNG301]", ["RUNG001", "RUNG102"]),
    ("no rule of that name", b"  # rung: ignore[RUNG999]", ["RUNG001", "RUNG102"]),
]


@pytest.mark.parametrize(("comment", "expected"), [row[1:] for row in UNUSED], ids=[row[0] for row in UNUSED])
def test_an_idle_ignore_is_reported_on_request(comment, expected):
    assert sorted(rules(HTTP.rstrip() + comment + b"\n", report_unused_ignores=True)) == expected
    assert "RUNG001" not in rules(HTTP.rstrip() + comment + b"\n")


def test_an_idle_ignore_of_a_clean_file_is_reported():
    assert rules(b"x = 1  # rung: ignore\n", report_unused_ignores=True) == ["RUNG001"]
    assert rules(b"# rung: ignore-file\nx = 1\n", report_unused_ignores=True) == ["RUNG001"]


def test_pyproject_is_found_above_the_path_and_fully_read(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        """[tool.rung.check]
exclude = ["vendored/*", "gen_*.py"]
select = ["RUNG"]
ignore = ["RUNG302"]
report-unused-ignores = true
sanitizers = ["acme.clean"]
carriers = ["acme.text.*"]
sources = [{ kind = "tool", call = "acme.search" }, { call = "acme.x" }]
sinks = [{ call = "acme.Bot", argument = "rules", position = 0, channel = "a bot's rules" }]
""",
        encoding="utf-8",
    )
    inner = tmp_path / "src"
    inner.mkdir()
    assert load_config(start=inner) == CheckConfig(
        exclude=("vendored/*", "gen_*.py"),
        select=("RUNG",),
        ignore=("RUNG302",),
        report_unused_ignores=True,
        sanitizers=("acme.clean",),
        carriers=("acme.text.*",),
        sources=(Source(kind="tool", call="acme.search"), Source(kind="custom", call="acme.x")),
        sinks=(Sink(call="acme.Bot", argument="rules", position=0, channel="a bot's rules"),),
    )


WRONG = [
    ("unknown field", 'excludes = ["a"]', "excludes"),
    ("not a list", 'exclude = "a"', "exclude"),
    ("not strings", "exclude = [1]", "exclude"),
    ("no such rule", 'select = ["E5"]', "select"),
    ("flag", 'report-unused-ignores = "yes"', "report-unused-ignores"),
    ("kind", 'sources = [{ kind = "x", call = "a" }]', "sources[0].kind"),
    ("two ways", 'sources = [{ call = "a", attribute = "b" }]', "sources[0]"),
    ("entry", "sources = [1]", "sources[0]"),
    ("entries", "sources = 1", "sources"),
    ("sink without call", 'sinks = [{ argument = "a" }]', "sinks[0].call"),
    ("sink without argument", 'sinks = [{ call = "a" }]', "sinks[0]"),
    ("sink position", 'sinks = [{ call = "a", position = -1 }]', "sinks[0].position"),
    ("sink position type", 'sinks = [{ call = "a", position = "0" }]', "sinks[0].position"),
    ("no TOML", "= 1", ""),
]


@pytest.mark.parametrize(("body", "path"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_a_wrong_configuration_is_refused_by_field(tmp_path, body, path):
    file = tmp_path / "pyproject.toml"
    file.write_text("[tool.rung.check]\n" + body, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(file)
    assert caught.value.path == path


def test_a_file_of_its_own_may_leave_out_the_table(tmp_path):
    file = tmp_path / "check.toml"
    file.write_text('ignore = ["RUNG302"]', encoding="utf-8")
    assert load_config(file).ignore == ("RUNG302",)


def test_excluded_files_and_folders_and_environments_are_not_walked(tmp_path):
    for name in ("a.py", "b.pyi", "c.txt", "gen_x.py", ".venv/lib/d.py", "vendored/e.py", "sub/f.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(HTTP)
    found = check_paths([tmp_path, tmp_path / "a.py"], CheckConfig(exclude=("vendored", "gen_*.py")))
    assert [Path(one.path).relative_to(tmp_path).as_posix() for one in found] == ["a.py", "b.pyi", "sub/f.py"]


def test_rung_itself_is_clean():
    assert check_paths([Path(rung.__file__).parent]) == []


def test_the_docs_hold_the_page_of_every_rule_as_the_table_says_it():
    docs = Path(__file__).parents[2] / "docs" / "check.md"
    assert rule_pages() in docs.read_text(encoding="utf-8")
