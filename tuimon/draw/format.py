"""Numbers as people read them: three digits, a unit, and "-" for what is not known (never 0)."""

from __future__ import annotations

UNKNOWN = "-"

_UNITS = ((1e-6, "us"), (1e-3, "ms"), (1.0, "s"))


def three(value: float) -> str:
    """A number from 0 to 999 in three digits: 0.85, 12.3, 312."""
    if value >= 99.95:
        return f"{value:.0f}"
    if value >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}"


def _unit(seconds: float) -> tuple[float, str]:
    for size, name in _UNITS:
        if seconds < 999.5 * size:
            return size, name
    return _UNITS[-1]


def duration(seconds: float | None) -> str:
    """A duration in seconds as `850 us`, `12.3 ms`, `1.84 s`, `2m05s`, `3h07m`, `2d04h`."""
    if seconds is None:
        return UNKNOWN
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if seconds == 0:
        return "0 us"
    if seconds >= 99.95:
        return _long(seconds)
    size, name = _unit(seconds)
    return f"{three(seconds / size)} {name}"


def _long(seconds: float) -> str:
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02d}h"


def spread(low: float | None, high: float | None) -> str:
    """A range of durations in seconds under one unit, `[118-412 us]`."""
    if low is None or high is None:
        return UNKNOWN
    if high >= 99.95 or high <= 0:
        return f"[{duration(low)}-{duration(high)}]"
    size, name = _unit(high)
    small = low / size
    return f"[{'<0.01' if 0 < small < 0.005 else three(small)}-{three(high / size)} {name}]"


def age(seconds: float | None) -> str:
    """How long ago or for how long, without more precision than a person needs: `0.4 s`, `3.2 s`, `47 s`, `3m12s`."""
    if seconds is None:
        return UNKNOWN
    seconds = max(0.0, seconds)
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    return _long(seconds)


def count(number: float | None) -> str:
    """A count: whole up to 99,999, then `123k`, `1.23M`."""
    if number is None:
        return UNKNOWN
    if number < 99_999.5:
        return f"{number:.0f}"
    for size, name in ((1e3, "k"), (1e6, "M"), (1e9, "G")):
        if number < 999.5 * size:
            return f"{three(number / size)}{name}"
    return f"{number:.2e}"


def per_step(number: float | None) -> str:
    """How often in a step: `1`, `8`, `0.12`, `2.5`; whole numbers without a fraction."""
    if number is None:
        return UNKNOWN
    if abs(number - round(number)) < 0.005:
        return count(round(number))
    return three(number) if number < 999 else count(number)


def percent(share: float | None) -> str:
    """A share (0 to 1) as `12.1%`; something that is not nothing never reads 0."""
    if share is None:
        return UNKNOWN
    value = share * 100
    if 0 < value < 0.05:
        return "<0.1%"
    return f"{value:.1f}%" if value < 99.95 else f"{value:.0f}%"


def size(number: float | None) -> str:
    """Bytes as `512 B`, `61.2 GiB` (1024 each)."""
    if number is None:
        return UNKNOWN
    if number < 1024:
        return f"{number:.0f} B"
    value = float(number)
    for name in ("KiB", "MiB", "GiB", "TiB"):
        value /= 1024
        if value < 999.5:
            return f"{three(value)} {name}"
    return f"{three(value / 1024)} PiB"


def part_of(used: float | None, total: float | None) -> str:
    """Bytes in use of all there are, under the unit of the whole: `61.2/80.0 GiB`."""
    if total is None:
        return f"{size(used)}/{UNKNOWN}"
    whole = size(total)
    number, _, name = whole.partition(" ")
    if used is None:
        return f"{UNKNOWN}/{whole}"
    scale = total / float(number) if float(number) else 1.0
    return f"{three(used / scale)}/{number} {name}"


def rate(per_second: float | None) -> str:
    """Steps a second, as `3.21/s`; slower than one in ten seconds as a duration each."""
    if per_second is None:
        return UNKNOWN
    if per_second < 0.1:
        return f"one in {duration(1 / per_second)}" if per_second > 0 else UNKNOWN
    return f"{three(per_second)}/s" if per_second < 999.5 else f"{count(per_second)}/s"


def si(number: float | None, unit: str) -> str:
    """A rate or a peak with an SI prefix: `989 TFLOP/s`, `80 GB/s`."""
    if number is None:
        return UNKNOWN
    for scale, name in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= scale * 0.9995:
            digits = three(number / scale)
            return f"{digits.rstrip('0').rstrip('.') if '.' in digits else digits} {name}{unit}"
    return f"{number:g} {unit}"


def clock(wall_s: float | None, utc_offset_s: int) -> str:
    """A time of day, HH:MM:SS, of a Unix time in a zone this many seconds east of Greenwich."""
    if wall_s is None:
        return UNKNOWN
    second = int(wall_s + utc_offset_s) % 86400
    return f"{second // 3600:02d}:{second % 3600 // 60:02d}:{second % 60:02d}"
