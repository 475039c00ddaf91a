"""Boundaries and graph breaks: what each costs as it is crossed, not how many there are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from tuimon.app.panels import tabular
from tuimon.app.panels.frame import NOT_IN_FILE, plural, untold, watched, why_missing
from tuimon.app.panels.pace import compiling_words
from tuimon.app.panels.standing import answered, told
from tuimon.app.panels.tabular import Sort, Table
from tuimon.app.scene import Panel, Scene
from tuimon.draw import format as fmt
from tuimon.draw.names import place
from tuimon.draw.table import Cells, Column
from tuimon.draw.text import Line, cells, clean, cut
from tuimon.model.findings import per_step, share_of_step
from tuimon.model.hosts import reads_host
from tuimon.model.parts import Boundary

BEFORE = "before attach"


def tag(boundary: Boundary) -> str:
    """What to say of it beside its reason; "" for an ordinary one."""
    if boundary.accepted is not None:
        return "accepted"
    if boundary.requested:
        return "asked for"
    if boundary.skipped_frame:
        return "eager whole"
    if boundary.asked_by == "library":
        return "a library asks"
    if boundary.before_attach:
        return BEFORE
    return ""


def sync_words(boundary: Boundary) -> str:
    """Evidence of waits for the device at its crossings: `seen in 3 of 40`, `none in 40`, or that nobody looked."""
    if not boundary.sync_looked:
        return "not looked"
    looked = fmt.count(boundary.sync_looked)
    return f"{fmt.count(boundary.sync_waited)} of {looked}" if boundary.sync_waited else f"none in {looked}"


def reads_word(boundary: Boundary) -> str:
    """Whether an operation of this kind reads a value from the device: its nature, which is no evidence of a wait."""
    return {True: "yes", False: "no", None: fmt.UNKNOWN}[reads_host(boundary.kind, boundary.explanation)]


def _hidden(scene: Scene) -> frozenset[str]:
    """Without steps there is no share of one: what is known then are the crossings and their time in all.

    Of a file that tells no crossings, one column says so in the place of those that need them.
    """
    if untold(scene, "crossings"):
        return _CROSSED
    hidden = {"share", "per_step"} if scene.model.steps.source is None else set()
    return frozenset(hidden | (set() if _looked(scene) else {"sync"}) | {"untold"})


def _looked(scene: Scene) -> bool:
    """Whether some crossing was looked at for a wait: else the title says once that none was."""
    return any(boundary.sync_looked for boundary in scene.model.boundaries.values())


_CROSSED = frozenset({"share", "per_step", "crossings", "median", "spread", "total", "sync"})


_BEGIN = re.compile(r"^(?:Unsupported|Attempted to) ")
_END = re.compile(r" (?:call )?with capture_\w+=False$| not supported for non-export cases$")


def reason_words(boundary: Boundary, which: str, width: int, ellipsis: str) -> str:
    """Why, in so many cells: what distinguishes one reason from others is kept the longest."""
    marked = tag(boundary)
    behind = ""
    if marked == BEFORE:  # when it was decided tells the least of all: it does not cost what it costs any less
        marked, behind = "", f" ({BEFORE})"
    label = " ".join(filter(None, (which, marked)))
    begin = f"{label}: " if label else ""
    why = kind(boundary)
    texts = (why, _END.sub("", why), _BEGIN.sub("", _END.sub("", why)))
    for text in (*(text + behind for text in texts), *texts):
        if cells(begin + text) <= width:
            return begin + text
    return cut(begin + text, width, ellipsis)


def which_of(scene: Scene, boundary: Boundary) -> str:
    """`1st`, `2nd`, where several boundaries stand at one line: in the order in which Dynamo met them."""
    mine = (boundary.user_file or boundary.file, _line(boundary))
    same = [one.key for one in scene.model.boundaries.values() if (one.user_file or one.file, _line(one)) == mine]
    if len(same) < 2:
        return ""
    number = same.index(boundary.key) + 1
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number if number < 20 else number % 10, 'th') }"


def kind(boundary: Boundary) -> str:
    """Dynamo's name of the reason, or that there is none."""
    return clean(boundary.kind or boundary.reason) or "reason not known"


def short_kind(boundary: Boundary) -> str:
    """The reason without the words that many have: `Tensor.item()`."""
    return _BEGIN.sub("", _END.sub("", kind(boundary)))


ANSWER_PLACE = 32
"""Cells for a place in a first line."""


def at_place(scene: Scene, boundary: Boundary, room: int = ANSWER_PLACE) -> str:
    """`model.py:57`, the user's line."""
    return place(boundary.user_file or boundary.file, _line(boundary), room, scene.glyphs.ellipsis)


def costliest(scene: Scene) -> Boundary | None:
    """The boundary that takes the most of a steady step, of those that nobody asked for; None where no share is known."""
    known = [
        (share, one)
        for one in scene.model.boundaries.values()
        if one.accepted is None and not one.requested and (share := share_of_step(scene.model, one)) is not None
    ]
    return max(known, key=lambda pair: pair[0])[1] if known else None


def _answer(scene: Scene) -> Line:
    boundaries = list(scene.model.boundaries.values())
    if not boundaries:
        return told(_empty(scene))
    worst = costliest(scene)
    share = share_of_step(scene.model, worst) if worst is not None else None
    if worst is not None and share:
        return [
            (at_place(scene, worst), "place"),
            (f" costs most: {fmt.percent(share)} of a step, {plural_crossings(worst)}: ", "text"),
            (short_kind(worst), "break"),
        ]
    whole = next((one for one in boundaries if one.skipped_frame and not one.requested and one.accepted is None), None)
    if whole is not None:
        return [
            (at_place(scene, whole), "place"),
            (" makes its frame run in eager whole, which is not timed: ", "text"),
            (short_kind(whole), "break"),
        ]
    most = max(boundaries, key=lambda one: one.host.total_ns)
    if most.host.total_ns:
        took = fmt.duration(most.host.total_ns / 1e9)
        return [
            (at_place(scene, most), "place"),
            (f" took most: {took} in all, {plural_crossings(most)}: ", "text"),
            (short_kind(most), "break"),
        ]
    missing = untold(scene, "crossings")
    why = missing or "what they cost is known once they are crossed in a steady step"
    return told(f"{plural(len(boundaries), 'place')}; {why}")


def plural_crossings(boundary: Boundary) -> str:
    """`64 crossings`, or that they are not counted."""
    return "crossings not counted" if boundary.crossings is None else plural(boundary.crossings, "crossing")


def _cells(scene: Scene, boundary: Boundary) -> Cells:
    summary = boundary.host.summary
    ellipsis = scene.glyphs.ellipsis
    share = share_of_step(scene.model, boundary)
    total = boundary.host.total_ns / 1e9 if boundary.host.n else None
    return {
        "share": (fmt.percent(share), "strong" if share is not None and share >= 0.05 else "number"),
        "per_step": (fmt.per_step(per_step(scene.model, boundary)), "number"),
        "crossings": (fmt.count(boundary.crossings), "number"),
        "median": (fmt.duration(summary.median), "number"),
        "spread": (fmt.spread(summary.p10, summary.p90), "number"),
        "total": (fmt.duration(total), "number"),
        "sync": (sync_words(boundary), "warn" if boundary.sync_waited else "dim"),
        "untold": (NOT_IN_FILE, "dim"),
        "reads": (reads_word(boundary), "dim"),
        "place": lambda width: (place(boundary.user_file or boundary.file, _line(boundary), width, ellipsis), "place"),
        "why": lambda width: (reason_words(boundary, which_of(scene, boundary), width, ellipsis), "break"),
    }


def _line(boundary: Boundary) -> int:
    return boundary.user_line or boundary.line


def _cost(scene: Scene, boundary: Boundary) -> tuple[bool, float, int, int]:
    # what a frame costs that runs in eager whole cannot be timed, and may be all of the step
    silent = boundary.skipped_frame and not boundary.requested and boundary.accepted is None
    return silent, share_of_step(scene.model, boundary) or 0.0, boundary.host.total_ns, boundary.crossings or 0


NOTED = 90
"""Cells from which on the title has room for all that there is to note."""


def _note(scene: Scene, rows: Sequence[Boundary], width: int) -> str:
    told = untold(scene, "crossings").removeprefix(f"{NOT_IN_FILE}: ")
    sync = "" if told or _looked(scene) else "; sync not looked at"
    places = f"{plural(len(rows), 'place')}; " if width >= NOTED or not sync else ""
    return f"{places}{told or 'host time, median [p10-p90]'}{sync}"


def _empty(scene: Scene) -> str:
    model = scene.model
    if untold(scene, "compiles"):
        return f"graph breaks: {untold(scene, 'compiles')}"
    missing = why_missing(scene, "boundaries")
    if missing:
        return clean(missing) if missing.startswith(NOT_IN_FILE) else f"not available: {clean(missing)}"
    over = model.target.ended is not None
    begin = f"no graph break was seen{watched(scene)}" if over else "no graph break so far"
    traced = sum(1 for frame in model.frames.values() if set(frame.entries) - set(frame.without_graph))
    parts = [f"Dynamo {'' if over else 'has '}traced {plural(traced, 'frame')} whole"] if traced else []
    busy = compiling_words(model)
    if busy:
        parts.append(busy)
    if not parts:
        parts.append(f"Dynamo {'had' if over else 'has'} not compiled anything that was seen")
    return f"{begin}: {'; '.join(parts)}"


TABLE: Table[Boundary] = Table(
    number=2,
    title="boundaries and graph breaks",
    rows=lambda scene: list(scene.model.boundaries.values()),
    key=lambda boundary: boundary.key,
    text=lambda boundary: (
        f"{boundary.user_file}:{boundary.user_line} {boundary.function} {boundary.kind} {boundary.reason} {tag(boundary)}"
    ),
    sorts=(
        Sort("cost", "share", _cost),
        Sort("crossings", "crossings", lambda scene, boundary: boundary.crossings or 0),
        Sort("median", "median", lambda scene, boundary: boundary.host.summary.median or 0.0),
        Sort("place", "place", lambda scene, boundary: (boundary.user_file, boundary.user_line), descending=False),
    ),
    columns=(
        Column("share", "share", 6, right=True),
        Column("per_step", "/step", 5, right=True, rank=2),
        Column("crossings", "crossed", 8, right=True, rank=5),
        Column("median", "median", 7, right=True),
        Column("spread", "[p10-p90]", 14, right=True, rank=4, spare=True),
        Column("total", "total", 7, right=True, rank=6, spare=True),
        Column("untold", "crossed, time", 16),
        Column("sync", "sync", 10, rank=2),
        Column("reads", "reads", 5, rank=3),
        Column("place", "place", 16, flex=2, most=36, snug=True, wish=20),
        Column("why", "reason", 20, flex=3, rank=1, wish=36),
    ),
    cells=_cells,
    note=_note,
    empty=_empty,
    refusal=True,
    hidden=_hidden,
    quiet=lambda boundary: boundary.accepted is not None or boundary.requested,
    where=lambda boundary: f"{boundary.user_file or boundary.file}:{_line(boundary)}",
)


PANEL = Panel(
    number=2,
    id="boundaries",
    title="boundaries and graph breaks",
    sections=("boundaries", "frames", "steps", "target", "coverage"),
    draw=partial(tabular.draw, TABLE),
    keys=partial(tabular.keys, TABLE),
    copied=partial(tabular.copied, TABLE),
    sorts=tuple(sort.name for sort in TABLE.sorts),
    filterable=True,
    rows=lambda scene: len(scene.model.boundaries),
    help=(
        "A graph break is a decision of Dynamo to stop a graph at a line; the boundary is the stretch of ordinary Python that "
        "it leaves, as the job crosses it. share: its part of the time of steady steps (steps without a compilation). "
        "/step and crossed: how often. median and [p10-p90]: host time of one crossing, regions of callees taken off; on a GPU "
        "that time may hide behind queued work. A break costs what its crossings cost, and no more. "
        "Without steps there is no share: then crossed and total stand there. "
        "reads: whether an operation of this kind reads a value from the device, by its nature. sync: waits for the device "
        'that were seen, "3 of 40" crossings looked at, "none in 40", or "not looked". '
        '"1st", "2nd": of several boundaries at one line, in the order in which Dynamo met them. '
        '"asked for": the program requested it. "eager whole": no graph could go on, the frame runs in eager at every call, so '
        "nothing is timed. m accepts a boundary with a note, which is kept beside the project; again: no longer."
    ),
    answer=answered(_answer),
)
