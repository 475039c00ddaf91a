"""What a drawing needs to know, and how a person looks at a panel. No screen library in here, so panels stay pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tuimon.app.plane import Plane
from tuimon.draw.table import Widths

if TYPE_CHECKING:
    from tuimon.app.feed import Where
    from tuimon.draw.glyphs import GlyphSet
    from tuimon.draw.text import Line
    from tuimon.model import Model
    from tuimon.model.ranks.lateness import Lateness
    from tuimon.model.ranks.verdicts import Verdict
    from tuimon.plain import JobFiles
    from tuimon.roofline.ceilings import Ceiling


@dataclass(slots=True)  # not frozen: hundreds are made several times a second, and that takes three times as long
class Rank:
    """One of the processes that are watched."""

    label: str
    rank: int | None
    host: str | None
    """None: this host."""
    pid: int | None
    title: str
    """What it runs, as far as is known before the attach."""
    model: Model
    now_ns: int
    """The time on its job's clock."""
    beat_ns: int | None = None
    silence: tuple[float, str | None] | None = None
    """For how many seconds nothing has come from it, and what its process does where that is telling."""
    job: str | None = None
    nvml_waiting_s: float | None = None

    @property
    def number(self) -> int | None:
        """Its rank: what the job says, else what was seen from outside."""
        return self.model.target.rank if self.model.target.rank is not None else self.rank


@dataclass(frozen=True, slots=True)
class Standing:
    """How it stands with one of several processes, seen beside the others."""

    condition: str
    """A word or two: "running", "slow", "refused", .."""
    sign: str
    """The same as one character; a space where there is nothing to say."""
    role: str
    median_s: float | None = None
    behind: int | None = None
    """Steps behind the one that is furthest, counted since all were attached."""
    late: str = ""
    """How late it comes to where ranks meet, in words."""
    late_ns: int = -1
    """The same in ns, as a median; -1 where it is not known."""
    waits: str = ""
    """For whom it has waited most, and how long in all."""
    look: int = 0
    """Higher: look at it before others. 0: nothing is the matter."""


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything that panels draw from."""

    model: Model
    glyphs: GlyphSet
    now_ns: int
    """The time on the job's clock. It goes on between events, so that a long compilation is seen to take long."""
    ceilings: tuple[Ceiling, ...] = ()
    """Those that are declared: shown where none is known of the job's own machine."""
    plane: Plane = field(default_factory=Plane)
    """The roofline, and what a person chose of it."""
    nvml_waiting_s: float | None = None
    """How long a call into the driver has not come back; None if none is waiting."""
    utc_offset_s: int = 0
    beat_ns: int | None = None
    """`now_ns` when events were last taken in; None: now. What did not come may have come since then, unseen."""
    title: str = ""
    """What is watched, as far as is known before the attach."""
    silence: tuple[float, str | None] | None = None
    """For how many seconds nothing has come from the job, and what its process does where that is telling."""
    host: str | None = None
    """Where the job runs; None: on this host."""
    ranks: tuple[Rank, ...] = ()
    """All the processes that are watched, where they are several; empty where there is one."""
    standings: tuple[Standing, ...] = ()
    """One for each of `ranks`."""
    rank: int = 0
    """Which of `ranks` the rest of the scene is about."""
    verdicts: tuple[Verdict, ...] = ()
    """What a person should know of the ranks beside each other, the most costly first."""
    lateness: Lateness | None = None
    """What is known of the ranks of this one's job beside each other; None where it is not compared with others."""
    replay: Where | None = None
    """Where the replay stands; None: no recording is played."""
    job_files: JobFiles | None = None
    """The files that a job on this host names, as it finds them itself; None: they are looked for as tuimon finds them."""


@dataclass(slots=True)
class PanelView:
    """How a person looks at one panel: sort, filter, selection. The selection is a key, so it survives a new order."""

    sort: int = 0
    reverse: bool = False
    filter: str = ""
    cursor: str | None = None
    at: int = 0
    """Where the selected row was: the place to stay at when the row itself goes away."""
    top: int = 0
    follow: bool = True
    """A log: stay at the newest line until someone moves up."""
    widths: Widths = field(default_factory=Widths)
    page: int = 1
    """Rows that were shown last: how far a page goes."""
    above: int = 0
    """Lines between the title of a table and the heads of its columns, as drawn last."""
    per: int = 1
    """Steps that a cell of the timeline stands for."""
    held: tuple[int, int, int, dict[int, int]] = field(default_factory=lambda: (0, 1, 0, {}))
    """What cells of several steps showed before their steps fell out of the ring: model, steps of a cell, steps so far, the ns
    of each cell's longest step."""
    marks: set[str] = field(default_factory=set)
    """Keys of the rows that a person marked in this session."""
    version: int = 0
    """Grows with each change by a person: what tells that a panel must be drawn anew although its data is the same."""

    def touch(self) -> None:
        """Note a change by a person."""
        self.version += 1


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel of the screen. Everything it shows comes out of `draw`."""

    number: int | str
    """Its key, and its place in the order of `tab`; a letter for one that is not among the others."""
    id: str
    title: str
    sections: tuple[str, ...]
    """The sections of `Model.versions` that it shows."""
    draw: Callable[[Scene, PanelView, int, int, bool], list[Line]]
    """(scene, view, width, height, focused) -> lines. At most `height` lines; the caller fits them."""
    keys: Callable[[Scene, PanelView], list[str]]
    """The keys of its rows in the order shown; empty for a panel without rows."""
    sorts: tuple[str, ...] = ()
    """Names of its sorts, the default first."""
    filterable: bool = False
    rows: Callable[[Scene], int] | None = None
    """A table: how many rows it has. Tables are drawn once a second, and at once when a row comes or goes: numbers that change
    four times a second cannot be read, and rows that change places as often cannot be followed."""
    ticking: Callable[[Scene], bool] = lambda scene: False
    """Whether it shows a time that runs on although nothing happened."""
    stamp: Callable[[Scene], Any] = lambda scene: None
    """What else it shows than `sections`: drawn anew when this differs."""
    help: str = ""
    """What one sees in it, for the help page."""
    answer: Callable[[Scene], Line] = lambda scene: []
    """What this screen says in its first line: at most one sentence, the answer to the question that it is opened with."""
    copied: Callable[[Scene, str], str] | None = None
    """(scene, key) -> what is copied of that row, as one line of text; None: it has no rows to copy."""
