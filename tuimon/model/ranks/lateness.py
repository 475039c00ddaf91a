"""Who is late among the ranks of one job, who waits for whom, and whose compiling the others wait for. Pure.

A rank's lateness in a step is how much later than the first of all it came to a collective of that step; where no collective
of Python code is seen, to the backward in which DistributedDataParallel lets ranks meet, if their steps end together. The
latenesses of a rank, the steps in which it held the others up, and what it did then, are kept in constant memory for each rank.
"""

from __future__ import annotations

from collections.abc import Iterable

from tuimon.model.ranks.digest import SlowNote, Told
from tuimon.model.ranks.rounds import BLOCKED_NS, SHARPEN, Held, Host, Rank, Round, Rounds
from tuimon.model.ranks.standing import Arrivals, RankLateness, Standing
from tuimon.model.ranks.verdicts import BACKWARD, Skew, Verdict, late_rank, slow_rank, worst_skew
from tuimon.model.steps.parts import CATEGORIES

LEAST = 16
"""Of fewer steps nothing is said of a rank that is late without a slow step."""
PART, LEAST_NS = 0.05, 200_000
"""What counts as lateness, and as waiting: this part of the usual step, and so many ns at least."""
AMONG_LAST = 0.75
"""Late is who comes in the last quarter of the time over which ranks arrive."""
OFTEN = 0.5
"""Of the slow steps: who is late in as many is told."""
ALWAYS, ALWAYS_PART = 0.75, 0.1
"""Of all steps: who is late in as many, by this part of a step, is told, whether or not a step is slow."""
HALF = 0.5
"""Of a slow step's excess: as much waiting makes it one in which a rank was waited for."""
COMPILE_NS = 5_000_000
"""What others wait for somebody who compiles, at least, to be told."""
CLOCKS_NS = 5_000_000
"""Wall clocks of two hosts may differ by as much, where nothing better is known."""

TOGETHER, TOGETHER_NS = 0.1, 2_000_000
"""Backwards that end within this part of a step, or so many ns, end together."""
MOST_VERDICTS = 4
"""Ranks that are told to be late in most steps; the latest ones."""
WAITING = ("communication", "backward regions")
"""What is slow in a rank that waits, and no reason to be late."""

_COMPILE = CATEGORIES.index("compile")
_COMMUNICATION = CATEGORIES.index("communication")


class Lateness:
    """Compares the ranks of one job. What it says of a step it says some seconds later."""

    def __init__(self) -> None:
        self.judged = 0
        """Steps in which ranks met."""
        self.slow_n = 0
        """Slow steps among them in which ranks waited for one another, or more than one rank was slow."""
        self.by_backward = 0
        """Steps in which they met in a backward, as far as can be told."""
        self._rounds = Rounds(self._meet, self._judge)
        self._hosts: dict[str | None, Host] = {}
        self._standings: dict[int, Standing] = {}
        self._arrivals: dict[int, Arrivals] = {}
        """By the number of the round, until it is judged."""
        self._usual_ns = 0.0
        self._op = ""

    def join(
        self, key: int, name: str, *, rank: int | None = None, host: str | None = None, wall_offset_s: float | None = None
    ) -> None:
        """A rank is there, or more is known of it. `host`: None for this one; `wall_offset_s`: what makes the monotonic time
        of its host Unix time."""
        clock = self._hosts.setdefault(host, Host(len(self._hosts)))
        if wall_offset_s is not None and not clock.offset_ns:
            clock.offset_ns = int(wall_offset_s * 1e9)  # once: all ranks of a host have one clock
        known = self._standings.get(key)
        if known is None:
            known = self._standings[key] = Standing(Rank(key, name, rank, clock))
        known.rank.name, known.rank.number, known.rank.host = name, rank, clock
        known.rank.gone = False
        self._rounds.join(known.rank)

    def take(self, key: int, told: Iterable[Told]) -> None:
        """What is new of a rank that has joined."""
        self._rounds.close()
        for one in told:
            if isinstance(one, SlowNote):
                self._rounds.note(key, one)
            else:
                self._rounds.add(key, one)
                if key in self._standings:
                    self._standings[key].spent(one)

    def leave(self, key: int) -> None:
        """A rank has ended: the others do not wait for it."""
        self._rounds.leave(key)

    def settle(self) -> None:
        """Judge all that is there, though more may come."""
        self._rounds.settle()

    # ------------------------------------------------------------------------------------------ what a round tells

    def _meet(self, one: Round) -> None:
        """All that will come of a round, or all but those that are missing, is there: who came when."""
        arrivals = self._arrivals_of(one)
        if arrivals is None:
            return
        self._arrivals[one.number] = arrivals
        self.judged += 1
        least, spread = self._least_ns, arrivals.spread_ns
        for key, ns in arrivals.late.items():
            self._standings[key].add(ns, spread >= least and ns >= AMONG_LAST * spread)
        for key, (ns, other, _) in arrivals.waits.items():
            if ns >= least:
                self._standings[key].waits(other, ns)

    @property
    def _least_ns(self) -> float:
        return max(LEAST_NS, PART * self._usual_ns)

    def _arrivals_of(self, one: Round) -> Arrivals | None:
        """None where they did not meet, as far as can be seen."""
        if len(one.members) < 2:
            return None
        meetings: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
        ops: dict[tuple[str, int], str] = {}
        for key, held in one.members.items():
            shift = self._standings[key].rank.host.shift()
            for met in held.digest.collectives:
                at = met.group, met.sequence
                meetings.setdefault(at, []).append((met.begin_ns + shift, met.end_ns + shift, key))
                ops[at] = met.op
        found = Arrivals()
        for at, came in meetings.items():
            if len(came) > 1:
                found.meet(came, ops[at])
                self._op = ops[at]
        if found.late:
            if len(self._hosts) > 1:
                self._compare_clocks(meetings.values())
            return found
        backwards = self._backwards(one)
        if backwards is None:
            return None
        self.by_backward += 1
        self._op = BACKWARD
        found.meet(backwards, BACKWARD)
        return found

    def _backwards(self, one: Round) -> list[tuple[int, int, int]] | None:
        """(begin, end, key) of the backwards, where all have one and they end together; else None."""
        came = []
        for key, held in one.members.items():
            backward, shift = held.digest.backward, self._standings[key].rank.host.shift()
            if backward is None or held.digest.collectives:
                return None
            came.append((backward[0] + shift, backward[1] + shift, key))
        ends = [end for _, end, _ in came]
        return came if max(ends) - min(ends) <= max(TOGETHER_NS, TOGETHER * one.took_ns) else None

    def _compare_clocks(self, meetings: Iterable[list[tuple[int, int, int]]]) -> None:
        """By one meeting of ranks of several hosts that held somebody up, so that it ended at one moment for all."""
        for came in meetings:
            if max(end - begin for begin, end, _ in came) < BLOCKED_NS:
                continue
            ends: dict[int, tuple[Host, int]] = {}
            for _, end, key in came:
                host = self._standings[key].rank.host
                if id(host) not in ends or end < ends[id(host)][1]:
                    ends[id(host)] = host, end
            if len(ends) > 1:
                first = min(ends.values(), key=lambda one: one[0].place)
                for host, end in ends.values():
                    if host is not first[0]:
                        host.differs(end - first[1])
                return

    def _judge(self, one: Round) -> None:
        """Why its steps were slow has been told, where it will be."""
        arrivals = self._arrivals.pop(one.number, None)
        if arrivals is None:
            return
        notes = [held.note for held in one.members.values() if held.note is not None]
        skew = self._skew(one, arrivals)
        if notes:
            excess = max(note.took_ns - note.usual_ns for note in notes)
            waited = arrivals.last >= 0 and arrivals.spread_ns >= HALF * excess
            if waited or len(notes) > 1:
                self.slow_n += 1
                for key in arrivals.late:
                    self._standings[key].slow_n += 1
            if waited:
                cause, words = self._why(one.members[arrivals.last], self._standings[arrivals.last].rank)
                waits = {key: ns for key, (ns, last, _) in arrivals.waits.items() if last == arrivals.last}
                op = next((op for _, last, op in arrivals.waits.values() if last == arrivals.last), self._op)
                self._standings[arrivals.last].held_up.add(cause, words, waits, op, arrivals.spread_ns)
        elif not skew and not any(held.digest.compiled for held in one.members.values()):
            took = max(held.digest.took_ns for held in one.members.values())
            self._usual_ns += (took - self._usual_ns) * (SHARPEN if self._usual_ns else 1.0)
            for key, held in one.members.items():
                if held.digest.complete:
                    self._standings[key].rank.sharpen(held.digest)

    def _why(self, held: Held, rank: Rank) -> tuple[str, str]:
        """(cause, words) of why a rank came late: its own slow step's, or that of the step before, which ran into this one;
        else what took longer than it does."""
        before = rank.steps.get(held.digest.index - 1)
        for one in (held, before):
            if one is not None and one.note is not None and one.note.cause not in WAITING:
                return one.note.cause, one.note.words
        over = [ns - usual for ns, usual in zip(held.digest.parts, rank.usual, strict=True)]
        over[_COMMUNICATION] = 0
        largest = max(range(len(over)), key=lambda at: over[at])
        return (CATEGORIES[largest], "") if over[largest] > 0 and rank.plain else ("", "")

    def _skew(self, one: Round, arrivals: Arrivals) -> bool:
        """Whether somebody compiled while others waited; if so, it is counted."""
        compiled = {key: held.digest.parts[_COMPILE] for key, held in one.members.items()}
        key = max(compiled, key=lambda one: compiled[one])
        held = one.members[key]
        if compiled[key] - min(compiled.values()) < COMPILE_NS:
            if arrivals.last < 0:
                return False
            key = arrivals.last  # it may have compiled behind the meeting of the step before
            before = self._standings[key].rank.steps.get(one.members[key].digest.index - 1)
            if before is None or before.digest.parts[_COMPILE] < COMPILE_NS:
                return False
            held = before
        took = held.digest.parts[_COMPILE]
        waiting = {
            other: (ns, op)
            for other, (ns, last, op) in arrivals.waits.items()
            if last == key and ns >= max(COMPILE_NS, HALF * (took - compiled[other]))
        }
        if not waiting:
            return False
        standing = self._standings[key]
        words = held.note.words if held.note is not None and held.note.cause == "compile" else ""
        skew = Skew(
            1, took - min(compiled[other] for other in waiting), held.digest.index, took, len(waiting),
            max(ns for ns, _ in waiting.values()), next(iter(waiting.values()))[1], words,
        )  # fmt: skip
        standing.skew = skew if standing.skew is None else standing.skew.joined(skew)
        return True

    # ------------------------------------------------------------------------------------------ what is known

    def of(self, key: int) -> RankLateness:
        """How one rank stands beside the others."""
        one = self._standings.get(key)
        if one is None:
            return RankLateness()
        other, waited = max(one.waited.items(), key=lambda item: item[1], default=(None, 0))
        return RankLateness(
            one.n, one.quantile(0.5), one.quantile(0.9), one.last_ns, one.held_up.n, one.slow_n, other, waited, one.skew
        )

    def together(self, number: int | None) -> dict[int, int]:
        """Of the ranks that are compared with rank `number`, itself among them, by their numbers the keys; empty where it is
        not here, or numbers are not known."""
        found = {one.rank.number: key for key, one in self._standings.items() if one.rank.number is not None}
        return found if number in found and len(found) == len(self._standings) else {}

    @property
    def fewest(self) -> tuple[int, int]:
        """How many steps were compared of the rank of which they were fewest; and how many are the least, for each of them, by
        which it can be told that none is late in most."""
        return min((one.n for one in self._standings.values()), default=0), LEAST

    def in_collectives(self, begin_ns: int, end_ns: int, number: int) -> dict[int, float | None]:
        """By each rank's number, the part of its steps that it spent in collectives between two times of the clock of rank
        `number`; None where that is not known, nothing at all where that rank is not here, or numbers are not known."""
        ranks = {one.rank.number: one for one in self._standings.values()}
        own = ranks.get(number)
        if own is None or None in ranks or len(ranks) < len(self._standings):
            return {}
        shift = own.rank.host.shift()
        found: dict[int, float | None] = {}
        for at, one in ranks.items():
            if at is not None and not one.rank.gone:
                by = shift - one.rank.host.shift()
                found[at] = one.in_collectives(begin_ns + by, end_ns + by)
        return found

    @property
    def clocks(self) -> str:
        """How far times of several hosts can be compared, in words; empty where there is one host, or where it is settled."""
        if len(self._hosts) < 2:
            return ""
        open_ = [host for host in self._hosts.values() if host.place and len(host.differences) < LEAST]
        return "" if not open_ else f"clocks of {len(self._hosts)} hosts are compared as they are set (NTP)"

    def verdicts(self) -> list[Verdict]:
        """What a person should know of the ranks, most costly first; empty where all are alike."""
        found: list[Verdict] = []
        for key, one in self._standings.items():
            late = one.held_up
            if late.n and late.n >= OFTEN * self.slow_n and late.cause != "compile":
                found.append(late_rank(key, late, self.slow_n, self._names))
            if one.skew is not None:
                found.append(worst_skew(key, one.skew, self._names))
        found += self._always_late()
        return sorted(found, key=lambda one: -one.cost_s)

    @property
    def _names(self) -> dict[int, str]:
        return {key: one.rank.name for key, one in self._standings.items()}

    def _always_late(self) -> list[Verdict]:
        """Those that are late in most steps, whether or not any is slow."""
        least = max(LEAST_NS, ALWAYS_PART * self._usual_ns, CLOCKS_NS if self.clocks else 0)
        known = {key: one for key, one in self._standings.items() if one.n >= LEAST}
        late = {}
        for key, one in known.items():
            if one.among_last_n >= ALWAYS * len(one.among_last):
                median = one.quantile(0.5) or 0
                if median >= least:
                    late[key] = median
        if 2 * len(late) > len(known):
            return []  # rather, the others are early
        others = [one.rank.usual for key, one in known.items() if key not in late and one.rank.plain]
        middle = [_median([usual[at] for usual in others]) for at in range(len(CATEGORIES))] if others else []
        found = []
        for key, median in sorted(late.items(), key=lambda one: -one[1])[:MOST_VERDICTS]:
            one = known[key]
            over = [mine - theirs for mine, theirs in zip(one.rank.usual, middle, strict=True)] if middle else []
            if over:
                over[_COMMUNICATION] = 0.0
            at = max(range(len(over)), key=lambda at: over[at]) if over else 0
            more = (CATEGORIES[at], over[at]) if over and over[at] >= HALF * median else None
            found.append(slow_rank(key, median, one.n, self._usual_ns, more, self._op, self._names))
        return found


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
