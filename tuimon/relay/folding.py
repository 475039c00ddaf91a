"""A job's calls folded where it runs: its node counts the steps and tells what came of them, some times a second.

What a hook says seldom (compilations, graph breaks, new regions) is passed on as it is; the calls that it times, and where its
job was seen, are taken in here, by the same model as at the near end. One step is then some hundred bytes on the line.
"""

from __future__ import annotations

import json
import threading
import time

from tuimon import events as ev
from tuimon.hook import wire
from tuimon.model import Model
from tuimon.model.ranks.digest import pack
from tuimon.sources.lines import Lines
from tuimon.sources.live import LiveDecoder

STATUS_S = 2.0
"""So often the hook's word on itself is passed on, where nothing in it is new."""
READING_S = 10.0
"""The same for a reading of the host, of a GPU, and of what else there are readings of."""

_FOLDED = (
    ev.Samples, ev.StackSeen, ev.SiteSeen, ev.LoopsSeen, ev.DeviceSamples, ev.SyncLooked, ev.ThreadSampled, ev.SourceSeen,
)  # fmt: skip
_READINGS = (ev.HostSampled, ev.GpuSampled, ev.MigSampled, ev.ProcessTreeSampled, ev.PoolSampled)


class Folding:
    """One job. Each method from any thread."""

    def __init__(self, pid: int, how: str, over_ns: int | None = None) -> None:
        """`over_ns`: how much longer than the usual a slow step takes at least; None: as the rule has it."""
        self._model = Model()
        if over_ns is not None:
            self._model.slowness.set_over(over_ns)
        self._decoder = LiveDecoder(pid, "", how)
        self._lines = Lines(pid)
        self._lock = threading.Lock()
        self._told: dict[object, float] = {}
        self._instruments: object = None

    def frame(self, kind: int, body: bytes) -> bool:
        """Take in a frame of the hook's. Gives whether it is to be passed on as well."""
        with self._lock:
            try:
                events = self._decoder.frame(kind, body)
            except wire.WireError:
                return True  # the near end says so
            self._model.apply(self._lines.told(events))
            return all(self._passes(event) for event in events)

    def event(self, event: ev.Event) -> bool:
        """Take in what a source read. Gives whether it is to be passed on as well."""
        with self._lock:
            self._model.apply([event])
            return self._passes(event)

    def told(self) -> ev.StepsFolded | None:
        """What has come together since the last call; None where that is nothing."""
        with self._lock:
            rows = tuple(json.dumps(pack(one), separators=(",", ":")) for one in self._model.digester.take())
            steps = self._model.steps
            if not rows or steps.source is None:
                return None
            return ev.StepsFolded(self._model.now_ns, steps.source, steps.how, rows)

    def _passes(self, event: ev.Event) -> bool:
        if isinstance(event, _FOLDED):
            return False
        if isinstance(event, ev.HookStatus):
            news = (event.instruments, event.dropped)
            fresh, self._instruments = news != self._instruments, news
            return self._due(ev.HookStatus, STATUS_S) or fresh
        if isinstance(event, _READINGS):
            return self._due(_of(event), READING_S)
        return True

    def _due(self, what: object, every_s: float) -> bool:
        now = time.monotonic()
        due = now - self._told.get(what, float("-inf")) >= every_s
        if due:
            self._told[what] = now
        return due


def _of(event: ev.Event) -> object:
    """Of what it is a reading. A GPU that is lost is another one than it was: that must not wait."""
    if isinstance(event, ev.GpuSampled):
        return ev.GpuSampled, event.index, event.lost is not None
    if isinstance(event, ev.MigSampled):
        return ev.MigSampled, event.gpu, event.number
    if isinstance(event, ev.PoolSampled):
        return ev.PoolSampled, event.device
    return type(event)
