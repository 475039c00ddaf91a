"""Waits for the device, cache lookups and gaps between regions in words: the same on the screen and in the report."""

from __future__ import annotations

from tuimon.draw.format import duration
from tuimon.draw.text import clean

RULE = (
    "a gap is from the end of a region's call to the begin of the next one's on its thread, within one step; the device's, the "
    "time without any kernel between the last that the one launched and the first of the other"
)


def sync_line(name: str, region: str | None, n: int, seconds: float) -> str:
    """What waited, where and how long."""
    what = "took a value" if name.startswith("aten::") else "waited for the device"
    where = f" in region [{clean(region)}]" if region else ""
    return f"{clean(name)}{where}: {what} {_times(n)}, {duration(seconds)} in all"


def lookup_line(compile_id: str | None, n: int, seconds: float) -> str:
    """What it took to find the entry whose guards hold."""
    where = f"before region [{clean(compile_id)}]" if compile_id else "that no region followed"
    return f"cache lookups {where}: {n:,}, {duration(seconds / n if n else None)} each"


def gap_line(one: str, other: str, n: int, host: float, device: float | None, syncs: int) -> str:
    """What lay between two regions: the host's time and the device's, never their sum."""
    idle = "the device's not known" if device is None else f"the device without a kernel {duration(device / n if n else None)}"
    waits = f", a wait for the device in {syncs:,}" if syncs else ""
    return f"gap [{clean(one)}] to [{clean(other)}]: {_times(n)}, host {duration(host / n if n else None)} each, {idle}{waits}"


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n:,} times"
