"""Which roof a point is under: the machine that the job computes on, the unit and dtype of its operations, the boundary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from tuimon.events import GpuSampled
from tuimon.model import Model
from tuimon.roofline.ceilings import Ceiling, ceilings_of
from tuimon.roofline.counts.counted import Class
from tuimon.roofline.inforce import Known
from tuimon.roofline.machines import Machine, Peak
from tuimon.roofline.points import Bound, BytesHow

TWICE = 2
"""Data of less than twice a cache may still be there from the call before: it need not come from behind that cache."""


@dataclass(slots=True)
class Roofs:
    """The ceilings of one job."""

    machine: Machine | None
    name: str
    """The device's name, "" where it is not known."""
    own: tuple[Ceiling, ...] = ()
    """Those that a person declared."""
    threads: int | None = None
    """With how many threads the job computes on a CPU."""
    on_gpu: bool = False
    tf32: bool = False
    """The job lets matrix units compute f32 as tf32."""
    sample: GpuSampled | None = None
    used: dict[str, Ceiling] = field(default_factory=dict)
    """Ceilings that were asked for, by name."""
    _peaks: dict[Class, Peak | None] = field(default_factory=dict)
    _ceilings: dict[tuple[Class, str], Ceiling | None] = field(default_factory=dict)
    _boundaries: tuple[str, ...] | None = None

    def resolved(self, of: Class) -> Class | None:
        """The unit and dtype whose peak is the limit of such operations; None where no peak of this machine is known.

        A CPU has no other unit for its products than for the rest, so where only that of products was measured it bounds both.
        """
        if self.machine is None:
            return of if self._own(of) is not None else None
        unit, dtype = of
        tries: list[Class] = [of]
        if unit == "matrix" and dtype == "f32" and self.on_gpu:
            tries = [("matrix", "tf32"), of, ("vector", "f32")] if self.tf32 else [of, ("vector", "f32")]
        elif unit == "vector":
            # of 16 bits a CPU computes in f32 what is no product; how fast its products of 16 bits are says nothing of that
            narrow = dtype in ("f16", "bf16")
            tries += [] if self.on_gpu or narrow else [("matrix", dtype)]
            tries += [("vector", "f32")] if self.on_gpu else [("vector", "f32"), ("matrix", "f32")]
        return next((one for one in tries if self.machine.peak(*one, threads=self.threads) is not None), None)

    def peak(self, of: Class) -> Peak | None:
        """The peak that such operations are held against."""
        if of not in self._peaks:
            self._peaks[of] = self._peak(of)
        return self._peaks[of]

    def _peak(self, of: Class) -> Peak | None:
        if self.machine is None:
            own = self._own(of)
            return None if own is None else Peak(own.peak_flops, own.how, own.source, own.clock_mhz, own.spread)
        found = self.resolved(of)
        return None if found is None else self.machine.peak(*found, threads=self.threads)

    def mixed(self, by_class: Mapping[Class, int]) -> float | None:
        """FLOP/s at which work of several kinds would be done if each kind ran at its peak, one after the other."""
        seconds = 0.0
        for of, operations in by_class.items():
            peak = self.peak(of)
            if peak is None:
                return None
            seconds += operations / peak.flops
        return sum(by_class.values()) / seconds if seconds > 0 else None

    def ceiling(self, of: Class, boundary: str) -> Ceiling | None:
        """The best known ceiling for these operations at a boundary, and a note of those that it stands beside."""
        key = of, boundary
        if key not in self._ceilings:
            self._ceilings[key] = self._ceiling(of, boundary)
        return self._ceilings[key]

    def _ceiling(self, of: Class, boundary: str) -> Ceiling | None:
        if self.machine is None:
            own = self._own(of)
            if own is not None:
                self.used.setdefault(own.name, own)
            return own
        found = self.resolved(of)
        if found is None:
            return None
        every = ceilings_of(self.machine, unit=found[0], dtype=found[1], boundary=boundary, threads=self.threads)
        for one in every:
            self.used.setdefault(one.name, one)
        return every[0] if every else None

    def _own(self, of: Class) -> Ceiling | None:
        fits = [one for one in self.own if (one.unit in (None, of[0])) and one.dtype in ("", of[1])]
        return max(fits, key=lambda one: (one.dtype != "", one.unit is not None), default=None)

    def in_cores(self, footprint: float | None) -> bool:
        """Whether so many bytes may have stayed in the caches that the cores have for themselves."""
        own = self.machine.core_cache_bytes if self.machine is not None and not self.on_gpu else None
        return own is not None and (footprint is None or footprint <= TWICE * own * max(1, self.threads or 1))

    def boundaries(self) -> tuple[str, ...]:
        """The machine's, its memory first."""
        if self._boundaries is None:  # each point asks
            machine = self.machine
            names = (one.boundary for one in self.own) if machine is None else filter(None, (machine.memory, machine.cache))
            self._boundaries = tuple(dict.fromkeys(names))
        return self._boundaries

    def boundary(self, footprint: float | None, how: BytesHow, wanted: str | None) -> tuple[str, Bound]:
        """Across what the bytes of a call are counted, and what the intensity is that they give.

        `footprint`: what a call reads and writes at least. `wanted`: the boundary that somebody looks at, None: that at which
        the bytes say most. Bytes that must be moved are fewer than those that are, so the intensity is an upper bound, where so
        much cannot have stayed in a cache before the boundary: the last one, or at that of a CPU the cores' own.
        """
        names = self.boundaries()
        memory = names[0] if names else ""
        cached = names[1] if len(names) > 1 else ""
        if how == "measured":
            return memory, "exact"
        if how == "operands":
            return (wanted if wanted in names else memory) or "", "unknown"
        held = self.machine.cache_bytes if self.machine is not None else None
        cold = footprint is not None and held is not None and footprint > TWICE * held
        chosen = wanted if wanted in names else memory if cold or not cached else cached
        if chosen == cached and cached:
            return chosen, "unknown" if self.in_cores(footprint) else "upper"
        return chosen or "", "upper" if cold and how == "compulsory" else "unknown"


def primary(by_class: Counter[Class]) -> Class | None:
    """The class that a mixture is drawn under: matrix if at least half of it is, and the dtype that has most of that."""
    total = sum(by_class.values())
    if total <= 0:
        return None
    matrix = sum(count for (unit, _), count in by_class.items() if unit == "matrix")
    unit = "matrix" if 2 * matrix >= total else "vector"
    return max((of for of in by_class if of[0] == unit), key=lambda of: by_class[of])


def roofs_of(model: Model, known: Known | None, *, here: bool) -> Roofs:
    """The ceilings of the job's machine. `here`: the job runs on this host."""
    target = model.target
    options = dict(target.options)
    threads = options.get("num_threads", "")
    name = next((device for device in target.devices if device != "cpu"), "")
    if not name:
        name = next((seen.device for seen in reversed(model.kernels.values()) if seen.device), "")
    if not name and model.counters is not None:
        name = model.counters.device
    alike = [one for one in model.surroundings.gpus.values() if name and one.name == name]
    # of several alike the one that the job holds most of: clocks and limits are each one's own
    sample = max(alike, key=lambda one: one.process_memory_bytes or 0, default=None)
    machine: Machine | None = None
    if known is not None and sample is not None:
        machine = known.of_gpu(sample)
    elif known is not None and name:
        machine = known.of_name(name)
    elif known is not None and here:
        machine = known.host
    return Roofs(
        machine=machine,
        name=name or (machine.name if machine is not None else ""),
        own=() if known is None else tuple(known.own),
        threads=int(threads) if threads.isascii() and threads.isdigit() and not name else None,
        on_gpu=bool(name),
        tf32=options.get("float32_matmul_precision", "") in ("high", "medium") or options.get("allow_tf32", "") == "True",
        sample=sample,
    )
