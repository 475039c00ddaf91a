"""Text of a job's in Markdown: whatever it is, it is read as text, and the document has the form that it has without it."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.report.compared import Run, compared
from tests.sources.test_live_anything import MESSAGES, PLACES, fold, with_value
from tuimon.commands import doctor
from tuimon.doctor.checks import note
from tuimon.draw.text import clean
from tuimon.report import build, render
from tuimon.report.compare.render import markdown as compare_markdown
from tuimon.report.markup import plain, table_row

PARSER = MarkdownIt("gfm-like")
EVIL = (
    "# evil", "+ evil", "- x", "* x", "1. evil", "1) evil", "---", "***", "===", "      evil", "\tx", "<b>x</b>", "<!-- x",
    "&lt;b&gt;", "&#35;", "http://evil.example/x", "www.evil.example", "evil.example", "//evil.example", "//localhost/x",
    "a@evil.example", "mailto:x@y.zz", "@org/team", "see @you", "#1", "GH-1", "org/repo#1", "0123abc", "!1", "$x$ $$y$$",
    "$`x`$",
    "**x** __y__ _z_ ~~s~~", "\\", "x\\", "\\|", "a\\|b", "`x`", "``", "`", "``` x", "~~~", "a|b", "|", "| --- |", "![x](http://e)",
    "[x](y)", "[x]: y", "[ ] x", "[x] y", "[^1]", ":tada:", "x :100: y", "10:100:30", "> x", "> [!NOTE]", "{{ x }}", "{% x %}",
    "<https://e.example>", "x ` y `` z", "(http://e.example)", "x\n\n# evil", "x\r# evil", "x\u2028# evil", "\u202e# evil",
)  # fmt: skip
ACTS = re.compile(r"[@#$&<>`*~^{}\\|]|//|www\.|:[a-z_+-][\w+-]*:|:\d{3,}:|\bgh-\d|\w\.[a-z]", re.IGNORECASE)
"""What may stand in code only, for somebody acts on it even where Markdown does not."""


def form(document: str) -> Counter[str]:
    """What a document consists of, text and code apart: names may be set as either."""
    found: Counter[str] = Counter()
    for token in PARSER.parse(document):
        for one in (token, *(token.children or ())):
            if one.type not in ("text", "softbreak", "code_inline", "inline"):
                found[f"{one.type} {one.tag}"] += 1
    return found


def read(document: str) -> tuple[str, str]:
    """(all that is read, that of it which is no code)."""
    inline = [one for token in PARSER.parse(document) for one in token.children or ()]
    told = [one for one in inline if one.type in ("text", "code_inline")]
    return "".join(one.content for one in told), " ".join(one.content for one in told if one.type == "text")


FRAMES = {
    "item": lambda text: f"- {plain(text)}\n- next\n",
    "item of an item": lambda text: f"1. first\n   - {plain(text)}\n",
    "heading": lambda text: f"# {plain(text)}\n",
    "line": lambda text: f"before\n\n{plain(text)}\n",
    "bold": lambda text: f"**{plain(text)}**\n",
    "words before": lambda text: f"- next: {plain(text)}\n",
    "cell": lambda text: f"{table_row('a', 'b')}\n| --- | --- |\n{table_row('x', text)}\n{table_row(text, 'y')}\n",
}


def check(text: str, name: str) -> None:
    document = FRAMES[name](text)
    bare = FRAMES[name]("evil")
    assert len(document.splitlines()) == len(bare.splitlines())
    assert form(document) == form(bare), document
    all_of_it, prose = read(document)
    assert not ACTS.search(prose), document
    expected = "".join(clean(text).replace("`", "").split())  # code that is code already keeps one pair of ticks
    times = 2 if name == "cell" else 1
    assert "".join(all_of_it.replace("`", "").split()).count(expected) >= times, document


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("text", EVIL)
def test_a_text_is_read_as_it_is_wherever_it_stands(text: str, name: str) -> None:
    check(text, name)
    check(f"x {text}", name)
    check(f"{text} x", name)


PIECES = [
    *EVIL,
    "x",
    " ",
    "`",
    "|",
    "\\",
    "(",
    ")",
    "[",
    "]",
    "1.",
    "-",
    "=",
    "*",
    "_",
    "é",
    "漢",
    ":",
    ";",
    "'",
    '"',
    "!",
    "a.b",
]


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join), st.sampled_from(sorted(FRAMES)))
def test_texts_of_all_of_these(text: str, name: str) -> None:
    if clean(text).split():
        check(text, name)


def test_prose_stays_prose_and_names_are_code() -> None:
    told = plain("312 us [290-355 us] (n 57), 98.5% of it; at 22:13:25 UTC")
    assert told == r"312 us \[290-355 us\] (n 57), 98.5% of it; at 22:13:25 UTC"
    assert plain("f [0/1]  model.py:41, Tensor.item() (my_graph)") == r"f \[0/1\] `model.py:41`, `Tensor.item()` (`my_graph`)"
    assert plain("steady 2.00 ms - x is no longer 1: torch 2.13.0+cpu") == "steady 2.00 ms - x is no longer 1: torch 2.13.0+cpu"
    assert plain("none: `tuimon calibrate` measures them") == "none: `tuimon calibrate` measures them"
    assert plain("see `tuimon run -- x y`, `a`") == "see `tuimon run -- x y`, `a`"
    assert plain("torch.compile(f, dynamic=True), or 1") == "`torch.compile(f, dynamic=True)`, or 1"
    assert plain("") == plain(" \n ") == ""


def value(at: int, path: tuple[Any, ...]) -> Any:
    """What a message has at that place."""
    inner: Any = MESSAGES[at]
    for step in path:
        inner = inner[step]
    return inner


TEXTS = [(at, path) for at, path in PLACES if isinstance(value(at, path), str)]


def told(at: int, path: tuple[Any, ...], text: str) -> str | None:
    """The report with that text in the message; None where it is no text that the field may have."""
    model, unread = fold(with_value(at, path, text))
    return None if unread else render(build(model), "md")


def test_a_report_has_the_form_that_it_has_with_other_texts() -> None:
    """Each place of each message that holds a text, with one of the texts in turn."""
    tried = 0
    for number, (at, path) in enumerate(TEXTS):
        usual, document = told(at, path, "evil"), told(at, path, EVIL[number % len(EVIL)])
        if usual is None or document is None or len(usual.splitlines()) != len(document.splitlines()):
            continue  # it is not only told, it means something: that of a region that is known, for one
        assert form(document) == form(usual), (at, path, EVIL[number % len(EVIL)])
        assert not ACTS.search(read(document)[1]), (at, path, EVIL[number % len(EVIL)])
        tried += 1
    assert tried > 50


FROM_JOBS = frozenset(
    {"command", "name", "verdict", "sentence", "reason", "function", "file", "why", "torch", "phase", "a", "b"}
)
"""Of a comparison: what may hold text of a job's."""


def with_text(found: Any, text: str, key: str = "") -> Any:
    """A comparison with this for all of that."""
    if isinstance(found, dict):
        if found.get("verdict") in ("same", "differs", "not known"):  # of a check
            return {name: text if name in ("a", "b", "why") else value for name, value in found.items()}
        return {name: with_text(value, text, name) for name, value in found.items()}
    if isinstance(found, list):
        return [with_text(value, text, key) for value in found]
    return text if isinstance(found, str) and key in FROM_JOBS else found


def test_what_doctor_says_of_a_process_has_the_form_that_it_has_with_other_texts() -> None:
    """Its command line, its paths, the names of its threads."""

    def told(text: str) -> str:
        return "\n".join(doctor.markdown([note("process", "program", f"{text} is it"), note("process", "x", text, text)]))

    for text in EVIL:
        assert form(told(text)) == form(told("evil")), text
        assert not ACTS.search(read(told(text))[1]), text


@pytest.mark.parametrize("b", [Run(seed=2), Run(dtype="bf16", seed=2)], ids=["comparable", "not comparable"])
def test_a_comparison_has_the_form_that_it_has_with_other_texts(b: Run) -> None:
    found = compared(Run(boundary_us=3_000), b)
    usual = form(compare_markdown(with_text(found, "evil")))
    for text in EVIL:
        document = compare_markdown(with_text(found, text))
        assert form(document) == usual, text
        assert not ACTS.search(read(document)[1]), text
