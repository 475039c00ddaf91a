"""Watching without a screen: until the job ends, a limit is reached, or somebody interrupts."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from typing import Literal

from tuimon.commands.options import Options, deliver, say
from tuimon.draw.format import duration, rate
from tuimon.feed import LiveFeed
from tuimon.model import Model
from tuimon.report import build, render

Why = Literal["ended", "steps", "duration", "interrupted"]

PERIOD_S = 0.1


def watch(feed: LiveFeed, options: Options, stop: threading.Event) -> Why:
    """Keep the model of `feed` up to date until there is a reason to stop, and give the reason."""
    began = told = time.monotonic()
    while True:
        feed.pump()
        model = feed.model
        now = time.monotonic()
        if model.target.ended is not None:
            return "ended"
        if options.steps is not None and model.steps.n >= options.steps:
            return "steps"
        if options.duration is not None and now - began >= options.duration:
            return "duration"
        if stop.is_set():
            return "interrupted"
        if options.interval is not None and now - told >= options.interval:
            told = now
            say(progress(model))
        stop.wait(PERIOD_S)


def progress(model: Model) -> str:
    """One line on how the job gets on."""
    for running in model.running.values():
        return f"compiling {running.function} [{running.compile_id}] for {duration((model.now_ns - running.since_ns) / 1e9)}"
    median = model.steps.durations.summary.median
    if median is None:
        return "no step yet"
    return f"step {model.steps.n}, {duration(median)} a step ({rate(1 / median if median else None)})"


def report(feed: LiveFeed, options: Options) -> int:
    """Deliver the report of what is known now. Gives an exit status."""
    feed.pump()
    return deliver(render(build(feed.model), options.format), options.output)


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
