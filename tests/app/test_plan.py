"""Where things are, at every size."""

from __future__ import annotations

import itertools

import pytest

from tuimon.app.panels.all import PANELS
from tuimon.app.plan import Box, Plan, plan


def boxes(plan: Plan) -> list[Box]:
    return [box for box in (plan.target, plan.keys, plan.tiny, *plan.panels.values()) if box is not None]


def overlap(one: Box, other: Box) -> bool:
    return (
        one.x < other.x + other.width
        and other.x < one.x + one.width
        and one.y < other.y + other.height
        and other.y < one.y + one.height
    )


@pytest.mark.parametrize("zoomed", [None, "regions"])
def test_at_every_size_boxes_are_on_the_screen_and_apart(zoomed: str | None) -> None:
    for width, height in itertools.product(range(1, 201, 3), range(1, 81)):
        made = boxes(plan(width, height, zoomed))
        assert made, (width, height)
        for box in made:
            assert box.x >= 0 and box.y >= 0 and box.width > 0 and box.height > 0, (width, height, box)
            assert box.x + box.width <= width and box.y + box.height <= height, (width, height, box)
        for one, other in itertools.combinations(made, 2):
            assert not overlap(one, other), (width, height, one, other)


def test_every_line_of_a_column_is_used() -> None:
    for height in range(15, 81):
        made = plan(80, height)
        assert sum(box.height for box in made.panels.values()) + 3 == height


@pytest.mark.parametrize("size", [(120, 40), (160, 50), (200, 60), (120, 33)])
def test_a_wide_terminal_shows_every_panel(size: tuple[int, int]) -> None:
    reading = sorted(plan(*size).panels.items(), key=lambda item: (item[1].y, item[1].x))
    assert [name for name, _ in reading] == [panel.id for panel in PANELS], "as one reads, in the order of their numbers"


def test_eighty_by_twenty_four() -> None:
    made = plan(80, 24)
    assert {name: box.height for name, box in made.panels.items()} == {
        "now": 4,
        "boundaries": 6,
        "recompiles": 4,
        "regions": 5,
        "surroundings": 2,
    }


@pytest.mark.parametrize("size", [(20, 5), (59, 40), (100, 14), (1, 1)])
def test_a_tiny_terminal_has_useful_lines_instead(size: tuple[int, int]) -> None:
    made = plan(*size)
    assert made.tiny == Box(0, 0, *size)
    assert not made.panels


def test_a_panel_can_have_it_all() -> None:
    assert plan(80, 24, "log").panels == {"log": Box(0, 2, 80, 21)}


def test_no_size_is_no_screen() -> None:
    assert boxes(plan(0, 0)) == []


def test_a_table_gets_no_more_lines_than_it_has_rows_for() -> None:
    rows = {"boundaries": 2, "recompiles": 0, "regions": 40}
    for width, height in ((80, 40), (100, 30), (120, 40), (200, 60)):
        made = plan(width, height, rows=rows).panels
        assert (made["boundaries"].height, made["recompiles"].height) == (4, 3)
        assert made["regions"].height >= plan(width, height).panels["regions"].height


FEW, MANY = {"boundaries": 1, "recompiles": 0, "regions": 2}, dict.fromkeys(("boundaries", "recompiles", "regions"), 90)


@pytest.mark.parametrize("rows", [{}, FEW, MANY])
@pytest.mark.parametrize("gpus", [False, True])
def test_all_lines_are_used_whatever_rows_there_are(rows: dict[str, int], gpus: bool) -> None:
    for width, height in itertools.product((60, 80, 110, 200), range(15, 81)):
        made = boxes(plan(width, height, gpus=gpus, rows=rows))
        assert sum(box.width * box.height for box in made) >= width * height - height  # but for the gap of two columns
        for one, other in itertools.combinations(made, 2):
            assert not overlap(one, other), (width, height, one, other)


def test_the_four_sizes() -> None:
    busy = {"boundaries": 3, "recompiles": 3, "regions": 6}
    four = {
        (80, 24): {"now": 4, "boundaries": 5, "recompiles": 4, "regions": 6, "surroundings": 2},
        (100, 30): {"now": 4, "boundaries": 5, "recompiles": 5, "regions": 6, "surroundings": 2, "log": 5},
        (120, 40): {"now": 5, "boundaries": 5, "recompiles": 5, "regions": 8, "surroundings": 7, "roofline": 14, "log": 7},
        (200, 60): {"now": 7, "boundaries": 5, "recompiles": 5, "regions": 8, "surroundings": 7, "roofline": 32, "log": 25},
    }
    assert {size: {name: box.height for name, box in plan(*size, rows=busy).panels.items()} for size in four} == four
