"""What goes over PCIe, where somebody has asked for it.

The driver watches the bus for 20 ms at each question and blocks meanwhile.
"""

from __future__ import annotations

from typing import Any

from tuimon.sources.nvml_readers import SLOW_S, Absent, Calls, Reader, number


def _pcie(nvml: Any, calls: Calls, handle: Any) -> tuple[float, float]:
    # kilobytes a second, of the last 20 ms
    into = number(calls(nvml.nvmlDeviceGetPcieThroughput, handle, nvml.NVML_PCIE_UTIL_RX_BYTES))
    out = number(calls(nvml.nvmlDeviceGetPcieThroughput, handle, nvml.NVML_PCIE_UTIL_TX_BYTES))
    return into * 1000.0, out * 1000.0


def _not_asked(nvml: Any, calls: Calls, handle: Any) -> tuple[float, float]:
    raise Absent("not asked for: it blocks the driver for 20 ms each time (--pcie)")


def pcie(asked: bool) -> Reader:
    """Bytes a second into the GPU and out of it; without `asked` the driver is left in peace."""
    return Reader(("pcie_rx_bytes_s", "pcie_tx_bytes_s"), _pcie if asked else _not_asked, every_s=SLOW_S)
