"""The nouns of steps: the account of one, and what made one slow. Data only."""

from __future__ import annotations

from dataclasses import dataclass, field

from tuimon.events import SiteSeen, StackSeen

CATEGORIES = (
    "compile", "forward regions", "backward regions", "boundary", "optimizer", "data wait", "communication", "gc", "profiler",
    "other python",
)  # fmt: skip
"""What a step's wall time is divided into: disjoint, and they add up to it. "other python" is the remainder."""


@dataclass(slots=True)  # not frozen, though nobody changes one: each step has one, and making it takes six times as long
class StepAccount:
    """One step of the job."""

    index: int
    """From 0, counted from the attach."""
    begin_ns: int
    end_ns: int
    parts: tuple[int, ...]
    """ns of each of CATEGORIES, in their order; the sum is `end_ns - begin_ns`."""
    compiled: bool
    """A compilation ran within it, on its own thread."""
    complete: bool = True
    """Nothing was dropped while it ran."""
    index_certain: bool = True
    """Whether it is known where the loop turned at its begin and end, and not only that it did."""
    waited_ns: int = 0
    """How long its thread was ready to run and no core was free: within the parts, not beside them."""

    @property
    def took_ns(self) -> int:
        """Its wall time."""
        return self.end_ns - self.begin_ns


@dataclass(frozen=True, slots=True)
class Cause:
    """What made a step slow, or one of two things that did."""

    cause: str
    """One of CATEGORIES, or "run-queue wait", "major page faults", "CPU quota", "GPU throttled", "stopped", "waits for work",
    "unexplained"."""
    share: float
    """Of the step's excess over the steady steps, 0 to 1."""
    detail: str
    """Where and what, in one line: "recompile of encode [0/1]: size of x at 0 was 8, is 6 (4.42 s)"."""
    evidence: tuple[str, ...] = ()
    """Numbers, and where each was read."""


@dataclass(frozen=True, slots=True)
class SlowStep:
    """A step that took far longer than the steady ones before it."""

    account: StepAccount
    usual_ns: int
    """The median of the steady steps that it is compared with."""
    usual: tuple[int, ...]
    """The median of each of CATEGORIES in them."""
    causes: tuple[Cause, ...]
    """Most of the excess first. One that is "unexplained" where nothing can be named."""
    named: bool
    """Whether the causes explain at least half of the excess."""
    limit_ns: int = 0
    """What takes longer than this is slow by the rule, when it was judged; 0 where that is not known."""
    deviation_ns: int = 0
    """The robust deviation of the steady steps that it is compared with."""
    compared: int = 0
    """How many they are."""

    @property
    def ratio(self) -> float | None:
        """How many times the usual."""
        return self.account.took_ns / self.usual_ns if self.usual_ns else None


@dataclass(slots=True)
class LongRow:
    """Something of a step that took long enough to be told by itself."""

    role: str
    """As of an instrument; "compile" for a compilation, "boundary" for a boundary, "look" for what only looks have seen."""
    category: int
    """Index in CATEGORIES."""
    instrument: int
    """0 for what no instrument timed."""
    name: str
    function: str
    file: str
    line: int
    begin_ns: int
    end_ns: int
    thread: int
    own_ns: int = 0
    """What of it is its own in the step's account."""
    generation: int | None = None
    """Of a collection."""
    sequence: int = 0
    """Of a collective: its number in its group, 0 where it is not known."""
    site: SiteSeen | None = None
    compile_id: str | None = None
    boundary: str | None = None
    """Its key."""
    raised: bool = False


@dataclass(slots=True)
class StepEvidence:
    """What was seen of one step beyond its account."""

    thread: int
    """The ident of the thread that steps run on."""
    rows: list[LongRow] = field(default_factory=list)
    """The longest, by begin."""
    looks: list[StackSeen] = field(default_factory=list)
    """Oldest first."""
    cpu: list[tuple[int, int]] = field(default_factory=list)
    """(t_ns, CPU time in ns of the thread) readings within it, and the last one before it; oldest first."""
    forwards: int = 0
    """Calls of forward regions, and of frames in eager."""
    backwards: int = 0
    """Runs of the autograd engine."""
