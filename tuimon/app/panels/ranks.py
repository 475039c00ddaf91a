"""All ranks together: the line in the header, and the table on the full screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from tuimon.app.panels import tabular
from tuimon.app.panels.frame import PanelLines, plural, untold
from tuimon.app.panels.pace import attaching_words, compile_line, latest_compile, step_rate, stopped_words
from tuimon.app.panels.standing import told
from tuimon.app.panels.tabular import Sort, Table
from tuimon.app.ranks import NAMED, are_one_job, names
from tuimon.app.scene import Panel, PanelView, Rank, Scene, Standing
from tuimon.draw import format as fmt
from tuimon.draw.names import frame_name
from tuimon.draw.table import Cells, Column
from tuimon.draw.text import Line, cells, clean, cut, fill, line_cells, pad, two_ends, wrap
from tuimon.model.statistics import WINDOW

MOST_ABOUT = 4
"""Lines below the table for the selected row."""

ABOUT_FROM = 10
"""From so many lines on there is room for them."""

MOST_SENTENCE = 3
"""Lines above the rows for the sentence on who is late, at most one in five of all."""
SENTENCE_FROM = 12

_GOING = ("running", "late", "slow", "compiling")
"""Only of these a rate holds now."""

LONGEST_NAME = 16

LEAST_NAMES = 7
"""So many names the header shows before it counts."""

HEARD_AFTER_S = 2.0
"""What has come less than this ago came "now"."""

_COUNTED = (
    "refused",
    "lost",
    "ended",
    "stopped",
    "silent",
    "no step",
    "late",
    "slow",
    "compiling",
    "attaching",
    "no torch",
    "detached",
    "read",
)
"""What the header counts, the worst first."""


# ------------------------------------------------------------------------------------------------------ the header


def ranks_line(scene: Scene, width: int) -> Line:
    """`rank  0 [1] 2~ 3!    1 refused!  1 attaching~` in at most `width` cells; of many, those around the chosen one."""
    ellipsis = scene.glyphs.ellipsis
    ranks, chosen = scene.ranks, scene.rank
    head: Line = [("rank " if are_one_job(ranks) else "process ", "label")]
    shown = [cut(clean(name), LONGEST_NAME, ellipsis) for name in names(ranks)]
    size = max(cells(name) for name in shown)
    each = size + 3
    room = width - line_cells(head)
    counts = _counts(scene, room - each * min(len(ranks), LEAST_NAMES) - 1)
    fit = max(1, (room - line_cells(counts) - 1) // each)
    first = min(max(0, chosen - fit // 2), max(0, len(ranks) - fit))
    last = min(len(ranks), first + fit)
    line = head
    for at in range(first, last):
        standing = scene.standings[at]
        name = pad(shown[at], size, right=True)
        more = (at == first and first > 0) or (at == last - 1 and last < len(ranks))
        if at == chosen:
            sign = standing.sign.strip()
            line += [("[" + name, "strong"), (sign, standing.role), ("]" + " " * (1 - len(sign)), "strong")]
        elif more:
            line.append((pad("..", size + 1, right=True) + "  ", "dim"))
        else:
            line.append((f" {name}{standing.sign} ", standing.role))
    return two_ends(line, counts, width)


def _counts(scene: Scene, width: int) -> Line:
    """How many there are that do not simply run; the worst first, and as many sorts as there is room for."""
    found = Counter(standing.condition for standing in scene.standings)
    looks = {standing.condition: standing for standing in scene.standings}
    parts = [(f"{found[word]} {word} {looks[word].sign}", looks[word].role) for word in _COUNTED if found[word]]
    late = [name for at, name in enumerate(names(scene.ranks)) if scene.standings[at].condition == "late"]
    if len(late) == 1:  # by name, where there is room: it is what a person looks for
        words = f"rank {clean(late[0])} is late"
        parts = [(words, role) if text.startswith("1 late") else (text, role) for text, role in parts]
    if not parts:
        parts = [(f"all {len(scene.ranks)} run", "dim")]  # nothing but "running" is left
    return fill([(at, [part]) for at, part in enumerate(parts)], width) if cells(parts[0][0]) <= width else []


# ------------------------------------------------------------------------------------------------------ the table


class Row(NamedTuple):
    """One of the processes in its scene: a row is seen beside the others."""

    scene: Scene
    at: int
    name: str

    @property
    def rank(self) -> Rank:
        """The process."""
        return self.scene.ranks[self.at]

    @property
    def standing(self) -> Standing:
        """How it stands."""
        return self.scene.standings[self.at]

    def doing(self, width: int) -> Line:
        """What it does now, where there is something to say of it; `width` bounds the name of what compiles, nothing else."""
        rank, target = self.rank, self.rank.model.target
        if target.ended is not None:
            return [(f"{self._ended_at()}{clean(target.ended_detail)}", self.standing.role)]
        if target.attached_ns is None:
            return [(clean(attaching_words(rank.model)), self.standing.role)]
        if rank.silence is not None and self.standing.condition in ("stopped", "silent"):
            words = stopped_words(rank.silence, rank.pid) or f"nothing heard for {fmt.age(rank.silence[0])}"
            return [(words, self.standing.role)]
        running = latest_compile(rank.model)
        return compile_line(Scene(rank.model, self.scene.glyphs, rank.now_ns), running, width) if running is not None else []

    def _ended_at(self) -> str:
        """The time of day at which it ended: which of several ended first tells where to look."""
        model = self.rank.model
        if model.target.ended_ns is None or model.wall_offset_s is None:
            return ""
        return fmt.clock(model.target.ended_ns / 1e9 + model.wall_offset_s, self.scene.utc_offset_s) + " "


def _words(line: Line) -> str:
    return "".join(text for text, _ in line)


def _now(row: Row, width: int) -> str:
    """What it does, for a cell: what compiles and for how long, without the word that the state has already."""
    if row.standing.condition == "stopped" and row.rank.silence is not None and row.rank.silence[1] == "stopped":
        return f"kill -CONT {row.rank.pid}"  # since when stands in a column of its own
    running = latest_compile(row.rank.model) if row.standing.condition == "compiling" else None
    if running is None:
        return _words(row.doing(width))
    age = f" {fmt.age((row.rank.now_ns - running.since_ns) / 1e9)}"
    room = max(1, width - len(age))
    return frame_name(running.function, running.file, running.line, room, row.scene.glyphs.ellipsis) + age


def _text(row: Row) -> str:
    rank = row.rank
    return f"{rank.label} {rank.pid} {rank.host or ''} {rank.title} {row.standing.condition} {_words(row.doing(200))}"


def _cells(scene: Scene, row: Row) -> Cells:
    rank, standing, model = row.rank, row.standing, row.rank.model
    known = model.target.attached_ns is not None
    pid = str(rank.pid) if rank.pid is not None else fmt.UNKNOWN
    silent_s = rank.silence[0] if rank.silence is not None else None
    heard = "now" if silent_s is not None and silent_s < HEARD_AFTER_S else fmt.age(silent_s)

    def number(value: int) -> tuple[str, str]:
        return (fmt.count(value) if known else fmt.UNKNOWN, "number")

    return {
        "rank": (cut(clean(row.name), LONGEST_NAME, scene.glyphs.ellipsis), "strong" if row.at == scene.rank else "text"),
        "state": (f"{standing.condition} {standing.sign}".rstrip(), standing.role),
        "step": number(model.steps.n) if not model.recorded.missing("steps") else (fmt.UNKNOWN, "number"),
        "median": (fmt.duration(standing.median_s), "number"),
        "late": (standing.late or fmt.UNKNOWN, standing.role if standing.look >= NAMED else "number"),
        "waits": (standing.waits, "text"),
        "rate": (fmt.rate(step_rate(model)) if standing.condition in _GOING else fmt.UNKNOWN, "number"),
        "behind": (fmt.count(standing.behind), "warn" if standing.behind else "number"),
        "regions": number(len(model.regions)),
        "breaks": number(sum(boundary.breaks for boundary in model.boundaries.values())),
        "recompiles": number(len(model.recompiles)),
        "heard": (heard, "number"),
        "pid": (pid, "dim"),
        "host": (clean(rank.host or "here"), "dim"),
        "now": lambda width: (_now(row, width), standing.role),
    }


def _note(scene: Scene, rows: Sequence[Row], width: int) -> str:
    if untold(scene, "steps"):
        return f"steps: {untold(scene, 'steps')}"
    return f"median of {WINDOW} steps" + ("; behind: since all are attached" if are_one_job(scene.ranks) else "")


TABLE: Table[Row] = Table(
    number=8,
    title="all ranks",
    rows=lambda scene: [Row(scene, at, name) for at, name in enumerate(names(scene.ranks))],
    key=lambda row: str(row.at),
    text=_text,
    sorts=(
        Sort("what to look at", "state", lambda scene, row: row.standing.look),
        Sort("steps behind", "behind", lambda scene, row: -1 if row.standing.behind is None else row.standing.behind),
        Sort("lateness", "late", lambda scene, row: row.standing.late_ns),
        Sort("rank", "rank", lambda scene, row: row.at, descending=False),
        Sort("step median", "median", lambda scene, row: row.standing.median_s or 0.0),
        Sort("state", "state", lambda scene, row: _order(row.standing.condition), descending=False),
        Sort("recompiles", "recompiles", lambda scene, row: len(row.rank.model.recompiles)),
    ),
    columns=(
        Column("rank", "rank", 5, right=True),
        Column("state", "state", 11),
        Column("late", "late", 7, right=True, rank=1),
        Column("waits", "waits for", 12, rank=2),
        Column("step", "step", 6, right=True),
        Column("median", "median", 7, right=True),
        Column("rate", "rate", 6, right=True, rank=5),
        Column("behind", "behind", 7, right=True, rank=1),
        Column("regions", "regions", 7, right=True, rank=9),
        Column("breaks", "breaks", 6, right=True, rank=8),
        Column("recompiles", "recomp", 6, right=True, rank=6),
        Column("heard", "heard", 6, right=True, rank=7),
        Column("pid", "pid", 7, right=True, rank=3),
        Column("host", "host", 10, flex=2, most=24, snug=True, rank=2),
        Column("now", "now", 10, flex=3, rank=4),
    ),
    cells=_cells,
    note=_note,
    empty=lambda scene: "one process is watched; ranks appear here when tuimon attach --all watches several",
    hidden=lambda scene: frozenset() if any(one.late_ns >= 0 for one in scene.standings) else frozenset({"late", "waits"}),
)
"""The ranks of one job."""


def _table(scene: Scene) -> Table[Row]:
    """The table for these processes: unrelated ones are no ranks, and hosts matter where there is another than this."""
    elsewhere = any(rank.host for rank in scene.ranks)
    columns = tuple(column for column in TABLE.columns if column.name != "host" or elsewhere)
    if are_one_job(scene.ranks):
        return replace(TABLE, columns=columns)
    # a name is the pid here
    columns = tuple(replace(column, title="pid") if column.name == "rank" else column for column in columns)
    return replace(TABLE, title="processes", columns=tuple(column for column in columns if column.name != "pid"))


def _order(condition: str) -> int:
    return _COUNTED.index(condition) if condition in _COUNTED else len(_COUNTED)


def _draw(scene: Scene, view: PanelView, width: int, height: int, focused: bool) -> PanelLines:
    if view.cursor is None and scene.ranks:
        view.cursor = begin_at(scene)
    about = _about(scene, view, width) if height >= ABOUT_FROM else []
    told = _told(scene, width, min(MOST_SENTENCE, height // 5)) if height >= SENTENCE_FROM else []
    view.above = len(told)
    lines = tabular.draw(_table(scene), scene, view, width, height - len(about) - len(told), focused)
    lines[1:1] = told
    lines += [[(" ", "text")] for _ in range(height - len(about) - len(lines))]
    return lines + about


def begin_at(scene: Scene) -> str:
    """The row to begin at: the rank that has to be looked at, else the one that the panels show."""
    found = max(range(len(scene.ranks)), key=lambda at: (scene.standings[at].look, at == scene.rank), default=scene.rank)
    return str(found if scene.standings[found].look >= NAMED else scene.rank)


def _told(scene: Scene, width: int, most: int) -> PanelLines:
    """The sentence on who is late, the most costly one; and how many more there are."""
    if not scene.verdicts:
        return []
    more = f" (and {len(scene.verdicts) - 1} more)" if len(scene.verdicts) > 1 else ""
    pieces = wrap(clean(scene.verdicts[0].sentence) + more, max(10, width - 2))
    if len(pieces) > most:
        rest = cut(" ".join(pieces[most - 1 :]), width - 2, scene.glyphs.ellipsis)
        pieces = [*pieces[: most - 1], rest]
    return [[(" ", "text"), (piece, "bad")] for piece in pieces]


def _about(scene: Scene, view: PanelView, width: int) -> PanelLines:
    """What there is to say of the selected one, in full: why it was refused, what it waits for, what it compiles."""
    row = next((row for row in tabular.arranged(TABLE, scene, view) if str(row.at) == view.cursor), None)
    if row is None:
        return []
    rank = row.rank
    where = f"pid {rank.pid}" if rank.pid is not None else ""
    if rank.host:
        where += f" on {clean(rank.host)}"
    head = ", ".join(dict.fromkeys(filter(None, [clean(rank.label), where])))
    doing = _words(row.doing(2 * width))
    pieces = wrap(f"{head}: {doing or row.standing.condition}", max(10, width - 2))
    if len(pieces) > MOST_ABOUT:
        rest = cut(" ".join(pieces[MOST_ABOUT - 1 :]), width - 2, scene.glyphs.ellipsis)
        pieces = [*pieces[: MOST_ABOUT - 1], rest]
    rule: Line = [(scene.glyphs.horizontal * width, "rule")]
    return [rule, *([(" ", "text"), (piece, row.standing.role if doing else "note")] for piece in pieces)]


HOLDING = ("stopped", "silent", "lost", "ended")
_OVER = ("lost", "ended", "detached")


def holding(scene: Scene) -> Line:
    """The rank that does not go on, without which the others cannot either; or that all are over. Empty where all go on."""
    if not are_one_job(scene.ranks):
        return []
    conditions = [one.condition for one in scene.standings]
    if all(condition in _OVER for condition in conditions):
        return [(f"all {len(conditions)} ranks are over", "ended")]
    found = next((at for one in HOLDING for at, condition in enumerate(conditions) if condition == one), None)
    if found is None:
        return []
    rank = scene.ranks[found]
    words = stopped_words(rank.silence, rank.pid) or conditions[found]
    return [(f"rank {clean(names(scene.ranks)[found])} {words}", scene.standings[found].role)]


def _answer(scene: Scene) -> Line:
    """Who is late, or what else is the matter with one; else that all run."""
    if not scene.ranks:
        return told("one process is watched: nothing to compare until tuimon attach --all watches several")
    late: Line = [(clean(scene.verdicts[0].sentence), "bad")] if scene.verdicts else []
    first = holding(scene)
    if first or late:
        return [*first, *([("; ", "text")] if first and late else []), *late]
    what = "rank" if are_one_job(scene.ranks) else "process"
    odd = max(range(len(scene.ranks)), key=lambda at: scene.standings[at].look)
    one = scene.standings[odd]
    if one.look > 0:
        name = clean(names(scene.ranks)[odd])
        return [(f"{what} {name} is to be looked at first: ", "text"), (f"{one.condition} {one.sign}".rstrip(), one.role)]
    many = plural(len(scene.ranks), what, "processes" if what == "process" else None)
    if what == "process":
        return [(f"{many} are watched, and none is to be looked at first", "good")]
    return [(f"none of {many} holds the others up", "good")]


PANEL = Panel(
    number=8,
    id="ranks",
    title="all ranks",
    sections=("target",),
    draw=_draw,
    keys=partial(tabular.keys, TABLE),
    copied=lambda scene, key: tabular.copied(_table(scene), scene, key),
    sorts=tuple(sort.name for sort in TABLE.sorts),
    filterable=True,
    rows=lambda scene: len(scene.ranks),
    stamp=lambda scene: (scene.rank, tuple(rank.now_ns for rank in scene.ranks), scene.standings, scene.verdicts),
    help=(
        "All the processes that are watched, one a row. enter makes a row the one that the other panels show, as ] and [ do. "
        "late: how much later than the first it comes to where ranks meet, the median; 3/4 behind it: the others waited for it "
        "in 3 of 4 slow steps. waits for: whom it has waited for most, and how long in all. "
        "slow: its median step takes more than 1.25 times that of the middle one. behind: steps fewer than the one that is "
        "furthest, counted from the moment at which all were attached. heard: when its hook was last heard of. "
        "Signs: ~ attaching, * compiling, = no step for long, ? stopped or silent, ! refused, x over."
    ),
    answer=_answer,
)
