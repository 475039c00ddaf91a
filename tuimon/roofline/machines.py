"""What machines can do at most: peaks by unit, dtype and sparsity, bandwidths by boundary, each with where it is from.

The packaged figures are the makers' (machines.toml); a user adds to them with a file of the same form. What the driver tells
and what was calibrated is joined to them in `inforce`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from tuimon.roofline.ceilings import ORDER, CeilingError, How, read_document, read_file

Unit = Literal["matrix", "vector"]
Sparsity = Literal["dense", "2:4"]
PeakKey = tuple[Unit, str, Sparsity]

DTYPES = ("f64", "f32", "tf32", "f16", "bf16", "f8", "f4", "i8")
BOUNDARIES = ("HBM", "DRAM", "L2", "LLC", "PCIe")
_FIELDS = ("name", "match", "source", "memory_gib", "cache_mib", "clock_mhz", "matrix", "vector", "sparse", "bandwidth")
_LEAST, _MOST = 1.0, 1e30
_GIB, _MIB = 1 << 30, 1 << 20

_DTYPE_NAMES = {
    "double": "f64", "float64": "f64", "float": "f32", "float32": "f32", "half": "f16", "float16": "f16",
    "bfloat16": "bf16", "signed char": "i8", "int8": "i8", "u8": "i8", "uint8": "i8", "unsigned char": "i8",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Peak:
    """FLOP/s (or, for i8, operations a second) of one unit and dtype."""

    flops: float
    how: How
    source: str
    clock_mhz: float | None = None
    """The clock that it holds at."""
    spread: float | None = None
    """Of a calibrated one: (p90 - p10) / median of its repeats."""
    at: str = ""
    """When it was calibrated, as a date."""
    threads: int | None = None
    """With how many threads, on a CPU."""


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Bytes/s across one boundary."""

    bytes_s: float
    how: How
    source: str
    spread: float | None = None
    at: str = ""
    threads: int | None = None


_Figure = TypeVar("_Figure", Peak, Bandwidth)


@dataclass(frozen=True, slots=True)
class Machine:
    """A device. For each key its figures, the best provenance first: calibrated, derived, datasheet, declared."""

    name: str
    peaks: Mapping[PeakKey, tuple[Peak, ...]]
    bandwidths: Mapping[str, tuple[Bandwidth, ...]]
    cache_bytes: int | None
    """Of the last level."""
    key: str
    """What a calibration of it is kept under."""
    match: str = ""
    """A regular expression for the device's name; "" matches none."""
    memory_gib: tuple[float, float] | None = None
    core_cache_bytes: int | None = None
    """Of the largest cache that a CPU's core has for itself; None where there is none, or it is not known."""

    @property
    def memory(self) -> str:
        """The boundary of its own memory: "HBM", or "DRAM"."""
        return "HBM" if "HBM" in self.bandwidths else "DRAM"

    @property
    def cache(self) -> str | None:
        """The boundary of its last level of cache, where its bandwidth is known: "LLC" or "L2"."""
        return next((level for level in ("LLC", "L2") if level in self.bandwidths), None)

    @property
    def threads(self) -> tuple[int, ...]:
        """The numbers of threads that it was calibrated with."""
        told = {one.threads for few in self.peaks.values() for one in few}
        told |= {one.threads for few in self.bandwidths.values() for one in few}
        return tuple(sorted(threads for threads in told if threads is not None))

    def peak(
        self, unit: Unit, dtype: str, sparsity: Sparsity = "dense", *, how: How | None = None, threads: int | None = None
    ) -> Peak | None:
        """The best known peak. `dtype` as any source prints it (see `dtype_of`); `how`: only figures had in this way;
        `threads`: of a CPU's figures those of the number of threads nearest to it. None: not known."""
        return _best(self.peaks.get((unit, dtype_of(dtype), sparsity), ()), how, threads)

    def bandwidth(self, boundary: str, *, how: How | None = None, threads: int | None = None) -> Bandwidth | None:
        """The best known bandwidth across a boundary, as `peak`."""
        return _best(self.bandwidths.get(boundary, ()), how, threads)

    def with_figures(
        self, peaks: Sequence[tuple[PeakKey, Peak]] = (), bandwidths: Sequence[tuple[str, Bandwidth]] = ()
    ) -> Machine:
        """It, with more figures, in their places among the others."""
        joined = {key: list(few) for key, few in self.peaks.items()}
        for key, peak in peaks:
            joined.setdefault(key, []).append(peak)
        lines = {boundary: list(few) for boundary, few in self.bandwidths.items()}
        for boundary, bandwidth in bandwidths:
            lines.setdefault(boundary, []).append(bandwidth)
        return replace(
            self,
            peaks={key: tuple(sorted(few, key=lambda one: ORDER.index(one.how))) for key, few in joined.items()},
            bandwidths={key: tuple(sorted(few, key=lambda one: ORDER.index(one.how))) for key, few in lines.items()},
        )


def _best(figures: Sequence[_Figure], how: How | None, threads: int | None) -> _Figure | None:
    wanted = [one for one in figures if how is None or one.how == how]
    if not wanted:
        return None
    alike = [one for one in wanted if one.how == wanted[0].how]
    if threads is None:  # of several sets the largest: nothing that the device does can be above it
        return max(alike, key=lambda one: one.threads or 0)
    return min(alike, key=lambda one: (abs((one.threads or threads) - threads), -(one.threads or 0)))


def dtype_of(text: str) -> str:
    """A dtype as torch's graphs, Kineto or Python print it, in the words of the table: "c10::BFloat16" is "bf16",
    "f8e4m3fn" is "f8", "float" is "f32". One that is not known is given back as it is."""
    word = text.strip().lower().removeprefix("c10::").removeprefix("torch.")
    if word.startswith(("f8", "float8")):
        return "f8"
    if word.startswith(("f4", "float4")):
        return "f4"
    return _DTYPE_NAMES.get(word, word)


def machines(extra: Path | None = None) -> tuple[Machine, ...]:
    """The packaged machines, and the user's from the TOML file `extra`, in front of them; one of the same name takes the
    packaged one's place. Raises CeilingError, with the file, the entry and the reason."""
    if extra is None:
        return _packaged()
    own = parse_machines(read_file(extra), str(extra), how="declared")
    names = {machine.name for machine in own}
    return (*own, *(machine for machine in _packaged() if machine.name not in names))


@cache
def _packaged() -> tuple[Machine, ...]:
    data = resources.files("tuimon.roofline").joinpath("machines.toml").read_bytes()
    return parse_machines(data, "machines.toml", how="datasheet")


def find(name: str, memory_bytes: int | None, among: Sequence[Machine] | None = None) -> Machine | None:
    """The machine of a device's name and the size of its memory (None: not known). None where there are no figures for it.

    A slice of a GPU (MIG) is no such machine: its figures are not those of the whole.
    """
    if " MIG " in f" {name} ":
        return None
    for machine in _packaged() if among is None else among:
        if not machine.match or re.search(machine.match, name) is None:
            continue
        if memory_bytes is not None and machine.memory_gib is not None:
            least, most = machine.memory_gib
            if not least <= memory_bytes / _GIB <= most:
                continue
        return machine
    return None


# ------------------------------------------------------------------------------------------------- reading


def parse_machines(data: bytes, origin: str, *, how: How) -> tuple[Machine, ...]:
    """The machines in the bytes of a TOML file, in its order. `origin` names it in errors. Raises CeilingError."""
    entries = read_document(data, origin).get("machine", [])
    found: dict[str, Machine] = {}
    for number, entry in enumerate(entries, 1):
        where = f"{origin}: machine {number}"
        if isinstance(entry.get("name"), str):
            where += f" ({entry['name']!r})"
        try:
            machine = _machine(entry, how)
        except CeilingError as error:
            raise CeilingError(f"{where}: {error}") from None
        if machine.name in found:
            raise CeilingError(f"{where}: there is one of this name before it")
        found[machine.name] = machine
    return tuple(found.values())


def _machine(entry: Mapping[str, Any], how: How) -> Machine:
    unknown = sorted(set(entry) - set(_FIELDS))
    if unknown:
        raise CeilingError(f"unknown {', '.join(map(repr, unknown))}")
    lacking = [field for field in ("name", "match", "source", "bandwidth") if field not in entry]
    if lacking:
        raise CeilingError(f"{', '.join(lacking)} missing")
    if not {"matrix", "vector"} & set(entry):
        raise CeilingError("matrix or vector missing: a machine without a peak is no ceiling")
    name, match, source = (_text(entry[field], field) for field in ("name", "match", "source"))
    try:
        re.compile(match)
    except (re.error, RecursionError) as error:
        raise CeilingError(f"match is no regular expression: {error}") from None
    clocks = _table(entry, "clock_mhz", (*get_args(Unit), *DTYPES))
    sparse = entry.get("sparse", [])
    if not isinstance(sparse, list) or not all(isinstance(dtype, str) for dtype in sparse):
        raise CeilingError(f"sparse must be a list of dtypes, not {sparse!r}")
    peaks: dict[PeakKey, tuple[Peak, ...]] = {}
    for unit in get_args(Unit):
        for dtype, flops in _table(entry, unit, DTYPES).items():
            clock = clocks.get(dtype, clocks.get(unit))
            peaks[unit, dtype, "dense"] = (Peak(flops, how, source, clock),)
            if unit == "matrix" and dtype in sparse:
                peaks[unit, dtype, "2:4"] = (Peak(2 * flops, how, source, clock),)
    stray = [dtype for dtype in sparse if ("matrix", dtype, "dense") not in peaks]
    if stray:
        raise CeilingError(f"sparse names {', '.join(map(repr, stray))}, for which there is no matrix peak")
    lines = _table(entry, "bandwidth", BOUNDARIES)
    if not {"HBM", "DRAM"} & set(lines):
        raise CeilingError("bandwidth must hold HBM or DRAM, the device's own memory")
    cache_mib = _number(entry["cache_mib"], "cache_mib") if "cache_mib" in entry else None
    return Machine(
        name=name,
        peaks=peaks,
        bandwidths={boundary: (Bandwidth(bytes_s, how, source),) for boundary, bytes_s in lines.items()},
        cache_bytes=None if cache_mib is None else round(cache_mib * _MIB),
        key="",
        match=match,
        memory_gib=_range(entry["memory_gib"]) if "memory_gib" in entry else None,
    )


def _text(value: Any, field: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise CeilingError(f"{field} must be a text that is not empty, not {value!r}")
    if any(ord(character) < 32 or ord(character) == 127 for character in value):
        raise CeilingError(f"{field} must not hold control characters: {value!r}")
    return value


def _number(value: Any, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not _LEAST <= value <= _MOST:
        raise CeilingError(f"{field} must be a number from 1 to 1e30, not {value!r}")
    return float(value)


def _table(entry: Mapping[str, Any], field: str, keys: Sequence[str]) -> dict[str, float]:
    table = entry.get(field, {})
    if not isinstance(table, dict):
        raise CeilingError(f"{field} must be a table, such as {{ {keys[0]} = 1e12 }}, not {table!r}")
    unknown = sorted(set(table) - set(keys))
    if unknown:
        raise CeilingError(f"{field}: unknown {', '.join(map(repr, unknown))}; known: {', '.join(keys)}")
    return {key: _number(value, f"{field}.{key}") for key, value in table.items()}


def _range(value: Any) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise CeilingError(f"memory_gib must be two numbers, from and to, not {value!r}")
    least, most = (_number(one, "memory_gib") for one in value)
    if not (least <= most and math.isfinite(most)):
        raise CeilingError(f"memory_gib must go upwards, not {value!r}")
    return least, most
