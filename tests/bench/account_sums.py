"""Whether the account of a real job's steps adds up to its wall time, as the job has measured that itself. Asserts nothing.

    python -m tests.bench.account_sums [--steps 10000] [--python PATH] [KIND ...]

KIND: optimizer, inferred, marked (default: all). The job (`account_job`) runs under a real feed. Printed are, for all steps but
the first (which begins where the job does): the sum of all categories against the wall time between the passages of the job's
own loop head; how far each step's length is from its iteration's; the least entry of any account; and some categories
beside what the job has measured around the very calls.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support.watched import Watched, iterations, watch_run
from tuimon.model.steps.parts import CATEGORIES

JOB = Path(__file__).with_name("account_job.py")
KINDS = ("optimizer", "inferred", "marked")


@dataclass(frozen=True)
class Sums:
    """What is compared; times in ns."""

    source: str | None
    steps: int
    iterations: int
    wall: int
    """Of the iterations that tuimon's steps stand for, by the job's own clock at its loop head."""
    categories: dict[str, int]
    """Of all steps but the first."""
    least: int
    """The least entry of any step's account."""
    uneven: int
    """Steps whose parts do not add up to their own wall time, to the ns."""
    gaps: int
    """Steps that do not begin where the one before them ends."""
    misplaced: int
    """Steps that do not hold the middle of the iteration of their index, and of no other."""
    took: dict[str, int]
    """What the job has measured around some calls."""
    apart: tuple[float, float]
    """|step - iteration|: median and 99th percentile, in ns."""

    @property
    def total(self) -> int:
        """Of all categories."""
        return sum(self.categories.values())


def sums(watched: Watched) -> Sums:
    """Lay the accounts beside what the job has measured."""
    heads, accounts = watched.truth["heads"], watched.accounts
    places = iterations(accounts, watched.truth["middles"])
    rest = accounts[1:]
    spans = [heads[one.index + 1] - heads[one.index] for one in rest]
    apart = sorted(abs(one.took_ns - span) for one, span in zip(rest, spans, strict=True))
    return Sums(
        watched.model.steps.source,
        len(accounts),
        len(heads) - 1,
        heads[rest[-1].index + 1] - heads[rest[0].index],
        {name: sum(one.parts[at] for one in rest) for at, name in enumerate(CATEGORIES)},
        min(min(one.parts) for one in accounts),
        sum(sum(one.parts) != one.took_ns for one in accounts),
        sum(one.begin_ns != other.end_ns for other, one in zip(accounts, rest, strict=False)),
        sum(one.index != place for one, place in zip(accounts, places, strict=True)),
        watched.truth["took"],
        (statistics.median(apart), apart[len(apart) * 99 // 100]),
    )


def _show(kind: str, found: Sums) -> None:
    ms = 1e6
    off = (found.total - found.wall) / found.wall
    say = sys.stdout.write
    say(f"{kind}: {found.steps} steps by {found.source}, {found.iterations} iterations of the loop\n")
    say(f"  all categories   {found.total / ms:12.3f} ms\n")
    say(f"  the job's clock  {found.wall / ms:12.3f} ms   {off:+.4%}\n")
    median, p99 = (ns / 1e3 for ns in found.apart)
    say(f"  a step's length is off its iteration's by {median:.1f} us (median), {p99:.1f} us (99th percentile)\n")
    say(
        f"  least entry {found.least} ns; {found.uneven} steps do not add up; {found.gaps} gaps between steps; "
        f"{found.misplaced} steps have not their index\n"
    )
    for name, ns in found.categories.items():
        measured = found.took.get(name)
        beside = f"   the job: {measured / ms:10.3f} ms" if measured else ""
        say(f"    {name:17}{ns / ms:12.3f} ms  {ns / found.total:6.1%}{beside}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.account_sums", description=__doc__)
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []], metavar="KIND")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--python", default=sys.executable, metavar="PATH", help="the Python that runs the job")
    options = parser.parse_args()
    sys.stdout.write(f"load before: {os.getloadavg()[0]:.2f}\n")
    for kind in options.kinds or KINDS:
        _show(kind, sums(watch_run(JOB, str(options.steps), kind, python=options.python)))


if __name__ == "__main__":
    main()
