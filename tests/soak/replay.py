"""Hours of a job's events through the model: counts exact to the last call, memory flat.

    python -m tests.soak.replay [--hours 8]

The job makes a step of ten milliseconds with nine timed calls (26 million in eight hours); each second tells its status, each
five the host; each minute something is compiled anew, and a thread comes, calls a region and goes. The screen's panels are
drawn each simulated minute, a report is made each half hour. Printed then: rows, seconds, resident memory. The status is 1
where a count is not the job's own, or where more than 2 MB have been added between the first quarter and the end.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass

from tests.support.fake_feed import MODEL, MS, TRAIN, Script
from tuimon import events as ev
from tuimon.app.panels.all import PANELS
from tuimon.app.scene import PanelView, Scene
from tuimon.draw.glyphs import GLYPH_SETS
from tuimon.model import Model
from tuimon.report import build

STEP_NS = 10 * MS
STEPS_A_MINUTE = 6_000
BATCH = 20
"""Steps in one event: the hook sends ten times a second, and tuimon's inbox joins what has come meanwhile."""
GROWTH_MB = 2.0
WARM = 0.25
"""The share of the time after which memory has to be what it is at the end: every window is full by then."""


@dataclass
class Outcome:
    """What a soak gave."""

    rows: int
    cpu_s: float
    marks: list[tuple[float, float]]
    """(simulated hours, MB resident)."""
    wrong: list[str]

    @property
    def growth_mb(self) -> float:
        """From the first quarter to the end."""
        total = self.marks[-1][0]
        warm = next(mb for hours, mb in self.marks if hours >= WARM * total)
        return self.marks[-1][1] - warm


def resident_mb() -> float:
    """Of this process."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6


class Job:
    """The job's side: what it does in a minute, and its own counts."""

    def __init__(self) -> None:
        self.script = Script()
        self.script.attach()
        add = self.script.instrument
        self.forward = [add("forward", f"{at}/0", f"layer_{at}.forward", MODEL, 10 + at) for at in range(3)]
        self.backward = [add("backward", f"{at}/0", f"layer_{at}.forward", MODEL, 10 + at) for at in range(3)]
        self.resume = add("resume", "0/0", "layer_0.forward", MODEL, 14)
        self.data = add("data", None, "DataLoader", TRAIN, 20)
        self.optimizer = add("optimizer", None, "Adam.step", TRAIN, 30)
        self.steps = self.minutes = self.others = self.rows = 0

    def minute(self) -> list[ev.Event]:
        """The events of the next one."""
        script = self.script
        begin = script.t = script.t - script.t % STEP_NS + STEP_NS
        for first in range(0, STEPS_A_MINUTE, BATCH):
            rows: list[tuple[int, int, int, int, int]] = []
            for step in range(first, first + BATCH):
                rows += self._step(begin + step * STEP_NS)
            script.t = rows[-1][4]
            if first == STEPS_A_MINUTE // 2:
                rows += self._passer_by(script.t)
            script.add(ev.Samples(script.t, tuple(rows)))
            self.rows += len(rows)
            if first % 100 == 0:
                script.status(self.rows)
            if first % 500 == 0:
                script.host()
        self._compile()
        self.minutes += 1
        script.t = begin + STEPS_A_MINUTE * STEP_NS
        events, script.events = script.events, []
        return events

    def _step(self, at: int) -> list[tuple[int, int, int, int, int]]:
        self.steps += 1
        longer = self.steps * 7919 % 400_000
        rows = [(self.data, 1, 0, at, at + 300_000)]
        at += 400_000
        for number in (*self.forward, *self.backward):
            rows.append((number, 1, 0, at, at + 800_000 + longer))
            at += 1_300_000
            if number == self.forward[0]:
                rows.append((self.resume, 1, 0, at - 50_000, at - 50_000))
        rows.append((self.optimizer, 1, 0, at, at + 500_000))
        return rows

    def _passer_by(self, at: int) -> list[tuple[int, int, int, int, int]]:
        thread = 1000 + self.minutes
        self.script.add(ev.ThreadSeen(at, thread, f"passer-by {self.minutes}"))
        self.others += 1
        return [(self.forward[0], thread, 0, at, at + 100_000)]

    def _compile(self) -> None:
        """Some function is compiled for another size, and breaks."""
        compile_id = f"{10 + self.minutes % 40}/{self.minutes // 40}"
        self.script.compile(compile_id, "other.forward", line=200, took_s=0.001, failed=(("0/0", f"x == {self.minutes}"),))
        self.script.breaks(compile_id, 210 + self.minutes % 50, f"reason {self.minutes}", "kind")


def soak(hours: float, say: bool = True) -> Outcome:
    """So many simulated hours."""
    job, model, wrong = Job(), Model(), []
    marks: list[tuple[float, float]] = []
    minutes = round(hours * 60)
    every = max(1, min(30, minutes // 8))
    cpu = 0.0
    for minute in range(1, minutes + 1):
        events = job.minute()
        begun = time.process_time()
        for event in events:
            model.apply([event])
        cpu += time.process_time() - begun
        del events
        scene = Scene(model, GLYPH_SETS["braille"], model.now_ns)
        for panel in PANELS:
            panel.draw(scene, PanelView(), 120, 40, True)
        if minute % every == 0:
            build(model)
            marks.append((minute / 60, resident_mb()))
            wrong += differences(job, model)
            if say:
                print(  # noqa: T201
                    f"{minute / 60:5.1f} h  {job.rows:>11,} rows  {cpu / job.rows * 1e6:5.2f} us of CPU a row  "
                    f"{marks[-1][1]:6.1f} MB  {'; '.join(wrong[-3:]) or 'counts equal'}",
                    flush=True,
                )
    return Outcome(job.rows, cpu, marks, wrong)


def differences(job: Job, model: Model) -> list[str]:
    """Where the model does not say what the job has done."""
    report = build(model)
    found = []
    for region in report["regions"]:
        at = int(region["compile_id"].split("/")[0])
        if at < 3:
            more = job.others if at == 0 and region["direction"] == "forward" else 0
            if region["calls"] != job.steps + more:
                found.append(f"{region['compile_id']} {region['direction']}: {region['calls']}, not {job.steps + more}")
    if not any(region["calls"] for region in report["regions"]):
        found.append("no region has calls")
    # the first step begins before the first optimizer's call, the last ends with the next one's
    if not job.steps - 2 <= report["steps"]["n"] <= job.steps:
        found.append(f"{report['steps']['n']} steps, not {job.steps}")
    return found


def main(words: list[str] | None = None) -> int:
    """The command; gives the status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak.replay", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hours", type=float, default=8.0)
    outcome = soak(parser.parse_args(words).hours)
    flat = outcome.growth_mb <= GROWTH_MB
    print(f"{outcome.rows:,} rows; {outcome.growth_mb:+.1f} MB since the first quarter (limit {GROWTH_MB:g})")  # noqa: T201
    return 0 if flat and not outcome.wrong else 1


if __name__ == "__main__":
    sys.exit(main())
