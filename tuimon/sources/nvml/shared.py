"""The GPUs of this host for several targets at once: they are read once a second, however many processes are watched."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from tuimon.events import Event, GpuSampled, GpuUnavailable, MigSampled, NotAvailable
from tuimon.sources.nvml.mig import GONE
from tuimon.sources.nvml.processes import UNSEEN, Job, not_listed
from tuimon.sources.nvml.source import NvmlSource
from tuimon.sources.ticker import Put


class SharedGpus:
    """One `NvmlSource` whose readings go to everyone who has joined, each with the part of his own process in it."""

    def __init__(self, *, pcie: bool = False) -> None:
        self._pcie = pcie
        self._lock = threading.Lock()
        self._takers: list[tuple[Job, Put]] = []
        self._source = self._new()
        self._started = False
        self._unavailable: GpuUnavailable | None = None
        self._lacks: dict[tuple[str, str], NotAvailable] = {}
        """What has been said once and holds for those who join later as well."""

    def _new(self) -> NvmlSource:
        return NvmlSource(self._spread, everybody=True, pcie=self._pcie)

    def join(
        self,
        pid: int,
        put: Put,
        family: Callable[[], frozenset[int]] | None = None,
        opened: Callable[[], frozenset[int] | None] | None = None,
    ) -> None:
        """From now on `put` gets each reading, for process `pid`. The first one who joins starts the reading. Any thread.

        `family` gives the pids of the process and its children, `opened` the minors of the GPUs that it has open.
        """
        with self._lock:
            self._takers.append((Job(pid, family, opened), put))
            start, self._started = not self._started, True
            missed: list[Event] = [*([self._unavailable] if self._unavailable is not None else []), *self._lacks.values()]
            source = self._source
        if start:
            source.start()
        for event in missed:
            put(event)

    def leave(self, pid: int, put: Put | None = None) -> None:
        """No more for process `pid` (by this `put`, where it is given: another may have joined for the same process meanwhile);
        when the last one leaves, the reading ends (in a moment, or when the driver comes back)."""
        with self._lock:
            self._takers = [one for one in self._takers if one[0].pid != pid or (put is not None and one[1] != put)]
            over = self._source if self._started and not self._takers else None
            if over is not None:
                # a source runs once: the next one who joins starts another
                self._source, self._started, self._unavailable = self._new(), False, None
                self._lacks.clear()
        if over is not None:
            over.stop(0.0)

    def waiting_since(self) -> float | None:
        """Seconds that the present call into the driver has taken; None between calls. Any thread."""
        return self._source.waiting_since()

    def _spread(self, event: Event) -> None:
        with self._lock:
            takers = list(self._takers)
            if isinstance(event, GpuUnavailable):
                self._unavailable = event
            elif isinstance(event, NotAvailable):
                self._lacks[event.what, event.why] = event
        for job, put in takers:
            if isinstance(event, GpuSampled):
                put(_for(job, event))
            else:
                put(_part_for(job, event) if isinstance(event, MigSampled) else event)


class Taker:
    """One process's part of a shared reading, as a source of its own."""

    def __init__(
        self,
        shared: SharedGpus,
        put: Put,
        pid: int,
        family: Callable[[], frozenset[int]] | None = None,
        opened: Callable[[], frozenset[int] | None] | None = None,
    ) -> None:
        self._shared, self._put, self._pid = shared, put, pid
        self._family, self._opened = family, opened

    def start(self) -> None:
        """Join."""
        self._shared.join(self._pid, self._put, self._family, self._opened)

    def stop(self, timeout: float = 2.0) -> bool:
        """Leave. It takes no time."""
        self._shared.leave(self._pid, self._put)
        return True


def _for(job: Job, sample: GpuSampled) -> GpuSampled:
    """The reading with the part of one process, or with the reasons why that is not known."""
    missing = dict(sample.missing)
    missing.pop("held", None)
    if "gpu" in missing:
        return replace(sample, held=())
    if "processes" in missing:
        why = missing["processes"]
        here = job.here(sample.minor)
        missing |= {"process_memory_bytes": why, "job_sm_percent": why} | ({"job_here": UNSEEN} if here is None else {})
        return replace(sample, held=(), job_here=here, missing=tuple(missing.items()))
    values, absent = job.on(sample.minor, sample.processes)
    if "processes_sm" in missing and "job_sm_percent" in absent:
        absent["job_sm_percent"] = missing["processes_sm"]
    return replace(sample, held=(), missing=tuple((missing | absent).items()), **values)


def _part_for(job: Job, sample: MigSampled) -> MigSampled:
    """The same of a MIG device."""
    missing = dict(sample.missing)
    amount: int | str | None = missing.pop("held", None)
    if amount is None and GONE not in missing:
        pids = job.pids()
        sizes = [size for pid, size in sample.held if pid in pids]
        amount = sum(sizes) if sizes else not_listed(job.pid)
    if isinstance(amount, str):
        missing["process_memory_bytes"] = amount
    memory = amount if isinstance(amount, int) else None
    return replace(sample, held=(), process_memory_bytes=memory, missing=tuple(missing.items()))
