"""When the records of a log were written. Their heads have a date and a time, but no year and no zone.

Where a record tells a time of the calendar as well (each compilation does), the two give what to add; else the year is that
of the file, and the zone is not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, timezone
from typing import Any

from tuimon.sources.torch_trace.lines import Record
from tuimon.sources.torch_trace.payloads import chromium

DAY_NS = 86400 * 10**9
LATEST_S = 4e9
"""Unix times beyond this (the year 2096) are none."""
NO_DATE = (
    "not in this file: its records tell neither year nor zone of their times; the year is that of the file, the zone is taken "
    "to be UTC"
)


class LogClock:
    """Times of records in ns since midnight of the first one's day. They may go back a little: threads write as they come."""

    def __init__(self, year: int) -> None:
        """`year`: which year's calendar, where the first date does not say."""
        self._year = year
        self._days = 0
        self._last: tuple[int, int] | None = None

    def ns(self, record: Record) -> int:
        """The time of a record. Dates that no calendar has are taken for the one before."""
        day = (record.month, record.day)
        if self._last is None:
            self._last = day
        elif day != self._last:
            between = self._between(self._last, day)
            if between:
                self._days += between
                self._last = day
        return max(0, self._days * DAY_NS + record.ns)

    def _between(self, before: tuple[int, int], after: tuple[int, int]) -> int:
        try:
            days = (date(self._year, *after) - date(self._year, *before)).days
        except ValueError:  # 29 February of another year
            try:
                days = (date(2000, *after) - date(2000, *before)).days
            except ValueError:
                return 0
        if abs(days) > 180:  # New Year; or back over it, where threads write as they come
            way = 1 if days < 0 else -1
            other = min(max(self._year + way, 2), 9000)
            days += way * (date(max(self._year, other), 1, 1) - date(min(self._year, other), 1, 1)).days
            self._year = other
        return days


def wall_of(records: Iterable[Record]) -> float | None:
    """Unix time of midnight (by the job's clock) of the day of the first record; None where none of them tells the calendar."""
    clock = LogClock(2024)
    for record in records:
        at = clock.ns(record)
        told = calendar_s(record.told, record.payload)
        if told is not None:
            return told - at / 1e9
    return None


def calendar_s(told: dict[str, Any], payload: str | None) -> float | None:
    """Unix time at which a record was written, as it says itself; None where it does not."""
    if "chromium_event" in told:
        event = chromium(payload)
        found = None if event is None else _number(event.get("ts"), 1e-6)
    else:
        metrics = next((told[name] for name in told if name.endswith("compilation_metrics")), None)
        if not isinstance(metrics, dict):
            return None
        found = _number(metrics.get("end_time_us"), 1e-6)
        began = _number(metrics.get("start_time"))
        if found is None and began is not None:
            took = _number(metrics.get("duration_us"), 1e-6) or _number(metrics.get("entire_frame_compile_time_s"))
            found = began + (took or 0.0)
    return found if found is not None and 1e9 < found < LATEST_S else None


def _number(value: Any, times: float = 1.0) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e18:
        return None
    return value * times


def guessed_wall(first: Record, written_s: float) -> float:
    """The same from the file's own date: the last time before it at which the calendar had that day, taken as UTC."""
    year = datetime.fromtimestamp(min(written_s, LATEST_S), timezone.utc).year
    for candidate in range(year, max(year - 8, 1970), -1):
        try:
            midnight = datetime(candidate, first.month, first.day, tzinfo=timezone.utc).timestamp()
        except ValueError:
            continue
        if midnight <= written_s + 86400:
            return midnight
    return max(0.0, written_s - first.ns / 1e9)
