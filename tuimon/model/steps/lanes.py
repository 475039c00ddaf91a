"""What ran on one thread since the last step ended: kept until the step is known, then folded into its account."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from operator import itemgetter, lt

from tuimon.events import SiteSeen, StackSeen, ThreadSeen
from tuimon.model.compiling import keep
from tuimon.model.steps.account import DATA, EAGER, ENGINE, FORWARD, Account, Span
from tuimon.model.steps.long import Long, Seen
from tuimon.model.steps.parts import LongRow

LONG_NS = 1_000_000
"""A row that takes as long is told by itself."""
MOST_SPANS = 4096
"""Rows of a step that is under way that are kept apart; beyond it the older half goes into its account, for good."""
MOST_OF_A_STEP = 64
"""Long rows, looks and readings of the CPU clock that are kept of one step."""
MOST_LONG = 256
MOST_LOOKS = 512
MOST_LANES = 64
"""Threads of which what they ran is kept until the step is known."""

_end, _begin, _kind = itemgetter(0), itemgetter(1), itemgetter(2)


class Lane:
    """One thread of the job."""

    __slots__ = (
        "_account", "_backwards", "_forwards", "_is_begun", "_rows", "anchors", "called_ns", "cpu", "long", "looks", "lost",
        "name", "quiet", "sites", "spans", "thread",
    )  # fmt: skip

    def __init__(self, thread: int, name: str | None) -> None:
        self.thread = thread
        self.name = name
        self.anchors = 0
        """Calls by which steps could be told."""
        self.called_ns = 0
        """When the latest of them ended."""
        self.spans: list[Span] = []
        self.long: deque[Long | LongRow] = deque(maxlen=MOST_LONG)
        """The latest long rows, of steps that are over too: what is told of one comes behind it."""
        self.looks: deque[StackSeen] = deque(maxlen=MOST_LOOKS)
        self.cpu: deque[tuple[int, int]] = deque(maxlen=2 * MOST_OF_A_STEP)
        self.sites: dict[tuple[int, int], SiteSeen] = {}
        """(instrument, end) -> where it was called, told before the row itself."""
        self.quiet: tuple[int, str, str, int] | None = None
        """(since, generator, file, line): since then nothing was seen but a generator at work that the loop had called."""
        self.lost = False
        """Rows of the step that is under way had to be let go of."""
        self._account = Account()
        self._is_begun = False
        """Something of the step that is under way is in its account."""
        self._rows: list[Long | LongRow] = []
        self._forwards = self._backwards = 0

    @property
    def helper(self) -> bool:
        """It is a thread of the autograd engine's: none that Python code started."""
        return self.name is None or self.name.startswith(("Dummy-", "thread (", "autograd"))

    def add(self, begin_ns: int, end_ns: int, kind: int, row: Long | LongRow | None) -> None:
        """Something ran: of one of CATEGORIES, or of EAGER and ENGINE."""
        self.spans.append((end_ns, begin_ns, kind, row))
        if row is not None:
            self.long.append(row)
            if self.sites:
                self.find_site(row)

    def find_site(self, row: Long | LongRow) -> None:
        """Where a long row was called may have been told before it."""
        row.site = self.sites.pop((row.instrument, row.end_ns), row.site)

    def site(self, event: SiteSeen) -> None:
        """Where a long row was called."""
        for row in reversed(self.long):
            if row.instrument == event.instrument and row.end_ns == event.t_ns:
                row.site = event
                return
        self.sites[event.instrument, event.t_ns] = event
        if len(self.sites) > MOST_OF_A_STEP:
            del self.sites[next(iter(self.sites))]

    def make_room(self, begin_ns: int | None, settled_ns: int) -> None:
        """Too many rows wait. Those that are surely of the step that is under way go into its account; others are lost.

        `begin_ns` is its begin, None where it is not known; no step ends before `settled_ns`.
        """
        _sort(self.spans)
        if begin_ns is not None:
            mine = [span for span in self.spans if span[0] <= settled_ns]
            if len(mine) >= MOST_SPANS // 4:
                self._count(self._fold(mine, begin_ns, settled_ns))
                self.spans = self.spans[len(mine) :]
                return
        del self.spans[: len(self.spans) // 2]
        self.lost = True

    def _count(self, kinds: bytes) -> None:
        self._forwards += kinds.count(FORWARD) + kinds.count(EAGER)
        self._backwards += kinds.count(ENGINE)

    def _fold(self, spans: list[Span], begin_ns: int, end_ns: int) -> bytes:
        """Put them into the account of the step. Gives their kinds."""
        account, rows = self._account, self._rows
        if not self._is_begun or account.begin_ns != begin_ns:
            account.anew(begin_ns)
            self._is_begun = True
        account.take(spans, end_ns, rows)
        if len(rows) > MOST_OF_A_STEP:
            rows.sort(key=lambda row: (-row.own_ns, row.begin_ns))
            del rows[MOST_OF_A_STEP:]
        return bytes(list(map(_kind, spans)))  # of a list that is quicker than of an iterator

    def close(self, begin_ns: int, end_ns: int, *, whatever: bool = False) -> tuple[tuple[int, ...], Seen | None]:
        """The step from `begin_ns` to `end_ns` is over: its parts, and what was seen of it if anything was, or `whatever`."""
        mine, rest = self._until(end_ns)
        kinds, rows = self._fold(mine, begin_ns, end_ns), self._rows
        parts = self._account.parts(end_ns)
        looks = [look for look in self.looks if begin_ns < look.t_ns <= end_ns] if self.looks else []
        cpu = self._readings(begin_ns, end_ns) if self.cpu else []
        if len(looks) > MOST_OF_A_STEP:
            looks = _thinned(looks)
        evidence = None
        if rows or looks or cpu or whatever:
            evidence = Seen(self.thread, rows, looks, cpu, self._forwards, self._backwards, kinds)
        self.spans, self.lost = rest, False
        self._is_begun, self._rows = False, []
        self._forwards = self._backwards = 0
        return parts, evidence

    def _readings(self, begin_ns: int, end_ns: int) -> list[tuple[int, int]]:
        """Of the CPU clock: those within the step, and the last one before it."""
        cpu = self.cpu
        while len(cpu) > 1 and cpu[1][0] <= begin_ns:
            cpu.popleft()
        before = [reading for reading in cpu if reading[0] <= begin_ns]
        within = [reading for reading in cpu if begin_ns < reading[0] <= end_ns]
        return [*before[-1:], *within[-MOST_OF_A_STEP + 1 :]]

    def skip(self, until_ns: int) -> None:
        """What ran until then belongs to no step."""
        self._start(self._until(until_ns)[1])

    def _until(self, end_ns: int) -> tuple[list[Span], list[Span]]:
        """The rows up to `end_ns`, and those behind it; one that reaches over it is among both."""
        spans = self.spans
        _sort(spans)
        if not spans or spans[-1][0] <= end_ns:
            return spans, []
        at = len(spans) - 1
        while at and spans[at - 1][0] > end_ns:
            at -= 1
        rest = spans[at:]
        return spans[:at] + [span for span in rest if span[1] < end_ns], rest

    def _start(self, spans: list[Span]) -> None:
        self.spans = spans
        self._is_begun, self._rows = False, []
        self._forwards = self._backwards = 0
        self.lost = False

    def take_children(self, helper: Lane, begin_ns: int, end_ns: int) -> None:
        """What a thread of the autograd engine ran within this call of the engine is the caller's."""
        for span in helper.spans:
            if span[1] >= begin_ns and span[0] <= end_ns:
                self.spans.append(span)
                if span[3] is not None:
                    self.long.append(span[3])
        helper.spans = [span for span in helper.spans if span[0] > end_ns]

    def generator(self, look: StackSeen, function: str, file: str) -> None:
        """A look saw a generator at work that the loop had called."""
        if self.quiet is None:
            self.quiet = (look.since_ns, function, file, look.rows[-1][1] if look.rows else 0)

    def quiet_until(self, t_ns: int) -> None:
        """Something else begins: until then the generator was at work."""
        if self.quiet is None:
            return
        since, function, file, line = self.quiet
        self.quiet = None
        if t_ns > since:
            row = LongRow("look", DATA, 0, function, function, file, line, since, t_ns, self.thread)
            self.add(since, t_ns, DATA, row if t_ns - since >= LONG_NS else None)


def _sort(spans: list[Span]) -> None:
    """By end, and of those that end together the later begun first: that is what an account wants."""
    ends = list(map(_end, spans))
    if not all(map(lt, ends, ends[1:])):  # in two turns, as they come nearly in order: a key of both were a tuple for each
        spans.sort(key=_begin, reverse=True)
        spans.sort(key=_end)


def _thinned(looks: list[StackSeen]) -> list[StackSeen]:
    """At most MOST_OF_A_STEP, as far apart as can be: each stands for those before it that are left out."""
    apart = -(-len(looks) // MOST_OF_A_STEP)
    if apart <= 1:
        return looks
    groups = [looks[max(0, end - apart) : end] for end in range(len(looks), 0, -apart)]
    return [replace(group[-1], since_ns=min(one.since_ns for one in group)) for group in reversed(groups)]


class Lanes:
    """The threads of the job, and their names and numbers."""

    def __init__(self) -> None:
        self.held: dict[int, Lane] = {}
        self._names: dict[str, int] = {}
        self._numbers: dict[int, str] = {}
        self._natives: dict[int, int] = {}
        self._nameless: dict[str, list[LongRow]] = {}
        """Compilations on threads whose number has not been told."""

    def make(self, thread: int, keeping: Lane | None) -> Lane:
        """The lane of a thread that has none. Where there are too many, the least busy but `keeping` makes room."""
        if len(self.held) >= MOST_LANES:
            idle = [at for at, one in self.held.items() if one is not keeping]
            del self.held[min(idle, key=lambda at: self.held[at].anchors)]
        lane = self.held[thread] = Lane(thread, self._numbers.get(thread))
        return lane

    def seen(self, event: ThreadSeen, most: int) -> list[LongRow]:
        """A thread's name; at most so many are kept. Gives the compilations on it that waited for that."""
        keep(self._names, event.name, event.thread, most)
        keep(self._numbers, event.thread, event.name, most)
        if event.native is not None:
            keep(self._natives, event.thread, event.native, most)
        lane = self.held.get(event.thread)
        if lane is not None:
            lane.name = event.name
        return self._nameless.pop(event.name, [])

    def native(self, thread: int) -> int | None:
        """A thread's id in the kernel, where it was told."""
        return self._natives.get(thread)

    def number(self, name: str, compilation: LongRow) -> int | None:
        """The number of the thread that has compiled this; where it is not known, the compilation waits for it."""
        number = self._names.get(name)
        if number is None and (name in self._nameless or len(self._nameless) < MOST_LANES):
            waiting = self._nameless.setdefault(name, [])
            waiting.append(compilation)
            del waiting[:-MOST_LANES]
        return number
