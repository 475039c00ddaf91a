"""Watching without a screen: until all is over, a limit is reached, or somebody interrupts."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from tuimon.commands.beside import Beside, put, watched
from tuimon.commands.options import DONE, Options, deliver, is_dumb, say
from tuimon.draw.format import age, duration, rate
from tuimon.draw.text import clean
from tuimon.feed import LiveFeed
from tuimon.fleet import Fleet
from tuimon.marks import Marks
from tuimon.model import Model
from tuimon.report import build, render
from tuimon.roofline.ceilings import CeilingError
from tuimon.roofline.inforce import Known, known

Why = Literal["ended", "steps", "duration", "interrupted", "refused"]

PERIOD_S = 0.1
WAITING_EVERY_S = 3.0
"""So often it is said, for each process, what an attach waits for."""


def watch(feed: LiveFeed | Fleet, options: Options, stop: threading.Event, beside: Beside | None = None) -> Why:
    """Keep the model of `feed` (of each member) up to date until there is a reason to stop, and give the reason.

    "ended": all are over. "steps": the first rank has made `options.steps`. "duration": so many seconds after the first
    attach. "refused": tuimon could attach to none. What happens while it attaches is narrated on stderr. `beside`: what goes on
    beside it, where that is to go on when this is called again.
    """
    fleet = feed if isinstance(feed, Fleet) else Fleet([feed])
    beside = beside or Beside(fleet, options)
    if is_dumb() and not options.headless and sys.stderr.isatty():
        say("TERM=dumb shows no full screen: what goes on is said in lines, and a report comes at the end")
    told = time.monotonic()
    began: float | None = None
    narrators = [_Narrator(member, several=len(fleet.members) > 1) for member in fleet.members]
    while True:
        fleet.pump()
        beside.look()
        now = time.monotonic()
        for narrator in narrators:
            narrator.tell(now)
        models = [member.model for member in fleet.members]
        # a hook that is in counts, whether or not it says a word that can be read
        if began is None and any(member.attached and member.model.target.ended is None for member in fleet.members):
            began = now
        if all(model.target.ended is not None for model in models):
            return "refused" if fleet.refused is not None else "ended"
        first = fleet.first.model
        if options.steps is not None and first.steps.n >= options.steps:
            return "steps"
        if options.duration is not None and began is not None and now - began >= options.duration:
            return "duration"
        if stop.is_set():
            return "interrupted"
        if options.interval is not None and began is not None and now - told >= options.interval:
            told = now
            say(progress(first) if len(models) == 1 else f"{fleet.first.label}: {progress(first)}")
        stop.wait(PERIOD_S)


class _Narrator:
    """Says on stderr how the attach to one process goes."""

    def __init__(self, feed: LiveFeed, *, several: bool) -> None:
        self._feed = feed
        self._several = several
        self._sentence: str | None = None
        self._said = 0.0
        self._attached = False
        self._ended = False

    def tell(self, now: float) -> None:
        """Say what is new, or what it still waits for."""
        target = self._feed.model.target
        name = f"{self._feed.label}: " if self._several else ""
        if self._several and target.ended not in (None, "detached") and not self._ended:
            self._ended = True
            say(f"{name}{'not attached: ' if target.ended == 'refused' else ''}{clean(target.ended_detail)}")
        if target.attached_ns is not None and not self._attached and self._sentence is not None:
            self._attached = True
            say(f"{name}attached to {self._feed.pid}; Ctrl-C ends the watching, not the job")
        sentence, since_s = target.attaching, target.attaching_since_s
        if sentence is None or (since_s is None and sentence == self._sentence):
            return
        if since_s is not None and now - self._said < WAITING_EVERY_S:
            return
        self._sentence, self._said = sentence, now
        say(name + clean(sentence if since_s is None else f"{sentence}, for {age(since_s)}; waiting, Ctrl-C cancels"))


def progress(model: Model) -> str:
    """One line on how the job gets on."""
    for running in model.running.values():
        took = duration((model.now_ns - running.since_ns) / 1e9)
        return f"compiling {clean(running.function)} [{clean(running.compile_id)}] for {took}"
    median = model.steps.durations.summary.median
    if median is None:
        return "no step yet"
    return f"step {model.steps.n}, {duration(median)} a step ({rate(1 / median if median else None)})"


def report(feed: LiveFeed | Fleet, options: Options) -> int:
    """Deliver the report of what is known now. Gives an exit status."""
    fleet = feed if isinstance(feed, Fleet) else Fleet([feed])
    fleet.pump()
    for member in fleet.members:
        member.model.apply(Marks(here=member.host is None).news(member.model))
    fleet.jobs.settle()
    ranks = watched(fleet)
    if options.prometheus is not None:
        put(options.prometheus, ranks)
    if not options.reported:
        return DONE
    first = fleet.first
    figures = known_figures(options.ceilings)
    made = build(first.model, ranks=ranks if len(ranks) > 1 else (), known=figures, here=first.host is None)
    return deliver(render(made, options.format), options.output)


def known_figures(extra: Path | None) -> Known:
    """What is known of machines; a file that cannot be used costs a line, not the report."""
    try:
        found = known(extra)
    except CeilingError as error:  # it was usable when the command began
        say(str(error))
        found = known()
    for problem in found.problems:
        say(problem)
    return found


@contextlib.contextmanager
def signals(*numbers: signal.Signals) -> Iterator[threading.Event]:
    """An event that the given signals set, instead of what they do otherwise. Main thread only."""
    arrived = threading.Event()
    before = {number: signal.signal(number, lambda *_: arrived.set()) for number in numbers}
    try:
        yield arrived
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
