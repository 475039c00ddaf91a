"""tuimon side by side with what a user would take instead, on one job, in one run. Prints a table; asserts nothing.

    python -m tests.bench.side [--rounds N]

A block of steps of each arm in turn, in the other order in each second round, while the other jobs wait on another core; each
figure is a ratio to "nothing" of the same round. "nothing" is there twice: by how much it differs from itself is what two
processes of one program differ by. Whether tuimon costs less than another is said where their middle three fifths lie apart;
what it costs by itself is measured more finely by `tests.bench.step`.
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
    "run": "every call", "attach": "every call", "screen": "every call",
    "traceml": "no region: forward, backward, optimizer of a step", "pyspy": "stack frames, by chance",
    "pyspy-stop": "stack frames, by chance", "torch_logs": "at compile time only", "torch_trace": "at compile time only",
}  # fmt: skip
OURS = ("run", "attach", "screen")
STEP_US, REGIONS = 1000.0, 4
STEPS = 200
WARM = 10


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
        arm.park()
    gate = noise.Gate()
    for number in range(rounds):
        command.say(f"side: round {number + 1} of {rounds}")
        for arm in arms if number % 2 == 0 else reversed(arms):
            arm.unpark()
            warm = arm.block(WARM, repeats, REGIONS)
            block = arm.block(steps, repeats, REGIONS)
            arm.park()
            losses[arm.name] += [warm.pop("loss"), block.pop("loss")]
            found[arm.name].append(block)
    base = found["nothing"]

    def ratios(name: str, what: str) -> list[float]:
        return [one[what] / zero[what] for one, zero in zip(found[name], base, strict=True)]

    verdict = gate.verdict(ratios("nothing#2", "thread"), within=0.02)
    rows = [table.row("nothing, a step", [one["wall_mean"] / 1e3 for one in base], "ms")]
    by_wall: dict[str, list[float]] = {}
    for arm in arms[1:]:
        note = sees(arm.kind)
        if losses[arm.name] != losses["nothing"]:
            note += "; LOSSES DIFFER"
        # means: a profiler's cost is in some of the steps, and the median of a sparse schedule does not have it
        by_wall[arm.kind] = ratios(arm.name, "wall_mean")
        rows.append(table.row(f"{arm.name}, wall", by_wall[arm.kind], "x", note=note))
        rows.append(table.row(f"{arm.name}, CPU of the job's thread", ratios(arm.name, "thread_mean"), "x"))
        rows.append(table.row(f"{arm.name}, CPU of the job's process", ratios(arm.name, "process"), "x"))
    rows += [table.row(name, [], "x", note=why) for name, why in missing.items()]
    same = "equal to the bit" if all(one == losses["nothing"] for one in losses.values()) else "DIFFERENT"
    blocks = f"{rounds} block{'s' * (rounds != 1)} of {steps} steps"
    remarks = [_sentence(by_wall, rounds), f"Losses of all arms: {same} in {blocks}."]
    return table.Section(f"Side by side: a step of 1 ms with {REGIONS} regions", rows, verdict, remarks)


def _sentence(by_wall: dict[str, list[float]], rounds: int) -> str:
    ours = {kind: values for kind, values in by_wall.items() if kind in OURS}
    theirs = {kind: values for kind, values in by_wall.items() if kind.startswith("profiler")}
    told = [f"tuimon ({kind}) {noise.spread(values)}" for kind, values in ours.items()]
    told += [f"torch.profiler {kind.partition('-')[2]} {noise.spread(values)}" for kind, values in theirs.items()]
    kept = won(list(ours.values()), list(theirs.values())) if rounds >= noise.ROUNDS else ""
    return (
        f"Of those that see a region's calls, wall: {', '.join(told)}{kept}. py-spy sees frames by chance; TraceML sees no "
        "region; TORCH_LOGS and TORCH_TRACE see compilations only."
    )


def won(ours: list[list[float]], theirs: list[list[float]]) -> str:
    """Whether each of ours costs less than each of theirs: their middle three fifths are apart; "" where one is missing."""
    if not ours or not theirs:
        return ""
    highest = max(noise.middle(values)[2] for values in ours)
    if highest < min(noise.middle(values)[1] for values in theirs):
        return ": tuimon costs less"
    return ": tuimon does not cost less than each of them, or it cannot be told"


if __name__ == "__main__":
    sys.exit(command.main("side", __doc__, measure))
