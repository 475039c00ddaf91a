"""The documents hold: commands in them are such, links lead somewhere, examples run, generated pages are the newest."""

from __future__ import annotations

import re
import shlex
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from tuimon.app.look.themes import ORDER, load_themes
from tuimon.commands import demo
from tuimon.commands.parser import make_parser
from tuimon.roofline.ceilings import parse_ceilings
from tuimon.roofline.counts.formulas import FORMULAS, WORDS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_COMMAND = re.compile(r"`(tuimon(?: [^`]*)?)`")
_STANDS_FOR = {"PID": "1", "MS": "5", "S": "1", "N": "2", "X": "2", "CMD": "ssh", "..": ""}
"""Words of a command that stand for a value."""


def fenced(page: Path, *kinds: str) -> Iterator[str]:
    """The blocks of a page in these languages."""
    for kind, text in _FENCE.findall(page.read_text(encoding="utf-8")):
        if kind in kinds:
            yield text


def commands(page: Path) -> Iterator[str]:
    """Lines of blocks that call tuimon, without what is said behind them."""
    for block in fenced(page, "", "text", "sh", "bash", "console"):
        for line in block.replace("\\\n", " ").splitlines():
            if re.match(r"(\$ )?tuimon( |$)", line):
                yield re.split(r"\s{2,}|\s#\s| > | <", line.removeprefix("$ ").strip())[0]


def words_of(command: str) -> list[str]:
    """What tuimon would be given."""
    words = shlex.split(command.replace('"$plan"', "a=1"))[1:]
    return words[: words.index("--")] if "--" in words else words


def parses(words: list[str]) -> None:
    """make_parser takes them; help and version end it with status 0."""
    try:
        make_parser().parse_args(words)
    except SystemExit as left:
        assert not left.code, words


@pytest.mark.parametrize("name", NAMES)
def test_every_command_in_a_block_is_one(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in commands(ROOT / name):
        parses(words_of(command))


@pytest.mark.parametrize("name", NAMES)
def test_commands_within_sentences_are_known(name: str) -> None:
    known = {*make_parser()._subparsers._group_actions[0].choices, "relay"}  # type: ignore[union-attr, misc]
    for command in _COMMAND.findall((ROOT / name).read_text(encoding="utf-8")):
        words = command.split()[1:]
        if words and re.fullmatch(r"[a-z]+", words[0]):
            assert words[0] in known, command


@pytest.mark.parametrize("name", NAMES)
def test_every_link_leads_somewhere(name: str) -> None:
    page = ROOT / name
    for link in _LINK.findall(re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, heading = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{name}: {link}"
        if heading and target.suffix == ".md":
            assert heading in anchors(target), f"{name}: {link}"


def anchors(page: Path) -> set[str]:
    """Its headings, as links name them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    titles = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name == "index.md" or f"({page.name})" in index, page.name


def test_the_examples_of_adding_run() -> None:
    module = types.ModuleType("adding_example")
    space = vars(module)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    try:
        for block in fenced(ROOT / "docs" / "adding.md", "python"):
            exec(compile(block, "docs/adding.md", "exec"), space)
    finally:
        del sys.modules[module.__name__]
        for table in (FORMULAS, WORDS):
            table.pop("my_library.scaled_sum", None)
    assert {"_scaled_sum", "FanSource", "PANEL"} <= set(space)


def test_the_files_of_adding_are_such(tmp_path: Path) -> None:
    ceiling, theme = fenced(ROOT / "docs" / "adding.md", "toml")
    assert [one.name for one in parse_ceilings(ceiling.encode(), "adding.md")] == ["my board bf16"]
    (tmp_path / "mine.toml").write_text(theme, encoding="utf-8")
    loaded = load_themes(user=tmp_path)
    assert "mine" in loaded.themes and not loaded.problems
    assert re.findall(r'^base = "(.*)"$', theme, re.M)[0] in ORDER


def test_the_page_of_the_report_is_made_of_the_schema() -> None:
    from tools.report_fields import PAGE, page

    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tools.report_fields"


def test_all_short_demos_are_in_the_readme() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in demo.SHORT:
        assert f"tuimon demo {name}" in text or f"`{name}`" in text, name
