"""Recompiles: which guard failed, what it cost, and how near the limit is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tuimon.app.panels import tabular
from tuimon.app.panels.frame import plural, untold, watched, why_missing
from tuimon.app.panels.frames import eager_share
from tuimon.app.panels.pace import compiling_words
from tuimon.app.panels.standing import answered, told
from tuimon.app.panels.tabular import Sort, Table
from tuimon.app.scene import Panel, Scene
from tuimon.draw import format as fmt
from tuimon.draw.names import frame_name, marked_id
from tuimon.draw.table import Cells, Column
from tuimon.draw.text import Line, clean, cut
from tuimon.model.parts import Compilation, Recompile
from tuimon.model.reading import reading, reading_of


def key(recompile: Recompile) -> str:
    """The row's name: a compile id within its generation."""
    return recompile.key


def limit_use(scene: Scene, recompile: Recompile) -> str:
    """`2 of 8`: how many entries the frame had in use with this one."""
    compilation = recompile.compilation
    frame = scene.model.frames.get(compilation.frame) if compilation.frame else None
    if frame is None:
        return fmt.UNKNOWN
    used = len(frame.entries)
    if compilation.compile_id in frame.entries:
        used = frame.entries.index(compilation.compile_id) + 1
    return f"{used} of {frame.limit}" if frame.limit is not None else f"{used}"


NEW_STEPS = 100
"""A late one is worth a look for so many steps."""


def _is_new(scene: Scene, made: Compilation) -> bool:
    return made.step is None or scene.model.steps.n - made.step <= NEW_STEPS


def _cells(scene: Scene, recompile: Recompile) -> Cells:
    compilation = recompile.compilation
    ellipsis = scene.glyphs.ellipsis
    told = reading_of(scene.model, recompile)
    reason = (
        clean(told.sentence) if recompile.failed else ("the limit was reached" if compilation.refused else "guard not known")
    )
    cost = ("refused", "bad") if compilation.refused else (fmt.duration(compilation.total_s), "number")
    if compilation.before_attach:
        step = "before"
    else:
        step = fmt.count(compilation.step) if compilation.step is not None else fmt.UNKNOWN
        step += " late" if compilation.late else ""
    frame = scene.model.frames.get(compilation.frame) if compilation.frame else None
    eager = eager_share(scene.model, frame) if frame is not None else None
    return {
        "eager": (fmt.percent(eager) if eager != 0 else "0%", "bad" if eager else "number"),
        "id": (cut(marked_id(compilation.compile_id, compilation.generation), 10, ellipsis), "dim"),
        "cost": cost,
        "limit": (limit_use(scene, recompile), "number"),
        "step": (step, "warn" if compilation.late and _is_new(scene, compilation) else "number"),
        "frame": lambda width: (frame_name(compilation.function, compilation.file, compilation.line, width, ellipsis), "frame"),
        "guard": lambda width: (cut(reason, width, ellipsis), "recompile"),
    }


def _text(recompile: Recompile) -> str:
    compilation = recompile.compilation
    refused = " refused" if compilation.refused else ""
    return (
        f"{compilation.function} {compilation.file}:{compilation.line} [{compilation.compile_id}] {recompile.reason}{refused} "
        f"{reading(recompile.reason, owner=compilation.owner).sentence}"
    )


def _note(scene: Scene, rows: Sequence[Recompile], width: int) -> str:
    refused = sum(1 for row in rows if row.compilation.refused)
    known = [row.compilation.total_s for row in rows if row.compilation.total_s is not None]
    parts = [f"{len(rows) - refused} in {fmt.duration(sum(known))}" if known else f"{len(rows) - refused}"]
    if refused:
        parts.append(f"{refused} refused at the limit")
    return ", ".join(parts)


def _empty(scene: Scene) -> str:
    if untold(scene, "compiles"):
        return f"recompiles: {untold(scene, 'compiles')}"
    missing = why_missing(scene, "recompiles")
    if missing:
        return f"not available: {clean(missing)}"
    over = scene.model.target.ended is not None
    begin = f"no recompile was seen{watched(scene)}" if over else "no recompile so far"
    compiled = sum(1 for frame in scene.model.frames.values() if set(frame.entries) - set(frame.without_graph))
    busy = compiling_words(scene.model)
    if busy and busy.startswith("recompiling"):
        return busy  # a guard has failed, so none of the rest holds
    parts = [f"the guards of {plural(compiled, 'compiled frame')} {'' if over else 'have '}held"] if compiled else []
    if busy:
        parts.append(busy)
    if not parts:
        parts.append(f"Dynamo {'had' if over else 'has'} not compiled anything that was seen")
    return f"{begin}: {'; '.join(parts)}"


def _answer(scene: Scene) -> Line:
    rows = scene.model.recompiles
    if not rows:
        return told(_empty(scene))
    last = max(rows, key=lambda row: row.compilation.ended_ns)
    made = last.compilation
    what = reading_of(scene.model, last).sentence if last.failed else "its guard is not known"
    return [
        (_note(scene, rows, 0), "strong"),
        ("; last: ", "text"),
        (frame_name(made.function, made.file, made.line, 28, scene.glyphs.ellipsis), "frame"),
        (f" [{clean(made.compile_id)}]", "dim"),
        (f"{' refused' if made.refused else ''}: ", "bad" if made.refused else "text"),
        (clean(what), "recompile"),
    ]


TABLE: Table[Recompile] = Table(
    number=3,
    title="recompiles",
    rows=lambda scene: scene.model.recompiles,
    key=key,
    where=lambda row: f"{row.compilation.file}:{row.compilation.line}" if row.compilation.file else "",
    text=_text,
    sorts=(
        Sort("newest", None, lambda scene, row: row.compilation.ended_ns),
        Sort("cost", "cost", lambda scene, row: row.compilation.total_s or 0.0),
        Sort("frame", "frame", lambda scene, row: (row.compilation.function, row.compilation.ended_ns), descending=False),
    ),
    columns=(
        Column("id", "id", 4, rank=4),
        Column("cost", "cost", 7, right=True),
        Column("limit", "limit", 6, right=True, rank=2),
        Column("step", "step", 8, right=True, rank=3),
        Column("eager", "eager", 5, right=True, rank=5, spare=True),
        Column("frame", "frame", 12, flex=3, most=44, snug=True, wish=20),
        Column("guard", "what changed", 26, flex=3, rank=1, wish=26),
    ),
    cells=_cells,
    note=_note,
    empty=_empty,
)


PANEL = Panel(
    number=3,
    id="recompiles",
    title="recompiles",
    sections=("recompiles", "frames", "target"),
    draw=partial(tabular.draw, TABLE),
    keys=partial(tabular.keys, TABLE),
    copied=partial(tabular.copied, TABLE),
    sorts=tuple(sort.name for sort in TABLE.sorts),
    filterable=True,
    rows=lambda scene: len(scene.model.recompiles),
    help=(
        "A further compilation of a frame that has one, because no guard of its entries held. limit: which entry of the frame "
        "it is, of how many the recompile limit allows. Past the limit Dynamo refuses, and calls without an entry run in "
        "eager. eager: the part of the frame's calls that did. late: after the warm-up. What changed is told in plain words; "
        "Dynamo's own text, what usually helps and the cost by phase are behind enter."
        ' An id with "r1" is from after the first reset of Dynamo, which numbers anew from there.'
    ),
    answer=answered(_answer),
)
