"""Figures that follow from what the driver tells of a GPU: its memory's width and clock, its cores and their clock.

They are of this very device, where a datasheet's are of a model; and they are there for devices that no table knows.
"""

from __future__ import annotations

from tuimon.events import GpuSampled
from tuimon.roofline.machines import Bandwidth, Peak, PeakKey

_LANES = {"7.0": 64, "7.5": 64, "8.0": 64, "8.6": 128, "8.7": 128, "8.9": 128, "9.0": 128, "10.0": 128}
"""FP32 lanes ("CUDA cores") of an SM, by compute capability."""

_MATRIX = {"7.0": 1024, "8.0": 2048, "9.0": 4096, "10.0": 8192}
"""Dense f16 operations of an SM in a clock, by compute capability. Those whose consumer and datacenter parts differ in it (7.5,
8.6, 8.9) are left out: the driver does not tell which one it is."""

_OF_F16 = {
    "7.0": {"f16": 1.0},
    "8.0": {"f16": 1.0, "bf16": 1.0, "tf32": 0.5, "i8": 2.0},
    "9.0": {"f16": 1.0, "bf16": 1.0, "tf32": 0.5, "i8": 2.0, "f8": 2.0},
    "10.0": {"f16": 1.0, "bf16": 1.0, "tf32": 0.5, "f8": 2.0},
}


def bandwidth(gpu: GpuSampled) -> Bandwidth | None:
    """Of its own memory: two transfers a clock over the whole bus. None where the driver does not tell both."""
    clock, bits = gpu.memory_clock_max_mhz, gpu.memory_bus_bits
    if not clock or not bits:
        return None
    return Bandwidth(2 * clock * 1e6 * bits / 8, "derived", f"driver: 2 x {clock:,.0f} MHz x {bits} bit")


def peaks(gpu: GpuSampled) -> list[tuple[PeakKey, Peak]]:
    """Of f32 by its cores, and of matrix units where its generation tells; each at the highest clock of its SMs."""
    clock, cores = gpu.sm_clock_max_mhz, gpu.cores
    if not clock or not cores:
        return []
    source = f"driver: 2 x {cores:,} cores x {clock:,.0f} MHz"
    found: list[tuple[PeakKey, Peak]] = [
        (("vector", "f32", "dense"), Peak(2 * cores * clock * 1e6, "derived", source, clock_mhz=clock))
    ]
    capability = gpu.compute_capability or ""
    rate, lanes = _MATRIX.get(capability), _LANES.get(capability)
    if rate is None or lanes is None or cores % lanes:
        return found
    sms = cores // lanes
    for dtype, factor in _OF_F16[capability].items():
        each = round(rate * factor)
        source = f"driver: {sms} SMs x {each:,} operations a clock (compute capability {capability}) x {clock:,.0f} MHz"
        found.append((("matrix", dtype, "dense"), Peak(sms * each * clock * 1e6, "derived", source, clock_mhz=clock)))
    return found
