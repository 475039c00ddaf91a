"""The nouns of the model: frames, regions, boundaries, compilations, recompiles, steps. Data only; `fold` fills them in."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from tuimon.events import GraphSeen
from tuimon.model.about import About
from tuimon.model.statistics import Durations
from tuimon.model.steps.parts import SlowStep, StepAccount, StepEvidence

FrameKey = str
"""`generation:frame id`, e.g. "0:2": a code object as Dynamo numbers it. Lines and names are no keys."""


@dataclass(slots=True)
class StepShare:
    """What one thing did within steady steps (steps without a compilation in them), for "per step" and "share"."""

    ns: int = 0
    count: int = 0
    untimed: int = 0
    """How many of `count` have no known time."""
    pending_ns: int = 0
    pending_count: int = 0
    pending_untimed: int = 0

    def note(self, ns: int | None) -> None:
        """Something of the step that is running now; None where its time is not known."""
        self.pending_count += 1
        if ns is None:
            self.pending_untimed += 1
        else:
            self.pending_ns += ns

    def close(self, keep: bool) -> None:
        """The step is over: keep what it had, or leave it out because it was not a steady one."""
        if keep:
            self.ns += self.pending_ns
            self.count += self.pending_count
            self.untimed += self.pending_untimed
        self.pending_ns = self.pending_count = self.pending_untimed = 0


@dataclass(slots=True)
class Frame:
    """A Python code object that Dynamo compiled."""

    key: FrameKey
    frame_id: int
    generation: int
    function: str = "?"
    file: str = ""
    line: int = 0
    display: str | None = None
    entries: list[str] = field(default_factory=list)
    """Compile ids of its cache entries, oldest first."""
    limit: int | None = None
    refused_compile_id: str | None = None
    own_limit: bool = False
    """`limit` is not the setting's: a compilation was refused with fewer entries than that (recompile_limit= of the call)."""
    refused_limit: str = ""
    """Which limit refused it ("recompile_limit", ..)."""
    compiled_calls: int = 0
    eager_calls: int | None = None
    """Calls since the attach that ran in eager: past the limit, or because the frame is skipped. None: not counted."""
    eager_why_not: str = ""
    """Why they are not counted, where that is known."""
    skipped: bool = False
    """Dynamo gave the whole frame up: every call runs in eager."""
    skipped_why: str = ""
    """The headline or the failure behind that."""
    without_graph: list[str] = field(default_factory=list)
    """Compile ids of those of its entries that hold no graph: their calls pass no timer."""
    code: int | None = None
    """The number of its code object (`events.CodeSeen`)."""
    owners: list[str] = field(default_factory=list)
    """The modules it was compiled for, by type names, in the order in which they came."""
    user_file: str = ""
    user_line: int = 0
    """The user's line that calls it, where the frame itself is a library's."""
    before_attach: bool = False

    @property
    def name(self) -> str:
        """What to call it on screen."""
        return self.display or self.function


Sizes = tuple[tuple[str, int], ...]
"""("s77", 20): what the symbols of a graph are in a call."""


@dataclass(slots=True)
class Lap:
    """A region's calls within about a second."""

    end_ns: int
    calls: int
    ns: int


@dataclass(slots=True)
class Region:
    """One compiled graph as it is called at run time."""

    key: str
    """`generation:compile id:direction`, with `#2` and so on behind it where one compilation made several graphs."""
    compile_id: str
    generation: int
    direction: str
    frame: FrameKey | None
    function: str
    file: str
    line: int
    backend: str | None = None
    ops: int | None = None
    calls: int = 0
    initial: Durations = field(default_factory=Durations)
    steady: Durations = field(default_factory=Durations)
    after_guard_change: Durations = field(default_factory=Durations)
    device: Durations = field(default_factory=Durations)
    """On the device's own clock, a sampled share of the calls."""
    share: StepShare = field(default_factory=StepShare)
    raised: int = 0
    before_attach: bool = False
    graphs: list[GraphSeen] = field(default_factory=list)
    """What it computes: one, or none while nothing has told it."""
    laps: dict[Sizes, deque[Lap]] = field(default_factory=dict)
    """By the sizes of its symbols (() where it has none): its calls but the initial ones, a second together."""
    device_laps: dict[Sizes, deque[Lap]] = field(default_factory=dict)
    """The same on the device's clock, of the calls that were timed there."""

    @property
    def total_ns(self) -> int:
        """All time spent in its calls, the initial one included."""
        return self.initial.total_ns + self.steady.total_ns + self.after_guard_change.total_ns


@dataclass(slots=True)
class Boundary:
    """The eager stretch that a graph break leaves between two regions."""

    key: str
    """`frame key@file:line`, with `+offset` behind it where the instruction is known; that of a frame that is skipped whole is
    `skip@code:offset`. Two boundaries can share a line and a resume name, but not the frame and the instruction as well."""
    frame: FrameKey | None
    """The first of `frames`."""
    function: str
    file: str
    line: int
    user_file: str = ""
    user_line: int = 0
    reason: str = ""
    kind: str = ""
    gb_id: str | None = None
    explanation: str = ""
    hints: tuple[str, ...] = ()
    requested: bool = False
    asked_by: str | None = None
    """Who asked for it: "user", "library" (a call within a library), None: nobody. `requested` is the first alone."""
    skipped_frame: bool = False
    stack: tuple[tuple[str, int, str], ...] = ()
    breaks: int = 0
    crossings: int | None = None
    host: Durations = field(default_factory=Durations)
    share: StepShare = field(default_factory=StepShare)
    accepted: str | None = None
    before_attach: bool = False
    frames: list[FrameKey] = field(default_factory=list)
    """The frames that are broken here: one, or, for an instruction at which several are skipped, all of them."""
    code: int | None = None
    offset: int | None = None
    """The instruction: code object (`events.CodeSeen`) and offset in it."""
    headline: str = ""
    also: str = ""
    source: str = ""
    """The text of the line, stripped, where Dynamo quoted it."""
    counted: str = ""
    """How crossings are counted where that is not plain ("by line", ..)."""
    sync_looked: int = 0
    sync_waited: int = 0
    """Crossings that were looked at for a wait on the device, and those where one was seen."""


@dataclass(slots=True)
class Compilation:
    """One compilation: of a frame, of a backward graph, or an attempt that the limit refused."""

    compile_id: str
    generation: int
    direction: str
    frame: FrameKey | None
    function: str
    file: str
    line: int
    why: str
    """"first", "recompile", "backward", "restart" or "refused"."""
    thread: str
    began_ns: int
    ended_ns: int
    total_s: float | None
    dynamo_s: float | None
    aot_s: float | None
    inductor_s: float | None
    triton_s: float | None
    cache: dict[str, str] = field(default_factory=dict)
    """cache name -> "hit" | "miss" | "bypass"."""
    step: int | None = None
    failed: str | None = None
    refused: bool = False
    before_attach: bool = False
    owner: str = ""
    restarts: int = 0
    restart_reasons: tuple[str, ...] = ()
    caches: dict[str, dict[str, int]] = field(default_factory=dict)
    """cache name -> result -> how often: a compilation can ask more than once."""
    late: bool = False
    """It came after the warm-up was over: after enough steady steps in a row."""
    steady_before: int = 0
    """Steady steps in a row before it."""
    gc_s: float | None = None
    autotune_s: float | None = None

    @property
    def key(self) -> str:
        """Its name among all: ids are given out anew after a reset."""
        return f"{self.generation}:{self.compile_id}:{self.direction}"


@dataclass(slots=True)
class Recompile:
    """A further cache entry for a frame that has one; or the attempt that the limit refused."""

    compilation: Compilation
    failed: tuple[tuple[str, str], ...]
    """(compile id of the entry, guard text), newest entry first."""
    now: tuple[tuple[str, str], ...] = ()
    """(expression, its value in the call that failed)."""

    @property
    def key(self) -> str:
        """Its name among all; that of the attempt that was refused is another one than that of an entry of the same id."""
        made = self.compilation
        return f"{made.generation}:{made.compile_id}{':refused' if made.refused else ''}"

    @property
    def reason(self) -> str:
        """Dynamo's text of the guard of the newest entry that failed."""
        return self.failed[0][1] if self.failed else ""

    @property
    def guard(self) -> str:
        """That text's own line, without the source line and the stack that Dynamo writes behind it."""
        first = self.reason.split("\n", 1)[0]
        return first.split("  # ", 1)[0].rstrip()


@dataclass(slots=True)
class Running:
    """A compilation that is going on now."""

    compile_id: str
    direction: str
    function: str
    file: str
    line: int
    thread: str
    attempt: int
    since_ns: int
    phases: list[tuple[str, int]] = field(default_factory=list)
    """The open phases, outermost first, with their begin."""
    since_known: bool = True
    """Whether `since_ns` is its begin; otherwise it began before that, and tuimon came in the middle."""
    owner: str = ""
    code: int | None = None


@dataclass(slots=True)
class Steps:
    """The job's iterations."""

    source: str | None = None
    """"optimizer", "marked", "inferred"; None while none has been seen."""
    n: int = 0
    """Steps that ended since the attach."""
    before_attach: int | None = None
    first: int = 0
    """Index of the first whole step; 1 where one was under way at the attach whose end was seen."""
    durations: Durations = field(default_factory=Durations)
    recent: deque[tuple[int, int, bool]] = field(default_factory=lambda: deque(maxlen=512))
    """(index, duration in ns, had a compilation in it), oldest first: for the sparkline."""
    last_end_ns: int | None = None
    steady_n: int = 0
    steady_ns: int = 0
    how: str = ""
    """In words, how steps are told: "from the optimizer", "the order of the regions repeats every 12 calls", .."""
    why_not: str = ""
    """Why none are told, where that is known, with what would help."""
    accounts: deque[StepAccount] = field(default_factory=lambda: deque(maxlen=2048))
    """Oldest first."""
    slow: deque[SlowStep] = field(default_factory=lambda: deque(maxlen=512))
    """Oldest first."""
    slow_n: int = 0
    """Slow steps ever, those that fell out included."""
    evidences: dict[int, StepEvidence] = field(default_factory=dict)
    """What was seen of the last steps of which anything was, by index."""

    def evidence(self, index: int) -> StepEvidence | None:
        """What was seen of a step beyond its account; None where there was nothing to tell, or it is too long ago."""
        return self.evidences.get(index)


@dataclass(slots=True)
class Target:
    """What is being watched."""

    pid: int | None = None
    command: str = ""
    python: str | None = None
    torch: str | None = None
    how: str = ""
    devices: tuple[str, ...] = ()
    rank: int | None = None
    world_size: int | None = None
    recompile_limit: int | None = None
    options: tuple[tuple[str, str], ...] = ()
    attaching: str | None = None
    """While tuimon attaches: what happens, or what it waits for. None before and after."""
    attaching_since_s: float | None = None
    """How long that had been waited for when it was said, at `attaching_ns`."""
    attaching_ns: int = 0
    attached_ns: int | None = None
    attached_wall_s: float | None = None
    ended: str | None = None
    """"exited", "lost", "detached" or "refused" once it is over."""
    ended_detail: str = ""
    ended_ns: int | None = None
    status: int | None = None


@dataclass(slots=True)
class Coverage:
    """How much of the truth is in here, and what it cost the job."""

    samples: int = 0
    dropped: int = 0
    hook_s: float | None = None
    instruments: dict[str, str] = field(default_factory=dict)
    not_available: dict[str, str] = field(default_factory=dict)

    @property
    def unmarked(self) -> str:
        """Why the function that was named for it (`--step`) marks no step, in words; empty where it does, or none was named."""
        state = self.instruments.get("marked steps", "on")
        return "" if state == "on" else state.removeprefix("on: ")


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of the event log."""

    t_ns: int
    kind: str
    """"break", "recompile", "compile", "limit", "job", "target", "tuimon"."""
    text: str
    about: About | None = None
    """What it is about, where that can be looked at."""
