"""Pictures of screens: right XML that fetches nothing, with every piece of text where it stands in the terminal."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from tuimon.draw.svg import CELL, EDGE, LINE, Run, svg
from tuimon.draw.text import cells, clean

SVG = "{http://www.w3.org/2000/svg}"
NONE: frozenset[str] = frozenset()


def drawn(rows: list[list[Run]], width: int = 20, height: int = 4, **more: str) -> ElementTree.Element:
    given = {"title": "a title", "ground": "#101010", "text": "#d0d0d0", **more}
    return ElementTree.fromstring(svg(rows, width, height, **given))  # type: ignore[arg-type]


def texts(picture: ElementTree.Element) -> list[tuple[str, float, float, float]]:
    """(text, left, row, width), in cells."""
    return [
        (
            one.text or "",
            (float(one.attrib["x"]) - EDGE) / CELL,
            (float(one.attrib["y"]) - EDGE) // LINE,
            float(one.attrib["textLength"]) / CELL,
        )
        for one in picture.iter(f"{SVG}text")
    ]


def test_nothing_is_fetched_and_nothing_runs() -> None:
    text = svg([[("<script>&", None, None, NONE)]], 20, 1, title="<b>", ground="#000000", text="#ffffff")
    assert re.findall(r"https?://[^\"]*", text) == ["http://www.w3.org/2000/svg"]
    assert "@font-face" not in text and "<script" not in text and "url(" not in text
    assert texts(ElementTree.fromstring(text))[0][0] == "<script>&"


def test_size_and_ground() -> None:
    picture = drawn([])
    assert picture.attrib["width"] == str(round(20 * CELL + 2 * EDGE))
    assert picture.attrib["height"] == str(4 * LINE + 2 * EDGE)
    assert picture.find(f"{SVG}title").text == "a title"  # type: ignore[union-attr]
    assert picture.find(f"{SVG}rect").attrib["fill"] == "#101010"  # type: ignore[union-attr]


def test_neighbours_of_one_look_are_one_and_blanks_take_the_look_before() -> None:
    bold = frozenset(["bold"])
    picture = drawn(
        [[("a", "#ff0000", None, bold), ("b", "#ff0000", None, bold), ("  ", None, None, NONE), ("c", None, None, NONE)]]
    )
    assert [text for text, *_ in texts(picture)] == ["ab  ", "c"]


def test_reverse_changes_the_two_colours() -> None:
    picture = drawn([[("x", None, None, frozenset(["reverse"]))]])
    assert picture.findall(f"{SVG}rect")[1].attrib["fill"] == "#d0d0d0"
    assert "fill:#101010" in picture.find(f"{SVG}style").text  # type: ignore[operator,union-attr]


def test_a_blank_with_a_line_under_it_is_drawn() -> None:
    assert texts(drawn([[("   ", None, None, frozenset(["underline"]))]]))
    assert not texts(drawn([[("   ", None, None, NONE)]]))


@given(
    st.lists(st.tuples(st.text(max_size=8), st.sampled_from([None, "#ff0000"]), st.sampled_from([None, "#0000ff"])), max_size=6)
)
def test_every_piece_stands_where_it_does_in_the_terminal(parts: list[tuple[str, str | None, str | None]]) -> None:
    row: list[Run] = [(clean(text), color, ground, NONE) for text, color, ground in parts]
    picture = drawn([row], 80, 1)
    line = "".join(text for text, *_ in row)
    for text, left, y, width in texts(picture):
        assert y == 0
        assert abs(width - cells(text)) < 0.02
        at = next(at for at in range(len(line) + 1) if line.startswith(text, at) and abs(cells(line[:at]) - left) < 0.02)
        assert line[at:].startswith(text)
    shown = "".join(text for text, *_ in texts(picture))
    assert shown.replace(" ", "") == line.replace(" ", "")
