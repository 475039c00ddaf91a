"""Attach, over and over, to a program that forks 50 times a second while another of its threads forks too: does a child hang?

    python -m tests.attach.forkhang [--runs 6] [--attaches 600] [--python PATH ...] [--forms NAME ...] [--whole]
                                    [--fault SECONDS]

A thread of C's that takes the GIL for the first time makes its thread state before it has it. A fork in that instant leaves
the child with a lock that nobody holds (python/cpython#112275: CPython up to 3.11, and 3.12.0). Each hung child is counted by
the program itself. Only the injection is done, by this very process, and the script starts a thread as the bootstrap does;
`--whole` does whole attaches. `--fault` shows how often the fault itself strikes where threads of C's come and go all the time:
whether a Python has it at all. The status is 1 where a child hung.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from tuimon.attach.refusal import Refused

from .matrix_cells import dummy_bundle, milliseconds
from .matrix_pythons import Interpreter, discover
from .matrix_target import FAULTS, HITS, PLAIN, ROUNDS, Running, Wrong, attach_by, inject_by, start, until

SCRIPT = b"""
def work():
    import __main__
    with __main__.one_at_a_time:
        __main__.counters[2] += 1
__import__('_thread').start_new_thread(work, ())
"""
FORMS = ("ladder", "pending", "thread")


class Run(NamedTuple):
    """What came of one target."""

    attached: int
    refused: dict[str, int]
    hung: int
    rounds: int
    forms: dict[str, int]
    seconds: float
    stops: list[float]
    wrong: str


def say(text: str) -> None:
    """A line of progress, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def one_run(python: Interpreter, form: str, attaches: int, whole: bool, seconds: float) -> Run:
    """So many attaches to one target."""
    attached, hung, rounds = 0, 0, 0
    refused: dict[str, int] = {}
    forms: dict[str, int] = {}
    stops: list[float] = []
    wrong = ""
    begun = time.monotonic()
    with start(python, PLAIN, "forking_from_two_threads") as target:
        first = target.counters[ROUNDS]
        for _ in range(attaches):
            if time.monotonic() - begun > seconds:
                break
            try:
                mechanism, paused = _attach(target, form, whole)
            except Refused as refusal:
                refused[refusal.code] = refused.get(refusal.code, 0) + 1
                if target.process.poll() is not None:
                    break
                continue
            attached += 1
            forms[mechanism] = forms.get(mechanism, 0) + 1
            stops += paused
        hung = target.counters[FAULTS]
        try:
            target.gets_on()
            if not whole:  # the last one's thread may still wait for the GIL
                until(lambda: target.counters[HITS] >= attached, 60, f"the last of {attached} scripts")
        except Wrong as error:
            wrong = str(error)
        hung = max(hung, target.counters[FAULTS])
        rounds = target.counters[ROUNDS] - first
    return Run(attached, refused, hung, rounds, forms, time.monotonic() - begun, stops, wrong)


def _attach(target: Running, form: str, whole: bool) -> tuple[str, list[float]]:
    name = None if form == "ladder" else form
    if not whole:
        outcome = inject_by(target.pid, name, SCRIPT, 30.0)
        return outcome.mechanism, outcome.stops
    session = attach_by(target.pid, name, 30.0, dummy_bundle())
    session.detach(20.0)
    return session.report.mechanism, session.report.stops


def fault(python: Interpreter, seconds: float) -> tuple[int, int, int]:
    """Without any attach: (hung children, forks, threads of C's that came and went)."""
    with start(python, PLAIN, "states_and_forks") as target:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and target.process.poll() is None:
            time.sleep(0.1)
        return target.counters[FAULTS], target.counters[ROUNDS], target.counters[3]


def run(options: argparse.Namespace) -> int:
    """All of it; gives the status."""
    pythons = discover(options.python)
    if not options.python:  # one of each version is enough
        pythons = list({python.version: python for python in reversed(pythons)}.values())[::-1]
    failed = False
    rows: list[str] = []
    for python in pythons:
        if options.fault:
            hung, forks, states = fault(python, options.fault)
            has = f"{hung} hung children in {forks} forks beside {states} threads of C's: " + (
                "it has the fault" if hung else "the fault was not seen"
            )
            say(f"{python.label}: {has}")
            rows.append(f"{python.label:<26} {'no attach':<9} {has}")
            continue
        for form in options.forms:
            runs: list[Run] = []
            for number in range(options.runs):
                runs.append(one_run(python, form, options.attaches, options.whole, options.run_seconds))
                last = runs[-1]
                say(
                    f"{time.strftime('%H:%M:%S')} {python.label}, {form}, run {number + 1} of {options.runs}: {last.attached} "
                    f"attached {last.forms}, refused {last.refused or 'none'}, {last.rounds} rounds, "
                    f"{last.hung} hung, {last.seconds:.0f} s {last.wrong}"
                )
            rows.append(row(python, form, runs))
            failed |= any(one.hung or one.wrong for one in runs)
    say("")
    for text in rows:
        say(text)
    return int(failed)


def row(python: Interpreter, form: str, runs: Sequence[Run]) -> str:
    """What the runs of one form come to."""
    hung = sum(one.hung for one in runs)
    refused: dict[str, int] = {}
    for one in runs:
        for code, count in one.refused.items():
            refused[code] = refused.get(code, 0) + count
    return (
        f"{python.label:<26} {form:<9} {len(runs)} runs, {sum(one.attached for one in runs)} attached, "
        f"refused {refused or 'none'}, "
        f"{sum(one.rounds for one in runs)} rounds of forks, {hung} hung children; one stop, median / p99 / most "
        f"{milliseconds([stop for one in runs for stop in one.stops])} ms"
    )


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.attach.forkhang", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--attaches", type=int, default=600, help="in each run")
    parser.add_argument("--python", nargs="+", default=[], metavar="PATH", help="these Pythons only (default: one per version)")
    parser.add_argument("--forms", nargs="+", default=list(FORMS), choices=FORMS)
    parser.add_argument("--whole", action="store_true", help="whole attaches, with a helper and a hook")
    parser.add_argument("--run-seconds", type=float, default=600.0, help="end a run after so many seconds")
    parser.add_argument("--fault", type=float, default=0.0, metavar="SECONDS", help="only look for the fault of CPython itself")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(run(arguments()))
