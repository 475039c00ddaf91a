"""The single values of a GPU: which call gives which fields of `GpuSampled`, how often it is made, and what is no value."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tuimon.sources.nvml import words

SLOW_S = 2.0
RARE_S = 10.0

# NVML says "no value" with the largest number of the field's type; some drivers use the largest signed one
NOTHING = frozenset({0xFFFFFFFF, 0x7FFFFFFF, 0xFFFFFFFFFFFFFFFF, 0x7FFFFFFFFFFFFFFF})


class Absent(Exception):
    """The driver answered, but with no usable value; the text says why."""


class Calls:
    """Makes the calls of one thread into the driver, and knows which one has been waiting since when.

    A call into a sick driver may never return, and a slow one may make a reading of many calls late; another thread can see
    both here.
    """

    def __init__(self) -> None:
        self._now: tuple[float, str] | None = None
        self._began: float | None = None
        self.spent_s = 0.0
        """In all calls so far, in seconds."""

    def __call__(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        began = time.monotonic()
        self._now = began, getattr(function, "__name__", "")
        try:
            return function(*arguments, **options)
        finally:
            self._now = None
            self.spent_s += time.monotonic() - began

    @contextmanager
    def reading(self) -> Iterator[None]:
        """What is called within belongs to one reading, which is late as a whole."""
        self._began = time.monotonic()
        try:
            yield
        finally:
            self._began = None

    def waiting(self) -> float | None:
        """Seconds that the call or the reading in progress has taken so far; None between them. Any thread."""
        return self.stuck()[0]

    def stuck(self) -> tuple[float | None, str]:
        """The same, and the name of the function that is being called. Any thread."""
        now, began = self._now, self._began
        since = [one for one in (began, now[0] if now is not None else None) if one is not None]
        return (time.monotonic() - min(since) if since else None, now[1] if now is not None else "")


@dataclass(frozen=True, slots=True)
class Reader:
    """How a group of values is had: the fields of `GpuSampled` that one call fills, and the call."""

    fields: tuple[str, ...]
    read: Callable[[Any, Calls, Any], tuple[Any, ...]]
    """(binding, calls, handle) -> one value for each field, an `Absent` for one that has none. Raises the binding's NVMLError,
    or Absent for all of them."""
    once: bool = False
    """The value cannot change while the driver runs: it is asked for until it is known."""
    every_s: float = 0.0
    """It is asked for no more often; the last answer stands in between."""


def number(value: Any, most: float | None = None) -> int:
    """A plain number from the driver. Raises Absent for its ways of saying "none" and for what cannot be."""
    try:
        given = int(value)
    except (ValueError, OverflowError):  # where it may be one with a fraction: infinite, or none
        raise Absent(f"the driver gave {value}, which cannot be") from None
    if given in NOTHING:
        raise Absent("the driver gave no value")
    if given < 0 or (most is not None and given > most):
        raise Absent(f"the driver gave {given}, which cannot be")
    return given


def text(value: Any) -> str:
    """A text from the driver, which older bindings give as bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def memory(nvml: Any, calls: Calls, handle: Any) -> tuple[int, int, int | Absent]:
    """(used, total, reserved) bytes. Raises NVMLError or Absent."""
    # version 2: the first form counts what the driver reserves for itself (hundreds of MB) as used
    of = calls(nvml.nvmlDeviceGetMemoryInfo, handle, version=nvml.nvmlMemory_v2)
    total = number(of.total)
    if not total:
        raise Absent("the driver gave a memory of 0 bytes")
    used = number(of.used, most=total)
    try:
        return used, total, number(of.reserved, most=total)
    except Absent as absent:
        return used, total, absent


def _utilization(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
    return (float(number(calls(nvml.nvmlDeviceGetUtilizationRates, handle).gpu, most=100)),)


def _power(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
    return (number(calls(nvml.nvmlDeviceGetPowerUsage, handle)) / 1000,)  # mW


def _power_limit(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
    return (number(calls(nvml.nvmlDeviceGetEnforcedPowerLimit, handle)) / 1000,)


def _temperature(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
    try:
        value = calls(nvml.nvmlDeviceGetTemperatureV, handle, nvml.NVML_TEMPERATURE_GPU)
    except nvml.NVMLError as error:
        # an older driver knows only the older call, which the newest ones have deprecated
        if error.value not in (words.FUNCTION_NOT_FOUND, words.ARGUMENT_VERSION_MISMATCH):
            raise
        value = calls(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU)
    return (float(number(value, most=500)),)


def _clock(kind: str, call: str) -> Callable[[Any, Calls, Any], tuple[Any, ...]]:
    def read(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
        return (float(number(calls(getattr(nvml, call), handle, getattr(nvml, kind)))),)

    return read


def _bus(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
    return (number(calls(nvml.nvmlDeviceGetMemoryBusWidth, handle)),)


def _cores(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
    return (number(calls(nvml.nvmlDeviceGetNumGpuCores, handle)),)


def _capability(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
    major, minor = calls(nvml.nvmlDeviceGetCudaComputeCapability, handle)
    return (f"{number(major)}.{number(minor)}",)


def _throttle(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
    try:
        bits = calls(nvml.nvmlDeviceGetCurrentClocksEventReasons, handle)
    except nvml.NVMLError as error:
        if error.value != words.FUNCTION_NOT_FOUND:
            raise
        bits = calls(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)  # its name before driver 535
    return (words.clock_reasons(number(bits)),)


def _fan(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
    return (float(number(calls(nvml.nvmlDeviceGetFanSpeed, handle), most=200)),)  # of the intended speed: it may exceed 100


def _ecc(kind: str) -> Callable[[Any, Calls, Any], tuple[Any, ...]]:
    def read(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
        return (number(calls(nvml.nvmlDeviceGetTotalEccErrors, handle, getattr(nvml, kind), nvml.NVML_VOLATILE_ECC)),)

    return read


def _uuid(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
    return (text(calls(nvml.nvmlDeviceGetUUID, handle)),)


def _minor(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
    return (number(calls(nvml.nvmlDeviceGetMinorNumber, handle)),)


def _address(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
    return (text(calls(nvml.nvmlDeviceGetPciInfo, handle).busId),)


def _mig_mode(nvml: Any, calls: Calls, handle: Any) -> tuple[Any, ...]:
    return (bool(number(calls(nvml.nvmlDeviceGetMigMode, handle)[0], most=1)),)


READERS = (
    Reader(("uuid",), _uuid, once=True),
    Reader(("minor",), _minor, once=True),
    Reader(("pci_bus_id",), _address, once=True),
    Reader(("mig_mode",), _mig_mode, every_s=RARE_S),
    Reader(("utilization",), _utilization),
    Reader(("memory_used_bytes", "memory_total_bytes", "memory_reserved_bytes"), memory),
    Reader(("power_w",), _power),
    Reader(("power_limit_w",), _power_limit),
    Reader(("temperature_c",), _temperature, every_s=SLOW_S),
    Reader(("sm_clock_mhz",), _clock("NVML_CLOCK_SM", "nvmlDeviceGetClockInfo")),
    Reader(("sm_clock_max_mhz",), _clock("NVML_CLOCK_SM", "nvmlDeviceGetMaxClockInfo"), once=True),
    Reader(("memory_clock_mhz",), _clock("NVML_CLOCK_MEM", "nvmlDeviceGetClockInfo")),
    Reader(("throttle",), _throttle),
    Reader(("memory_clock_max_mhz",), _clock("NVML_CLOCK_MEM", "nvmlDeviceGetMaxClockInfo"), once=True),
    Reader(("memory_bus_bits",), _bus, once=True),
    Reader(("cores",), _cores, once=True),
    Reader(("compute_capability",), _capability, once=True),
    Reader(("fan_percent",), _fan, every_s=SLOW_S),
    Reader(("ecc_corrected",), _ecc("NVML_MEMORY_ERROR_TYPE_CORRECTED"), every_s=RARE_S),
    Reader(("ecc_uncorrected",), _ecc("NVML_MEMORY_ERROR_TYPE_UNCORRECTED"), every_s=RARE_S),
)
"""Those that keep nothing between two readings."""


class Energy:
    """The counter of joules, and the mean power between two readings of it."""

    def __init__(self) -> None:
        self._before: tuple[float, float] | None = None

    def read(self, nvml: Any, calls: Calls, handle: Any) -> tuple[float, float | Absent]:
        """(joules since the driver was loaded, watts since the reading before)."""
        joules = number(calls(nvml.nvmlDeviceGetTotalEnergyConsumption, handle)) / 1000
        now = time.monotonic()
        before, self._before = self._before, (now, joules)
        if before is None:
            return joules, Absent("not yet: it takes two readings")
        if joules < before[1] or now <= before[0]:
            return joules, Absent("the counter of energy has started again")
        return joules, (joules - before[1]) / (now - before[0])


def of_device() -> tuple[Reader, ...]:
    """All of one GPU; some of them keep the reading before, so that each GPU needs its own."""
    return (*READERS, Reader(("energy_j", "power_mean_w"), Energy().read))
