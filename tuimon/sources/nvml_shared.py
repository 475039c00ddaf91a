"""The GPUs of this host for several targets at once: they are read once a second, however many processes are watched."""

from __future__ import annotations

import threading
from dataclasses import replace

from tuimon.events import Event, GpuSampled, GpuUnavailable
from tuimon.sources.nvml import NvmlSource
from tuimon.sources.nvml_device import not_listed
from tuimon.sources.ticker import Put


class SharedGpus:
    """One `NvmlSource` whose readings go to everyone who has joined, each with the memory of his own process in it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._takers: dict[int, Put] = {}
        self._source = NvmlSource(self._spread, everybody=True)
        self._started = False
        self._unavailable: GpuUnavailable | None = None

    def join(self, pid: int, put: Put) -> None:
        """From now on `put` gets each reading, for process `pid`. The first one who joins starts the reading. Any thread."""
        with self._lock:
            self._takers[pid] = put
            start, self._started = not self._started, True
            missed = self._unavailable
        if start:
            self._source.start()
        if missed is not None:
            put(missed)

    def leave(self, pid: int) -> None:
        """No more for this one; when the last one leaves, the reading ends (in a moment, or when the driver comes back)."""
        with self._lock:
            known = self._takers.pop(pid, None) is not None  # a session can end and be left at the same time
            over = known and self._started and not self._takers
        if over:
            self._source.stop(0.0)

    def waiting_since(self) -> float | None:
        """Seconds that the present call into the driver has taken; None between calls. Any thread."""
        return self._source.waiting_since()

    def _spread(self, event: Event) -> None:
        with self._lock:
            takers = list(self._takers.items())
            if isinstance(event, GpuUnavailable):
                self._unavailable = event
        for pid, put in takers:
            put(_for(pid, event) if isinstance(event, GpuSampled) else event)


def _for(pid: int, sample: GpuSampled) -> GpuSampled:
    """The reading with what process `pid` holds, or with the reason why that is not known."""
    used = dict(sample.held).get(pid)
    missing = tuple(("process_memory_bytes" if field == "held" else field, why) for field, why in sample.missing)
    if used is None and missing == sample.missing:
        missing += (("process_memory_bytes", not_listed(pid)),)
    return replace(sample, held=(), process_memory_bytes=used, missing=missing)
