"""What tuimon costs a step of 0.3, 1, 10 and 100 ms with 2, 20 and 200 regions. Prints a table; asserts nothing.

    python -m tests.bench.step [--rounds N]

One job, a real process, to which the real monitor attaches and from which it detaches again and again: two processes of the
same program differ by a hundredth in speed by where their memory lies, and that is as much as is to be measured. Without the
hook each block is taken twice: by how much it differs from itself is what the machine adds. Where the regions alone take
longer than the step should, the step's own length is told. BENCH_DEVICE=cuda: the job on the device.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench import command, jobs, noise, table

LENGTHS_MS = (0.3, 1.0, 10.0, 100.0)
REGIONS = (2, 20, 200)
WANTED = {1.0: 1.02, 10.0: 1.005}
"""By length in ms, for the usual 2 to 20 regions a step."""
BLOCK_S = 0.3
WARM = 4
SETTLE_S = 2.0
Block = dict[str, float]


@dataclass
class Cell:
    """A length of step and a number of regions: what makes the job so, and what was measured of it."""

    length: float
    count: int
    repeats: int
    steps: int
    note: str = ""
    without: list[tuple[Block, Block]] = field(default_factory=list)
    under: list[Block] = field(default_factory=list)

    def block(self, arm: jobs.Arm) -> Block:
        """So many steps as are a block, behind a few that make the caches warm."""
        arm.block(WARM, self.repeats, self.count)
        found = arm.block(self.steps, self.repeats, self.count)
        found.pop("loss")
        return found

    def ratios(self, what: str) -> list[float]:
        """With the hook over without, of each round."""
        pairs = zip(self.under, self.without, strict=True)
        return [2 * with_it[what] / (one[what] + other[what]) for with_it, (one, other) in pairs]

    def same(self, what: str) -> list[float]:
        """Without the hook over itself."""
        return [other[what] / one[what] for one, other in self.without]

    def rows(self) -> list[table.Row]:
        """Of the table."""
        name = f"{self.length:g} ms, {self.count} regions"
        most = WANTED.get(self.length) if self.count <= 20 and not self.note else None
        waits = [one["wall"] / 1e3 for pair in self.without for one in pair]
        added = [(ratio - 1) * wait for ratio, wait in zip(self.ratios("wall"), waits[::2], strict=True)]
        return [
            table.row(f"{name}: without", waits, "ms", note=self.note),
            table.row(f"{name}: with, wall", self.ratios("wall"), "x", most=most, note=self.note),
            table.row(f"{name}: with, CPU of the job's thread", self.ratios("thread"), "x"),
            table.row(f"{name}: with, added to a step", [one * 1e3 for one in added], "us"),
        ]


def measure(rounds: int, lengths: tuple[float, ...] = LENGTHS_MS, regions: tuple[int, ...] = REGIONS) -> table.Section:
    """All of it; less than five rounds are the short form: one length, two numbers of regions."""
    if rounds < noise.ROUNDS:
        lengths, regions = lengths[1:2], (2, 4)
    with tempfile.TemporaryDirectory(prefix="tuimon-bench-") as place:
        running, _missing = jobs.started(("nothing",), Path(place), 1000.0, max(regions))
        try:
            return measured(running[0], rounds, lengths, regions)
        finally:
            jobs.end(running)


def measured(arm: jobs.Arm, rounds: int, lengths: tuple[float, ...], regions: tuple[int, ...]) -> table.Section:
    """The table of a job that has started, and to which nothing is attached."""
    sections = [_of_length(arm, rounds, length, regions) for length in lengths]
    cells = [cell for found, _ in sections for cell in found]
    # by the middle of the round: a cell's own noise is in its spread
    same = [sum(values) / len(values) for values in zip(*(cell.same("thread") for cell in cells), strict=True)]
    aside = _aside(cells)
    verdict = sections[0][1].verdict(same, aside)
    return table.Section("A step under tuimon", [row for cell in cells for row in cell.rows()], verdict)


def _of_length(arm: jobs.Arm, rounds: int, length: float, regions: tuple[int, ...]) -> tuple[list[Cell], noise.Gate]:
    cells = []
    for count in regions:
        found = arm.calibrated(length * 1e3, count)
        own, repeats = found["step_us"] / 1e3, int(found["repeats"])
        note = f"the regions alone take longer than {length:g} ms" if repeats == 0 and own > 1.1 * length else ""
        steps = max(4, min(600, int(BLOCK_S * 1e3 / own))) if rounds >= noise.ROUNDS else 10
        cells.append(Cell(length, count, repeats, steps, note))
    gate = noise.Gate()
    for number in range(rounds):
        command.say(f"step: {length:g} ms, round {number + 1} of {rounds}")
        # out in, in out, out in: the two of a round lie beside each other, and one attach does for two rounds
        for hooked in (False, True) if number % 2 == 0 else (True, False):
            if hooked and not arm.hooked():
                arm.watch()
                _settle(arm, cells[0])
            elif not hooked and arm.hooked():
                arm.leave()
            for cell in cells:
                if hooked:
                    cell.under.append(cell.block(arm))
                else:
                    cell.without.append((cell.block(arm), cell.block(arm)))
    if arm.hooked():
        arm.leave()
    return cells, gate


def _settle(arm: jobs.Arm, cell: Cell) -> None:
    """Let the monitor get over its start: what it does once is none of a step's, and two cores may be one."""
    end = time.monotonic() + SETTLE_S
    while time.monotonic() < end:
        arm.block(WARM, cell.repeats, cell.count)


def _aside(cells: list[Cell]) -> float:
    """How often in a second the job was put aside while the hook was not in it: with it, its own thread does so."""
    blocks = [(cell.steps, one) for cell in cells for pair in cell.without for one in pair]
    seconds = sum(steps * one["wall_mean"] for steps, one in blocks) / 1e6
    return sum(one["nivcsw"] for _, one in blocks) / seconds if seconds else 0.0


if __name__ == "__main__":
    sys.exit(command.main("step", __doc__, measure))
