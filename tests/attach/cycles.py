"""Attach to a real compiled training run and detach, again and again; say what it costs the job and whether it notices.

    python -m tests.attach.cycles [--cycles 1000] [--backend inductor] [--python PATH]

The job's losses have to be those of a run that nobody touched, to the bit, and so have Dynamo's counters, both written down by
the jobs themselves at their ends. Threads, descriptors, modules, sys.path, `__main__`, signal handlers, trace and profile
hooks, gc callbacks, atexit, logging handlers and Dynamo's compiled globals have to be after the cycles what they were
before (after one cycle, which imports what the bootstrap needs), as the job itself sees them. Memory may grow by 5 MB more than
that of the run alone in as many steps (`--growth`). The status is 1 where one of these is not so.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from tuimon.attach import procfs, tracer
from tuimon.attach.refusal import Refused

from .matrix_cells import milliseconds
from .matrix_pythons import Interpreter, specified
from .matrix_target import ROUNDS, TORCH, Running, Wrong, attach_by, start, until

GROWTH_MB = 5.0
SAMPLES_S = 60.0
SETTLED_S = 20.0


def say(text: str) -> None:
    """A line of progress, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


class Figures:
    """Of all cycles, in seconds."""

    def __init__(self) -> None:
        self.answers: list[float] = []
        """From the call of `attach` to the hook's answer."""
        self.samples: list[float] = []
        """From there too, to the first samples."""
        self.stops: list[float] = []
        self.detaches: list[float] = []
        self.mechanisms: dict[str, int] = {}


def cycle(target: Running, figures: Figures, form: str | None, steps: int, *, cold: bool = False) -> None:
    """Attach, wait for samples and so many steps of the job, detach. Raises Wrong.

    As for the commands, whose helper starts while they read their words and look for the job, it is ready; see `--cold`.
    """
    if not cold:
        tracer.get_ready()
        helper = tracer._ready[-1].process.pid
        until(lambda: int(procfs.status(helper)["SigBlk"], 16), 20.0, "the start of the helper")
    begun = time.monotonic()
    try:
        session = attach_by(target.pid, form, 30.0, None)
    except Refused as refusal:
        raise Wrong(f"refused: {refusal.code}: {refusal.sentence}") from None
    figures.answers.append(time.monotonic() - begun)
    first: list[float] = []

    def sink(kind: int, _body: bytes) -> None:
        if kind == 2 and not first:
            first.append(time.monotonic() - begun)

    session.start(sink, lambda _reason: None)
    at = target.counters[ROUNDS]
    until(lambda: (first and target.counters[ROUNDS] >= at + steps) or target.process.poll() is not None, SAMPLES_S, "samples")
    figures.samples += first
    begun = time.monotonic()
    goodbye = session.detach(20.0)
    figures.detaches.append(time.monotonic() - begun)
    session.settled(20.0)
    figures.stops += session.report.stops
    name = session.report.mechanism
    figures.mechanisms[name] = figures.mechanisms.get(name, 0) + 1
    deadline = time.monotonic() + SETTLED_S
    while session.report.left and time.monotonic() < deadline:  # a busy target comes by late; then it is told once more
        time.sleep(0.002)
    if goodbye is None or goodbye["left"] or session.report.left:
        raise Wrong(f"left behind: {session.report.left if goodbye else 'no goodbye'} {(goodbye or {}).get('left')}")
    target.check()


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What is not as it was, in words; memory apart."""
    found = []
    for name in before:
        was, now = before[name], after[name]
        if name == "rss" or was == now:
            continue
        if isinstance(was, list) and isinstance(now, list) and all(isinstance(one, str) for one in was + now):
            gone, new = [one for one in was if one not in now], [one for one in now if one not in was]
            found.append(f"{name}: {len(was)} -> {len(now)}, gone {gone[:5]}, new {new[:5]}")
        else:
            found.append(f"{name}: {was} -> {now}")
    return found


def settled_snapshot(target: Running, threads: int) -> dict[str, Any]:
    """A snapshot once the hook's thread has ended, which frees the hook last of all. `threads`: how many the job had before."""
    until(lambda: len(procfs.thread_ids(target.pid)) <= threads or target.process.poll() is not None, 20, "the end of the hook")
    return target.snapshot()


def run(options: argparse.Namespace) -> int:
    """All of it; gives the status."""
    python = specified(options.python)
    if python is None or not python.has_torch:
        say(f"{options.python} is no Python with torch")
        return 1
    try:
        return watched(python, options)
    except Wrong as wrong:
        say(f"FAILED: {wrong}")
        return 1


def watched(python: Interpreter, options: argparse.Namespace) -> int:
    """The cycles, and the run alone. Raises Wrong."""
    form = None if options.form == "ladder" else options.form
    figures = Figures()
    with start(python, TORCH, "training", options.backend) as target:
        say(f"{python.label}: compiled training ({options.backend}), process {target.pid}, form {options.form}")
        threads = len(procfs.thread_ids(target.pid))
        cycle(target, Figures(), form, options.steps)
        before = settled_snapshot(target, threads)
        begun = target.counters[ROUNDS]
        say(f"before:            {before['rss'] / 1e6:.1f} MB resident, {before['native threads']} threads")
        for number in range(1, options.cycles + 1):
            cycle(target, figures, form, options.steps, cold=options.cold)
            if number % max(1, options.cycles // 10) == 0:
                now = target.residue()
                say(
                    f"after {number:4} cycles: {now.rss / 1e6:.1f} MB resident, {now.threads} threads, {now.descriptors} "
                    f"descriptors, {now.maps} mappings"
                )
        after = settled_snapshot(target, threads)
        ended = target.counters[ROUNDS]
        facts = target.finish()
    say(f"now {ended} steps alone")
    with start(python, TORCH, "training", options.backend) as target:
        grown = [rss_at(target, rounds) for rounds in (begun, ended)]
        alone = target.finish()
    say(f"attach to the hook's first answer: median / p99 / most {milliseconds(figures.answers)} ms {figures.mechanisms}")
    say(f"attach to the first samples:       median / p99 / most {milliseconds(figures.samples)} ms")
    say(f"detach:                            median / p99 / most {milliseconds(figures.detaches)} ms")
    each = len(figures.stops) / max(1, options.cycles)
    say(f"one stop of one thread:            median / p99 / most {milliseconds(figures.stops)} ms ({each:.1f} an attach)")
    growth = after["rss"] - before["rss"], grown[1] - grown[0]
    return verdict(differences(before, after), growth, facts, alone, options.growth)


def rss_at(target: Running, rounds: int) -> int:
    """Bytes that a job which nobody touches has resident after so many steps."""
    until(lambda: target.counters[ROUNDS] >= rounds or target.process.poll() is not None, 7200, f"{rounds} steps")
    target.check()
    return int(target.snapshot()["rss"])


def verdict(
    different: list[str], growth: tuple[int, int], facts: dict[str, Any], alone: dict[str, Any], limit_mb: float
) -> int:
    """Print what is as it was and what is not; gives the status. `growth` in bytes: of the watched job, and of the other."""
    same_losses, same_counters = facts["losses"] == alone["losses"], facts["counters"] == alone["counters"]
    watched, by_itself = growth
    say(f"left behind: {'; '.join(different) or 'nothing'}")
    say(
        f"memory: {watched / 1e6:+.1f} MB; the same steps alone {by_itself / 1e6:+.1f} MB (limit of the difference "
        f"{limit_mb:g} MB)"
    )
    as_alone = "equal to the bit to" if same_losses else "DIFFERENT from"
    say(f"losses: {facts['epochs']} epochs of 50 steps, {as_alone} those of a run never touched")
    say(f"Dynamo's counters: {'equal' if same_counters else 'DIFFERENT'}")
    if not same_counters:
        say(f"    alone: {alone['counters']}\n    now:   {facts['counters']}")
    well = not different and same_losses and same_counters and watched - max(0, by_itself) <= limit_mb * 1e6
    return 0 if well else 1


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.attach.cycles", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cycles", type=int, default=1000)
    parser.add_argument("--backend", default="inductor", help="aot_eager or inductor (default; needs a C++ compiler)")
    parser.add_argument("--steps", type=int, default=20, help="steps of the job in each cycle (default 20)")
    parser.add_argument("--python", default=sys.executable, metavar="PATH", help="the job's Python (default: this one)")
    parser.add_argument(
        "--growth", type=float, default=GROWTH_MB, help="more memory than alone, in MB, is too much (default 5)"
    )
    parser.add_argument("--cold", action="store_true", help="have each attach start its helper itself: some 40 ms more")
    parser.add_argument("--form", default="ladder", choices=("ladder", "pending", "thread", "remote_exec"))
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(run(arguments()))
