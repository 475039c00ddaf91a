"""GPUs, host and the job's processes in the model: the latest readings, and histories of them for charts and reports."""

from __future__ import annotations

import copy
from collections import Counter, deque
from dataclasses import dataclass, field, fields

from tuimon import events as ev

HISTORY = 512
"""Readings that are kept."""
MOST_XIDS = 64
MOST_PARTS = 256
"""MIG devices, pools and threads that are kept, of each so many."""
USE_NS = 2_000_000_000
"""A thread's share is that of the last two seconds."""
FORGOTTEN_NS = 30_000_000_000
"""A thread that has not been read for so long is gone."""

Track = deque[float | None]
"""One value a reading, oldest first; None where it could not be read."""


def _track() -> Track:
    return deque(maxlen=HISTORY)


@dataclass(slots=True)
class GpuTracks:
    """The readings of one GPU, each in the unit of its field in `GpuSampled`."""

    utilization: Track = field(default_factory=_track)
    sm: Track = field(default_factory=_track)
    tensor: Track = field(default_factory=_track)
    dram: Track = field(default_factory=_track)
    memory: Track = field(default_factory=_track)
    process_memory: Track = field(default_factory=_track)
    power: Track = field(default_factory=_track)
    temperature: Track = field(default_factory=_track)
    sm_clock: Track = field(default_factory=_track)
    memory_clock: Track = field(default_factory=_track)
    fan: Track = field(default_factory=_track)
    pcie_rx: Track = field(default_factory=_track)
    pcie_tx: Track = field(default_factory=_track)
    nvlink_rx: Track = field(default_factory=_track)
    nvlink_tx: Track = field(default_factory=_track)
    readings: int = 0
    """Ever, those that fell out included."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Reason for a lower clock -> in how many readings it was given."""
    reasoned: int = 0
    """Readings that told the reasons, or that there is none."""
    energy_j: float | None = None
    """Spent since the first reading; None where it is not counted."""
    energy_read_j: float | None = None
    """The counter as it was read last."""
    latest_ns: int = 0
    """When the latest reading was taken, and the one before it."""
    before_ns: int = 0
    ecc_first: int | None = None
    """Uncorrected errors at the first reading; the least, where the driver was loaded anew."""

    def take(self, event: ev.GpuSampled) -> None:
        """One more reading."""
        self.readings += 1
        self.latest_ns, self.before_ns = event.t_ns, self.latest_ns
        for name, track in self.kept().items():
            track.append(getattr(event, _FIELDS[name]))
        if event.lost is None and not any(what in ("throttle", "gpu") for what, _ in event.missing):
            self.reasoned += 1
            self.reasons.update(event.throttle)
        if event.ecc_uncorrected is not None:
            self.ecc_first = min(event.ecc_uncorrected, self.ecc_first if self.ecc_first is not None else event.ecc_uncorrected)
        now = event.energy_j
        if now is None:
            return
        if self.energy_read_j is not None and now >= self.energy_read_j:  # else: the driver was loaded anew
            self.energy_j = (self.energy_j or 0.0) + now - self.energy_read_j
        self.energy_read_j = now

    def kept(self) -> dict[str, Track]:
        """The tracks by name."""
        return {name: getattr(self, name) for name in _FIELDS}


_FIELDS = {
    "utilization": "utilization", "sm": "sm_activity", "tensor": "tensor_activity", "dram": "dram_activity",
    "memory": "memory_used_bytes", "process_memory": "process_memory_bytes", "power": "power_w",
    "temperature": "temperature_c", "sm_clock": "sm_clock_mhz", "memory_clock": "memory_clock_mhz", "fan": "fan_percent",
    "pcie_rx": "pcie_rx_bytes_s", "pcie_tx": "pcie_tx_bytes_s", "nvlink_rx": "nvlink_rx_bytes_s",
    "nvlink_tx": "nvlink_tx_bytes_s",
}  # fmt: skip
"""Track -> the field of the event."""


@dataclass(slots=True)
class ThreadUse:
    """What a thread of the job takes."""

    native: int
    name: str = ""
    share: float | None = None
    """Cores it was on over about the last two seconds; None: not known yet."""
    wait_share: float | None = None
    """The part of that time for which it was ready to run and had no core."""
    run_s: float | None = None
    """On a core since it started."""
    core: int | None = None
    t_ns: int = 0
    """When it was read last."""
    since: tuple[int, float | None, float | None] = (0, None, None)
    """(t_ns, run_s, wait_s) of the reading that the shares count from."""

    def take(self, event: ev.ThreadSampled) -> None:
        """One more reading."""
        begin, run, wait = self.since
        took = event.t_ns - begin
        anew = self.run_s is not None and event.run_s is not None and event.run_s < self.run_s
        if not begin or anew or event.t_ns - self.t_ns > 2 * USE_NS:
            self.since = (event.t_ns, event.run_s, event.wait_s)
            self.share = self.wait_share = None
        elif took >= USE_NS:
            self.share, self.wait_share = _rate(run, event.run_s, took), _rate(wait, event.wait_s, took)
            self.since = (event.t_ns, event.run_s, event.wait_s)
        self.t_ns, self.run_s, self.core = event.t_ns, event.run_s, event.core
        self.name = event.name or self.name


@dataclass(slots=True)
class Surroundings:
    """The latest of everything, and histories."""

    gpus: dict[int, ev.GpuSampled] = field(default_factory=dict)
    gpu_why_not: str | None = None
    gpu_kind: str = ""
    """`GpuUnavailable.kind` of `gpu_why_not`."""
    gpu_tracks: dict[int, GpuTracks] = field(default_factory=dict)
    gpu_history: dict[int, Track] = field(default_factory=dict)
    """Of each the very track of its utilisation."""
    mig: dict[tuple[int, int], ev.MigSampled] = field(default_factory=dict)
    """By GPU and number."""
    silent: ev.GpuSilent | None = None
    """The call that has not come back for longest, None where all answer."""
    silents: dict[int | None, ev.GpuSilent] = field(default_factory=dict)
    """All of them, by GPU."""
    xids: deque[ev.XidSeen] = field(default_factory=lambda: deque(maxlen=MOST_XIDS))
    """The latest."""
    xid_counts: dict[tuple[int | None, int], int] = field(default_factory=dict)
    """(GPU, number) -> how often, of all of them."""
    pools: dict[int, ev.PoolSampled] = field(default_factory=dict)
    """By the number by which the job calls the device."""
    pools_first: dict[int, ev.PoolSampled] = field(default_factory=dict)
    """The first reading of each: what its totals count from while tuimon watches."""
    host: ev.HostSampled | None = None
    host_first: ev.HostSampled | None = None
    """The first reading: what totals count from while tuimon watches."""
    tree: ev.ProcessTreeSampled | None = None
    threads: dict[int, ThreadUse] = field(default_factory=dict)
    """By the thread's id in the kernel."""
    cpu_history: Track = field(default_factory=_track)
    rss_history: Track = field(default_factory=_track)
    wait_rate_history: Track = field(default_factory=_track)
    """Cores that its threads waited for."""
    throttled_history: Track = field(default_factory=_track)
    """Seconds a second for which the quota held the group back, all its cores together."""

    def gpu(self, event: ev.GpuSampled) -> None:
        """A reading of a GPU."""
        self.gpus[event.index] = event
        tracks = self.gpu_tracks.get(event.index)
        if tracks is None:
            tracks = self.gpu_tracks[event.index] = GpuTracks()
            self.gpu_history[event.index] = tracks.utilization
        # the readings of its parts follow the GPU's own: one that has missed two rounds has been removed
        gone_ns = event.t_ns + 1 if event.mig_mode is False or event.lost is not None else tracks.before_ns
        for key in [key for key, part in self.mig.items() if key[0] == event.index and part.t_ns < gone_ns]:
            del self.mig[key]
        tracks.take(event)
        self.gpu_why_not, self.gpu_kind = None, ""
        self._answers(event.index)

    def part(self, event: ev.MigSampled) -> None:
        """A reading of a MIG device."""
        key = (event.gpu, event.number)
        if any(what == "part" for what, _ in event.missing):  # it is told once that it has been removed
            self.mig.pop(key, None)
        elif key in self.mig or len(self.mig) < MOST_PARTS:
            self.mig[key] = event

    def silence(self, event: ev.GpuSilent) -> None:
        """A call that does not come back, or that has."""
        if event.since_s is None:
            self._answers(event.index)
        elif event.index in self.silents or len(self.silents) < MOST_PARTS:
            self.silents[event.index] = event
            self._longest()

    def _answers(self, index: int | None) -> None:
        if self.silents.pop(index, None) is not None:
            self._longest()

    def _longest(self) -> None:
        self.silent = max(self.silents.values(), key=lambda one: one.since_s or 0.0, default=None)

    def xid(self, event: ev.XidSeen) -> None:
        """An error that the driver has reported."""
        key = (event.index, event.xid)
        if len(self.xids) == self.xids.maxlen and key in self.xid_counts:  # a flood of one does not push the others out
            same = next((one for one in self.xids if (one.index, one.xid) == key), None)
            if same is not None:
                self.xids.remove(same)
        self.xids.append(event)
        if key in self.xid_counts or len(self.xid_counts) < MOST_PARTS:
            self.xid_counts[key] = self.xid_counts.get(key, 0) + 1

    def pool(self, event: ev.PoolSampled) -> None:
        """A reading of the job's allocator."""
        if event.device in self.pools or len(self.pools) < MOST_PARTS:
            self.pools[event.device] = event
            self.pools_first.setdefault(event.device, event)

    def take_host(self, event: ev.HostSampled) -> None:
        """A reading of the host and the job's process."""
        before = self.host
        took = event.t_ns - before.t_ns if before is not None else 0
        self.cpu_history.append(event.cpu_percent)
        self.rss_history.append(event.rss_bytes)
        self.wait_rate_history.append(_rate(before.run_queue_wait_s, event.run_queue_wait_s, took) if before else None)
        self.throttled_history.append(_rate(before.throttled_s, event.throttled_s, took) if before else None)
        self.host = event
        if self.host_first is None:
            self.host_first = event
        for native in [one.native for one in self.threads.values() if event.t_ns - one.t_ns > FORGOTTEN_NS]:
            del self.threads[native]

    def thread(self, event: ev.ThreadSampled) -> None:
        """A reading of a thread."""
        use = self.threads.get(event.native)
        if use is None:
            if len(self.threads) >= MOST_PARTS:
                return
            use = self.threads[event.native] = ThreadUse(event.native)
        use.take(event)


def _rate(before: float | None, after: float | None, took_ns: int) -> float | None:
    """By how much a total grew, a second; None where it was not read, or ran back."""
    if before is None or after is None or took_ns <= 0 or after < before:
        return None
    return (after - before) * 1e9 / took_ns


def image(of: Surroundings) -> Surroundings:
    """A copy that later events do not change."""
    copied = copy.copy(of)
    for one in fields(of):
        value = getattr(of, one.name)
        if isinstance(value, deque):
            setattr(copied, one.name, deque(value, value.maxlen))
        elif isinstance(value, dict):
            setattr(copied, one.name, dict(value))
    copied.gpu_tracks = {index: _tracks(tracks) for index, tracks in of.gpu_tracks.items()}
    copied.gpu_history = {index: tracks.utilization for index, tracks in copied.gpu_tracks.items()}
    copied.threads = {native: _thread(use) for native, use in of.threads.items()}
    return copied


def _tracks(of: GpuTracks) -> GpuTracks:
    copied = copy.copy(of)
    for name, track in of.kept().items():
        setattr(copied, name, deque(track, track.maxlen))
    copied.reasons = Counter(of.reasons)
    return copied


def _thread(of: ThreadUse) -> ThreadUse:
    return copy.copy(of)
