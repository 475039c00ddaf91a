"""What goes over PCIe and NVLink, where GPM does not tell it.

Over PCIe only if somebody has asked for it: the driver watches the bus for 20 ms at each question and blocks meanwhile. NVLink
has counters.
"""

from __future__ import annotations

import time
from typing import Any

from tuimon.sources.nvml.readers import SLOW_S, Absent, Calls, Reader, number

_MOST = 1e15
"""Bytes a second: more goes over no link."""


def _pcie(nvml: Any, calls: Calls, handle: Any) -> tuple[float, float]:
    # kilobytes a second, of the last 20 ms
    into = number(calls(nvml.nvmlDeviceGetPcieThroughput, handle, nvml.NVML_PCIE_UTIL_RX_BYTES), most=_MOST / 1000)
    out = number(calls(nvml.nvmlDeviceGetPcieThroughput, handle, nvml.NVML_PCIE_UTIL_TX_BYTES), most=_MOST / 1000)
    return into * 1000.0, out * 1000.0


def _not_asked(nvml: Any, calls: Calls, handle: Any) -> tuple[float, float]:
    raise Absent("not asked for: it blocks the driver for 20 ms each time (--pcie)")


def pcie(asked: bool) -> Reader:
    """Bytes a second into the GPU and out of it; without `asked` the driver is left in peace."""
    return Reader(("pcie_rx_bytes_s", "pcie_tx_bytes_s"), _pcie if asked else _not_asked, every_s=SLOW_S)


_ALL_LINKS = 0xFFFFFFFF
_KIB = 1024
_MEMBERS = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}
"""nvmlValueType_t -> the member of the union that holds the value."""


class Links:
    """The counters of all NVLinks of one GPU together, and the rates between two readings of them."""

    def __init__(self) -> None:
        self._before: tuple[float, int, int] | None = None

    def read(self, nvml: Any, calls: Calls, handle: Any) -> tuple[float | Absent, float | Absent]:
        """(bytes a second in, out) since the reading before. Raises NVMLError: that of the call, or that of a counter."""
        wanted = [
            (nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, _ALL_LINKS),
            (nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, _ALL_LINKS),
        ]
        fields = calls(nvml.nvmlDeviceGetFieldValues, handle, wanted)
        now = time.monotonic()
        into, out = (_value(nvml, field) for field in fields)
        before, self._before = self._before, (now, into, out)
        if before is None or now <= before[0]:
            raise Absent("not yet: it takes two readings")
        return _rate(into - before[1], now - before[0]), _rate(out - before[2], now - before[0])


def _value(nvml: Any, field: Any) -> int:
    if field.nvmlReturn:
        raise nvml.NVMLError(int(field.nvmlReturn))
    member = _MEMBERS.get(int(field.valueType))
    if member is None:
        raise Absent(f"the driver gave a value of an unknown type, {int(field.valueType)}")
    return number(getattr(field.value, member))


def _rate(kib: int, seconds: float) -> float | Absent:
    if kib < 0:
        return Absent("the counter of NVLink has started again")
    rate = kib * _KIB / seconds
    return rate if rate <= _MOST else Absent(f"the driver's counter went on by {kib:g} KiB, which cannot be")


def nvlink() -> Reader:
    """Bytes a second over all NVLinks of one GPU."""
    return Reader(("nvlink_rx_bytes_s", "nvlink_tx_bytes_s"), Links().read, every_s=SLOW_S)
