"""A step in a hundred bytes: what ranks are compared by. Made from a model as its steps close; it can go over a line.

A step's digest leaves when the step ends. Why a slow one was slow is known up to a second later, and follows as a note of its
own. Times are those of the monotonic clock of the rank's own host.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tuimon import events as ev
from tuimon.model.steps.parts import CATEGORIES, SlowStep, StepAccount

if TYPE_CHECKING:
    from tuimon.model.model import Model

MOST_MET = 8
"""Collectives of one step that are told. All ranks choose the same ones, by their numbers."""
MOST_OPEN = 4096
"""Collectives that wait for the end of their step."""
MOST_KEPT = 1024
"""Digests that wait for somebody to take them; the oldest go."""
LONGEST_WORDS = 140
_LOOKS = re.compile(r", in \d+ of \d+ looks?$")

OPS = (
    "collective", "all_reduce", "all_gather", "all_gather_into_tensor", "all_to_all", "all_to_all_single", "reduce_scatter",
    "reduce_scatter_tensor", "broadcast", "reduce", "gather", "scatter", "barrier", "monitored_barrier",
)  # fmt: skip
"""What a collective is called in `torch.distributed`; a digest that travels names it by its place here, so only append."""
_PUBLIC = {
    "allreduce": "all_reduce", "allreduce_coalesced": "all_reduce", "allgather": "all_gather",
    "_allgather_base": "all_gather_into_tensor", "all_gather_single": "all_gather_into_tensor",
    "allgather_coalesced": "all_gather", "all_gather_single_coalesced": "all_gather_into_tensor",
    "allgather_into_tensor_coalesced": "all_gather_into_tensor", "_reduce_scatter_base": "reduce_scatter_tensor",
    "reduce_scatter_single": "reduce_scatter_tensor", "reduce_scatter_single_coalesced": "reduce_scatter_tensor",
    "reduce_scatter_tensor_coalesced": "reduce_scatter_tensor", "alltoall": "all_to_all",
    "alltoall_base": "all_to_all_single",
}  # fmt: skip


class Met(NamedTuple):
    """A collective: where ranks meet."""

    group: str
    sequence: int
    """Its number in its group, as all of its ranks count."""
    op: str
    """One of OPS."""
    begin_ns: int
    """When this rank arrived."""
    end_ns: int
    """When the call, or the wait for what it began, returned."""


@dataclass(frozen=True, slots=True)
class StepDigest:
    """One step of one rank."""

    anew: int
    """How often steps had been counted anew: another number, another count."""
    index: int
    begin_ns: int
    end_ns: int
    parts: tuple[int, ...]
    """ns of each of CATEGORIES."""
    compiled: bool = False
    complete: bool = True
    collectives: tuple[Met, ...] = ()
    """By their begin."""
    backward: tuple[int, int] | None = None
    """(begin, end) of its last run of the autograd engine, in which DistributedDataParallel lets ranks meet unseen."""

    @property
    def took_ns(self) -> int:
        """Its wall time."""
        return self.end_ns - self.begin_ns


@dataclass(frozen=True, slots=True)
class SlowNote:
    """Why a step that has been told before was slow."""

    anew: int
    index: int
    cause: str
    words: str
    """Where and what, in a few words."""
    named: bool
    took_ns: int
    usual_ns: int


Told = StepDigest | SlowNote


_Closed = tuple[int, StepAccount, tuple[Met, ...], tuple[int, int] | None]
"""What a digest is made of: how often steps had been counted anew, the account, and where ranks met."""


def _digest(anew: int, one: StepAccount, met: tuple[Met, ...], backward: tuple[int, int] | None) -> StepDigest:
    return StepDigest(anew, one.index, one.begin_ns, one.end_ns, one.parts, one.compiled, one.complete, met, backward)


class Digester:
    """Makes the digests of one model's steps."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._anew = 0
        self._slow_told = 0
        self._collectives: dict[int, tuple[str, str]] = {}
        """Instrument -> (group, op)."""
        self._engines: set[int] = set()
        self._open: dict[tuple[str, int], list[int | str]] = {}
        """(group, sequence) -> [begin, end, op], in the order in which they were told."""
        self._backwards: deque[tuple[int, int]] = deque(maxlen=64)
        self._ready: deque[StepDigest | _Closed] = deque(maxlen=MOST_KEPT)

    def take(self) -> list[Told]:
        """What is new since the last call, a note behind the step that it is about."""
        found: list[Told] = [one if isinstance(one, StepDigest) else _digest(*one) for one in self._ready]
        self._ready.clear()
        steps = self._model.steps
        fresh = min(steps.slow_n - self._slow_told, len(steps.slow))
        if fresh > 0:
            found += [self._note(one) for one in list(steps.slow)[-fresh:]]
        self._slow_told = steps.slow_n
        return found

    def give(self, digest: StepDigest) -> None:
        """A step that was folded elsewhere."""
        self._ready.append(digest)

    # ------------------------------------------------------------------------------------------ what is told of the job

    def added(self, event: ev.InstrumentAdded) -> None:
        """Something is timed from now on."""
        if event.role == "communication" and len(self._collectives) < MOST_KEPT:
            name = event.name.rpartition(" ")[2]
            op = _PUBLIC.get(name, name)
            self._collectives[event.instrument] = event.group, op if op in OPS else OPS[0]
        elif event.role == "engine":
            self._engines.add(event.instrument)

    def samples(self, event: ev.Samples) -> None:
        """Calls were timed. Before the steps are told that end with them."""
        collectives, engines, held = self._collectives, self._engines, self._open
        if not collectives and not (engines and (self._model.target.world_size or 1) > 1):
            return
        for number, _, flags, begin_ns, end_ns in event.rows:
            if number in collectives:
                sequence = flags >> 8 & 0xFFFFFF
                if not sequence:
                    continue
                group, op = collectives[number]
                known = held.get((group, sequence))
                if known is None:
                    held[group, sequence] = [begin_ns, end_ns, op]
                else:  # the wait for it
                    known[0] = min(int(known[0]), begin_ns)
                    known[1] = max(int(known[1]), end_ns)
            elif number in engines:
                self._backwards.append((begin_ns, end_ns))
        while len(held) > MOST_OPEN:
            del held[next(iter(held))]

    # ------------------------------------------------------------------------------------------ steps

    def closed(self, account: StepAccount) -> None:
        """A step is over."""
        backward = None
        while self._backwards and self._backwards[0][0] < account.end_ns:
            run = self._backwards.popleft()
            if run[0] >= account.begin_ns:
                backward = run
        met = self._within(account) if self._open else ()
        self._ready.append((self._anew, account, met, backward))  # a digest once somebody takes it: of most models nobody does

    def anew(self) -> None:
        """What was counted is void."""
        self._anew += 1
        self._slow_told = 0
        self._ready.clear()

    def ended(self) -> None:
        """No more steps come."""

    def _within(self, account: StepAccount) -> tuple[Met, ...]:
        """The collectives that began within the step."""
        over = [key for key, (begin, _, _) in self._open.items() if int(begin) < account.end_ns]
        found = []
        for group, sequence in over:
            begin, end, op = self._open.pop((group, sequence))
            if int(begin) >= account.begin_ns:
                found.append(Met(group, sequence, str(op), int(begin), int(end)))
        stride = 1
        while len(found) > MOST_MET:  # by their numbers, which are the same everywhere
            stride *= 2
            found = [one for one in found if not one.sequence % stride]
        return tuple(sorted(found, key=lambda one: one.begin_ns))

    def _note(self, slow: SlowStep) -> SlowNote:
        first, account = slow.causes[0], slow.account
        words = _LOOKS.sub("", first.detail)
        words = words if len(words) <= LONGEST_WORDS else f"{words[: LONGEST_WORDS - 2]}.."
        return SlowNote(self._anew, account.index, first.cause, words, slow.named, account.took_ns, slow.usual_ns)


# ------------------------------------------------------------------------------------------------- on a line

US = 1000
_COMPILED, _INCOMPLETE = 1, 2


def pack(told: Told) -> list[Any]:
    """As plain values, for JSON; times in microseconds but for the begin."""
    if isinstance(told, SlowNote):
        took, usual = told.took_ns // US, told.usual_ns // US
        return [told.anew, told.index, told.cause, told.words, int(told.named), took, usual]
    begin = told.begin_ns
    flags = _COMPILED * told.compiled | _INCOMPLETE * (not told.complete)
    met = [
        [one.group, one.sequence, OPS.index(one.op), (one.begin_ns - begin) // US, (one.end_ns - one.begin_ns) // US]
        for one in told.collectives
    ]
    row = [told.anew, told.index, begin, told.took_ns // US, flags, [ns // US for ns in told.parts], met]
    if told.backward is not None:
        row.append([(told.backward[0] - begin) // US, (told.backward[1] - told.backward[0]) // US])
    return row


def unpack(row: Sequence[Any]) -> Told:
    """What `pack` was given, to the microsecond. Raises ValueError where it is none of its."""
    try:
        if isinstance(row[2], str):
            anew, index, cause, words, named, took, usual = row
            return SlowNote(int(anew), int(index), cause, str(words), bool(named), int(took) * US, int(usual) * US)
        anew, index, begin, took, flags, parts, met, *more = row
        begin = int(begin)
        if len(parts) != len(CATEGORIES) or len(met) > MOST_MET or min(parts) < 0 or took < 0:
            raise ValueError("parts of no step")
        collectives = tuple([
            Met(str(group), int(number), OPS[op], begin + at * US, begin + (at + lasted) * US)
            for group, number, op, at, lasted in met
        ])  # fmt: skip
        backward = (begin + more[0][0] * US, begin + (more[0][0] + more[0][1]) * US) if more else None
        return StepDigest(
            int(anew), int(index), begin, begin + took * US, tuple([int(part) * US for part in parts]), bool(flags & _COMPILED),
            not flags & _INCOMPLETE, collectives, backward,
        )  # fmt: skip
    except (IndexError, TypeError, ValueError) as error:
        raise ValueError(f"no digest of a step: {error}") from error
