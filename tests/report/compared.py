"""Runs that are compared, made up: each of their steps, and what of it a boundary, the loader or the compiled code has."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any
from unittest import mock

from tests.report.jobs import FILE, MS, compiled
from tests.report.obeys import obeying
from tuimon import events as ev
from tuimon.model import Model
from tuimon.report.compare import interval as compare_interval
from tuimon.report.compare.build import compare

US = 1_000


@dataclass
class Run:
    """A job of so many steps: data, a forward of one or two compiled regions with a graph break between them, an optimizer."""

    steps: int = 60
    step_us: int = 10_000
    other_us: int = 2_500
    """Of a step in which nothing is timed."""
    data_us: int = 500
    boundary_us: int = 0
    """Host time at the break; 0: there is none, and one graph does the work of two."""
    crossings: int = 1
    batch: int = 8
    width: int = 64
    dtype: str = "f32"
    noise: float = 0.05
    seed: int = 1
    line: int = 41
    devices: tuple[str, ...] = ("cpu",)
    world_size: int | None = None
    torch: str = "2.13.0"
    rss: int = 1 << 30
    compile_s: float = 2.0
    options: tuple[tuple[str, str], ...] = (("num_threads", "1"),)
    phases: tuple[tuple[str, int], ...] = ()
    """(name, step at which it begins)."""
    slower_from: int | None = None
    """From this step on each takes twice as long."""
    graphs: bool = True
    end_ns: int = 0

    def events(self) -> list[ev.Event]:
        """All of it."""
        found: list[ev.Event] = [
            ev.TargetSeen(
                1 * MS, 7, "python train.py", "3.11.7", self.torch, "run", 1_700_000_000.0, self.devices,
                None if self.world_size is None else 0, self.world_size, recompile_limit=8, options=self.options,
            ),
            ev.ThreadSeen(2 * MS, 0, "MainThread"),
            *compiled("0/0", 5_000, self.compile_s),
            ev.InstrumentAdded(5_000 * MS, 1, "forward", "0/0", "__compiled_fn_1", "forward", FILE, 12, "inductor", 7),
            ev.InstrumentAdded(5_000 * MS, 4, "optimizer", None, "SGD", "step", "", 0),
            ev.InstrumentAdded(5_000 * MS, 5, "data", None, "DataLoader", "__next__", "", 0),
        ]  # fmt: skip
        layers = 2 if self.boundary_us else 4
        if self.graphs:
            found.append(self._graph("0/0", layers))
        if self.boundary_us:
            found += [
                ev.GraphBroke(4_000 * MS, "0/0", 0, "Tensor.item()", "Tensor.item()", "GB1", "forward", FILE, self.line),
                *compiled("1/0", 7_000, 1.0, line=self.line, function="torch_dynamo_resume_in_forward_at_41"),
                ev.InstrumentAdded(
                    7_000 * MS, 2, "forward", "1/0", "__compiled_fn_2", "torch_dynamo_resume_in_forward_at_41", FILE, self.line,
                    "inductor",
                ),
                ev.InstrumentAdded(
                    7_000 * MS, 3, "resume", "0/0", "__resume_at_1", "torch_dynamo_resume_in_forward_at_41", FILE, self.line
                ),
            ]  # fmt: skip
            if self.graphs:
                found.append(self._graph("1/0", layers))
        return found + self._steps() + [
            ev.HostSampled(self.end_ns, 99.0, self.rss, 12, 30.0, 2 << 30, 16 << 30, 0.5, 0, 10, 20),
            ev.TargetEnded(self.end_ns + MS, "exited", "the program exited with status 0", 0),
        ]  # fmt: skip

    def _graph(self, compile_id: str, layers: int) -> ev.GraphSeen:
        width = str(self.width)
        rows = (("mm", ((self.dtype, (str(self.batch * 32), width)), (self.dtype, (width, width))),
                 ((self.dtype, (str(self.batch * 32), width)),), "", layers),)  # fmt: skip
        reads = ((self.dtype, (str(self.batch), "32", width), 1), (self.dtype, (width, width), layers))
        writes = ((self.dtype, (str(self.batch), "32", width), 1),)
        return ev.GraphSeen(5_000 * MS, compile_id, "forward", 0, 0, "aten", rows, reads, writes)

    def _steps(self) -> list[ev.Event]:
        draw = random.Random(self.seed)
        now = 20_000 * MS
        found: list[ev.Event] = []
        marks = {step: name for name, step in self.phases}
        for step in range(self.steps):
            if step in marks:
                found.append(ev.PhaseMarked(now, marks[step], step, "planned"))
            by = 2 if self.slower_from is not None and step >= self.slower_from else 1

            def long(us: int, by: int = by) -> int:
                return int(us * US * by * (1 + self.noise * draw.random()))

            rows = []
            begin, now = now, now + long(self.data_us)
            rows.append((5, 0, 0, begin, now))
            rest = long(self.step_us) // 4
            if self.boundary_us:
                for _ in range(self.crossings):
                    begin, now = now, now + rest // self.crossings
                    rows.append((1, 0, 0, begin, now))
                    now += long(self.boundary_us)
                    rows.append((3, 0, 0, now, now))
                    begin, now = now, now + rest // self.crossings
                    rows.append((2, 0, 0, begin, now))
            else:
                begin, now = now, now + 2 * rest
                rows.append((1, 0, 0, begin, now))
            now += long(self.other_us)
            begin, now = now, now + rest
            rows.append((4, 0, 0, begin, now))
            found.append(ev.Samples(now, tuple(rows)))
        self.end_ns = now
        return found

    def model(self) -> Model:
        """Folded."""
        found = Model()
        found.apply(self.events())
        return found


RESAMPLES = 150
"""Fewer than for people: it is not the width of intervals that these tests are about."""


def compared(a: Run | Model, b: Run | Model, **told: Any) -> dict[str, Any]:
    """The two beside each other; the comparison obeys the published schema."""
    models = [one if isinstance(one, Model) else one.model() for one in (a, b)]
    with mock.patch.object(compare_interval, "RESAMPLES", RESAMPLES):
        return obeying(compare(*models, names=("a.tuimon", "b.tuimon"), **told))
