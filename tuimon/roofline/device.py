"""The point of a whole device, by the counters that its driver keeps (NVML GPM): all processes on it together."""

from __future__ import annotations

from dataclasses import replace

from tuimon.events import GpuSampled
from tuimon.roofline.counts.counted import Class
from tuimon.roofline.machines import Machine, Unit
from tuimon.roofline.over import Facts, causes
from tuimon.roofline.points import Point, of_roof
from tuimon.roofline.roofs import Roofs

WHOLE = "the device's point is of all that runs on it; its operations are pipe use x peak, an upper bound"

_PIPES: tuple[tuple[str, Unit, str], ...] = (
    ("fp32_activity", "vector", "f32"),
    ("fp64_activity", "vector", "f64"),
    ("fp16_activity", "vector", "f16"),
)


def device_point(sample: GpuSampled, machine: Machine | None, roofs: Roofs, matrix_dtype: str) -> Point | None:
    """The point of a device; None where the driver counts neither its pipes nor its memory.

    `matrix_dtype`: what the job's products are in; the counters do not tell the dtype of the matrix units.
    """
    if matrix_dtype == "f32" and machine is not None and machine.peak("matrix", "f32") is None:
        matrix_dtype = "tf32"  # in which alone such matrix units take f32
    pipes = [(sample.tensor_activity, "matrix", matrix_dtype), *((getattr(sample, name), *of) for name, *of in _PIPES)]
    active = [(share / 100, (unit, dtype)) for share, unit, dtype in pipes if share is not None]
    if not active and sample.dram_activity is None:
        return None
    rate: float | None = 0.0
    most: tuple[float, Class] | None = None
    for share, (unit, dtype) in active:
        peak = None if machine is None else machine.peak(unit, dtype)
        if share <= 0:
            continue
        if peak is None:
            rate = None
            break
        now = peak.flops
        if peak.clock_mhz is not None and sample.sm_clock_mhz is not None:
            now *= sample.sm_clock_mhz / peak.clock_mhz
        done = share * now
        rate = (rate or 0.0) + done
        if most is None or done > most[0]:
            most = done, (unit, dtype)
    bandwidth = None if machine is None else machine.bandwidth(machine.memory)
    moved = None if bandwidth is None or sample.dram_activity is None else sample.dram_activity / 100 * bandwidth.bytes_s
    rate = rate or None
    intensity = rate / moved if rate and moved else None
    boundary = "" if machine is None else machine.memory
    ceiling = None if most is None else roofs.ceiling(most[1], boundary)
    peak_now = None if most is None or machine is None else machine.peak(*most[1])
    of_peak = rate / peak_now.flops if rate is not None and peak_now is not None else None
    share = of_roof(intensity, rate, "upper", ceiling) if ceiling is not None else None
    return Point(
        name=f"GPU {sample.index} {sample.name}",
        kind="device",
        intensity=intensity,
        rate=rate,
        time_share=(sample.sm_activity if sample.sm_activity is not None else sample.utilization or 0.0) / 100,
        how="counted",
        bound="upper",
        of_roof=share,
        key=f"device {sample.index}",
        operations_how="pipe use",
        bytes_how="measured",
        boundary=boundary,
        ceiling="" if ceiling is None else ceiling.name,
        of_peak=of_peak,
        over=causes(
            Facts(None if most is None else most[1], of_peak, share, rate or 0.0, "measured"),
            replace(roofs, sample=sample),
            ceiling,
        ),
        why_not="" if intensity is not None else _why_not(machine, rate, moved),
    )


def _why_not(machine: Machine | None, rate: float | None, moved: float | None) -> str:
    if machine is None:
        return "no figures for this device: its counters are shares of peaks that are not known"
    if rate is None:
        return "its units were idle, or the peak of one that was not is not known"
    return "the driver does not tell the use of its memory" if moved is None else ""
