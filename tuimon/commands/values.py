"""What stands behind an option, read from its text. Each raises ArgumentTypeError, or ValueError, with a sentence."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from tuimon.config import MOST_MS

if TYPE_CHECKING:
    from tuimon.commands.phases import PhasePlan

SHELLS = ("bash", "zsh", "fish")
"""For which there is a completion."""


def pid(text: str) -> int:
    """A process id."""
    return _above_0(text, f"{text!r} is no process id; `tuimon list` shows them")


def function(text: str) -> str:
    """MODULE:FUNCTION, as `--step-function` takes it."""
    module, _, path = text.partition(":")
    if not all(name.isidentifier() for name in (*module.split("."), *path.split("."))):
        raise argparse.ArgumentTypeError(f"{text!r} is no MODULE:FUNCTION, such as train:train_step or train:Trainer.step")
    return text


def milliseconds(text: str) -> float:
    """Up to a day of them."""
    value = _number(text)
    if not 0 <= value <= MOST_MS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of milliseconds from 0 to {MOST_MS} (a day)")
    return value


def speed(text: str) -> float | None:
    """Times as fast; None: as fast as it goes."""
    if text == "max":
        return None
    value = _number(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0, nor max")
    return value


def phases(text: str) -> tuple[PhasePlan, ...]:
    """A plan of phases; see commands/phases.py."""
    from tuimon.commands import phases as of  # it needs the model, which most commands start without

    return of.phases(text)


def prom(text: str) -> Path:
    """A file of Prometheus' text format."""
    path = Path(text)
    if path.suffix != ".prom":
        raise argparse.ArgumentTypeError(f"{text!r} does not end in .prom: a node exporter reads no other files")
    return path


def seconds(text: str) -> float:
    """Above 0."""
    value = _number(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def count(text: str) -> int:
    """A whole number above 0."""
    return _above_0(text, f"{text!r} is not a whole number above 0")


def _above_0(text: str, sentence: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value <= 0:
        raise argparse.ArgumentTypeError(sentence)
    return value


def _number(text: str) -> float:
    """NaN, which no comparison lets through, where it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan
