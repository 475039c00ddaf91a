"""The GPUs that may be calibrated: what NVML tells of them, and whether somebody uses one."""

from __future__ import annotations

import contextlib
import statistics
import time
from dataclasses import dataclass, field
from typing import Any

from tuimon.sources.nvml import words
from tuimon.sources.nvml.processes import listed
from tuimon.sources.nvml.readers import Absent, Calls, memory, number, text
from tuimon.sources.nvml.source import NoBinding, binding

MOST_UTILIZATION = 5
EVERY_S = 0.5


@dataclass(slots=True)
class Gpu:
    """One GPU, by its number in the order of the bus."""

    index: int
    name: str
    memory_bytes: int | None
    driver: str
    handle: Any
    nvml: Any
    clocks: list[float] = field(default_factory=list)
    reasons: set[str] = field(default_factory=set)
    asked: float = 0.0

    def busy(self) -> str | None:
        """Why it cannot be measured now; None where nobody uses it."""
        try:
            processes = listed(self.nvml, Calls(), self.handle)
            used = number(self.nvml.nvmlDeviceGetUtilizationRates(self.handle).gpu, most=100)
        except self.nvml.NVMLError as error:
            return f"whether somebody uses it cannot be told: {words.no_value(error.value)}"
        except Absent as absent:
            return f"whether somebody uses it cannot be told: {absent}"
        if processes:
            pids = ", ".join(str(process.pid) for process in processes[:4])
            return f"{len(processes)} process{'es' if len(processes) > 1 else ''} use it (pid {pids})"
        if used > MOST_UTILIZATION:
            return f"it is {used} % busy"
        return None

    def look(self) -> None:
        """Note its clock and what holds it down, at most twice a second."""
        if time.monotonic() - self.asked < EVERY_S:
            return
        self.asked = time.monotonic()
        with contextlib.suppress(self.nvml.NVMLError):
            self.clocks.append(float(self.nvml.nvmlDeviceGetClockInfo(self.handle, self.nvml.NVML_CLOCK_SM)))
            self.reasons |= set(words.clock_reasons(int(self.nvml.nvmlDeviceGetCurrentClocksEventReasons(self.handle))))

    @property
    def clock_mhz(self) -> float | None:
        """The usual one of those that were seen."""
        return statistics.median(self.clocks) if self.clocks else None


def gpus() -> tuple[list[Gpu], str]:
    """Those that NVML shows; and, where it shows none, why, as a sentence."""
    try:
        nvml = binding()
    except NoBinding as error:
        return [], str(error)
    try:
        nvml.nvmlInit()
        driver = text(nvml.nvmlSystemGetDriverVersion())
        count = int(nvml.nvmlDeviceGetCount())
    except nvml.NVMLError as error:
        return [], words.cannot_start(error.value)
    found = []
    for index in range(count):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            name = text(nvml.nvmlDeviceGetName(handle))
        except nvml.NVMLError:
            continue
        total = None
        with contextlib.suppress(nvml.NVMLError, Absent):
            total = memory(nvml, Calls(), handle)[1]
        found.append(Gpu(index, name, total, driver, handle, nvml))
    return found, "" if found else "the NVIDIA driver shows no GPU that can be opened"
