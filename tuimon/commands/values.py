"""What stands behind an option, read from its text. Each raises ArgumentTypeError, or ValueError, with a sentence."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from tuimon.commands.phases import PhasePlan

MOST_MS = 86_400_000


def pid(text: str) -> int:
    """A process id."""
    try:
        pid = int(text)
    except ValueError:
        pid = 0
    if pid <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no process id; `tuimon list` shows them")
    return pid


def function(text: str) -> str:
    """MODULE:FUNCTION, as `--step-function` takes it."""
    module, _, path = text.partition(":")
    if not all(name.isidentifier() for name in (*module.split("."), *path.split("."))):
        raise argparse.ArgumentTypeError(f"{text!r} is no MODULE:FUNCTION, such as train:train_step or train:Trainer.step")
    return text


def milliseconds(text: str) -> float:
    """Up to a day of them."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= MOST_MS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of milliseconds from 0 to {MOST_MS} (a day)")
    return value


def speed(text: str) -> float | None:
    """Times as fast; None: as fast as it goes."""
    if text == "max":
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0, nor max")
    return value


def phases(text: str) -> tuple[PhasePlan, ...]:
    """A plan of phases; see commands/phases.py."""
    from tuimon.commands import phases as of

    return of.phases(text)


def prom(text: str) -> Path:
    """A file of Prometheus' text format."""
    path = Path(text)
    if path.suffix != ".prom":
        raise argparse.ArgumentTypeError(f"{text!r} does not end in .prom: a node exporter reads no other files")
    return path


def seconds(text: str) -> float:
    """Above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def count(text: str) -> int:
    """A whole number above 0."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return value
