"""Attaches to a running job at a random moment: are the steps from the first whole one on right, and why they are slow?

    python -m tests.bench.attach_steps [--rounds N] [--seconds S] [--python PATH] [KIND ...]

KIND: how the job's steps can be told (default: all): optimizer, marked (`tuimon.step()`), marked-function (`--step`), backward
and calls (inferred). Printed are the steps whose index is off, and the slow steps that the job has made since, by what tuimon
says of them. Status 1 where one is wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.watched import Watched, iterations, watch_attach

JOB = Path(__file__).with_name("attach_job.py")
KINDS = {"optimizer": "optimizer", "marked": "marked", "marked-function": "marked", "backward": "inferred", "calls": "inferred"}


@dataclass(slots=True)
class Found:
    """What came of one attach."""

    source: str | None
    steps: int
    before: int | None
    """The iteration that is step 0: so many the job had made."""
    misplaced: list[int]
    """Steps whose index is not their iteration less `before`."""
    right: int = 0
    """Slow steps of the job's that are told, with their cause."""
    excused: int = 0
    """Slow by the machine too, or in the warm-up of the rule."""
    doubtful: int = 0
    """Told of the step beside theirs, with the word that this is not certain."""
    wrong: list[str] = field(default_factory=list)


def attached(kind: str, seconds: float, python: str, seed: int) -> Found:
    """Attach to one job."""
    hook: dict[str, object] = {"step": "__main__:step"} if kind == "marked-function" else {}
    return compared(watch_attach(JOB, str(seconds), kind, python=python, hook=hook, seed=seed))


def compared(watched: Watched) -> Found:
    """Lay the steps beside what the job says."""
    model, accounts = watched.model, watched.accounts
    places = iterations(accounts, watched.truth["middles"])
    offsets = [place - one.index for place, one in zip(places, accounts, strict=True) if place is not None]
    before = max(set(offsets), key=offsets.count) if offsets else None
    misplaced = [one.index for one, place in zip(accounts, places, strict=True) if place is None or place - one.index != before]
    found = Found(model.steps.source, len(accounts), before, misplaced)
    told = {one.account.index: one for one in model.steps.slow}
    for step, cause, at_ns in watched.truth["slow"]:
        account = next((one for one in accounts if one.begin_ns < at_ns <= one.end_ns), None)
        if account is None or before is None or step < before:
            continue
        index = step - before
        slow = told.get(index)
        causes = [each.cause for each in slow.causes] if slow is not None else []
        if account.index != index and not account.index_certain:
            found.doubtful += 1
        elif account.index != index:
            found.wrong.append(
                f"step {step} ({cause}) is told as step {account.index}, which is iteration {account.index + before}"
            )
        elif cause in causes:
            found.right += 1
        elif (slow is None and index < 20) or "run-queue wait" in causes:
            found.excused += 1
        else:
            found.wrong.append(f"step {step} ({cause}) is told as {causes or 'not slow'}")
    return found


def main() -> int:
    """Attach so often, and print what came of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.attach_steps", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6.0, help="how long a job goes on behind the attach")
    parser.add_argument("--python", default=sys.executable, metavar="PATH", help="the Python that runs the jobs")
    options = parser.parse_args()
    sys.stdout.write(f"load before: {os.getloadavg()[0]:.2f}\n")
    bad = False
    for kind in options.kinds or KINDS:
        for seed in range(options.rounds):
            found = attached(kind, options.seconds, options.python, seed)
            bad = bad or bool(found.wrong or found.misplaced or found.source != KINDS[kind])
            sys.stdout.write(
                f"{kind:16} by {found.source}: {found.steps} steps after {found.before}, {len(found.misplaced)} misplaced; "
                f"slow: {found.right} right, {found.excused} excused, {found.doubtful} doubtful, {len(found.wrong)} wrong\n"
            )
            sys.stdout.writelines(f"    {line}\n" for line in found.wrong)
            if found.misplaced:
                sys.stdout.write(f"    misplaced: {found.misplaced[:20]}\n")
            sys.stdout.flush()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
