"""The guided walk: a few questions in a row, kept as data, each with its numbers, its text and what to learn from it."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tuimon import toml
from tuimon.lab import state
from tuimon.lab.numbers import BANDWIDTH, INTENSITY, PEAK, NumberError, Quantity, parse, write
from tuimon.lab.state import Lab
from tuimon.plain import NotPlain, open_plain

DEFAULT = "roofline"
MOST_BYTES = 1 << 20
MOST_STOPS = 100

_NUMBERS: dict[str, Quantity] = {"intensity": INTENSITY, "bandwidth": BANDWIDTH, "peak": PEAK}
_KEYS = {"intensity": "i", "bandwidth": "b", "peak": "k"}


class WalkError(ValueError):
    """A walk cannot be used; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Stop:
    """One stop: what is said, with which numbers, and whether a prediction is asked for."""

    say: str
    then: str = ""
    """Said once the ceiling is revealed."""
    intensity: float | None = None
    bandwidth: float | None = None
    peak: float | None = None
    by_hand: bool = False
    """The person sets the numbers, from a reset on; else the walk has set them."""
    predict: bool = False


@dataclass(frozen=True, slots=True)
class Walk:
    """The stops, and where one is."""

    title: str
    stops: tuple[Stop, ...]
    at: int = 0

    @property
    def stop(self) -> Stop:
        """The one that is on."""
        return self.stops[self.at]

    @property
    def last(self) -> bool:
        """Whether it is the last."""
        return self.at == len(self.stops) - 1


def parse_walk(data: bytes, origin: str) -> Walk:
    """A walk from the bytes of a TOML file; `origin` names it in errors. Raises WalkError."""
    try:
        document = toml.parse(data)
    except toml.NotToml as error:
        raise WalkError(f"{origin}: {error}") from None
    unknown = set(document) - {"title", "stop"}
    if unknown:
        raise WalkError(f"{origin}: unknown {', '.join(sorted(unknown))}; a walk has a title and [[stop]] entries")
    title, stops = document.get("title"), document.get("stop")
    if not isinstance(title, str) or not title.strip():
        raise WalkError(f"{origin}: title must be a text")
    if not isinstance(stops, list) or not stops or not all(isinstance(stop, dict) for stop in stops):
        raise WalkError(f"{origin}: a walk has one [[stop]] or more")
    if len(stops) > MOST_STOPS:
        raise WalkError(f"{origin}: more than {MOST_STOPS} stops")
    return Walk(title.strip(), tuple(_stop(stop, f"{origin}: stop {number}") for number, stop in enumerate(stops, 1)))


def _stop(entry: dict[str, Any], where: str) -> Stop:
    unknown = set(entry) - {"say", "then", "by_hand", "predict", *_NUMBERS}
    if unknown:
        raise WalkError(f"{where}: unknown {', '.join(sorted(unknown))}")
    texts = {field: entry.get(field, "") for field in ("say", "then")}
    flags = {field: entry.get(field, False) for field in ("by_hand", "predict")}
    for field, text in texts.items():
        if not isinstance(text, str) or (field == "say" and not text.strip()):
            raise WalkError(f"{where}: {field} must be a text")
    for field, flag in flags.items():
        if not isinstance(flag, bool):
            raise WalkError(f"{where}: {field} must be true or false")
    values: dict[str, float] = {}
    for field, quantity in _NUMBERS.items():
        if field in entry:
            if isinstance(entry[field], bool) or not isinstance(entry[field], (int, float, str)):
                raise WalkError(f"{where}: {field} must be a number, or a text such as '80 GB/s'")
            try:
                values[field] = parse(str(entry[field]), quantity)
            except NumberError as error:
                raise WalkError(f"{where}: {field}: {error}") from None
    if (flags["predict"] or flags["by_hand"]) and not {"intensity", "bandwidth"} <= set(values):
        raise WalkError(f"{where}: a question needs intensity and bandwidth")
    say, then = (" ".join(texts[field].split()) for field in ("say", "then"))
    return Stop(say, then, by_hand=flags["by_hand"], predict=flags["predict"], **values)


def load_walk(path: Path | None = None) -> Walk:
    """The walk in a file; None: the one that comes with tuimon. Raises WalkError."""
    path = path if path is not None else shipped_folder() / f"{DEFAULT}.toml"
    try:
        with os.fdopen(open_plain(path), "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except NotPlain as error:
        raise WalkError(f"{path} {error.sentence}") from None
    except OSError as error:
        raise WalkError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(data) > MOST_BYTES:
        raise WalkError(f"{path}: larger than {MOST_BYTES >> 20} MiB, which no walk is")
    return parse_walk(data, path.name)


def shipped_folder() -> Path:
    """Where the walks that come with tuimon are: in the installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "_shipped" / "demos" / "walks"
    return installed if installed.is_dir() else package.parent / "demos" / "walks"


# ---------------------------------------------------------------------------------------------------------- walking


def begin(walk: Walk, lab: Lab) -> tuple[Walk, Lab]:
    """To the first stop, with a new score."""
    return _enter(replace(walk, at=0), replace(lab, score=(0, 0)))


def lacking(walk: Walk, lab: Lab) -> str:
    """What is still to be done at this stop, as an order; "" if nothing."""
    stop = walk.stop
    for field, quantity in _NUMBERS.items():
        wanted, there = getattr(stop, field), getattr(lab, field)
        if wanted is not None and wanted != there:
            return f"set the {field} to {write(wanted, quantity, 6)}: {_KEYS[field]}"
    if stop.predict and not lab.revealed:
        if lab.prediction is None:
            return "predict the ceiling: p, a number in GFLOP/s, enter"
        return "trace the roof up to I: space plays, s steps"
    return ""


def go_on(walk: Walk, lab: Lab) -> tuple[Walk, Lab]:
    """To the next stop, if this one is done; else `message` says what is lacking. After the last: nothing happens."""
    missing = lacking(walk, lab)
    if missing:
        return walk, replace(lab, message=f"first {missing} (N skips this stop)")
    return skip(walk, lab)


def skip(walk: Walk, lab: Lab) -> tuple[Walk, Lab]:
    """To the next stop, whether or not this one is done."""
    if walk.last:
        return walk, replace(lab, message="this was the last stop: w leaves the walk, and r begins a question of your own")
    return _enter(replace(walk, at=walk.at + 1), lab)


def back(walk: Walk, lab: Lab) -> tuple[Walk, Lab]:
    """To the stop before."""
    if walk.at == 0:
        return walk, replace(lab, message="this is the first stop")
    return _enter(replace(walk, at=walk.at - 1), lab)


def _enter(walk: Walk, lab: Lab) -> tuple[Walk, Lab]:
    """The lab as a stop wants it: reset, or with the stop's numbers, or as it was where the stop has none."""
    stop = walk.stop
    if stop.by_hand:
        return walk, replace(state.reset(lab), message="")
    if stop.intensity is None and stop.bandwidth is None and stop.peak is None:
        return walk, replace(lab, message="", playing=False)
    fresh = state.reset(lab)
    return walk, replace(fresh, intensity=stop.intensity, bandwidth=stop.bandwidth, peak=stop.peak or fresh.peak, message="")
