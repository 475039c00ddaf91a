"""tuimon side by side with what a user would take instead, on one job, in one run. Prints a table; asserts nothing.

    python -m tests.bench.side [--rounds N]

A block of steps of each arm in turn, in the other order in each second round; each figure is a ratio to "nothing" of the same
round. "nothing" is there twice: by how much it differs from itself is what the machine adds.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from tests.bench import command, jobs, noise, table

ARMS = (
    "nothing", "nothing#2", "run", "attach", "screen", "profiler-0-20", "profiler-20-2", "traceml", "pyspy",
    "torch_logs", "torch_trace",
)  # fmt: skip
SEES = {
    "run": "every call", "attach": "every call", "screen": "every call", "detached": "nothing more",
    "traceml": "no region: forward, backward, optimizer of a step", "pyspy": "stack frames, by chance",
    "pyspy-stop": "stack frames, by chance", "torch_logs": "at compile time only", "torch_trace": "at compile time only",
}  # fmt: skip
OURS = ("run", "attach", "screen")
STEP_US, REGIONS = 1000.0, 4
STEPS = 200


def sees(kind: str) -> str:
    """What of the regions an arm sees while steps run."""
    if kind.startswith("profiler"):
        _, wait, active = kind.split("-")
        return f"calls of {active} steps in {int(wait) + 1 + int(active)}"
    return SEES.get(kind, "")


def measure(rounds: int, arms: tuple[str, ...] = ARMS, steps: int = STEPS) -> table.Section:
    """All of it; with few rounds the blocks are short as well."""
    steps = steps if rounds >= noise.ROUNDS else 20
    with tempfile.TemporaryDirectory(prefix="tuimon-bench-") as place:
        running, missing = jobs.started(arms, Path(place), STEP_US, REGIONS)
        try:
            section = _measured(running, missing, rounds, steps)
        finally:
            jobs.end(running)
        counted = [f"{arm.name} {told}" for arm in running if (told := arm.seen())]
        return replace(section, remarks=[*section.remarks, f"Calls of regions that were seen: {', '.join(counted)}."])


def _measured(arms: list[jobs.Arm], missing: dict[str, str], rounds: int, steps: int) -> table.Section:
    repeats = int(arms[0].calibrated(STEP_US, REGIONS)["repeats"])
    for arm in arms[1:]:
        arm.calibrated(STEP_US, REGIONS)  # the same number of steps in each, so that losses can be compared
    found: dict[str, list[dict[str, float]]] = {arm.name: [] for arm in arms}
    losses: dict[str, list[str]] = {arm.name: [] for arm in arms}
    for arm in arms:
        arm.block(steps, repeats, REGIONS)
    gate = noise.Gate([arm.pid for arm in arms])
    for number in range(rounds):
        for arm in arms if number % 2 == 0 else reversed(arms):
            block = arm.block(steps, repeats, REGIONS)
            losses[arm.name].append(block.pop("loss"))
            found[arm.name].append(block)
    base = found["nothing"]

    def ratios(name: str, what: str) -> list[float]:
        return [one[what] / zero[what] for one, zero in zip(found[name], base, strict=True)]

    verdict = gate.verdict(ratios("nothing#2", "thread"))
    rows = [table.row("nothing, a step", [one["wall"] / 1e3 for one in base], "ms")]
    by_wall: dict[str, float] = {}
    for arm in arms[1:]:
        note = sees(arm.kind)
        if losses[arm.name] != losses["nothing"]:
            note += "; LOSSES DIFFER"
        # a profiler's cost is in some of the steps: the mean has it, the median of a sparse schedule does not
        means = ratios(arm.name, "wall_mean")
        by_wall[arm.kind] = noise.middle(means)[0]
        most = 1.02 if arm.kind in OURS else None
        rows.append(table.row(f"{arm.name}, wall, median step", ratios(arm.name, "wall"), "x", most=most, note=note))
        rows.append(table.row(f"{arm.name}, wall, mean", means, "x"))
        rows.append(table.row(f"{arm.name}, CPU of the job's thread, median step", ratios(arm.name, "thread"), "x"))
        rows.append(table.row(f"{arm.name}, CPU of the job's thread, mean", ratios(arm.name, "thread_mean"), "x"))
        rows.append(table.row(f"{arm.name}, CPU of the job's process", ratios(arm.name, "process"), "x"))
    rows += [table.row(name, [], "x", note=why) for name, why in missing.items()]
    same = "equal to the bit" if all(one == losses["nothing"] for one in losses.values()) else "DIFFERENT"
    blocks = f"{rounds} block{'s' * (rounds != 1)} of {steps} steps"
    remarks = [
        _sentence(by_wall, verdict),
        f"Losses of all arms: {same} in {blocks}.",
    ]
    return table.Section(f"Side by side: a step of {REGIONS} regions", rows, verdict, remarks)


def _sentence(by_wall: dict[str, float], verdict: str) -> str:
    seeing = [f"tuimon ({kind}) {by_wall[kind]:.3f}" for kind in OURS if kind in by_wall]
    others = [
        f"torch.profiler {kind.partition('-')[2]} {ratio:.3f}" for kind, ratio in by_wall.items() if kind.startswith("profiler")
    ]
    kept = "" if verdict else _won(by_wall)
    told = ", ".join([*seeing, *others])
    return (
        f"Of those that see a region's calls, wall, mean: {told}{kept}. py-spy sees frames by chance; TraceML sees no region; "
        "TORCH_LOGS and TORCH_TRACE see compilations only."
    )


def _won(by_wall: dict[str, float]) -> str:
    ours = max((by_wall[kind] for kind in OURS if kind in by_wall), default=1.0)
    theirs = [ratio for kind, ratio in by_wall.items() if kind.startswith("profiler")]
    return ": tuimon costs less" if theirs and ours < min(theirs) else ": tuimon does not cost less than each of them"


if __name__ == "__main__":
    sys.exit(command.main("side", __doc__, measure))
