"""What the check on a real device decides by: pure, so that it is tested where there is none."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from tuimon.events import GpuSampled

MIB = 2**20


class Row(NamedTuple):
    """One thing that was looked at."""

    part: str
    name: str
    state: Literal["ok", "failed", "skipped"]
    what: str


@dataclass(frozen=True, slots=True)
class Field:
    """What nvidia-smi calls a value, and where tuimon has it."""

    smi: str
    ours: Callable[[GpuSampled], Any]
    """In the unit of nvidia-smi; None where tuimon does not know it."""
    step: float | None
    """By so much its rounding may be off; None: a text, which has to be the same."""
    steady: bool = False
    """It does not change: each reading has to agree."""


def _scaled(name: str, by: float = 1.0) -> Callable[[GpuSampled], float | None]:
    def of(sample: GpuSampled) -> float | None:
        value = getattr(sample, name)
        return None if value is None else value / by

    return of


FIELDS = (
    Field("uuid", lambda one: one.uuid, None, steady=True),
    Field("pci.bus_id", lambda one: one.pci_bus_id, None, steady=True),
    Field("memory.total", _scaled("memory_total_bytes", MIB), 1.0, steady=True),
    Field("memory.reserved", _scaled("memory_reserved_bytes", MIB), 1.0, steady=True),
    Field("memory.used", _scaled("memory_used_bytes", MIB), 1.0),
    Field("enforced.power.limit", _scaled("power_limit_w"), 0.01, steady=True),
    Field("power.draw", _scaled("power_w"), 0.01),
    Field("temperature.gpu", _scaled("temperature_c"), 1.0),
    Field("utilization.gpu", _scaled("utilization"), 1.0),
    Field("clocks.max.sm", _scaled("sm_clock_max_mhz"), 1.0, steady=True),
    Field("clocks.sm", _scaled("sm_clock_mhz"), 1.0),
    Field("clocks.mem", _scaled("memory_clock_mhz"), 1.0),
    Field("fan.speed", _scaled("fan_percent"), 1.0),
    Field("ecc.errors.uncorrected.volatile.total", _scaled("ecc_uncorrected"), 0.0, steady=True),
)
OFTEN = 0.6
"""Of the readings of a value that changes: so many lie between the two of nvidia-smi around them, each with its rounding."""


def smi(text: str) -> list[dict[str, float | str | None]]:
    """The rows of `nvidia-smi --query-gpu=<FIELDS> --format=csv,noheader,nounits`, by field; None for what it does not tell.

    Raises ValueError where a row has another number of values than was asked for.
    """
    rows = []
    for cells in csv.reader(io.StringIO(text)):
        if cells:
            rows.append({field.smi: _value(cell, field) for field, cell in zip(FIELDS, cells, strict=True)})
    return rows


def _value(cell: str, field: Field) -> float | str | None:
    cell = cell.strip()
    if not cell or cell.startswith("[") or cell == "N/A":
        return None
    return cell if field.step is None else float(cell)


Around = tuple["dict[str, float | str | None]", GpuSampled, "dict[str, float | str | None]"]
"""(nvidia-smi before, tuimon's reading, nvidia-smi behind it), of one GPU."""


def agreements(rounds: Sequence[Around]) -> list[Row]:
    """A row for each field."""
    return [_agreement(field, rounds) for field in FIELDS]


def _agreement(field: Field, rounds: Sequence[Around]) -> Row:
    told = [(before[field.smi], field.ours(sample), after[field.smi]) for before, sample, after in rounds]
    if all(ours is None and before is None for before, ours, _ in told):
        return Row("values", field.smi, "skipped", "neither tells it")
    right = [_between(field, *one) for one in told]
    enough = all(right) if field.steady else sum(right) >= OFTEN * len(right)
    shown = next((one for one, good in zip(told, right, strict=True) if not good), told[-1])
    before, ours, after = (_shown(one) for one in shown)
    what = f"{sum(right)} of {len(right)} readings agree; tuimon {ours}, nvidia-smi {before} and {after}"
    return Row("values", field.smi, "ok" if enough and right else "failed", what)


def _between(field: Field, before: Any, ours: Any, after: Any) -> bool:
    if before is None or ours is None or after is None:
        return ours is None and (before is None or after is None)
    if field.step is None:
        return str(ours).lower() in (before.lower(), after.lower())
    # a hair more than the step: 0.01 is no number of the machine's
    return bool(min(before, after) - field.step - 1e-6 <= ours <= max(before, after) + field.step + 1e-6)


def _shown(value: Any) -> str:
    return "-" if value is None else f"{value:.7g}" if isinstance(value, float) else str(value)


def same_uuid(one: str, other: str) -> bool:
    """torch leaves out the "GPU-" that NVML has."""
    return one.lower().removeprefix("gpu-") == other.lower().removeprefix("gpu-")


def activity(idle: Sequence[GpuSampled], busy: Sequence[GpuSampled]) -> list[Row]:
    """What GPM tells of a GPU at rest, and under products of large bf16 matrices."""
    missing = dict(busy[-1].missing) if busy else {}
    if not any(one.sm_activity is not None for one in busy):
        why = missing.get("activity") or missing.get("sm_activity") or "no reading"
        return [Row("activity", "GPM", "skipped", why)]
    rows = []
    for field, at_rest, at_work in (("sm_activity", 5.0, 50.0), ("tensor_activity", 2.0, 20.0), ("dram_activity", 10.0, 1.0)):
        rest, work = (_known(samples, field) for samples in (idle, busy))
        good = bool(work) and max(work) >= at_work and (not rest or min(rest) <= at_rest)
        what = f"{min(rest):.1f}% at rest" if rest else "not read at rest"
        what += f", {max(work):.1f}% at work" if work else ", not told at work"
        rows.append(Row("activity", field, "ok" if good else "failed", f"{what} (at most {at_rest:g}, at least {at_work:g})"))
    return rows


def _known(samples: Sequence[GpuSampled], field: str) -> list[float]:
    return [value for one in samples if (value := getattr(one, field)) is not None]


def overhead(name: str, ratios: Sequence[float], reach: float) -> Row:
    """A ratio with over without the hook: its median has to be within the reach."""
    ordered = sorted(ratios)
    low, high = ordered[len(ordered) // 10], ordered[-1 - len(ordered) // 10]
    middle = statistics.median(ordered)
    what = f"{middle:.4f} [{low:.4f}-{high:.4f}], reach {reach:g}"
    return Row("overhead", name, "ok" if middle <= reach else "failed", what)


def nearly(part: str, name: str, ours: float | None, theirs: float | None, low: float, high: float, unit: str = "") -> Row:
    """Whether ours is from `low` to `high` times theirs."""
    if ours is None or not theirs:
        return Row(part, name, "failed", f"tuimon: {ours}, torch: {theirs}")
    good = low <= ours / theirs <= high
    what = f"tuimon {ours:.6g}{unit}, torch {theirs:.6g}{unit}: {ours / theirs:.3f} ({low:g} to {high:g})"
    return Row(part, name, "ok" if good else "failed", what)


def table(rows: Iterable[Row]) -> list[str]:
    """For people, and for the notes of whoever runs it."""
    lines = ["| part | what | | |", "| --- | --- | --- | --- |"]
    return [*lines, *(f"| {row.part} | {row.name} | {row.state} | {row.what} |" for row in rows)]


def status(rows: Sequence[Row]) -> int:
    """0 where all is well, or was skipped with a reason; 1 where something failed, or nothing was looked at."""
    return 0 if rows and all(row.state != "failed" for row in rows) else 1
