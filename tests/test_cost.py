"""README's table of costs: which rows of docs/cost.md it quotes, and how."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench import call, screen, step, table
from tools import cost

BENCH = Path(step.__file__).parent


def made() -> set[str]:
    """The names of rows that the benches make, but those that stand whole in their source."""
    blocks = [{"wall": 1000.0, "thread": 1000.0}] * 2
    cells = [step.Cell(length, count, 1, 4) for length in step.LENGTHS_MS for count in step.REGIONS]
    for cell in cells:
        cell.without, cell.under = [(blocks[0], blocks[1])], blocks[:1]
    screens = [
        f"{scene}, {width}x{height}: {what}"
        for scene in screen.SCENES.values()
        for width, height in screen.SIZES
        for what in ("to the terminal", "CPU")
    ]
    return {row.what for cell in cells for row in cell.rows()} | set(call.timed_calls()) | set(screens)


def test_each_row_is_one_that_a_bench_makes() -> None:
    source = "".join(path.read_text() for path in BENCH.glob("*.py"))
    names, compiled = made(), {f"a transformer block, {cache} cache, with / without" for cache in ("warm", "cold")}
    for _, name in cost.FIGURES:
        assert name in names or name in compiled or f'table.row("{name}"' in source, name
    assert '"a transformer block, warm cache"' in source and ', with / without"' in source


def page(*rows: table.Row, gate: str = "") -> str:
    others = [table.row(name, [1.0], "x") for _, name in cost.FIGURES if name not in {row.what for row in rows}]
    inside = table.document([table.Section("All", [*rows, *others], gate)])
    return f"<!-- bench -->\n{inside}<!-- /bench -->\n"


def line(block: str, words: str) -> str:
    (found,) = (one for one in block.splitlines() if one.startswith(f"| {words}"))
    return found


def test_what_is_quoted() -> None:
    first = [table.row("first picture", [0.3], "CPU s"), table.row("first picture", [0.6], "s", most=0.5)]
    short = table.row("1 ms, 20 regions: with, wall", [1.5], "x", note="the regions alone take longer than 1 ms")
    found = cost.block(page(*first, short))
    assert line(found, "first picture") == "| first picture of `tuimon` | 0.600 s | 0.600 to 0.600 | ≤ 0.500 | **not met** |"
    assert line(found, "a step of 1 ms with 20").endswith("|  | the regions alone take longer than 1 ms |")
    assert line(cost.block(page(*first, gate="somebody waited")), "first picture").endswith("| not judged |")
    assert "load" not in found.splitlines()[-1] and "torch" in found.splitlines()[-1]


def test_a_row_that_is_missing_is_named() -> None:
    with pytest.raises(cost.Missing, match="1 ms, 2 regions"):
        cost.block("<!-- bench -->\n| what |\n<!-- /bench -->\n")
    with pytest.raises(cost.Missing, match="no part between"):
        cost.block("nothing")
