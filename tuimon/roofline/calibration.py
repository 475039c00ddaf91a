"""Calibrations: what was measured on a device, kept in a file of its own, and read by itself from then on.

One TOML file for each device, under XDG_DATA_HOME/tuimon/calibration. A figure that a later calibration could not measure stays
as it was. A file that cannot be read is moved aside, not lost, and the makers' figures are used.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from tuimon import toml
from tuimon.plain import NotPlain, open_plain
from tuimon.roofline.machines import BOUNDARIES, DTYPES, Bandwidth, Machine, Peak, PeakKey

SCHEMA = 1
MOST_BYTES = 1 << 20
MOST_FIGURES = 1_000
_ABOUT = "# Measured by `tuimon calibrate`, and used by itself. Delete the file to be rid of it.\n"


class CalibrationError(Exception):
    """A calibration cannot be read or kept; the message is a sentence for a person."""


@dataclass(frozen=True, slots=True)
class Way:
    """One of the ways in which a figure was tried: an operand layout, or a memory kernel. Rates are FLOP/s or bytes/s."""

    way: str
    size: str
    best: float
    median: float
    cv: float
    clean: int
    repeats: int


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured peak (FLOP/s, of a dtype) or bandwidth (bytes/s, across a boundary): the best of its ways."""

    what: Literal["peak", "bandwidth"]
    of: str
    """The dtype, or the boundary."""
    value: float
    ways: tuple[Way, ...]
    date: str
    """ISO 8601, UTC."""
    torch: str
    unit: Literal["matrix", "vector"] = "matrix"
    """Of a peak: what the device does such products with."""
    threads: int | None = None
    """On a CPU."""
    spread: float = 0.0
    """(p90 - p10) / median of the clean repeats of the best way."""
    clock_mhz: float | None = None
    """The device's while it was measured, where it is known."""

    @property
    def which(self) -> tuple[str, str, int | None]:
        """What tells it from others of the same device."""
        return self.what, self.of, self.threads

    @property
    def best(self) -> Way:
        """The way that gave the value."""
        return max(self.ways, key=lambda way: way.best)

    @property
    def quality(self) -> str:
        """ "ok", or "noisy": its repeats differ by 5 % or more."""
        return "ok" if self.best.cv < 0.05 else "noisy"


@dataclass(frozen=True, slots=True)
class Calibration:
    """All that was measured on one device."""

    key: str
    kind: Literal["cpu", "gpu"]
    name: str
    memory_bytes: int | None
    cache_bytes: int | None
    figures: tuple[Figure, ...]
    driver: str = ""

    def joined(self, newer: Calibration) -> Calibration:
        """It, with the figures of a newer one in the place of its own."""
        told = {figure.which for figure in newer.figures}
        return replace(newer, figures=(*newer.figures, *(one for one in self.figures if one.which not in told)))

    def machine(self) -> Machine:
        """It as a machine of its own."""
        return self.onto(Machine(self.name, {}, {}, self.cache_bytes, self.key))

    def onto(self, machine: Machine) -> Machine:
        """A machine with these figures beside its others."""
        peaks: list[tuple[PeakKey, Peak]] = []
        bandwidths: list[tuple[str, Bandwidth]] = []
        for figure in self.figures:
            said = figure.best
            threads = "" if figure.threads is None else f", {figure.threads} thread{'s' if figure.threads > 1 else ''}"
            source = (
                f"tuimon calibrate {figure.date[:10]}, torch {figure.torch}{threads}: {said.way} {said.size}, best of "
                f"{said.clean} clean repeats ({figure.quality}, {said.cv:.1%})"
            )
            if figure.what == "bandwidth":
                one = Bandwidth(figure.value, "calibrated", source, figure.spread, figure.date, figure.threads)
                bandwidths.append((figure.of, one))
                continue
            peak = Peak(figure.value, "calibrated", source, figure.clock_mhz, figure.spread, figure.date, figure.threads)
            peaks.append(((figure.unit, figure.of, "dense"), peak))
            if self.kind == "cpu" and figure.of in ("f32", "f64"):
                # the units that a product of these dtypes keeps busy are those of everything else
                peaks.append((("vector", figure.of, "dense"), peak))
        return replace(machine.with_figures(peaks, bandwidths), key=self.key)


# ------------------------------------------------------------------------------------------------- keeping


def folder() -> Path:
    """Where they are kept."""
    data = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return Path(data) / "tuimon" / "calibration"


def keep(calibration: Calibration, place: Path | None = None) -> Path:
    """Write it, whole or not at all, readable by its user only. Raises CalibrationError, with the reason."""
    place = folder() if place is None else place
    path = place / f"{calibration.key}.toml"
    try:
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=place, prefix=".", suffix=".toml")  # 0600
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(_written(calibration))
            if parse(Path(temporary).read_bytes()) != calibration:
                raise CalibrationError(f"the calibration was not kept: {path} would not read back as it was measured")
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise CalibrationError(f"the calibration was not kept: {path}: {error.strerror or error}") from None
    return path


def load_all(place: Path | None = None) -> tuple[list[Calibration], list[str]]:
    """The calibrations that are kept, and a sentence for each file that cannot be used. Such a file is moved aside."""
    place = folder() if place is None else place
    found, problems = [], []
    try:
        paths = sorted(path for path in place.iterdir() if path.suffix == ".toml" and not path.name.startswith("."))
    except OSError:
        return [], []
    for path in paths:
        try:
            found.append(parse(_read(path)))
        except CalibrationError as error:
            problems.append(f"the calibration in {path} cannot be used ({error}): {_moved_aside(path)}")
    return found, problems


def _moved_aside(path: Path) -> str:
    aside = path.with_suffix(".bad")
    number = 1
    while aside.exists():
        number += 1
        aside = path.with_suffix(f".bad{number}")
    try:
        os.rename(path, aside)
    except OSError as error:
        return f"it is left there ({error.strerror or error}), and the figures without it are used"
    return f"moved to {aside.name}, and the figures without it are used; `tuimon calibrate` makes a new one"


def _read(path: Path) -> bytes:
    try:
        with os.fdopen(open_plain(path), "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except NotPlain as error:
        raise CalibrationError(f"it {error.sentence}") from None
    except OSError as error:
        raise CalibrationError(f"{error.strerror or error}") from None
    if len(data) > MOST_BYTES:
        raise CalibrationError(f"larger than {MOST_BYTES >> 20} MiB")
    return data


# ------------------------------------------------------------------------------------------------- its text


def _written(calibration: Calibration) -> str:
    head = {"schema": SCHEMA, **{name: value for name, value in _plain(calibration) if name != "figures"}}
    lines = [_ABOUT, *_pairs(head)]
    for figure in calibration.figures:
        lines += ["", "[[figure]]", *_pairs({name: value for name, value in _plain(figure) if name != "ways"})]
        lines.append("ways = [")
        lines += [f"  {{ {', '.join(_pairs(asdict(way)))} }}," for way in figure.ways]
        lines.append("]")
    return "\n".join(lines) + "\n"


def _plain(record: Calibration | Figure) -> Iterable[tuple[str, Any]]:
    return ((field.name, getattr(record, field.name)) for field in fields(record))


def _pairs(values: dict[str, Any]) -> list[str]:
    # a JSON text without DEL is a basic string of TOML
    return [
        f"{name} = {json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)}"
        for name, value in values.items()
        if value is not None
    ]


def parse(data: bytes) -> Calibration:
    """A calibration from its text. Raises CalibrationError: what is wrong with it, in a few words."""
    try:
        document = toml.parse(data)
    except toml.NotToml as error:
        raise CalibrationError(str(error)) from None
    schema = document.get("schema")
    if schema != SCHEMA:
        raise CalibrationError(f"of another version of tuimon: its schema is {schema!r}, not {SCHEMA}")
    figures = document.get("figure")
    if not isinstance(figures, list) or not 0 < len(figures) <= MOST_FIGURES:
        raise CalibrationError("no figures in it")
    key = _text(document, "key")
    if not re.fullmatch(r"[a-z0-9.-]{1,200}", key):
        raise CalibrationError(f"key cannot be {key!r}")
    return Calibration(
        key=key,
        kind=_one_of(document, "kind", ("cpu", "gpu")),
        name=_text(document, "name"),
        memory_bytes=_whole(document, "memory_bytes"),
        cache_bytes=_whole(document, "cache_bytes"),
        figures=tuple(_figure(one, number) for number, one in enumerate(figures, 1)),
        driver=_text(document, "driver", ""),
    )


def _figure(entry: Any, number: int) -> Figure:
    try:
        if not isinstance(entry, dict):
            raise CalibrationError("not a table")
        what = _one_of(entry, "what", ("peak", "bandwidth"))
        ways = entry.get("ways")
        if not isinstance(ways, list) or not ways or not all(isinstance(way, dict) for way in ways):
            raise CalibrationError("no ways")
        return Figure(
            what=what,
            of=_one_of(entry, "of", DTYPES if what == "peak" else BOUNDARIES),
            value=_number(entry, "value", 1),
            ways=tuple(_way(way) for way in ways),
            date=_text(entry, "date"),
            torch=_text(entry, "torch"),
            unit=_one_of(entry, "unit", ("matrix", "vector")),
            threads=_whole(entry, "threads"),
            spread=_number(entry, "spread", 0),
            clock_mhz=_number(entry, "clock_mhz", 1) if "clock_mhz" in entry else None,
        )
    except CalibrationError as error:
        raise CalibrationError(f"figure {number}: {error}") from None


def _way(entry: dict[str, Any]) -> Way:
    return Way(
        way=_text(entry, "way"),
        size=_text(entry, "size"),
        best=_number(entry, "best", 1),
        median=_number(entry, "median", 1),
        cv=_number(entry, "cv", 0),
        clean=_whole(entry, "clean") or 0,
        repeats=_whole(entry, "repeats") or 0,
    )


def _text(entry: dict[str, Any], field: str, default: str | None = None) -> str:
    value = entry.get(field, default)
    if not isinstance(value, str) or not value.isprintable():
        raise CalibrationError(f"{field} must be a text, not {value!r}" if field in entry else f"{field} is missing")
    return value


def _one_of(entry: dict[str, Any], field: str, known: Sequence[str]) -> Any:
    value = entry.get(field)
    if value not in known:
        raise CalibrationError(f"{field} must be one of {', '.join(known)}, not {value!r}")
    return value


def _number(entry: dict[str, Any], field: str, least: float) -> float:
    value = entry.get(field)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= 1e30:
        raise CalibrationError(f"{field} must be a number from {least:g} to 1e30, not {value!r}")
    return float(value)


def _whole(entry: dict[str, Any], field: str) -> int | None:
    if field not in entry:
        return None
    value = entry[field]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= 1 << 62:
        raise CalibrationError(f"{field} must be a whole number above 0, not {value!r}")
    return value
