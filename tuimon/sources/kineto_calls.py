"""What a trace tells of a job's run: its steps, and the calls of what is timed in a live job too, as the same samples.

torch.profiler brackets each step as `ProfilerStep#n`. A region's call is taken from its begin to the end of its graph's call,
on its own thread; that of a backward on the thread of the steps, where that one did nothing while the engine ran it elsewhere.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from tuimon import events as ev
from tuimon.sources.operators import Operators, Ran

Sample = tuple[int, int, int, int, int]
Step = tuple[int, int, int]
"""(its number in the profiler, begin, end)."""

STEP, DATA, OPTIMIZER, COMMUNICATION = "mark", "data", "optimizer", "communication"
_ROLE: dict[str, ev.Role] = {DATA: "data", OPTIMIZER: "optimizer", COMMUNICATION: "communication"}
_STEP = re.compile(r"ProfilerStep#(\d{1,15})$")
_COMMUNICATION = ("nccl:", "gloo:", "mpi:", "ucc:", "xccl:", "c10d::", "_c10d_functional::", "record_param_comms")
COMPILER = " (dynamo_timed)"
"""How torch's compiler marks what it does in a trace."""
MOST_NAMES = 1000
"""Different loaders, optimizers and collectives that are told apart."""
COUNTED_STEPS = "the steps of torch.profiler (ProfilerStep#n)"
COUNTED_REGION = "from the begin of the region to the end of its graph's call"


@dataclass(slots=True)
class Calls:
    """The calls of a file, as a live job's hook would tell them."""

    steps: tuple[Step, ...] = ()
    rows: tuple[Sample, ...] = ()
    """In the order in which they ended."""
    added: tuple[ev.InstrumentAdded, ...] = ()
    threads: tuple[ev.ThreadSeen, ...] = ()
    ran: Sequence[Ran] = ()
    """Calls of regions, each on the thread that it is counted on, in the order of begin."""
    origin: Mapping[Ran, Ran] = field(default_factory=dict)
    """Of those that were put on another thread: as they ran."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """Region -> its instrument."""


def role(name: str) -> str:
    """What an operator or annotation of that name is to a step; "" for nothing."""
    if name.startswith("ProfilerStep#"):
        return STEP
    if name.startswith("enumerate(") and "#" in name:
        return DATA
    if name.startswith("Optimizer.step#"):
        return OPTIMIZER
    return COMMUNICATION if name.startswith(_COMMUNICATION) else ""


def calls(operators: Operators, began: int) -> Calls:
    """Of all that a file holds. `began`: when the first of it did."""
    steps: dict[Hashable, list[Step]] = {}
    outermost: list[tuple[Hashable, int, int, str, str]] = []
    until: dict[tuple[Hashable, str], int] = {}
    for thread, begin, end, name, what in operators.named(role):
        if what == STEP:
            found = _STEP.match(name)
            if found is not None and end > begin:
                steps.setdefault(thread, []).append((int(found[1]), begin, end))
        elif begin >= until.get((thread, what), -(2**63)):
            until[thread, what] = end
            outermost.append((thread, begin, end, name, what))
    main = max(steps, key=lambda one: len(steps[one]), default=None)
    mine = _apart(steps[main]) if main is not None else ()
    ran, origin = _on_the_callers_thread(operators, main)
    if main is None:
        main = _busiest(ran, outermost)
    instruments, numbers = _Instruments(began), _Threads(main)
    rows: list[Sample] = []
    if mine:  # said at once, lest an optimizer within the first be taken for what tells the steps
        rows.append((instruments.step(), numbers.of(main), 0, mine[0][1], mine[0][1]))
    for _, begin, end in mine:
        rows.append((instruments.step(), numbers.of(main), 0, begin, end))
    for one in ran:
        rows.append((instruments.region(one.region), numbers.of(one.thread), 0, one.begin, one.end))
    for thread, begin, end, name, what in outermost:
        if mine and what == OPTIMIZER and end <= mine[0][1]:
            continue
        instrument = instruments.named(name, what)
        if instrument:
            rows.append((instrument, numbers.of(thread), 0, begin, end))
    rows.sort(key=lambda row: (row[4], -row[3]))
    return Calls(mine, tuple(rows), tuple(instruments.added), numbers.seen(began), ran, origin, instruments.regions)


def compiling(operators: Operators) -> tuple[int, int]:
    """(stretches, ns) in which torch's compiler worked, as newer ones tell of themselves; one within another counts once."""
    n = ns = 0
    until: dict[Hashable, int] = {}
    for thread, begin, end, _, _ in operators.named(lambda name: "compiler" if name.endswith(COMPILER) else ""):
        if begin >= until.get(thread, -(2**63)):
            until[thread] = end
            n, ns = n + 1, ns + end - begin
    return n, ns


def step_of(steps: Sequence[Step], moment: int) -> int | None:
    """The place in `steps` of the one in which that moment lies."""
    at = bisect_right(steps, moment, key=lambda one: one[1]) - 1
    return at if at >= 0 and moment < steps[at][2] else None


def _apart(steps: list[Step]) -> tuple[Step, ...]:
    """In their order, each once: none begins within another."""
    found: list[Step] = []
    for one in sorted(steps, key=lambda one: (one[1], -one[2])):
        if not found or one[1] >= found[-1][2]:
            found.append(one)
    return tuple(found)


def _busiest(ran: Sequence[Ran], others: Sequence[tuple[Hashable, int, int, str, str]]) -> Hashable:
    """The thread that the job's loop is most likely on, where no step tells it."""
    count = Counter(one.thread for one in ran if not one.region.endswith("<"))
    count = count or Counter(one[0] for one in others)
    return count.most_common(1)[0][0] if count else None


def _on_the_callers_thread(operators: Operators, main: Hashable) -> tuple[list[Ran], dict[Ran, Ran]]:
    """All calls of regions; those of backwards put on the thread of the steps where that one waited for the engine."""
    found: list[Ran] = []
    origin: dict[Ran, Ran] = {}
    every = operators.ran()
    count = Counter(one.thread for one in every if not one.region.endswith("<"))
    caller = main if main in count or not count else count.most_common(1)[0][0]
    for one in every:
        elsewhere = one.region.endswith("<") and one.thread != caller and caller is not None
        if elsewhere and operators.is_idle(caller, one.begin, one.end):
            moved = Ran(caller, one.begin, one.end, one.region)
            origin[moved] = one
            found.append(moved)
        else:
            found.append(one)
    found.sort(key=lambda one: one.begin)
    return found, origin


class _Instruments:
    """Gives each thing that is timed its number."""

    def __init__(self, began: int) -> None:
        self.added: list[ev.InstrumentAdded] = []
        self._began = began
        self.regions: dict[str, int] = {}
        self._numbers: dict[tuple[str, str], int] = {}

    def step(self) -> int:
        return self._numbers.get((STEP, "")) or self._add((STEP, ""), "mark", None, "ProfilerStep", "", COUNTED_STEPS)

    def region(self, region: str) -> int:
        known = self.regions.get(region)
        if known is not None:
            return known
        way: ev.Role = "backward" if region.endswith("<") else "forward"
        compile_id = region.rstrip("<")
        name = f"Torch-Compiled Region: {compile_id}"
        self.regions[region] = self._add(("region", region), way, compile_id, name, "compiled region", COUNTED_REGION)
        return self.regions[region]

    def named(self, name: str, what: str) -> int:
        """0: there are too many different ones."""
        known = self._numbers.get((what, name))
        if known is not None:
            return known
        if len(self._numbers) >= MOST_NAMES:
            return 0
        return self._add((what, name), _ROLE[what], None, name[:300], name.partition("#")[2][:300] or name[:300], "")

    def _add(self, key: tuple[str, str], as_: ev.Role, compile_id: str | None, name: str, function: str, how: str) -> int:
        number = self._numbers[key] = len(self._numbers) + 1
        self.added.append(
            ev.InstrumentAdded(self._began, number, as_, compile_id, name, function, "", 0, before_attach=True, counted=how)
        )
        return number


class _Threads:
    """Gives each thread of a file a number; in old files they are texts, and several processes may have the same."""

    def __init__(self, main: Hashable) -> None:
        self._main = main
        self._numbers: dict[Hashable, int] = {}

    def of(self, thread: Hashable) -> int:
        return self._numbers.setdefault(thread, len(self._numbers) + 1)

    def seen(self, t_ns: int) -> tuple[ev.ThreadSeen, ...]:
        return tuple(
            ev.ThreadSeen(t_ns, number, "main" if thread == self._main else f"tid {_tid(thread)}")
            for thread, number in list(self._numbers.items())[:500]
        )


def _tid(thread: Hashable) -> str:
    return str(thread[1])[:20] if isinstance(thread, tuple) and len(thread) == 2 else "?"
