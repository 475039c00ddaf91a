"""Which figures hold here: the makers' and the user's, joined with what the driver tells and with what was calibrated.

Read once at the start and handed around; after that everything here is pure.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from tuimon.events import GpuSampled
from tuimon.roofline import calibration, derived, hardware
from tuimon.roofline.calibration import Calibration
from tuimon.roofline.ceilings import Ceiling, CeilingError, load_ceilings, parse_ceilings, read_file
from tuimon.roofline.machines import Bandwidth, Machine, find, machines

_Named = TypeVar("_Named", Ceiling, Machine)

_SAME_MEMORY = 0.05
"""How far two ways of telling a GPU's memory may lie apart."""


@dataclass(frozen=True, slots=True)
class Known:
    """All figures that are known, by device."""

    machines: tuple[Machine, ...] = ()
    """The user's, then the packaged ones, as they stand in their files."""
    calibrations: tuple[Calibration, ...] = ()
    host: Machine | None = None
    """This machine's processor as it was calibrated; None: it never was."""
    ceilings: tuple[Ceiling, ...] = ()
    """The packaged pairs, that of the lab first, and the user's."""
    own: tuple[Ceiling, ...] = ()
    """The user's alone, those of --ceilings first: what a person chose."""
    problems: tuple[str, ...] = ()
    """A sentence for each file that cannot be used."""

    def of_gpu(self, gpu: GpuSampled) -> Machine | None:
        """The figures of the GPU in this reading: its maker's, what its driver tells, and what was calibrated on such a one.
        None where nothing is known of it."""
        sheet = self.of_name(gpu.name, gpu.memory_total_bytes)
        told = derived.bandwidth(gpu)
        peaks = derived.peaks(gpu)
        if " MIG " in f" {gpu.name} ":
            return sheet  # a slice: the driver tells the clocks and the bus of the whole
        if told is None and not peaks:
            return sheet
        machine = sheet or Machine(gpu.name, {}, {}, None, "")
        lines: list[tuple[str, Bandwidth]] = []
        if told is not None:
            lines.append(("HBM" if sheet is None and (gpu.memory_bus_bits or 0) >= 1024 else machine.memory, told))
        return machine.with_figures(peaks, lines)

    def of_name(self, name: str, memory_bytes: int | None = None) -> Machine | None:
        """The figures of a GPU of this name and memory: its maker's, and what was calibrated on such a one."""
        sheet = find(name, memory_bytes, self.machines)
        for one in self.calibrations:
            if one.kind == "gpu" and one.name == name and _alike(one.memory_bytes, memory_bytes):
                return one.onto(sheet) if sheet is not None else one.machine()
        return sheet


def known(extra: Path | None = None, *, own_cpu: hardware.Cpu | None = None) -> Known:
    """Read all files: the packaged ones, the user's, `extra` (of --ceilings), the calibrations.

    Raises CeilingError where `extra` cannot be used; of the other files what cannot be used is a sentence in `problems`.
    """
    problems: list[str] = []
    listed, ceilings, own = machines(), load_ceilings(), tuple[Ceiling, ...]()
    default = user_file()
    if os.path.exists(default):  # false, too, where its folder may not be entered
        try:
            listed, ceilings = machines(default), load_ceilings(default)
            own = parse_ceilings(read_file(default), str(default))
        except CeilingError as error:
            problems.append(str(error))
            listed, ceilings = machines(), load_ceilings()
    if extra is not None:
        more = machines(extra)
        first = parse_ceilings(read_file(extra), str(extra))
        listed = _first_of_each_name((*more, *listed))
        own = _first_of_each_name((*first, *own))
        ceilings = tuple({one.name: one for one in (*ceilings, *first)}.values())  # the later one, in the place of the earlier
    kept, sentences = calibration.load_all()
    cpu = own_cpu or hardware.cpu()
    host = next((one.machine() for one in kept if one.kind == "cpu" and one.key == cpu.key), None)
    if host is not None:
        host = replace(host, core_cache_bytes=cpu.l2_bytes)
    return Known(listed, tuple(kept), host, ceilings, own, (*problems, *sentences))


def user_file() -> Path:
    """Where a user's own ceilings and machines are looked for."""
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(config) / "tuimon" / "ceilings.toml"


def thread_note(machine: Machine, threads: int | None) -> str:
    """What has to be said where a job's number of threads is not one that the machine was calibrated with; "" where it is."""
    had = machine.threads
    if threads is None or not had or threads in had:
        return ""
    told = " and ".join(str(one) for one in had)
    more = f"the job has {threads}: tuimon calibrate --threads {threads}"
    return f"calibrated with {told} thread{'' if had == (1,) else 's'}, {more}"


def _first_of_each_name(entries: Iterable[_Named]) -> tuple[_Named, ...]:
    kept: dict[str, _Named] = {}
    for one in entries:
        kept.setdefault(one.name, one)
    return tuple(kept.values())


def _alike(kept: int | None, told: int | None) -> bool:
    if kept is None or told is None:
        return True
    return abs(kept - told) <= _SAME_MEMORY * kept
