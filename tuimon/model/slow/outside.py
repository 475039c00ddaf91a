"""What was done to a step: waiting for a core, being stopped, page faults, a CPU quota, a throttled GPU. Read from outside.

The kernel's counters are read a few times a second and steps are shorter than that, so a step's own part is bracketed by the
readings around it: what lies between readings within the step is certain, what lies at its edges is taken without what is
usual for the rest of the bracket, and all of it is capped by the time for which the thread was off its core, where the hook
tells that.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TypeVar

from tuimon import events as ev

MOST_READINGS = 900
"""Of one thread: a minute and a half at ten a second."""
MOST_THREADS = 256
SLOWED = 0.9
"""A GPU is held back where its clock is below this part of what it had before."""
HARMLESS = ("idle", "application clocks", "sync boost", "display clocks")
"""Reasons for a lower clock (`GpuSampled.throttle`) that say nothing of being held back."""
TEAM = 0.5
"""A thread works with the step's own where it has run for at least that part of that one's time on a core."""
PAST_NS = 30_000_000_000
"""From so long before a step it is taken what waiting is usual."""

T = TypeVar("T", bound=ev.Event)

_TIME = attrgetter("t_ns")


@dataclass(frozen=True, slots=True)
class Outside:
    """What is known of a step from outside; None where nothing was read."""

    waited_ns: int | None = None
    """How long its thread was ready to run and had no core."""
    usual_wait_ns: int = 0
    """What it has of that in a step that takes the usual time."""
    wait_rate: float = 0.0
    """The part of its time for which the thread waited for a core in the half minute before."""
    others_waited_ns: int | None = None
    """The longest such wait of another thread of the job that has run about as much as the step's own (a team of OpenMP)."""
    off_ns: int | None = None
    """How long its thread was not on a core, for whatever reason."""
    stopped_ns: int = 0
    """How long its thread was held."""
    stopped_by: str = ""
    """By what: as in `ThreadSampled`."""
    throttled_s: float | None = None
    """By how much the group's throttled time grew around it."""
    major_faults: int | None = None
    io_wait_ns: int | None = None
    gpu: str = ""
    """"GPU 0: HW thermal slowdown, 1.10 of 1.90 GHz" where one was held back then."""
    evidence: tuple[str, ...] = ()
    """Numbers, and where they were read."""


@dataclass(slots=True)
class Outsiders:
    """The latest readings, by which steps are judged some moments after they ended."""

    threads: dict[int, deque[ev.ThreadSampled]] = field(default_factory=dict)
    hosts: deque[ev.HostSampled] = field(default_factory=lambda: deque(maxlen=256))
    gpus: dict[int, deque[ev.GpuSampled]] = field(default_factory=dict)

    def thread(self, event: ev.ThreadSampled) -> None:
        """A reading of a thread."""
        held = self.threads.get(event.native)
        if held is None:
            if len(self.threads) >= MOST_THREADS:  # the one that was not read for longest
                del self.threads[min(self.threads, key=lambda native: self.threads[native][-1].t_ns)]
            held = self.threads[event.native] = deque(maxlen=MOST_READINGS)
        held.append(event)

    def host(self, event: ev.HostSampled) -> None:
        """A reading of the host."""
        self.hosts.append(event)

    def gpu(self, event: ev.GpuSampled) -> None:
        """A reading of a GPU."""
        if event.index in self.gpus or len(self.gpus) < MOST_THREADS:
            self.gpus.setdefault(event.index, deque(maxlen=256)).append(event)

    def settled(self, native: int | None, end_ns: int) -> bool:
        """Whether all that can be read of a step that ended then has been: its thread was read once more after it."""
        held = self.threads.get(native) if native is not None else None
        return held is None or held[-1].t_ns >= end_ns

    def look(
        self, native: int | None, begin_ns: int, end_ns: int, usual_ns: int, cpu: Sequence[tuple[int, int]] = ()
    ) -> Outside:
        """What happened to the thread `native` from begin to end. `cpu`: readings (t_ns, its CPU time in ns) by the hook."""
        off, cpu_words = _off_core(cpu, begin_ns, end_ns)
        evidence = [cpu_words] if cpu_words else []
        waited = faults = io = None
        rate = 0.0
        stopped, by = 0, ""
        held = self.threads.get(native) if native is not None else None
        if held is not None:
            stopped, by, seen = _stopped(held, begin_ns, end_ns, off)
            if stopped:
                state = "T, stopped" if by == "signal" else "t, held by a tracer"
                evidence.append(f"in state {state}, in {seen} (/proc/PID/task/{native}/stat, read every 0.1 s)")
            waited, rate = _wait(held, begin_ns, end_ns, off)
            if waited is not None:
                evidence.append(f"waited {_ms(waited)} for a core (/proc/PID/task/{native}/schedstat, read every 0.1 s)")
            low, high = _around(held, begin_ns, end_ns)
            if low is not None and high is not None:
                if low.major_faults is not None and high.major_faults is not None:
                    faults = high.major_faults - low.major_faults
                    if faults > 0:
                        evidence.append(f"{faults} major page faults around it (/proc/PID/task/{native}/stat)")
                if low.io_wait_s is not None and high.io_wait_s is not None:
                    io = int((high.io_wait_s - low.io_wait_s) * 1e9)
                    if io > 0:
                        evidence.append(f"waited {_ms(io)} for block devices around it (/proc/PID/task/{native}/stat)")
        others = [
            found
            for other, readings in self.threads.items()
            if other != native
            and held is not None
            and _ran(readings, begin_ns) >= TEAM * _ran(held, begin_ns) > 0
            and (found := _wait(readings, begin_ns, end_ns, None)[0]) is not None
        ]
        throttled = self._throttled(begin_ns, end_ns)
        if throttled:
            evidence.append(f"throttled for {throttled:.2f} s around it, all cores together (cpu.stat of the control group)")
        evidence += self._memory(begin_ns, end_ns)
        gpu = self._gpu(begin_ns, end_ns)
        if gpu:
            evidence.append(f"{gpu} (NVML)")
        return Outside(
            waited, int(rate * usual_ns), rate, max(others, default=None), off, stopped, by, throttled, faults, io, gpu,
            tuple(evidence),
        )  # fmt: skip

    def _throttled(self, begin_ns: int, end_ns: int) -> float | None:
        low, high = _around(self.hosts, begin_ns, end_ns)
        if low is None or high is None or low.throttled_s is None or high.throttled_s is None:
            return None
        return max(0.0, high.throttled_s - low.throttled_s)

    def _memory(self, begin_ns: int, end_ns: int) -> list[str]:
        low, high = _around(self.hosts, begin_ns, end_ns)
        if low is None or high is None:
            return []
        found = []
        if low.swap_bytes is not None and high.swap_bytes is not None and high.swap_bytes != low.swap_bytes:
            moved = (high.swap_bytes - low.swap_bytes) / 1e6
            found.append(f"{abs(moved):.0f} MB {'swapped out' if moved > 0 else 'swapped in'} around it (/proc/PID/status)")
        for what, share in high.pressure:
            if what in ("memory", "io") and share >= 10:
                found.append(f"{what} pressure {share:.0f}% of the last 10 s (/proc/pressure/{what})")
        return found

    def _gpu(self, begin_ns: int, end_ns: int) -> str:
        for index, readings in self.gpus.items():
            _, high = _around(readings, begin_ns, end_ns)
            reasons = [why for why in high.throttle if why not in HARMLESS] if high is not None else []
            if high is None or not reasons or high.sm_clock_mhz is None:
                continue
            free = [one for one in readings if one.t_ns < begin_ns and not set(one.throttle) - set(HARMLESS[1:])]
            before = sorted(one.sm_clock_mhz for one in free if one.sm_clock_mhz)
            usual = before[len(before) // 2] if before else high.sm_clock_max_mhz
            if usual and high.sm_clock_mhz < SLOWED * usual:
                return f"GPU {index}: {', '.join(reasons)}, {high.sm_clock_mhz / 1e3:.2f} of {usual / 1e3:.2f} GHz"
        return ""


def _around(readings: Sequence[T], begin_ns: int, end_ns: int) -> tuple[T | None, T | None]:
    """The last reading before the begin and the first one after the end; None where there is none."""
    low = bisect_right(readings, begin_ns, key=_TIME) - 1
    high = bisect_left(readings, end_ns, key=_TIME)
    return readings[low] if low >= 0 else None, readings[high] if high < len(readings) else None


def _wait(readings: Sequence[ev.ThreadSampled], begin_ns: int, end_ns: int, off_ns: int | None) -> tuple[int | None, float]:
    """How long the thread waited for a core within the step, None: not known; and for what part of the time before."""
    first = max(0, bisect_right(readings, begin_ns, key=_TIME) - 1)
    last = min(len(readings) - 1, bisect_left(readings, end_ns, key=_TIME))
    low, high = readings[first], readings[last]
    if low.t_ns > begin_ns or high.t_ns <= begin_ns or low.wait_s is None:
        return None, 0.0
    past = readings[bisect_left(readings, low.t_ns - PAST_NS, key=_TIME)]
    rate = 0.0
    if past.wait_s is not None and low.t_ns > past.t_ns:
        rate = min(1.0, max(0.0, (low.wait_s - past.wait_s) * 1e9 / (low.t_ns - past.t_ns)))
    total = 0.0
    for at in range(first, last):
        one, other = readings[at], readings[at + 1]
        if one.wait_s is None or other.wait_s is None or other.wait_s < one.wait_s:
            return None, 0.0  # another thread under the same id
        within = min(other.t_ns, end_ns) - max(one.t_ns, begin_ns)
        outside = other.t_ns - one.t_ns - within
        total += min(max(0.0, (other.wait_s - one.wait_s) * 1e9 - rate * outside), max(0, within))
    waited = int(total) if off_ns is None else min(int(total), off_ns)
    return waited, rate


def _stopped(readings: Sequence[ev.ThreadSampled], begin_ns: int, end_ns: int, off_ns: int | None) -> tuple[int, str, str]:
    """For how many ns of the step the thread was held, by what ("" where it was not), and how often it was seen so, in words.

    Between two readings that saw it held it was, but for what it ran and waited. Where one of the two did, that holds of a
    thread that is busy all the time; of one that often sleeps only as large a part is counted as it is busy elsewhere.
    """
    first = max(0, bisect_right(readings, begin_ns, key=_TIME) - 1)
    last = min(len(readings) - 1, bisect_left(readings, end_ns, key=_TIME))
    within = [one for one in (readings[at] for at in range(first, last + 1)) if begin_ns < one.t_ns < end_ns]
    seen = [one.stopped for one in within if one.stopped]
    if not seen:
        return 0, "", ""
    total, busy = 0, _busy(readings, begin_ns)
    for at in range(first, last):
        one, other = readings[at], readings[at + 1]
        if not (one.stopped or other.stopped):
            continue
        shared = min(other.t_ns, end_ns) - max(one.t_ns, begin_ns)
        idle = max(0, min(shared, other.t_ns - one.t_ns - _moved(one, other)))
        total += idle if one.stopped and other.stopped else int(idle * busy)
    held = total if off_ns is None else min(total, off_ns)
    by = "tracer" if seen.count("tracer") > len(seen) / 2 else "signal"
    return held, by if held else "", f"{len(seen)} of {len(within)} readings within it"


def _moved(one: ev.ThreadSampled, other: ev.ThreadSampled) -> int:
    """For how many ns between two readings a thread ran or waited for a core."""
    return _grew(one.run_s, other.run_s) + _grew(one.wait_s, other.wait_s)


def _busy(readings: Sequence[ev.ThreadSampled], begin_ns: int) -> float:
    """The part of its time for which a thread ran or waited for a core in the half minute before, without what it was held;
    1.0 where that is not known."""
    last = max(0, bisect_right(readings, begin_ns, key=_TIME) - 1)
    first = bisect_left(readings, readings[last].t_ns - PAST_NS, key=_TIME)
    pairs = [(readings[at], readings[at + 1]) for at in range(first, last)]
    free = [(one, other) for one, other in pairs if not (one.stopped or other.stopped) and one.run_s is not None]
    took = sum(other.t_ns - one.t_ns for one, other in free)
    return min(1.0, sum(_moved(one, other) for one, other in free) / took) if took > 0 else 1.0


def _grew(before: float | None, after: float | None) -> int:
    """By how many ns a total in seconds has grown; 0 where it was not read."""
    return 0 if before is None or after is None else max(0, int((after - before) * 1e9))


def _ran(readings: Sequence[ev.ThreadSampled], begin_ns: int) -> float:
    """The part of its time for which a thread was on a core in the half minute before."""
    low = readings[max(0, bisect_right(readings, begin_ns, key=_TIME) - 1)]
    past = readings[bisect_left(readings, low.t_ns - PAST_NS, key=_TIME)]
    if low.run_s is None or past.run_s is None or low.t_ns <= past.t_ns:
        return 0.0
    return (low.run_s - past.run_s) * 1e9 / (low.t_ns - past.t_ns)


def _off_core(cpu: Sequence[tuple[int, int]], begin_ns: int, end_ns: int) -> tuple[int | None, str]:
    """How long the thread was on no core between begin and end, by its CPU clock, and that in words; None: not known."""
    off = covered = 0
    for at in range(len(cpu) - 1):
        (one, before), (other, after) = cpu[at], cpu[at + 1]
        within = min(other, end_ns) - max(one, begin_ns)
        if within > 0:
            covered += within
            off += min(max(0, other - one - (after - before)), within)
    took = end_ns - begin_ns
    if took <= 0 or covered < took / 2:
        return None, ""
    off += took - covered  # of what is not covered nothing is known: it may all have been off
    return off, f"on a core for {_ms(took - off)} of {_ms(took)} (its thread's CPU clock)"


def _ms(ns: float) -> str:
    return f"{ns / 1e9:.2f} s" if ns >= 1e9 else f"{ns / 1e6:.1f} ms"
