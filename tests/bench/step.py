"""What tuimon costs a step of 0.3, 1, 10 and 100 ms with 2, 20 and 200 regions. Prints a table; asserts nothing.

    python -m tests.bench.step [--rounds N]

The jobs are real processes, watched by the real monitor: from the start on (run), attached to, and attached to once and left.
Each does the same work in a step; where the regions alone take longer than the step should, the step's own length is told.
BENCH_DEVICE=cuda: the job on the device.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.bench import command, jobs, noise, table

ARMS = ("nothing", "nothing#2", "run", "attach", "detached")
SHORT = ("nothing", "nothing#2", "attach")
LENGTHS_MS = (0.3, 1.0, 10.0, 100.0)
REGIONS = (2, 20, 200)
WANTED = {1.0: 1.02, 10.0: 1.005}
"""By length in ms, for the usual 2 to 20 regions a step."""
BLOCK_S = 0.3


def measure(rounds: int, lengths: tuple[float, ...] = LENGTHS_MS, regions: tuple[int, ...] = REGIONS) -> table.Section:
    """All of it; less than five rounds are the short form: two cells and two arms."""
    if rounds < noise.ROUNDS:
        lengths, regions, arms = lengths[:2], regions[:1], tuple(one for one in ARMS if one in SHORT)
    else:
        arms = ARMS
    with tempfile.TemporaryDirectory(prefix="tuimon-bench-") as place:
        running, _missing = jobs.started(arms, Path(place), 1000.0, max(regions))
        try:
            return _measured(running, rounds, lengths, regions)
        finally:
            jobs.end(running)


def _measured(arms: list[jobs.Arm], rounds: int, lengths: tuple[float, ...], regions: tuple[int, ...]) -> table.Section:
    rows = []
    same: list[float] = []
    plan = []
    for length in lengths:
        for count in regions:
            found_out = arms[0].calibrated(length * 1e3, count)
            steps = max(4, min(400, int(BLOCK_S / (found_out["step_us"] / 1e6))))
            plan.append((length, count, int(found_out["repeats"]), steps if rounds >= noise.ROUNDS else 10))
    gate = noise.Gate([arm.pid for arm in arms])
    for length, count, repeats, steps in plan:
        command.say(f"step: {length:g} ms, {count} regions")
        found: dict[str, list[dict[str, float]]] = {arm.name: [] for arm in arms}
        for arm in arms:
            arm.block(4, repeats, count)
        for number in range(rounds):
            for arm in arms if number % 2 == 0 else reversed(arms):
                block = arm.block(steps, repeats, count)
                block.pop("loss")
                found[arm.name].append(block)
        base = found["nothing"]
        own = noise.middle([one["wall"] for one in base])[0] / 1e3
        note = f"the regions alone take longer than {length:g} ms" if repeats == 0 and own > 1.1 * length else ""
        rows.append(table.row(f"{length:g} ms, {count} regions: nothing", [one["wall"] / 1e3 for one in base], "ms", note=note))
        for arm in arms[1:]:
            by = {
                what: [one[what] / zero[what] for one, zero in zip(found[arm.name], base, strict=True)]
                for what in ("wall", "thread")
            }
            if arm.name == "nothing#2":
                same += by["thread"]
            most = WANTED.get(length) if arm.kind in ("run", "attach") and count <= 20 and not note else None
            name = f"{length:g} ms, {count} regions: {arm.name}"
            rows.append(table.row(f"{name}, wall", by["wall"], "x", most=most))
            rows.append(table.row(f"{name}, CPU of the job's thread", by["thread"], "x"))
    verdict = gate.verdict(same if rounds >= noise.ROUNDS else same[:rounds])
    return table.Section("A step under tuimon", rows, verdict)


if __name__ == "__main__":
    sys.exit(command.main("step", __doc__, measure))
