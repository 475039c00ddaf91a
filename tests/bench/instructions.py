"""Instructions of the job's thread in a step, counted by callgrind: what no busy machine can spoil. Prints a table.

    python -m tests.bench.instructions [--rounds 1] [--arms nothing,nothing#2,tuimon,parts,profiler-20-2,traceml]

Needs valgrind and gcc; two to five minutes an arm. "nothing" is there twice: where the two differ by more than 0.2 %, nothing
is judged. A profiler is counted over one cycle of its schedule.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.bench import command, jobs, table

HERE = Path(__file__).parent
ARMS = ("nothing", "nothing#2", "tuimon", "parts", "profiler-20-2", "traceml")
STEPS, WARM = 40, 70
SAME = 0.002
WANTED_MORE = 30_000.0
DEADLINE_S = 1800.0


class NotHere(Exception):
    """What is missing, and how it is installed."""


def library(folder: Path) -> Path:
    """The few lines of C with which a program switches counting on and off, built. Raises NotHere."""
    for tool in ("valgrind", "gcc"):
        if shutil.which(tool) is None:
            raise NotHere(f"no {tool} here: apt-get install valgrind gcc")
    path = folder / "cg.so"
    include = []
    found = importlib.util.find_spec("torch")
    if found is not None and found.submodule_search_locations:
        include = [f"-I{found.submodule_search_locations[0]}/include"]
    made = subprocess.run(
        ["gcc", "-shared", "-fPIC", "-O1", *include, "-o", str(path), str(HERE / "cg.c")], capture_output=True, text=True
    )
    if made.returncode:
        raise NotHere(f"cg.c cannot be compiled (valgrind's headers are of the package valgrind): {made.stderr[:400]}")
    return path


def counted(arm: str, cg: Path, folder: Path, steps: int, warm: int) -> dict[str, float]:
    """Instructions of the main thread a step, by the name of the stretch. Raises RuntimeError with the log's end."""
    kind, place = arm.partition("#")[0], folder / arm
    place.mkdir()
    argv = [
        "valgrind", "--tool=callgrind", "--instr-atstart=no", "--separate-threads=yes", f"--callgrind-out-file={place / 'out'}",
        sys.executable, str(HERE / "instructions_program.py"), kind, str(cg), str(steps), str(warm),
    ]  # fmt: skip
    if kind == "traceml":
        if jobs.tool("traceml") is None:
            raise NotHere(jobs.MISSING)
        # its launcher starts a program by path: one that becomes valgrind
        program = place / "program.py"
        program.write_text(f"import os\nos.execvp({argv[0]!r}, {argv!r})\n")
        argv = [*jobs.traceml_run(), str(program)]
    with open(place / "log", "w") as log:
        process = subprocess.Popen(
            argv, env=jobs.environment(folder), cwd=place, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        status = process.wait(DEADLINE_S)
    finally:  # TraceML's processes stay where its launcher is killed
        jobs.kill(process)
    found = dict(_stretches(place))
    if not found:
        raise RuntimeError(f"{arm}: status {status}\n{(place / 'log').read_text(errors='replace')[-2000:]}")
    return found


def _stretches(place: Path) -> list[tuple[str, float]]:
    """Of each dump of the first thread, in their order: its name, and instructions a step."""
    found = []
    for path in sorted(place.glob("out.*-01"), key=lambda one: int(one.name.split(".")[1].split("-")[0])):
        text = path.read_text(errors="replace")
        named = re.search(r"^desc: Trigger: Client Request: (.*) (\d+)$", text, re.M)
        total = re.search(r"^(?:totals|summary): (\d+)", text, re.M)
        if named and total:
            found.append((named[1], int(total[1]) / int(named[2])))
    return found


def measure(rounds: int, arms: Sequence[str] = ARMS, steps: int = STEPS, warm: int = WARM) -> table.Section:
    """All of it. Raises NotHere where instructions cannot be counted."""
    found: dict[str, list[float]] = {}
    missing = {}
    inner: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="tuimon-bench-") as name:
        cg = library(Path(name))
        for number in range(rounds):
            folder = Path(name) / str(number)
            folder.mkdir()
            for arm in arms:
                command.say(f"instructions: {arm}")
                try:
                    stretches = counted(arm, cg, folder, steps, warm)
                except NotHere as why:
                    missing[arm] = str(why)
                    continue
                for stretch, value in stretches.items():
                    command.say(f"    {stretch}: {value:,.0f} a step")
                    (inner if arm == "parts" else found).setdefault(stretch if arm == "parts" else arm, []).append(value)
    return _section(found, inner, missing)


def _section(found: dict[str, list[float]], inner: dict[str, list[float]], missing: dict[str, str]) -> table.Section:
    base = found.get("nothing", [])
    again = found.get("nothing#2", [])
    apart = max((abs(one / zero - 1) for one, zero in zip(again, base, strict=False)), default=None)
    gate = "nothing was not measured twice" if apart is None else ""
    if apart is not None and apart > SAME:
        gate = f"nothing against nothing differs by {apart:.2%}"
    rows = []
    for arm, values in found.items():
        rows.append(table.row(f"{arm}, a step", values, "instructions"))
        if arm != "nothing" and base:
            pairs = list(zip(values, base, strict=False))
            note = f"x {sum(values) / sum(base[: len(values)]):.4f}"
            more = [one - zero for one, zero in pairs]
            most = WANTED_MORE if arm == "tuimon" else None
            rows.append(table.row(f"{arm}, more than nothing", more, "instructions", most=most, note=note))
    for name, values in inner.items():
        whole = inner.get("all in", values)
        less = [zero - one for zero, one in zip(whole, values, strict=False)]
        if name in ("all in", "off"):
            rows.append(table.row(f"the hook in one process, {name}", values, "instructions"))
        else:
            rows.append(table.row(f"the hook {name}: fewer by", less, "instructions"))
    rows += [table.row(name, [], "instructions", note=why) for name, why in missing.items()]
    return table.Section("Instructions of the job's thread in a step (aot_eager, 2 + 2 regions)", rows, gate)


def main() -> int:
    """Count, print."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.instructions", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--arms", default=",".join(ARMS))
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--warm", type=int, default=WARM, help=f"steps before counting (default {WARM})")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        section = measure(options.rounds, options.arms.split(","), options.steps, options.warm)
    except NotHere as why:
        command.say(f"instructions cannot be counted: {why}")
        return 0
    sys.stdout.write(table.document([section]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
