"""The roofline of a compiled transformer block, forward and backward, on one thread: the table, and what must hold of it.

    python -m tests.bench.roofline_block [--calibration DIR] [--ceilings FILE] [--steps N] [--width D] [--backend NAME]

First `tuimon calibrate` (into a folder of this run; --calibration keeps one and takes what is in it; --ceilings takes a file
instead), then the block under `tuimon run --format json`, then once more with a profiler window of five steps in it, for the
operators. It is meant for a quiet machine: on a busy one the calibration refuses, and rates are those of a part of a core.
Exit status 1 where something does not hold.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench.roofline_job import hand_count
from tests.support.command import Ran, environment, tuimon
from tuimon.attach.launch import launch
from tuimon.feed import LiveFeed
from tuimon.report import build, render
from tuimon.roofline.inforce import known

JOB = Path(__file__).with_name("roofline_job.py")
WARM_STEPS = 6
WINDOW_STEPS = 5
LIMIT_S = 300.0
PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "linear", "mkl_linear", "linear_pointwise")
LEAST_KNOWN, LEAST, MOST = 0.90, 0.30, 1.05
LEAST_SHARE = 0.005
"""Of the compiled time: what is judged. A kernel of a few microseconds is mostly its call, and the profiler's."""

Report = dict[str, Any]


def out(text: str = "") -> None:
    """A line of the table."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def load() -> str:
    """How busy the machine is."""
    pressure = Path("/proc/pressure/cpu")
    told = pressure.read_text(encoding="ascii").splitlines()[0] if pressure.exists() else "no PSI"
    return f"load {' '.join(f'{one:.2f}' for one in os.getloadavg())}; cpu {told}"


def calibrate(env: dict[str, str]) -> None:
    """Measure the ceilings of one thread, and show what came of it."""
    began = time.monotonic()
    ran: Ran = tuimon("calibrate", "--threads", "1", "--device", "cpu", **env)
    out(f"tuimon calibrate: status {ran.status}, {time.monotonic() - began:.1f} s")
    out(ran.out.rstrip())
    if ran.status != 0:
        out(ran.err.rstrip())


def headless(command: list[str], options: argparse.Namespace, env: dict[str, str]) -> Report:
    """The job's report, as `tuimon run` gives it."""
    words = ["run", "--format", "json"]
    words += ["--ceilings", str(options.ceilings)] if options.ceilings is not None else []
    ran = tuimon(*words, "--", *command, **env)
    if ran.status != 0:
        out(ran.err)
        raise SystemExit(f"the job ended with {ran.status}")
    return ran.report


def with_a_window(command: list[str], options: argparse.Namespace, env: dict[str, str]) -> Report | None:
    """The report of the same job with a profiler window in it; None, with the reason printed, where none was opened."""
    os.environ.update(env)
    with tempfile.TemporaryFile("w+") as told:
        process, session = launch(command, {}, env=environment(**env), stdout=told, stderr=subprocess.STDOUT)
        feed = LiveFeed(session, " ".join(command), process)
        feed.start()
        deadline = time.monotonic() + LIMIT_S
        asked = False
        try:
            while time.monotonic() < deadline:
                feed.pump()
                model = feed.model
                if not asked and model.steps.n >= WARM_STEPS:
                    why = feed.command({"cmd": "window", "window": 1, "steps": WINDOW_STEPS, "most_s": 10})
                    if why is not None:
                        out(f"no window: {why}")
                        return None
                    asked = True
                over = next((one for one in model.windows if one.over), None)
                if over is not None and (over.state != "closed" or model.kernels):
                    break
                if model.target.ended is not None:
                    break
                time.sleep(0.05)
            if not feed.model.kernels:
                window = next(iter(feed.model.windows), None)
                out(f"no window: {'not told of' if window is None else f'{window.state}: {window.why}'}")
                return None
            return build(feed.model, known=known(options.ceilings))
        finally:
            feed.detach()
            process.terminate()
            process.wait(30)


def section(report: Report) -> str:
    """The roofline's part of the report as text."""
    lines = render(report, "text").split("\n")
    begin = lines.index("Roofline")
    end = next((at for at in range(begin, len(lines)) if not lines[at]), len(lines))
    return "\n".join(lines[begin:end])


def is_product(point: Report) -> bool:
    """A product of matrices, with a rate. Attention is none: a good part of its time is softmax's."""
    name = point["name"].split(" ")[0].split("::")[-1].lstrip("_")
    return point["kind"] == "kernel" and bool(point["rate"]) and name in PRODUCTS


def judge(report: Report, what: str) -> list[str]:
    """What does not hold of a report's points."""
    found = report["roofline"]
    wrong = []
    share = found["flop_known_for"]
    out(f"{what}: operations known for {'-' if share is None else f'{share:.1%}'} of the compiled time")
    if share is None or share < LEAST_KNOWN:
        wrong.append(f"{what}: operations known for less than {LEAST_KNOWN:.0%}")
    for point in (*found["points"], *([found["process"]] if found["process"] else [])):
        if not (point["how"] and point["bound"] and point["bytes_how"] and point["operations_how"]):
            wrong.append(f"{what}: {point['name']} has no provenance")
        above = max(point["of_peak"] or 0, point["of_roof"] or 0) > 1
        if above:
            out(f"{what}: OVER: {point['name']}: {'; '.join(point['over']) or 'NO CAUSE'}")
        if above != bool(point["over"]):
            wrong.append(f"{what}: {point['name']} is OVER without a cause")
    return wrong


def main() -> int:
    """Run all of it."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m tests.bench.roofline_block", description=__doc__, formatter_class=formatter)
    parser.add_argument("--calibration", type=Path, help="a folder that keeps the calibration; one that is in it is used")
    parser.add_argument("--ceilings", type=Path, help="a file of ceilings and machines, instead of a calibration")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "tuimon-roofline-block", help="of Inductor")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--no-window", action="store_true")
    options = parser.parse_args()
    out(f"{load()}; {os.cpu_count()} CPUs")
    with tempfile.TemporaryDirectory(prefix="tuimon-bench-") as scratch:
        data = (options.calibration or Path(scratch)).resolve()
        env = {"XDG_DATA_HOME": str(data), "TORCHINDUCTOR_CACHE_DIR": str(options.cache.resolve())}
        if options.ceilings is None and not list(data.glob("tuimon/calibration/*.toml")):
            calibrate(env)
        command = [sys.executable, str(JOB)]
        for name in ("steps", "width", "tokens", "batch", "backend"):
            command += [f"--{name}", str(getattr(options, name))]
        out(f"\ntuimon run --format json -- {' '.join(command[1:])}")
        report = headless(command, options, env)
        out(section(report))
        wrong = judge(report, "regions")
        forward, backward = hand_count(options.batch, options.tokens, options.width)
        for region in report["regions"]:
            by_hand = {"forward": forward, "backward": backward}[region["direction"]]
            told = None if region["flop"] is None else region["flop"]["value"]
            out(f"{region['direction']} {region['compile_id']}: {told} operations a call, contractions by hand {by_hand}")
            if told is None or not by_hand <= told <= by_hand * 1.02:
                wrong.append(f"{region['direction']}: {told} operations, by hand {by_hand} and a little for the rest")
        if not options.no_window:
            out(f"\nwith a profiler window of {WINDOW_STEPS} steps")
            report_of_window = with_a_window([*command, "--seconds", "60"], options, env)
            if report_of_window is None:
                wrong.append("no window was opened")
            else:
                out(section(report_of_window))
                wrong += judge(report_of_window, "window")
                products = [point for point in report_of_window["roofline"]["points"] if is_product(point)]
                for point in products:
                    share = point["of_peak"]
                    out(f"{'-' if share is None else f'{share:6.1%}'} of its peak: {point['name']}")
                    if share is not None and point["time_share"] >= LEAST_SHARE and not LEAST <= share <= MOST:
                        wrong.append(f"{share:.1%} of the peak, not {LEAST:.0%} to {MOST:.0%}: {point['name']}")
                if all(point["of_peak"] is None for point in products):
                    wrong.append("no peak is known: no calibration, and no ceiling that was given")
                if not products:
                    wrong.append("the window holds no product")
    out(f"\n{load()}")
    for sentence in wrong:
        out(f"DOES NOT HOLD: {sentence}")
    if not wrong:
        out("all of it holds")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
