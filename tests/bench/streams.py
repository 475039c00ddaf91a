"""Made-up jobs by how their steps can be told, as rows: for measuring what takes them in."""

from __future__ import annotations

from collections.abc import Iterator

from tuimon import events as ev

BATCH = 64
STEP_NS = 1_000_000

Row = tuple[int, int, int, int, int]


def facts(instruments: int, role: str = "forward", more: tuple[tuple[int, str], ...] = ()) -> list[ev.Event]:
    """What a job tells of itself before its rows."""
    told: list[ev.Event] = [
        ev.TargetSeen(0, 1, "train.py", "3.11.7", "2.13.0", "run", 1.7e9, ("cpu",)),
        ev.ThreadSeen(0, 1, "main", 77),
    ]
    for number in range(instruments):
        told.append(ev.InstrumentAdded(0, number, role, f"{number}/0", "n", f"f{number}", "/w/model.py", number))  # type: ignore[arg-type]
    for number, kind in more:
        told.append(ev.InstrumentAdded(0, number, kind, None, kind, kind, "", 0))  # type: ignore[arg-type]
    return told


def batches(rows: list[Row]) -> list[ev.Event]:
    """As a hook sends them."""
    return [ev.Samples(rows[at][4], tuple(rows[at : at + BATCH])) for at in range(0, len(rows), BATCH)]


def calls(step: int, per: int, order: int, reach: int = 0) -> Iterator[Row]:
    """The calls of a step: `per` of them, of as many regions or of `reach` in turn; `order` 0: the same each time."""
    room = STEP_NS * 8 // 10 // per
    for at in range(per):
        number = (at * 7 + order * step * step) % per if order else at
        if reach:
            number = (step * per + at) % reach
        begin = step * STEP_NS + at * room
        yield number, 1, 0, begin, begin + room * 3 // 4


def inferred(per: int, steps: int, order: int = 0) -> list[ev.Event]:
    """Nothing but calls: the steps have to be inferred from the order, if it repeats."""
    rows = [row for step in range(steps) for row in calls(step, per, order)]
    return facts(per) + batches(rows)


def ended(per: int, steps: int, role: str, reach: int = 0) -> list[ev.Event]:
    """Calls, and at the end of each step what tells it: an optimizer, or a mark."""
    last = max(per, reach)
    rows: list[Row] = []
    for step in range(steps):
        rows += calls(step, per, 0, reach)
        rows.append((last, 1, 0, (step + 1) * STEP_NS - 100_000, (step + 1) * STEP_NS - 1_000))
    return facts(last, more=((last, role),)) + batches(rows)
