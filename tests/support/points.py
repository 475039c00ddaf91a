"""A made-up roofline: the points of a training step on an H100, with everything that a picture can have."""

from __future__ import annotations

from tests.support.fake_feed import busy
from tuimon import events as ev
from tuimon.app.plane import Compute
from tuimon.model import Model
from tuimon.roofline.ceilings import Ceiling
from tuimon.roofline.points import Bound, BytesHow, Kind, Point, Provenance, Roofline, of_roof

HBM, L2 = 3.35e12, 11.0e12

BF16 = Ceiling(
    "H100 SXM bf16 matrix", 989e12, HBM, "HBM", "datasheet", "NVIDIA H100 data sheet", "matrix", "bf16", clock_mhz=1830
)
TF32 = Ceiling("H100 SXM tf32 matrix", 494.7e12, HBM, "HBM", "datasheet", "NVIDIA H100 data sheet", "matrix", "tf32")
FP32 = Ceiling("H100 SXM fp32 vector", 67e12, HBM, "HBM", "datasheet", "NVIDIA H100 data sheet", "vector", "f32")
IN_L2 = Ceiling("H100 SXM bf16 matrix, L2", 989e12, L2, "L2", "declared", "a guess", "matrix", "bf16")
CEILINGS = (BF16, TF32, FP32, IN_L2)


def point(
    name: str,
    kind: Kind,
    operations: float,
    moved: float | None,
    seconds: float,
    ceiling: Ceiling,
    *,
    window_s: float = 0.080,
    how: Provenance = "modelled",
    bound: Bound = "upper",
    bytes_how: BytesHow = "compulsory",
    calls: int = 96,
    over: tuple[str, ...] = (),
    trail: int = 5,
    why_not: str = "",
) -> Point:
    """A point of these sums."""
    rate = operations / seconds if operations else None
    intensity = operations / moved if operations and moved else None
    return Point(
        name,
        kind,
        intensity,
        rate if intensity else None,
        seconds / window_s,
        how,
        bound,
        of_roof(intensity, rate, bound, ceiling),
        key=f"{kind} {name}",
        operations=operations or None,
        bytes=moved,
        seconds=seconds,
        calls=calls,
        operations_how="counter" if how == "measured" else "formula",
        bytes_how=bytes_how,
        boundary=ceiling.boundary,
        ceiling=ceiling.name,
        of_peak=rate / ceiling.peak_flops if rate else None,
        over=over,
        slowest=rate * 0.55 if rate else None,
        fastest=rate * 1.25 if rate else None,
        trail=tuple((intensity * 1.07 ** (trail - age), rate * 0.8 ** (trail - age)) for age in range(trail))
        if intensity and rate
        else (),
        why_not=why_not,
    )


def points() -> tuple[Point, ...]:
    """By time share, the largest first."""
    found = [
        point("aten::mm 8192x1024 1024x4096", "kernel", 13.2e12, 6.4e10, 0.0211, BF16),
        point("aten::_flash_attention_backward 8x16x2048x64", "kernel", 3.1e12, 1.9e10, 0.0102, BF16),
        point("region 0/0 backward", "region", 6.6e12, 3.9e10, 0.0148, BF16, bytes_how="inductor model", bound="exact"),
        point("triton_poi_fused_gelu_0", "kernel", 2.1e10, 1.3e10, 0.0052, FP32),
        point("aten::addmm 8192x4096 4096x1024", "kernel", 4.4e12, 2.4e10, 0.0091, BF16),
        point(
            "triton_per_fused_native_layer_norm_3", "kernel", 8.0e9, 6.6e9, 0.0028, FP32, bytes_how="operands", bound="unknown"
        ),
        point("aten::mm 4096x4096 float32", "kernel", 1.1e12, 4.0e10, 0.0128, TF32),
        point("aten::bmm 128x64x64", "kernel", 2.2e11, 7.1e9, 0.0021, IN_L2),
        point(
            "aten::mm 512x512 float32",
            "kernel",
            9.6e10,
            1.1e9,
            0.0009,
            FP32,
            over=("tf32 is allowed: its peak is 7 times that of fp32", "the clock is above the reference (1,980 of 1,830 MHz)"),
        ),
        point("aten::index_select", "kernel", 0, 9.0e8, 0.0011, FP32, why_not="no arithmetic: 0 operations"),
        point("aten::_foobar 64x64", "kernel", 0, None, 0.0031, FP32, why_not="no formula for aten::_foobar"),
        point("device 0", "device", 17.0e12, 1.2e11, 0.080, BF16, how="measured", bound="exact", bytes_how="measured"),
    ]
    return tuple(sorted(found, key=lambda one: -one.time_share))


def h100() -> Roofline:
    """All of it."""
    return Roofline(
        points=points(),
        process=point("whole process", "region", 22.0e12, 5.5e11, 0.078, BF16, bytes_how="inductor model", bound="exact"),
        ceilings=CEILINGS,
        selected=0,
        now_roof=Ceiling("H100 SXM bf16 matrix, now", 762e12, HBM, "HBM", "derived"),
        now_why="power cap, 1,410 of 1,830 MHz",
        flop_known_for=0.94,
        unknown=(("aten::_foobar", 0.04), ("aten::nonzero", 0.02)),
        notes=("kernels are those of profiler window 2, 5 steps, 14:13:21",),
    )


CPU_F32 = Ceiling(
    "EPYC 9R14, 1 thread, f32",
    98e9,
    20.8e9,
    "DRAM",
    "calibrated",
    "tuimon calibrate, 2026-11-30",
    "matrix",
    "f32",
    spread=0.031,
)
CPU_BF16 = Ceiling("EPYC 9R14, 1 thread, bf16", 217e9, 20.8e9, "DRAM", "calibrated", "tuimon calibrate", "matrix", "bf16")
CPU_LLC = Ceiling("EPYC 9R14, 1 thread, f32, LLC", 98e9, 49.6e9, "LLC", "calibrated", "tuimon calibrate", "matrix", "f32")


def cpu() -> Roofline:
    """A compiled transformer block on one thread."""
    backward = point(
        "forward [0/0] backward", "region", 106e9, 3.2e8, 1.9, CPU_LLC, window_s=3.1, bytes_how="inductor model", bound="exact"
    )
    forward = point("forward [0/0] model.py:12", "region", 52.5e9, 1.4e8, 1.02, CPU_LLC, window_s=3.1)
    loss = point("loss_fn [2/0] train.py:30", "region", 4.1e8, 3.3e8, 0.11, CPU_F32, window_s=3.1, trail=0)
    return Roofline(
        points=(backward, forward, loss),
        process=point("whole process", "region", 158.9e9, 7.9e8, 3.03, CPU_LLC, window_s=3.1),
        ceilings=(CPU_F32, CPU_BF16, CPU_LLC),
        selected=2,
        now_roof=None,
        now_why="",
        flop_known_for=0.98,
        unknown=(("aten::nonzero", 0.02),),
        notes=("calibrated with 1 thread, as the job has",),
    )


def windows() -> list[ev.Event]:
    """The events of a job with three profiler windows: closed, refused, waiting."""
    job = busy()
    t = job[-1].t_ns
    closed = ev.WindowChanged(t, 1, "closed", "", 5, 0.284, 1.9, t - 10**9, t - 10**8)
    refused = ev.WindowChanged(t, 2, "refused", "the job profiles itself (step 36): read its own trace")
    return [*job, closed, refused, ev.WindowChanged(t, 3, "waiting", "", 5)]


def compute(known: Roofline) -> Compute:
    """What makes this roofline of any model, at the chosen ceiling and boundary."""

    def of(model: Model, boundary: str | None, ceiling: str | None, here: bool) -> Roofline:
        names = [one.name for one in known.ceilings]
        there = [at for at, one in enumerate(known.ceilings) if not boundary or one.boundary == boundary]
        selected = names.index(ceiling) if ceiling in names else there[0] if there and boundary else known.selected
        return Roofline(
            known.points,
            known.process,
            known.ceilings,
            selected,
            known.now_roof if selected == known.selected else None,
            known.now_why,
            known.flop_known_for,
            known.unknown,
            known.notes,
        )

    return of
