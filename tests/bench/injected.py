"""Is the cause of a slow step named rightly? Steps of a compiled training loop are slowed in ten known ways; prints tables.

    python -m tests.bench.injected [--faults N] [--seed N] [--watch run|attach|both] [--core N] [--keep FOLDER]

`demos/slow_steps.py` slows random steps and writes down what it did; tuimon watches it, once from its first line and once
attached to in its middle, and its report is held against that. The job has one core for itself and tuimon another. Where
other programs run, too, steps wait for a core that nobody slowed: those whose wait the kernel's counters prove are listed
apart. Asserts nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.command import ROOT, TUIMON, environment

DEMO = ROOT / "demos" / "slow_steps.py"
WAITING = "run-queue wait"
EXPECTED = {
    "shape": ("compile", "recompile of"),
    "guard": ("compile", "recompile of"),
    "cold": ("compile", "compiled again after torch._dynamo.reset()"),
    "loader": ("data wait", "DataLoader"),
    "collect": ("gc", "gc.collect()"),
    "checkpoint": ("other python", "save"),
    "items": ("other python", ".item()"),
    "competitor": (WAITING, ""),
    "sleep": ("other python", "time.sleep(seconds)"),
    "profiler": ("profiler", "profile"),
}
"""Way -> the cause that is to be named first, and what its detail has to hold."""
FIRST_BASE = 20
"""Steps after an attach in which nothing is judged: there is nothing yet that a step could be compared with."""


@dataclass
class Outcome:
    """What one watched run gave."""

    watched: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    """One for each slowed step: step, ways, verdict, sentence."""
    untouched: int = 0
    flagged: list[str] = field(default_factory=list)
    """Sentences of untouched steps that were called slow, without those that waited for a core."""
    waited: list[str] = field(default_factory=list)
    steps: int = 0
    displaced: int = 0
    """Steps that have another index in the report than in the log (watched from the first line only)."""
    seconds: float = 0.0
    machine: str = ""
    usual_ms: float = 0.0

    def count(self, *verdicts: str, way: str | None = None) -> int:
        return sum(one["verdict"] in verdicts and (way is None or way in one["ways"]) for one in self.rows)

    @property
    def judged(self) -> int:
        """Slowed steps but for those that the machine has kept waiting for longer than they were slowed."""
        return len(self.rows) - self.count("waited")


def watch(watched: str, folder: Path, demo: Sequence[str], core: int, others: Sequence[int]) -> Outcome:
    """Run the demo with these words, watch it in this manner ("run", "attach"), and compare."""
    log, report, said = folder / "truth.jsonl", folder / "report.json", folder / "said.txt"
    job = [sys.executable, str(DEMO), "--core", str(core), "--log", str(log), *demo]
    before, began = machine(), time.monotonic()
    os.sched_setaffinity(0, others)
    with said.open("wb") as file:
        streams: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": file,
            "stderr": file,
            "env": environment(),
            "cwd": ROOT,
        }
        if watched == "run":
            words = [*TUIMON, "run", "--headless", "--format", "json", "-o", str(report), "--", *job]
            subprocess.run(words, check=True, **streams)
        else:
            with subprocess.Popen(job, **streams) as process:
                try:
                    while _faults(log) < 1 and process.poll() is None:
                        time.sleep(0.05)
                    words = [*TUIMON, "attach", str(process.pid), "--headless", "--format", "json", "-o", str(report)]
                    subprocess.run(words, check=True, **streams)
                finally:
                    process.kill()
    truth = [json.loads(line) for line in log.read_text().splitlines()]
    found = compare(watched, truth, json.loads(report.read_text()))
    found.seconds = time.monotonic() - began
    found.machine = f"before: {before}; after: {machine()}"
    return found


def _faults(log: Path) -> int:
    try:
        return sum('"ways": {}' not in line for line in log.read_text().splitlines())
    except OSError:
        return 0


def compare(watched: str, truth: Sequence[dict[str, Any]], report: dict[str, Any]) -> Outcome:
    """Hold a report against the log."""
    outcome = Outcome(watched, usual_ms=1e3 * (report["steps"]["median"] or 0.0))
    starts = [one["began"] for one in truth]
    slow: dict[int, dict[str, Any]] = {}
    for one in report["slow_steps"]:
        # a step begins where the one before it ends, which is a moment before the loop does
        at = bisect_right(starts, one["at"] + 0.5 * one["duration"]) - 1
        if watched == "run" and at != one["index"]:
            outcome.displaced += 1
        slow[at] = one if at not in slow else _together(slow[at], one)
    attached = report["target"]["attached_at"] if watched == "attach" else 0.0
    first = bisect_right(starts, attached) + FIRST_BASE if watched == "attach" else 1
    outcome.steps = len(truth) - first
    for at in range(first, len(truth)):
        told, ways = slow.get(at), list(truth[at]["ways"])
        if ways:
            verdict = judge(ways, told)
            words = told["sentence"] if told is not None else f"step {at}: not called slow"
            outcome.rows.append({"step": at, "ways": ways, "verdict": verdict, "sentence": words})
            continue
        outcome.untouched += 1
        if told is not None:
            (outcome.waited if told["cause"] in (WAITING, "CPU quota") else outcome.flagged).append(told["sentence"])
    return outcome


def _together(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Two of the report's steps that lie within one of the log's: its loop turned elsewhere than was thought."""
    sentence = f"{one['sentence']} AND {other['sentence']}"
    return {**one, "causes": [*one["causes"], *other["causes"]], "named": one["named"] and other["named"], "sentence": sentence}


def judge(ways: Sequence[str], told: dict[str, Any] | None) -> str:
    """right; half (one of two named); detail (the right cause, another detail); waited; wrong; unexplained; unseen."""
    if told is None:
        return "unseen"
    left = list(told["causes"])
    right = exact = 0
    for cause, part in (EXPECTED[way] for way in ways):
        fit = [one for one in left if one["cause"] == cause]
        best = next((one for one in fit if part in one["detail"]), None)
        if fit:
            right += 1
            exact += best is not None
            left.remove(best or fit[0])
    first_is = told["cause"] in [EXPECTED[way][0] for way in ways]
    if right == len(ways) and first_is:
        return "right" if exact == len(ways) else "detail"
    if first_is:
        return "half"
    if told["cause"] == WAITING:
        return "waited"
    return "unexplained" if not told["named"] else "wrong"


def machine() -> str:
    """Load and pressure, in words."""
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    try:
        pressure = Path("/proc/pressure/cpu").read_text().splitlines()[0].split()[1]
    except OSError:
        pressure = "not kept"
    return f"load {load}, CPU pressure {pressure}"


def tell(outcome: Outcome) -> str:
    """The table of one run."""
    right = outcome.count("right")
    named = outcome.count("right", "detail")
    judged = max(1, outcome.judged)
    lines = [
        f"## watched by `tuimon {outcome.watched}`: {len(outcome.rows)} slowed of {outcome.steps} steps, "
        f"{outcome.usual_ms:.1f} ms each, {outcome.seconds:.0f} s",
        f"machine: {outcome.machine}",
        "",
        f"cause right:              {named} of {judged} ({named / judged:.1%}); with the right detail {right}",
        f"  apart, kept waiting for a core by others for longer than slowed: {outcome.count('waited')}",
        f"untouched steps flagged:  {len(outcome.flagged)} of {outcome.untouched} "
        f"({len(outcome.flagged) / max(1, outcome.untouched):.2%})",
        f"  apart, by a wait for a core that the kernel counted: {len(outcome.waited)}",
    ]
    if outcome.watched == "run":
        lines.append(f"slow steps under another index than the log's: {outcome.displaced}")
    lines += ["", "| way | slowed | right | detail | half | waited | wrong | unexplained | unseen |", "| --- " * 9 + "|"]
    kinds = ("right", "detail", "half", "waited", "wrong", "unexplained", "unseen")
    for way in [*EXPECTED, "two at once"]:
        mine = [one for one in outcome.rows if (one["ways"] == [way] if way in EXPECTED else len(one["ways"]) > 1)]
        counts = Counter(one["verdict"] for one in mine)
        lines.append(f"| {way} | {len(mine)} | " + " | ".join(str(counts[kind]) for kind in kinds) + " |")
    lines.append("")
    for one in outcome.rows:
        if one["verdict"] != "right":
            lines.append(f"{one['verdict']}: {' and '.join(one['ways'])}: {one['sentence']}")
    lines += [f"untouched: {sentence}" for sentence in outcome.flagged]
    return "\n".join(lines)


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=210, help="steps that are slowed, in each run (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--watch", choices=("run", "attach", "both"), default="both")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="for the job (%(default)s)")
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="leave log and report there")
    parser.add_argument("demo", nargs="*", help="more words for the demo, behind --")
    options = parser.parse_args()
    others = sorted(os.sched_getaffinity(0) - {options.core}) or [options.core]
    out = sys.stdout.write
    if others == [options.core]:
        out("there is one core alone: tuimon and the job share it\n")
    for watched in ("run", "attach") if options.watch == "both" else (options.watch,):
        with tempfile.TemporaryDirectory(prefix="injected-") as folder:
            place = folder if options.keep is None else options.keep / watched
            Path(place).mkdir(parents=True, exist_ok=True)
            words = ["--faults", str(options.faults), "--seed", str(options.seed), "--quiet", *options.demo]
            out(tell(watch(watched, Path(place), words, options.core, others)) + "\n\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
