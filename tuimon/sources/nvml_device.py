"""Reading one GPU through NVML: every value for itself, so that one that fails does not take the others with it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tuimon.events import GpuSampled
from tuimon.sources import nvml_words as words
from tuimon.sources.nvml_gpm import Gpm

REST_S = 30.0
"""How long a value rests after a failure that may pass (no permission, a timeout)."""

# NVML says "no value" with the largest number of the field's type; some drivers use the largest signed one
_NOTHING = frozenset({0xFFFFFFFF, 0x7FFFFFFF, 0xFFFFFFFFFFFFFFFF, 0x7FFFFFFFFFFFFFFF})


class Absent(Exception):
    """The driver answered, but with no usable value; the text says why."""


class Calls:
    """Makes the calls into the driver, one at a time, and knows since when the present one has been waiting.

    A call into a sick driver may never return; another thread can see that here.
    """

    def __init__(self) -> None:
        self._began: float | None = None

    def __call__(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        self._began = time.monotonic()
        try:
            return function(*arguments, **options)
        finally:
            self._began = None

    def waiting(self) -> float | None:
        """Seconds that the call in progress has taken so far; None between calls. Any thread."""
        began = self._began
        return None if began is None else time.monotonic() - began


@dataclass(frozen=True, slots=True)
class Reader:
    """How a group of values is had: the fields of `GpuSampled` that one call fills, and the call."""

    fields: tuple[str, ...]
    read: Callable[[Any, Calls, Any], tuple[Any, ...]]
    """(binding, calls, handle) -> one value for each field. Raises the binding's NVMLError, or Absent."""
    once: bool = False
    """The value cannot change while the driver runs: it is asked for until it is known."""


def _number(value: Any, most: float | None = None) -> int:
    """A plain number from the driver. Raises Absent for its ways of saying "none" and for what cannot be."""
    number = int(value)
    if number in _NOTHING:
        raise Absent("the driver gave no value")
    if number < 0 or (most is not None and number > most):
        raise Absent(f"the driver gave {number}, which cannot be")
    return number


def _utilization(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
    return (float(_number(calls(nvml.nvmlDeviceGetUtilizationRates, handle).gpu, most=100)),)


def _memory(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
    # version 2: the first form counts what the driver reserves for itself (hundreds of MB) as used
    memory = calls(nvml.nvmlDeviceGetMemoryInfo, handle, version=nvml.nvmlMemory_v2)
    total = _number(memory.total)
    if not total:
        raise Absent("the driver gave a memory of 0 bytes")
    return _number(memory.used, most=total), total


def _power(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
    return (_number(calls(nvml.nvmlDeviceGetPowerUsage, handle)) / 1000,)  # mW


def _power_limit(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
    return (_number(calls(nvml.nvmlDeviceGetEnforcedPowerLimit, handle)) / 1000,)


def _temperature(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
    try:
        value = calls(nvml.nvmlDeviceGetTemperatureV, handle, nvml.NVML_TEMPERATURE_GPU)
    except nvml.NVMLError as error:
        # an older driver knows only the older call, which the newest ones have deprecated
        if error.value not in (words.FUNCTION_NOT_FOUND, words.ARGUMENT_VERSION_MISMATCH):
            raise
        value = calls(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU)
    return (float(_number(value, most=500)),)


def _sm_clock(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
    return (float(_number(calls(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM))),)


def _sm_clock_max(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
    return (float(_number(calls(nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_SM))),)


def _memory_clock(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
    return (float(_number(calls(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_MEM))),)


def _memory_clock_max(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
    return (float(_number(calls(nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_MEM))),)


def _bus(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
    return (_number(calls(nvml.nvmlDeviceGetMemoryBusWidth, handle)),)


def _cores(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
    return (_number(calls(nvml.nvmlDeviceGetNumGpuCores, handle)),)


def _capability(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
    major, minor = calls(nvml.nvmlDeviceGetCudaComputeCapability, handle)
    return (f"{_number(major)}.{_number(minor)}",)


def _throttle(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
    try:
        bits = calls(nvml.nvmlDeviceGetCurrentClocksEventReasons, handle)
    except nvml.NVMLError as error:
        if error.value != words.FUNCTION_NOT_FOUND:
            raise
        bits = calls(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)  # its name before driver 535
    return (words.clock_reasons(int(bits)),)


READERS = (
    Reader(("utilization",), _utilization),
    Reader(("memory_used_bytes", "memory_total_bytes"), _memory),
    Reader(("power_w",), _power),
    Reader(("power_limit_w",), _power_limit),
    Reader(("temperature_c",), _temperature),
    Reader(("sm_clock_mhz",), _sm_clock),
    Reader(("sm_clock_max_mhz",), _sm_clock_max, once=True),
    Reader(("memory_clock_mhz",), _memory_clock),
    Reader(("throttle",), _throttle),
    Reader(("memory_clock_max_mhz",), _memory_clock_max, once=True),
    Reader(("memory_bus_bits",), _bus, once=True),
    Reader(("cores",), _cores, once=True),
    Reader(("compute_capability",), _capability, once=True),
)


def _processes(nvml: Any, calls: Calls, handle: Any) -> Any:
    """The driver's list of the processes on a GPU. Raises Absent where it cannot be read."""
    # the call without a version in its name is not used: the binding lets it fail with an exception of another family
    try:
        processes = calls(nvml.nvmlDeviceGetComputeRunningProcesses_v3, handle)
    except nvml.NVMLError as error:
        if error.value != words.FUNCTION_NOT_FOUND:
            raise
        processes = calls(nvml.nvmlDeviceGetComputeRunningProcesses_v2, handle)
    if any(process.pid in (0, 0xFFFFFFFF) for process in processes):
        # drivers of the 535 line changed the structure without a new version: then every entry is shifted
        raise Absent("this driver's process list cannot be read")
    return processes


def not_listed(pid: int) -> str:
    """Why it is not known what process `pid` holds on a GPU whose list can be read."""
    return f"process {pid} is not in the GPU's list (inside a container the list has the host's pids)"


def _held(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
    held: dict[int, int] = {}
    for process in _processes(nvml, calls, handle):
        if process.usedGpuMemory is None:
            raise Absent("the driver does not tell the memory of a process")
        held[process.pid] = held.get(process.pid, 0) + _number(process.usedGpuMemory)  # one entry for each GPU instance
    return (tuple(held.items()),)


EVERY_PROCESS = Reader(("held",), _held)
"""Reads what each process holds on the GPU."""


def process_reader(pid: int) -> Reader:
    """Reads what process `pid` holds on the GPU."""

    def read(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
        ours = [process.usedGpuMemory for process in _processes(nvml, calls, handle) if process.pid == pid]
        if not ours:
            raise Absent(not_listed(pid))
        if None in ours:
            raise Absent("the driver does not tell the memory of a process")
        return (sum(_number(used) for used in ours),)  # one entry for each GPU instance

    return Reader(("process_memory_bytes",), read)


class Device:
    """One GPU: its handle, what is known to be unsupported on it, and whether it is lost."""

    def __init__(self, nvml: Any, calls: Calls, index: int, *more: Reader) -> None:
        self._nvml = nvml
        self._calls = calls
        self.index = index
        self._name: str | None = None
        self._lost: str | None = None
        self._handle: Any = None
        self._readers = (*READERS, *more)
        self._known: dict[str, Any] = {}
        self._never: dict[Reader, str] = {}
        self._resting: dict[Reader, tuple[float, str]] = {}
        self._gpm = Gpm(nvml, calls)
        try:
            self._handle = calls(nvml.nvmlDeviceGetHandleByIndex, index)
        except nvml.NVMLError as error:
            # without a handle there is nothing to ask again: the others are read on
            self._lost = words.no_value(error.value)

    @property
    def lost(self) -> str | None:
        """Why no more is asked of this GPU, or None while it answers."""
        return self._lost

    def sample(self) -> GpuSampled:
        """Read every value. Never raises for the driver's sake: what fails is None, with its reason in `missing`."""
        values: dict[str, Any] = {}
        missing: list[tuple[str, str]] = []
        strange = 0
        if self._lost is None and self._name is None:
            self._name = self._read_name()
        for reader in self._readers:
            if self._lost is not None:
                break
            if reader.once and reader.fields[0] in self._known:
                values[reader.fields[0]] = self._known[reader.fields[0]]
                continue
            why = self._never.get(reader) or self._still_resting(reader)
            if why is None:
                try:
                    read = dict(zip(reader.fields, reader.read(self._nvml, self._calls, self._handle), strict=True))
                except Absent as absent:
                    why = str(absent)
                except self._nvml.NVMLError as error:
                    why = self._failed(reader, error.value)
                    strange += error.value == words.UNKNOWN
                    if strange > 1:
                        # one value may be odd; a GPU that has no other answer is as gone as one that says so
                        self._lost = self._lost or words.no_value(words.UNKNOWN)
                else:
                    values.update(read)
                    if reader.once:
                        self._known.update(read)
                    continue
            missing += [(field, why) for field in reader.fields]
        if self._lost is None:
            try:
                activity, absent_of_it = self._gpm.read(self._handle)
            except self._nvml.NVMLError as error:
                self._lost = words.no_value(error.value)
            else:
                values.update(activity)
                missing += absent_of_it
        if self._lost is not None:
            values, missing = {}, [("gpu", self._lost)]
        return GpuSampled(
            t_ns=time.monotonic_ns(),
            index=self.index,
            name=self._name or f"GPU {self.index}",
            utilization=values.pop("utilization", None),
            memory_used_bytes=values.pop("memory_used_bytes", None),
            memory_total_bytes=values.pop("memory_total_bytes", None),
            missing=tuple(missing),
            **values,
        )

    def close(self) -> None:
        """Give back what the driver keeps for it."""
        self._gpm.close()

    def _read_name(self) -> str | None:
        try:
            name = self._calls(self._nvml.nvmlDeviceGetName, self._handle)
        except self._nvml.NVMLError as error:
            if error.value in words.LOST:
                self._lost = words.no_value(error.value)
            return None
        return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)

    def _failed(self, reader: Reader, code: int) -> str:
        why = words.no_value(code)
        if code in words.LOST:
            self._lost = why
        elif code in words.PERMANENT:
            self._never[reader] = why
        else:
            self._resting[reader] = (time.monotonic() + REST_S, why)
        return why

    def _still_resting(self, reader: Reader) -> str | None:
        until, why = self._resting.get(reader, (0.0, ""))
        if time.monotonic() < until:
            return why
        self._resting.pop(reader, None)
        return None
