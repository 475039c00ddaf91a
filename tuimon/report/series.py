"""What was seen of jobs over time as CSV, one value a row: what a spreadsheet, pandas or DuckDB reads as it is.

    t_s,wall,process,what,key,value,unit

`t_s` is the time since the first thing that was seen, `wall` the same as Unix time (empty where it is not known). Rows of a
step are at its end, with its index as key; they come last, for only then is it sure how steps are told. What is not known is
left out. A text that a spreadsheet would take for a formula has a `'` in front, which it takes for the mark of a text.
"""

from __future__ import annotations

import csv
import dataclasses
import re
import tempfile
from collections.abc import Iterable
from typing import IO, Any

from tuimon import events as ev
from tuimon.draw.text import harmless_line
from tuimon.model import Model
from tuimon.model.steps.parts import CATEGORIES, StepAccount
from tuimon.report.seen import StepsSeen

COLUMNS = ("t_s", "wall", "process", "what", "key", "value", "unit")
FORMULA = ("=", "+", "-", "@")
"""With one of these a cell begins that a spreadsheet calculates."""
BIN_NS = 1_000_000_000
"""Calls of regions are counted by the second: one row for each second in which some ended."""

READINGS: dict[type[ev.Event], tuple[str, tuple[str, ...]]] = {
    ev.HostSampled: ("host", ()),
    ev.GpuSampled: ("gpu", ("index",)),
    ev.MigSampled: ("mig", ("gpu", "number")),
    ev.PoolSampled: ("pool", ("device",)),
    ev.ProcessTreeSampled: ("processes", ()),
}
"""Readings of the machine -> what they are called, and the fields that tell one thing of a kind from another: their keys."""

UNITS = (
    ("_bytes_s", "B/s"), ("_bytes", "B"), ("_percent", "%"), ("_activity", "%"), ("utilization", "%"), ("occupancy", "%"),
    ("_mhz", "MHz"), ("_w", "W"), ("_c", "degC"), ("_j", "J"), ("_s", "s"),
)  # fmt: skip
"""By how a field's name ends, the first that fits: as the events have them."""


class Series:
    """A table under way. `member` for each process, then nothing more."""

    def __init__(self, out: IO[str]) -> None:
        self.writer = csv.writer(out, lineterminator="\n")
        self.writer.writerow(COLUMNS)

    def member(self, label: str, model: Model, zero_ns: int, wall_s: float | None) -> Member:
        """A process; the time on its clock that is 0 in the table, and that as Unix time."""
        return Member(self, label, model, zero_ns, wall_s)


class Member:
    """One process of the table. `take` before the model is given the same events, `fed` after it, `close` at the end."""

    def __init__(self, series: Series, label: str, model: Model, zero_ns: int, wall_s: float | None) -> None:
        self._writer = series.writer
        self._label = label
        self._zero = zero_ns
        self._wall = wall_s
        self._regions: dict[int, str] = {}
        """Instrument -> key of its region."""
        self._calls: dict[tuple[str, int], list[int]] = {}
        """(region, second) -> calls and ns of those that ended in it."""
        self._steps_file = tempfile.TemporaryFile("w+", encoding="utf-8", newline="")  # noqa: SIM115 - closed with the member
        self._steps_writer = csv.writer(self._steps_file, lineterminator="\n")
        self._steps = StepsSeen(model, self._step, self._no_steps)
        self._out = self._writer.writerow

    def take(self, events: Iterable[ev.Event]) -> None:
        """Write what these tell."""
        for event in events:
            reading = READINGS.get(type(event))
            if reading is not None:
                self._reading(event, *reading)
            elif isinstance(event, ev.Samples):
                self._samples(event)
            elif isinstance(event, ev.InstrumentAdded):
                if event.role in ("forward", "backward") and event.compile_id is not None:
                    self._regions[event.instrument] = f"{event.compile_id}{'<' if event.role == 'backward' else ''}"
            elif isinstance(event, ev.CompileFinished) and not event.before_attach:
                key = f"{event.compile_id}{'<' if event.direction == 'backward' else ''}"
                self._row(self._out, event.t_ns, "compile", key, event.total_s, "s")
            elif isinstance(event, ev.GuardsFailed) and not event.before_attach:
                self._row(self._out, event.t_ns, "guards failed", event.compile_id, 1, "")
            elif isinstance(event, ev.PhaseMarked):
                self._row(self._out, event.t_ns, "phase", event.name or "none", event.step, "step")

    def fed(self) -> None:
        """The model was given what was taken."""
        self._steps.fed()

    def close(self) -> None:
        """Write what can only be written at the end."""
        for key, second in list(self._calls):
            self._close_second(key, second)
        self._steps.finish()
        self._steps_file.seek(0)
        for row in csv.reader(self._steps_file):
            self._out(row)
        self._steps_file.close()

    def _row(self, out: Any, t_ns: int, what: str, key: str, value: float | None, unit: str) -> None:
        if value is None or t_ns < self._zero or value != value:
            return
        since = t_ns - self._zero
        wall = "" if self._wall is None else f"{self._wall + since / 1e9:.6f}"
        told = f"{since // 1_000_000_000}.{since % 1_000_000_000:09d}"
        texts = (harmless(text) for text in (self._label, what, key))
        out((told, wall, *texts, value if isinstance(value, int) else repr(value), unit))

    def _reading(self, event: ev.Event, what: str, keys: tuple[str, ...]) -> None:
        key = ".".join(str(getattr(event, name)) for name in keys)
        for field in dataclasses.fields(event):
            value = getattr(event, field.name)
            if isinstance(value, (int, float)) and not isinstance(value, bool) and field.name not in (*keys, "t_ns"):
                unit = next((unit for ending, unit in UNITS if field.name.endswith(ending)), "")
                self._row(self._out, event.t_ns, f"{what}.{field.name}", key, value, unit)

    def _samples(self, event: ev.Samples) -> None:
        for number, _, _, begin, end in event.rows:
            region = self._regions.get(number)
            if region is None:
                continue
            second = end // BIN_NS
            held = self._calls.get((region, second))
            if held is None:
                for key in [key for key in self._calls if key[0] == region and key[1] < second - 1]:
                    self._close_second(*key)
                held = self._calls[region, second] = [0, 0]
            held[0] += 1
            held[1] += max(0, end - begin)

    def _close_second(self, region: str, second: int) -> None:
        n, took = self._calls.pop((region, second))
        at = (second + 1) * BIN_NS
        self._row(self._out, at, "region.calls", region, n, "")
        self._row(self._out, at, "region.host", region, took / 1e9, "s")

    def _step(self, account: StepAccount) -> None:
        key, out = str(account.index), self._steps_writer.writerow
        self._row(out, account.end_ns, "step", key, account.took_ns / 1e9, "s")
        for name, ns in zip(CATEGORIES, account.parts, strict=False):
            if ns:
                self._row(out, account.end_ns, f"step.{name}", key, ns / 1e9, "s")
        if account.waited_ns:
            self._row(out, account.end_ns, "step.waited for a core", key, account.waited_ns / 1e9, "s")

    def _no_steps(self) -> None:
        self._steps_file.seek(0)
        self._steps_file.truncate()


def harmless(text: str) -> str:
    """A text of the job's as one cell that no spreadsheet calculates, and that does nothing to a terminal."""
    text = harmless_line(re.sub(r"[\x00-\x1f]", " ", text))
    return f"'{text}" if text.lstrip(" ").startswith(FORMULA) else text
