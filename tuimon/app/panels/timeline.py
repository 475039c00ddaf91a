"""The steps in a line: one cell a step, the newest at the right, slow ones marked by a letter for their cause.

Where steps come faster than cells can be followed, a cell stands for several of them and shows the worst. While a person has
selected a step, the line stands still around it, one cell a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tuimon.app.scene import PanelView, Scene
from tuimon.draw.glyphs import GlyphSet
from tuimon.draw.table import window
from tuimon.draw.text import Line
from tuimon.model import Model
from tuimon.model.parts import Steps
from tuimon.model.slow import naming
from tuimon.model.steps.parts import SlowStep, StepAccount

CAUSES: dict[str, tuple[str, str]] = {
    "compile": ("C", "compile"),
    "data wait": ("D", "warn"),
    "gc": ("G", "warn"),
    "profiler": ("P", "warn"),
    "communication": ("N", "warn"),
    "optimizer": ("O", "region"),
    "boundary": ("B", "break"),
    "forward regions": ("R", "region"),
    "backward regions": ("r", "region"),
    "other python": ("Y", "recompile"),
    naming.RUN_QUEUE: ("W", "bad"),
    naming.QUOTA: ("Q", "bad"),
    naming.FAULTS: ("F", "bad"),
    naming.GPU: ("T", "bad"),
    naming.STOPPED: ("S", "bad"),
    naming.UNEXPLAINED: ("?", "strong"),
    naming.WAITING: ("I", "dim"),
}
"""Cause -> (letter, role): the letter tells them apart, the colour only repeats it."""

SPAN_S = 1.0
"""The line shows so much time at least: a mark comes a moment after its step, and must still be seen then."""
PAIR_NS = 1_000_000_000
"""Steps shorter than this come onto the line two at a time."""
MARGIN = 4
"""A selected step stays so large a part of the line away from its ends."""
FEW = 256
"""So many steps are taken out of the ring one by one."""
CALMER = 4
"""A cell goes back to fewer steps only where so many times fewer would do: the scale must not go to and fro."""


@dataclass(slots=True)
class Timeline:
    """What the line shows, cell by cell."""

    per: int
    """Steps of a cell."""
    cells: list[tuple[str, str]] = field(default_factory=list)
    """(character, role); "" for a step that has nothing to say."""
    took_s: list[float | None] = field(default_factory=list)
    """The longest step of each cell; None where none is known."""
    usual_ns: list[int] = field(default_factory=list)
    """Those of them that were neither slow nor had a compilation in them: what a scale goes by."""
    causes: list[str] = field(default_factory=list)
    """The causes in view, each once."""
    compiled: bool = False
    """Whether a step in view is marked for a compilation alone."""
    cursor: int | None = None
    """The cell of the selected step."""


def letter(slow: SlowStep) -> tuple[str, str]:
    """The mark of a slow step, and its role."""
    return CAUSES.get(slow.causes[0].cause if slow.causes else naming.UNEXPLAINED, ("?", "strong"))


# ------------------------------------------------------------------------------------------------- which step is selected


def key_of(account: StepAccount) -> str:
    """What a selection holds on to. With its begin: after a new count the same number is another step."""
    return f"{account.index}@{account.begin_ns}"


def known_step(model: Model, index: int) -> StepAccount | None:
    """The account of a step, as long as it is kept: among the latest, or with the slow ones."""
    kept = _between(model.steps, index, index)
    if kept:
        return kept[0]
    slow = slow_step(model, index)
    return slow.account if slow is not None else None


def slow_step(model: Model, index: int) -> SlowStep | None:
    """The slow step of this number, None where it was not slow or is too long ago."""
    return next((one for one in reversed(model.steps.slow) if one.account.index == index), None)


def selected(model: Model, view: PanelView) -> StepAccount | None:
    """The step that a person has selected; None where the line follows the newest."""
    if view.cursor is None:
        return None
    account = known_step(model, int(view.cursor.partition("@")[0]))
    return account if account is not None and key_of(account) == view.cursor else None


def select(view: PanelView, account: StepAccount | None) -> None:
    """Select a step; None: follow the newest again."""
    view.cursor = None if account is None else key_of(account)
    view.touch()


def carried(model: Model, view: PanelView) -> None:
    """Another process is shown: the step of the same number there, where there is one."""
    if view.cursor is not None:
        select(view, known_step(model, int(view.cursor.partition("@")[0])))


def beside(model: Model, index: int | None, way: int) -> SlowStep | None:
    """The slow step after (`way` > 0) or before the one of this number; without a number, the latest."""
    slow = model.steps.slow
    if index is None:
        return max(slow, key=lambda one: one.account.index, default=None)
    if way > 0:
        return min((one for one in slow if one.account.index > index), key=lambda one: one.account.index, default=None)
    return max((one for one in slow if one.account.index < index), key=lambda one: one.account.index, default=None)


def none_beside(model: Model, way: int) -> str:
    """Why there is no slow step there."""
    steps = model.steps
    if steps.source is None:
        return "no step has been told so far, so none was slow"
    if not steps.slow:
        return f"none of {steps.n} steps was slow"
    if way > 0:
        return "no later step was slow so far"
    fallen = steps.slow_n - len(steps.slow)
    return f"{fallen} earlier slow steps are no longer kept" if fallen > 0 else "no earlier step was slow"


def move(model: Model, view: PanelView, step: int) -> None:
    """Select a step further on or back; where none was, the newest."""
    accounts = model.steps.accounts
    if not accounts:
        return
    now = selected(model, view)
    if now is None:
        select(view, accounts[-1])
        return
    index = min(max(0, now.index + step), accounts[-1].index)
    found = known_step(model, index)
    if found is None:  # between those that are kept: the next one in that direction
        kept = _between(model.steps, *((index, accounts[-1].index) if step > 0 else (0, index)))
        near = beside(model, now.index, step) if step < 0 else None
        found = (kept[0 if step > 0 else -1] if kept else None) or (near.account if near is not None else accounts[0])
    select(view, found)


def move_to_end(model: Model, view: PanelView, way: int) -> None:
    """Select the oldest step that is kept; the other way, follow the newest."""
    accounts = model.steps.accounts
    select(view, accounts[0] if way < 0 and accounts else None)


# ------------------------------------------------------------------------------------------------- what the line shows


def steps_of_a_cell(steps: Steps, wide: int, now: int) -> int:
    """1, 2, 5, 10, ..: so many that a line of `wide` cells shows `SPAN_S` of the latest steps. `now`: so far."""
    if steps.n <= wide:
        return 1
    plain = [took for _, took, compiled in steps.recent if not compiled]
    least = SPAN_S * 1e9 * len(plain) / max(1, sum(plain)) / max(1, wide)
    found, scale = 1, 1
    while found < least:
        found = next((one for one in (2 * scale, 5 * scale, 10 * scale) if one >= least), 10 * scale)
        scale *= 10
    return found if found > now or found * CALMER <= now else now


def timeline(scene: Scene, view: PanelView, wide: int) -> Timeline:
    """The line in `wide` cells."""
    steps, glyphs = scene.model.steps, scene.glyphs
    chosen = selected(scene.model, view)
    if chosen is not None:
        per, last = 1, steps.n - 1
        margin = wide // MARGIN  # what came before it and after it is seen, too
        view.top = window(steps.n, min(steps.n - 1, chosen.index + margin), view.top, wide)
        view.top = window(steps.n, max(0, chosen.index - margin), view.top, wide)
        last = min(last, view.top + wide - 1)
    else:
        per = view.per = steps_of_a_cell(steps, wide, view.per)
        last = steps.n // per - 1  # a cell that is not full yet would be sent twice
        if per == 1 and last % 2 == 0 and steps.accounts and last > 0 and steps.accounts[-1].took_ns < PAIR_NS:
            last -= 1  # moving by two cells halves what is sent; nobody misses the last step for so long
        view.top = max(0, last - wide + 1)
    first = last - wide + 1
    out = Timeline(per, cursor=None if chosen is None else chosen.index - first)
    worst = _worst(steps, first, last, per)
    known = _longest(steps, first, last, per)
    oldest = min((one.account.index for one in steps.slow), default=0) // per if steps.slow_n > len(steps.slow) else 0
    untimed = 1 if per == 1 and steps.accounts and steps.accounts[0].index == 1 else 0  # the one that ran at the attach
    before = _held(scene.model, view, known, first) if per > 1 else {}
    causes: dict[str, None] = {}
    for cell in range(first, last + 1):
        slow, account = worst.get(cell), known.get(cell)
        longest = slow.account if slow is not None else account
        took_ns = before.get(cell) if longest is None else longest.took_ns
        out.took_s.append(None if took_ns is None else took_ns / 1e9)
        if slow is not None:
            out.cells.append(letter(slow))
            causes[slow.causes[0].cause if slow.causes else naming.UNEXPLAINED] = None
        elif account is not None and account.compiled:
            out.cells.append((glyphs.up, "compile"))
            out.compiled = True
        elif cell < 0 or (account is None and (cell < oldest or cell < untimed)):
            out.cells.append((" ", "text"))
        else:
            out.cells.append(("", "spark"))
            if account is not None:
                out.usual_ns.append(account.took_ns)
    out.causes = [cause for cause in CAUSES if cause in causes]
    return out


def _between(steps: Steps, first: int, last: int) -> list[StepAccount]:
    """The accounts of these steps, both ends included, as far as they are in the ring."""
    accounts = steps.accounts
    if not accounts or last < accounts[0].index or first > accounts[-1].index:
        return []
    base = accounts[0].index
    if accounts[-1].index - base + 1 == len(accounts):
        begin, end = max(0, first - base), min(len(accounts), last - base + 1)
        return [accounts[at] for at in range(begin, end)] if end - begin <= FEW else list(accounts)[begin:end]
    return [one for one in accounts if first <= one.index <= last]  # of a job that is folded elsewhere, some may not have come


def _worst(steps: Steps, first: int, last: int, per: int) -> dict[int, SlowStep]:
    """Cell -> the slow step in it that lost the most."""
    worst: dict[int, SlowStep] = {}
    for one in reversed(steps.slow):
        cell = one.account.index // per
        if first <= cell <= last:
            held = worst.get(cell)
            if held is None or one.account.took_ns - one.usual_ns > held.account.took_ns - held.usual_ns:
                worst[cell] = one
    return worst


def _longest(steps: Steps, first: int, last: int, per: int) -> dict[int, StepAccount]:
    """Cell -> the longest step in it, one with a compilation before all others."""
    found: dict[int, StepAccount] = {}
    for account in _between(steps, first * per, (last + 1) * per - 1):
        held = found.get(account.index // per)
        if held is None or (account.compiled, account.took_ns) > (held.compiled, held.took_ns):
            found[account.index // per] = account
    return found


def _held(model: Model, view: PanelView, known: dict[int, StepAccount], first: int) -> dict[int, int]:
    """Cell -> the longest step in it that was seen, in this drawing or an earlier one."""
    of, per, n, before = view.held
    if (of, per) != (id(model), view.per) or n > model.steps.n:
        before = {}
    found = {cell: took for cell, took in before.items() if cell >= first}
    for cell, account in known.items():
        found[cell] = max(found.get(cell, 0), account.took_ns)
    view.held = id(model), view.per, model.steps.n, found
    return found


# ------------------------------------------------------------------------------------------------- drawn


def marks_row(of: Timeline, glyphs: GlyphSet) -> Line:
    """The line under a chart: a dot for a step that is as usual, the letter of its cause for a slow one."""
    return _runs([(char or glyphs.grid_horizontal, role) for char, role in of.cells], of.cursor)


def bars_row(of: Timeline, top: float, glyphs: GlyphSet) -> Line:
    """The line where there is no room for a chart as well: a small bar for a step, the letter of its cause for a slow one."""
    levels = glyphs.spark
    cells = []
    for (char, role), took in zip(of.cells, of.took_s, strict=True):
        if char or took is None:
            cells.append((char or glyphs.grid_horizontal, role))
        else:
            level = round(took / top * len(levels)) if top > 0 else 1
            cells.append((levels[min(len(levels), max(1, level)) - 1], role))
    return _runs(cells, of.cursor)


def _runs(cells: Sequence[tuple[str, str]], cursor: int | None) -> Line:
    """Cells as runs: one of a role is sent as one piece."""
    out: Line = []
    for at, (char, role) in enumerate(cells):
        if at == cursor:
            role = "cursor"
        if out and out[-1][1] == role:
            out[-1] = (out[-1][0] + char, role)
        else:
            out.append((char, role))
    return out


def legend(of: Timeline, glyphs: GlyphSet, room: int) -> Line:
    """What the letters in view mean, in at most `room` cells; those for which there is no room are counted."""
    entries = [(*CAUSES[cause], cause) for cause in of.causes]
    if of.compiled:
        entries.append((glyphs.up, "compile", "compiled"))
    out: Line = []
    used = 0
    for at, (mark, role, words) in enumerate(entries):
        left = len(entries) - at - 1
        more = f" +{left}" if left else ""
        size = (2 if out else 0) + 2 + len(words)
        if used + size + len(more) > room:
            rest = f" +{left + 1}"
            return [*out, (rest, "note")] if out and used + len(rest) <= room else out
        out += [*([("  ", "text")] if out else []), (mark, role), (f" {words}", "note")]
        used += size
    return out


def name_of_a_cell(of: Timeline, chosen: StepAccount | None) -> str:
    """What stands at the left of the line: `steps`, `5/cell`, or the number of the step that is selected."""
    if chosen is not None:
        return f"at {chosen.index}"
    return "steps" if of.per == 1 else f"{_short(of.per)}/cell"


def _short(number: int) -> str:
    return f"{number // 1000}k" if number >= 1000 and number % 1000 == 0 else str(number)
