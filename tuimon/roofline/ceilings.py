"""Ceilings: what a machine could do at most, at a stated memory boundary.

A ceiling is declared, taken from a datasheet, derived from what the driver tells, or calibrated. It is never an achieved
rate, and which of the four it is goes with it everywhere.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from tuimon import toml
from tuimon.plain import NotPlain, open_plain

if TYPE_CHECKING:
    from tuimon.roofline.machines import Bandwidth, Machine, Peak, Sparsity, Unit

How = Literal["declared", "datasheet", "derived", "calibrated"]
ORDER: tuple[How, ...] = ("calibrated", "derived", "datasheet", "declared")
"""The best provenance first: measured on this device, told by its driver, printed by its maker, stated by a person."""

_OTHERWISE = {"calibrated": "calibrated", "derived": "driver", "datasheet": "sheet", "declared": "declared"}
"""What is behind the name of a ceiling that stands beside a better one of the same machine, unit, dtype and boundary."""

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
        if self.unit not in (None, "matrix", "vector"):
            raise CeilingError(f"unit must be matrix or vector, not {self.unit!r}")
        if not isinstance(self.dtype, str) or not self.dtype.isprintable():
            raise CeilingError(f"dtype must be a text, such as bf16, not {self.dtype!r}")
        if not isinstance(self.dense, bool):
            raise CeilingError(f"dense must be true or false, not {self.dense!r}")
        clock = self.clock_mhz
        if clock is not None and (isinstance(clock, bool) or not isinstance(clock, (int, float)) or not 1 <= clock <= 1e6):
            raise CeilingError(f"clock_mhz must be a number from 1 to 1e6, not {clock!r}")

    @property
    def ridge(self) -> float:
        """The intensity (FLOP/byte) from which on the peak and not the bandwidth is the roof."""
        return self.peak_flops / self.bandwidth_bytes_s

    def roof(self, intensity: float) -> float:
        """The most FLOP/s that this ceiling allows at an intensity (FLOP/byte at the same boundary): min(peak, I x B)."""
        return min(self.peak_flops, intensity * self.bandwidth_bytes_s)


def ceilings_of(
    machine: Machine,
    *,
    dtype: str,
    unit: Unit,
    boundary: str,
    how: How | None = None,
    threads: int | None = None,
    sparsity: Sparsity = "dense",
) -> tuple[Ceiling, ...]:
    """What bounds work of this dtype and unit on a machine, its bytes counted at `boundary`; () where a figure is not known.

    The best provenance first, one for each way in which the peak or the bandwidth was had, each with a name of its own; where a
    way has only one of the two, the best known other one stands in, and the ceiling is called by the weaker of both. `how`:
    that way only. `threads`: of a CPU's calibrations the one that is nearest to it.
    """
    from tuimon.roofline.machines import dtype_of

    found: list[Ceiling] = []
    taken: list[tuple[Peak, Bandwidth]] = []
    for way in ORDER if how is None else (how,):
        own_peak = machine.peak(unit, dtype, sparsity, how=way, threads=threads)
        own_bandwidth = machine.bandwidth(boundary, how=way, threads=threads)
        if own_peak is None and own_bandwidth is None:
            continue
        peak = own_peak or machine.peak(unit, dtype, sparsity, threads=threads)
        bandwidth = own_bandwidth or machine.bandwidth(boundary, threads=threads)
        if peak is None or bandwidth is None or (peak, bandwidth) in taken:
            continue
        taken.append((peak, bandwidth))
        weaker = max(peak.how, bandwidth.how, key=ORDER.index)
        words = [machine.name, dtype_of(dtype)]
        words += ["2:4"] * (sparsity == "2:4") + ["vector"] * (unit == "vector" and machine.key[:3] != "cpu")
        words += [boundary] * (boundary != machine.memory)
        words += [_OTHERWISE[way]] * bool(found)
        if peak.threads is not None:
            words.append(f"{peak.threads} thread{'s' if peak.threads > 1 else ''}")
        spreads = [spread for spread in (peak.spread, bandwidth.spread) if spread is not None]
        source = peak.source
        if bandwidth.source != source:
            source = f"peak ({peak.how}): {source}; bandwidth ({bandwidth.how}): {bandwidth.source}"
        found.append(
            Ceiling(
                name=" ".join(words),
                peak_flops=peak.flops,
                bandwidth_bytes_s=bandwidth.bytes_s,
                boundary=boundary,
                how=weaker,
                source=source,
                unit=unit,
                dtype=dtype_of(dtype),
                dense=sparsity == "dense",
                clock_mhz=peak.clock_mhz,
                spread=max(spreads, default=None),
            )
        )
    return tuple(found)


def now(ceiling: Ceiling, sm_clock_mhz: float | None, reasons: Sequence[str]) -> Ceiling | None:
    """The roof at the clock that the device runs at now, named with the driver's reasons for it.

    Its peak scales with the clock, the memory's bandwidth does not. None where the ceiling's own clock or the present one is
    not known, or the device idles: its clock then says nothing of what it could do.
    """
    if ceiling.clock_mhz is None or sm_clock_mhz is None or not sm_clock_mhz > 0 or "idle" in reasons:
        return None
    peak = ceiling.peak_flops * sm_clock_mhz / ceiling.clock_mhz
    if not (math.isfinite(peak) and peak >= 1):
        return None
    why = ", ".join(reasons) or "no limit told"
    return replace(
        ceiling,
        name=f"now: {sm_clock_mhz:,.0f} MHz ({why})",
        peak_flops=peak,
        clock_mhz=sm_clock_mhz,
        source=f"{ceiling.name} at the present clock instead of {ceiling.clock_mhz:,.0f} MHz: {why}",
    )


def load_ceilings(extra: Path | None = None) -> tuple[Ceiling, ...]:
    """The packaged ceilings, and the user's from the TOML file `extra`.

    The packaged order is kept; a user's ceiling of the same name takes that place, the others follow. Raises CeilingError,
    with the file, the entry and the reason.
    """
    packaged = resources.files("tuimon.roofline").joinpath("ceilings.toml").read_bytes()
    ceilings = {ceiling.name: ceiling for ceiling in parse_ceilings(packaged, "ceilings.toml")}
    if extra is not None:
        ceilings.update((ceiling.name, ceiling) for ceiling in parse_ceilings(read_file(extra), str(extra)))
    return tuple(ceilings.values())


def parse_ceilings(data: bytes, origin: str) -> tuple[Ceiling, ...]:
    """The ceilings in the bytes of a TOML file, in its order. `origin` names it in errors. Raises CeilingError."""
    entries = read_document(data, origin).get("ceiling", [])
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


def read_document(data: bytes, origin: str) -> dict[str, Any]:
    """The [[ceiling]] and [[machine]] entries in the bytes of a TOML file, as they are. Raises CeilingError."""
    try:
        document = toml.parse(data)
    except toml.NotToml as error:
        raise CeilingError(f"{origin}: {error}") from None
    unknown = set(document) - {"ceiling", "machine"}
    if unknown:
        holds = "a file of ceilings holds [[ceiling]] and [[machine]] entries only"
        raise CeilingError(f"{origin}: unknown {_quoted(unknown)}; {holds}")
    for kind, entries in document.items():
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise CeilingError(f"{origin}: write each {kind} under a heading [[{kind}]], with two brackets")
    return document


def _ceiling(entry: dict[str, Any], where: str) -> Ceiling:
    unknown = set(entry) - {*_REQUIRED, "source", "unit", "dtype", "dense", "clock_mhz"}
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


def read_file(path: Path) -> bytes:
    """The bytes of a file of ceilings. Raises CeilingError where it cannot be read, or is none by its size."""
    try:
        with os.fdopen(open_plain(path), "rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except NotPlain as error:
        raise CeilingError(f"{path} {error.sentence}") from None
    except OSError as error:
        raise CeilingError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(data) > _MOST_BYTES:
        raise CeilingError(f"{path}: larger than {_MOST_BYTES >> 20} MiB, which no list of ceilings is")
    return data
