"""What stands out about a GPU: each with a sign and words, so that colour is never all that says it. For panel, findings and
report alike."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tuimon.events import GpuSampled, MigSampled, XidSeen
from tuimon.model.slow.outside import HARMLESS, SLOWED
from tuimon.model.surroundings import GpuTracks

HOT_C, VERY_HOT_C = 85.0, 90.0
FULL = 0.95
"""Of the memory."""
XID_NS = 600_000_000_000
"""An XID error is news for ten minutes."""
POWER_CAP = "power cap"


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that stands out."""

    sign: str
    """"!", "!!" or "x": it says as much where there are no colours."""
    level: Literal["warn", "bad"]
    words: str
    kind: Literal["lost", "xid", "ecc", "held back", "hot", "full"]


def held_back(gpu: GpuSampled) -> tuple[str, ...]:
    """The reasons for a lower clock that hold the GPU back. A GPU at its power limit is one only where its clock is below the
    usual part of what it could be: to run at the limit is what it is there for."""
    reasons = tuple(why for why in gpu.throttle if why not in HARMLESS)
    slowed = gpu.sm_clock_mhz is not None and gpu.sm_clock_max_mhz and gpu.sm_clock_mhz < SLOWED * gpu.sm_clock_max_mhz
    return reasons if slowed else tuple(why for why in reasons if why != POWER_CAP)


def marks(
    gpu: GpuSampled,
    tracks: GpuTracks | None = None,
    mig: Iterable[MigSampled] = (),
    xids: Iterable[XidSeen] = (),
    now_ns: int | None = None,
) -> tuple[Mark, ...]:
    """The worst first. `mig`: its parts; `xids`: those of all GPUs; `now_ns`: now, else the time of this reading."""
    if gpu.lost is not None:
        words = gpu.lost if gpu.lost.lower().startswith("gpu lost") else f"lost: {gpu.lost}"
        return (Mark("x", "bad", words, "lost"), *_xids(gpu, xids, now_ns))
    found = [*_xids(gpu, xids, now_ns)]
    if gpu.ecc_uncorrected:
        found.append(Mark("!!", "bad", f"{gpu.ecc_uncorrected} uncorrected memory errors", "ecc"))
    reasons = held_back(gpu)
    thermal = any("thermal" in why for why in reasons)
    if reasons:
        found.append(Mark("!", "warn", f"held back: {', '.join(reasons)}", "held back"))
    if gpu.temperature_c is not None and gpu.temperature_c >= HOT_C and not thermal:
        very = gpu.temperature_c >= VERY_HOT_C
        found.append(Mark("!!" if very else "!", "bad" if very else "warn", f"hot: {gpu.temperature_c:.0f} C", "hot"))
    if _full(gpu.memory_used_bytes, gpu.memory_total_bytes):
        found.append(Mark("!", "warn", "memory nearly full", "full"))
    parts = [part for part in mig if part.gpu == gpu.index and _full(part.memory_used_bytes, part.memory_total_bytes)]
    found += [Mark("!", "warn", f"memory of part {part.number} nearly full", "full") for part in parts]
    return tuple(found)


def _xids(gpu: GpuSampled, xids: Iterable[XidSeen], now_ns: int | None) -> list[Mark]:
    now = gpu.t_ns if now_ns is None else now_ns
    numbers = dict.fromkeys(one.xid for one in xids if one.index == gpu.index and now - one.t_ns <= XID_NS)
    return [Mark("x", "bad", f"XID {', '.join(str(number) for number in numbers)}", "xid")] if numbers else []


def _full(used: int | None, total: int | None) -> bool:
    return used is not None and bool(total) and used >= FULL * (total or 0)
