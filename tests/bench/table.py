"""The figures of the benches as Markdown: the only maker of tables, so that README can quote one as it is."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench import noise


@dataclass(frozen=True)
class Row:
    """One figure. `reach`: what is wanted, in words ("" for nothing); `met`: whether it is, None where that is not judged."""

    what: str
    median: float
    low: float
    high: float
    unit: str
    n: int
    reach: str = ""
    met: bool | None = None
    note: str = ""


@dataclass(frozen=True)
class Section:
    """What one bench found. `gate`: why nothing is judged ("": all is); `remarks`: sentences below the table."""

    title: str
    rows: Sequence[Row]
    gate: str = ""
    remarks: Sequence[str] = field(default=())


def row(
    what: str, values: Sequence[float], unit: str, *, most: float | None = None, least: float | None = None, note: str = ""
) -> Row:
    """The row of values that were measured; `most` and `least` are what is wanted of their median."""
    if not values:
        return Row(what, float("nan"), float("nan"), float("nan"), unit, 0, note=note or "not measured")
    mid, low, high = noise.middle(values)
    reach, met = "", None
    if most is not None:
        reach, met = f"≤ {_number(most)}", mid <= most
    elif least is not None:
        reach, met = f"≥ {_number(least)}", mid >= least
    return Row(what, mid, low, high, unit, len(values), reach, met, note)


def markdown(rows: Iterable[Row], machine: str, gate: str) -> str:
    """A table, and below it where it was made and, where `gate` is not "", why nothing in it is judged."""
    lines = ["| what | median | middle three fifths | unit | n | wanted | met | |", "|---|--:|--:|---|--:|--:|---|---|"]
    for one in rows:
        judged = "not judged" if gate else "yes" if one.met else "**no**"
        met = "" if one.met is None or not one.reach else judged
        figures = ("", "") if one.median != one.median else (_number(one.median), f"{_number(one.low)} to {_number(one.high)}")
        cells = (one.what, *figures, one.unit, str(one.n), one.reach, met, one.note)
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    lines += ["", machine]
    if gate:
        lines += ["", f"Not judged: {gate}."]
    return "\n".join(lines) + "\n"


def document(sections: Iterable[Section]) -> str:
    """All of them in one."""
    parts = []
    for one in sections:
        parts.append(f"## {one.title}\n\n{markdown(one.rows, machine(), one.gate)}")
        parts += [f"{remark}\n" for remark in one.remarks]
    return "\n".join(parts)


def machine() -> str:
    """Date, processor, load and versions, in a line."""
    model = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = " ".join(line.partition(":")[2].split())
            break
    day = time.strftime("%Y-%m-%d")
    return (
        f"{day}, {len(os.sched_getaffinity(0))} x {model or platform.machine()}, load {os.getloadavg()[0]:.1f}, {_software()}."
    )


def _software() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        torch = version("torch")
    except PackageNotFoundError:
        torch = "none"
    return f"Python {platform.python_version()}, torch {torch}"


def _number(value: float) -> str:
    if value != 0 and abs(value) < 0.1:
        return f"{value:.4f}"
    if abs(value) < 10:
        return f"{value:.3f}"
    return f"{value:,.1f}" if abs(value) < 1000 else f"{value:,.0f}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
