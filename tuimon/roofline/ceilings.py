"""Ceilings: what a machine could do at most, at a stated memory boundary.

A ceiling is declared, taken from a datasheet, derived from what the driver tells, or calibrated. It is never an achieved
rate, and which of the four it is goes with it everywhere.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

How = Literal["declared", "datasheet", "derived", "calibrated"]

_REQUIRED = ("name", "peak_flops", "bandwidth_bytes_s", "boundary", "how")
_TEXTS = ("name", "boundary", "how", "source")
_MOST_BYTES = 1 << 20  # a list of ceilings is a page of text; a path to something else must not be read into memory


class CeilingError(ValueError):
    """A ceiling, or a file of them, cannot be used; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A peak and a bandwidth. Raises CeilingError if a number or a text cannot be one."""

    name: str
    peak_flops: float
    """FLOP/s."""
    bandwidth_bytes_s: float
    """Bytes/s across `boundary`."""
    boundary: str
    """Between what the bytes are counted: "HBM", "DRAM", "L2", or "hypothetical"."""
    how: How
    source: str = ""
    """Where the numbers are from, in words."""
    unit: Literal["matrix", "vector"] | None = None
    """What does the peak: matrix units or the others. None: not told."""
    dtype: str = ""
    """As torch names it in graphs: "bf16", "f32", "tf32"."""
    dense: bool = True
    """False: with 2:4 sparsity."""
    clock_mhz: float | None = None
    """The clock that the peak is stated at."""
    spread: float | None = None
    """Of a calibrated one: (p90 - p10) / median of its repeats."""

    def __post_init__(self) -> None:
        for field in _TEXTS:
            value = getattr(self, field)
            if not isinstance(value, str) or (not value.strip() and field != "source"):
                raise CeilingError(f"{field} must be a text that is not empty, not {value!r}")
            if any(ord(character) < 32 or ord(character) == 127 for character in value):
                raise CeilingError(f"{field} must not hold control characters: {value!r}")
        if self.how not in get_args(How):
            raise CeilingError(f"how must be one of {', '.join(get_args(How))}, not {self.how!r}")
        for field in ("peak_flops", "bandwidth_bytes_s"):
            value = getattr(self, field)
            # True is a number to Python, infinity a float to TOML, and what lies beyond these no machine of this world
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 1 <= value <= 1e30:
                raise CeilingError(f"{field} must be a number from 1 to 1e30, not {value!r}")
            object.__setattr__(self, field, float(value))

    @property
    def ridge(self) -> float:
        """The intensity (FLOP/byte) from which on the peak and not the bandwidth is the roof."""
        return self.peak_flops / self.bandwidth_bytes_s

    def roof(self, intensity: float) -> float:
        """The most FLOP/s that this ceiling allows at an intensity (FLOP/byte at the same boundary): min(peak, I x B)."""
        return min(self.peak_flops, intensity * self.bandwidth_bytes_s)


def load_ceilings(extra: Path | None = None) -> tuple[Ceiling, ...]:
    """The packaged ceilings, and the user's from the TOML file `extra`.

    The packaged order is kept; a user's ceiling of the same name takes that place, the others follow. Raises CeilingError,
    with the file, the entry and the reason.
    """
    packaged = resources.files("tuimon.roofline").joinpath("ceilings.toml").read_bytes()
    ceilings = {ceiling.name: ceiling for ceiling in parse_ceilings(packaged, "ceilings.toml")}
    if extra is not None:
        ceilings.update((ceiling.name, ceiling) for ceiling in parse_ceilings(_read(extra), str(extra)))
    return tuple(ceilings.values())


def parse_ceilings(data: bytes, origin: str) -> tuple[Ceiling, ...]:
    """The ceilings in the bytes of a TOML file, in its order. `origin` names it in errors. Raises CeilingError."""
    try:
        document = tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise CeilingError(f"{origin}: not UTF-8 text") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise CeilingError(f"{origin}: not TOML: {error}") from None
    entries = document.pop("ceiling", [])
    if document:
        raise CeilingError(f"{origin}: unknown {_quoted(document)}; a file of ceilings holds [[ceiling]] entries only")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise CeilingError(f"{origin}: write each ceiling under a heading [[ceiling]], with two brackets")
    ceilings: dict[str, Ceiling] = {}
    for number, entry in enumerate(entries, 1):
        where = f"{origin}: ceiling {number}"
        if isinstance(entry.get("name"), str):
            where += f" ({entry['name']!r})"
        ceiling = _ceiling(entry, where)
        if ceiling.name in ceilings:
            raise CeilingError(f"{where}: there is one of this name before it")
        ceilings[ceiling.name] = ceiling
    return tuple(ceilings.values())


def _ceiling(entry: dict[str, Any], where: str) -> Ceiling:
    unknown = set(entry) - {*_REQUIRED, "source"}
    if unknown:
        raise CeilingError(f"{where}: unknown {_quoted(unknown)}")
    lacking = [field for field in _REQUIRED if field not in entry]
    if lacking:
        raise CeilingError(f"{where}: {', '.join(lacking)} missing")
    try:
        return Ceiling(**entry)
    except CeilingError as error:
        raise CeilingError(f"{where}: {error}") from None


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in sorted(names))


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise CeilingError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(data) > _MOST_BYTES:
        raise CeilingError(f"{path}: larger than {_MOST_BYTES >> 20} MiB, which no list of ceilings is")
    return data
