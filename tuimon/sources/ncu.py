"""The CSV of Nsight Compute (`ncu --csv`), read: what the hardware counted for each kernel.

Two forms are known: one line for each metric of each kernel (`--page details`, `--metrics`; columns differ between versions),
and one line for each kernel (`--page raw`, with a second line of units). ncu runs each kernel several times, by default with
cold caches and at the base clock: these are not the job's own times, and `CountersSeen` says whose they are.
"""

from __future__ import annotations

import csv
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tuimon import events as ev
from tuimon.sources.trace_file import Text, Unreadable

SOURCE = "Nsight Compute: each kernel run again and again, by default with cold caches and at the base clock"

MOST_LAUNCHES = 200_000
MOST_ROWS = 400
LONGEST_NAME = 300
LONGEST_LINE = 2**22

WANTED = (
    "gpu__time_duration.sum,dram__bytes.sum,lts__t_bytes.sum,"
    "sm__sass_thread_inst_executed_op_fadd_pred_on.sum,sm__sass_thread_inst_executed_op_fmul_pred_on.sum,"
    "sm__sass_thread_inst_executed_op_ffma_pred_on.sum,sm__ops_path_tensor_src_bf16_dst_fp32.sum"
)
"""What to ask ncu for, at the least."""

_KEYS = ("ID", "Kernel Name")
_LONG = ("Metric Name", "Metric Unit", "Metric Value")
_THREADS = re.compile(r"sm(?:sp)?__sass_thread_inst_executed_op_([fdh])(add|mul|fma)_pred_on\.sum")
_TENSOR = re.compile(r"sm__ops_path_tensor(?:_op_\w+?)?_src_([a-z0-9]+)(?:_dst_[a-z0-9]+)?(_sparsity_(?:on|off))?\.sum")
_TIME = ("gpu__time_duration.sum", "gpu__time_duration.avg", "gpu__time_active.sum", "Duration")
_DTYPES = {"f": "f32", "d": "f64", "h": "f16", "fp16": "f16", "bf16": "bf16", "tf32": "tf32", "fp64": "f64", "fp8": "f8",
           "e4m3": "f8", "e5m2": "f8", "int8": "i8", "fp4": "f4"}  # fmt: skip
_SECONDS = {
    "nsecond": 1.0,
    "ns": 1.0,
    "usecond": 1e3,
    "us": 1e3,
    "msecond": 1e6,
    "ms": 1e6,
    "second": 1e9,
    "s": 1e9,
    "sec": 1e9,
}
"""Units of time -> ns."""
_SIZES = {"": 1.0, "byte": 1.0, "b": 1.0, "kbyte": 1e3, "kb": 1e3, "mbyte": 1e6, "mb": 1e6, "gbyte": 1e9, "gb": 1e9,
          "tbyte": 1e12, "tb": 1e12, "kibyte": 2.0**10, "mibyte": 2.0**20, "gibyte": 2.0**30,
          "sector": 32.0}  # fmt: skip
_COUNTS = {"": 1.0, "inst": 1.0, "kinst": 1e3, "minst": 1e6, "ginst": 1e9, "op": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_OTHERS = (
    ("Time (%)", "is a table of Nsight Systems (nsys stats)"),
    ("Time(%)", "is a table of nvprof"),
    ("Total Time (ns)", "is a table of Nsight Systems (nsys stats)"),
    ("KernelName", "is a table of rocprof"),
    ("Kernel_Name", "is a table of rocprof"),
)


@dataclass(slots=True)
class _Launch:
    """One kernel's metrics."""

    name: str
    values: dict[str, float] = field(default_factory=dict)
    """Metric -> value: ns, bytes or a count."""


@dataclass(slots=True)
class _Sum:
    n: int = 0
    ns: float = 0.0
    operations: float | None = 0.0
    dram: float | None = 0.0
    l2: float | None = 0.0
    by_class: dict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))


def read_text(text: Text) -> ev.CountersSeen:
    """What the kernels of the table did. Raises Unreadable where it is none of ncu's, or has no times."""
    launches, device = _launches(_lines(text))
    if not launches:
        raise Unreadable("is a table of Nsight Compute without a kernel in it")
    if not any(_time(one) for one in launches):
        raise Unreadable(
            f"is a table of Nsight Compute without the kernels' times; ask for them: ncu --csv --metrics {WANTED} .."
        )
    sums: dict[str, _Sum] = defaultdict(_Sum)
    for launch in launches:
        ns = _time(launch)
        if ns is not None:
            _add(sums[launch.name], launch, ns)
    ordered = sorted(sums.items(), key=lambda one: -one[1].ns)[:MOST_ROWS]
    rows = tuple(_row(name, total) for name, total in ordered)
    return ev.CountersSeen(0, SOURCE, rows, device)


def _lines(text: Text) -> Iterator[str]:
    """The lines of the table, without ncu's own words before and behind it."""
    rest = ""
    for chunk in text.chunks():
        rest += chunk
        if len(rest) > LONGEST_LINE and "\n" not in rest:
            raise Unreadable("is no table: it has a line without an end")
        *lines, rest = rest.split("\n")
        for line in lines:
            if not line.startswith("=="):
                yield line + "\n"
    if rest and not rest.startswith("=="):
        yield rest


def _launches(lines: Iterable[str]) -> tuple[list[_Launch], str]:
    """The kernels, and the device's name where it is told."""
    reader = csv.reader(lines)
    try:
        header = _header(reader)
        if all(name in header for name in _LONG):
            return _long(reader, header), ""
        return _wide(reader, header)
    except csv.Error as error:
        raise Unreadable(f"is no table that can be read: {error}") from None


def _header(reader: Iterator[list[str]]) -> list[str]:
    first: list[str] | None = None
    for at, row in enumerate(reader):
        names = [name.strip() for name in row]
        if all(key in names for key in _KEYS):
            return names
        if first is None and len(names) > 2:
            first = names
        if at > 1000:
            break
    if first is None:
        raise Unreadable("is no table")
    for name, sentence in _OTHERS:
        if any(name in one for one in first):
            raise Unreadable(f"{sentence}, which has no counters; tuimon reads that of ncu --csv")
    shown = ", ".join(first[:6])[:200]
    raise Unreadable(f"is a table with the columns {shown}; that of ncu --csv has ID, Kernel Name, Metric Name, ..")


def _long(reader: Iterator[list[str]], header: list[str]) -> list[_Launch]:
    """A line for each metric."""
    key, name, metric, unit, value = (header.index(one) for one in (*_KEYS, *_LONG))
    process = header.index("Process ID") if "Process ID" in header else key
    width = max(key, name, metric, unit, value, process)
    found: dict[tuple[str, str], _Launch] = {}
    for row in reader:
        if len(row) <= width or not row[metric]:
            continue
        number = row[process], row[key]
        launch = found.get(number)
        if launch is None:
            if len(found) >= MOST_LAUNCHES:
                break
            launch = found[number] = _Launch(row[name][:LONGEST_NAME])
        _take(launch, row[metric], row[unit], row[value])
    return list(found.values())


def _wide(reader: Iterator[list[str]], header: list[str]) -> tuple[list[_Launch], str]:
    """A line for each kernel, below one of units."""
    key, name = (header.index(one) for one in _KEYS)
    units = next(reader, [])
    if len(units) != len(header) or units[key].strip():
        raise Unreadable("is a table of Nsight Compute in a form that is not known: there is no line of units below the names")
    wanted = [at for at, metric in enumerate(header) if _known(metric)]
    device = header.index("device__attribute_display_name") if "device__attribute_display_name" in header else None
    found: list[_Launch] = []
    shown = ""
    for row in reader:
        if len(row) != len(header):
            continue
        if len(found) >= MOST_LAUNCHES:
            break
        launch = _Launch(row[name][:LONGEST_NAME])
        for at in wanted:
            _take(launch, header[at], units[at], row[at])
        found.append(launch)
        if device is not None:
            shown = shown or row[device].strip()[:LONGEST_NAME]
    return found, shown


def _known(metric: str) -> bool:
    return bool(metric in _TIME or metric.startswith(_BYTES) or _THREADS.fullmatch(metric) or _TENSOR.fullmatch(metric))


_BYTES = ("dram__bytes", "dram__sectors", "lts__t_bytes.sum", "lts__t_sectors.sum")


def _take(launch: _Launch, metric: str, unit: str, text: str) -> None:
    if not _known(metric):
        return
    unit = unit.strip().lower()
    if metric in _TIME:
        scale = _SECONDS.get(unit)
    elif metric.startswith(_BYTES):
        scale = 32.0 if "sectors" in metric else _SIZES.get(unit)
    else:
        scale = _COUNTS.get(unit)
    number = _number(text)
    if scale is not None and number is not None:
        launch.values[metric] = number * scale


def _number(text: str) -> float | None:
    """A number as ncu prints it: 1,234.5; None for "n/a" and for what none is."""
    try:
        found = float(text.strip().replace(",", ""))
    except ValueError:
        return None
    return found if math.isfinite(found) and 0 <= found < 2**63 else None


def _time(launch: _Launch) -> float | None:
    return next((ns for name in _TIME if (ns := launch.values.get(name))), None)


def _add(total: _Sum, launch: _Launch, ns: float) -> None:
    values = launch.values
    total.n += 1
    total.ns += ns
    dram = values.get("dram__bytes.sum", _both(values, "dram__bytes_read.sum", "dram__bytes_write.sum"))
    total.dram = _plus(total.dram, dram if dram is not None else values.get("dram__sectors.sum"))
    total.l2 = _plus(total.l2, values.get("lts__t_bytes.sum", values.get("lts__t_sectors.sum")))
    counted = _operations(values)
    total.operations = _plus(total.operations, sum(counted.values()) if counted is not None else None)
    for one, operations in (counted or {}).items():
        total.by_class[one] += operations


def _both(values: Mapping[str, float], one: str, other: str) -> float | None:
    return values[one] + values[other] if one in values and other in values else None


def _plus(total: float | None, more: float | None) -> float | None:
    return None if total is None or more is None else total + more


def _operations(values: Mapping[str, float]) -> dict[tuple[str, str], float] | None:
    """Operations by (unit, dtype); None where ncu was not asked for them. A fused multiply-add is two."""
    found: dict[tuple[str, str], float] = defaultdict(float)
    threads: dict[str, set[str]] = defaultdict(set)
    whole = {match[1] for name in values if (match := _TENSOR.fullmatch(name)) and not match[2]}
    for name, value in values.items():
        if match := _THREADS.fullmatch(name):
            if match[2] in threads[match[1]]:
                continue  # once as sm__ and once as smsp__
            threads[match[1]].add(match[2])
            found["vector", _DTYPES[match[1]]] += value * (2 if match[2] == "fma" else 1)
        elif (match := _TENSOR.fullmatch(name)) and (not match[2] or match[1] not in whole):
            found["matrix", _DTYPES.get(match[1], "")] += value
    complete = all(len(kinds) == 3 for kinds in threads.values())
    return dict(found) if found and complete else None


def _row(name: str, total: _Sum) -> ev.CounterRow:
    unit = dtype = ""
    if total.operations:
        (unit, dtype), most = max(total.by_class.items(), key=lambda one: one[1])
        if 2 * most < total.operations:
            unit = dtype = ""
    return name, total.n, round(total.ns), total.operations, total.dram, total.l2, unit, dtype
