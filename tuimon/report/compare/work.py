"""Whether two runs do the same work: the sizes that operators are called with, their dtypes, the operations of a step.

Graphs cannot be held against each other one by one: where a graph break has gone, two of them are one. Their operators can: a
product with the same weights is the same product, and the rows that go through it tell the batch.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from tuimon.model.laps import UNKNOWN_SIZES
from tuimon.model.parts import Region, Sizes
from tuimon.report.compare.side import Side
from tuimon.report.phrases import many
from tuimon.roofline.counts.counted import Memo
from tuimon.roofline.counts.sizes import sizes
from tuimon.roofline.dtypes import short
from tuimon.roofline.regions import of_call, usual_sizes

_DATA = {
    "mm": 0, "linear": 0, "_linear_pointwise": 0, "addmm": 1, "embedding": 1,
    **dict.fromkeys(("convolution", "_convolution", "conv1d", "conv2d", "conv3d", "cudnn_convolution", "mkldnn_convolution",
                     "miopen_convolution", "_convolution_pointwise", "slow_conv2d", "thnn_conv2d"), 0),
}  # fmt: skip
"""Operator -> which of its operands is the data; the others are weights, and do not grow with the batch."""
_BATCHED = {name for name in _DATA if "conv" in name} | {"embedding"}
"""The first size of their data is the batch itself, and not the batch times a length."""

Key = tuple[str, tuple[tuple[int, ...], ...]]
"""(operator, the sizes of its operands without the first one of its data)."""
Where = tuple[str, tuple[int, ...]]
"""(dtype, sizes without the first) of an input of a graph."""

SAME_FLOP = 0.01
MIXED_FLOP = 0.05
"""Where calls have several sizes, their mix differs a little from run to run."""


@dataclass(frozen=True)
class Work:
    """What a run computes, as far as it was told. Empty where nothing was."""

    rows: dict[Key, int]
    """The first size of the data of an operator: that of most of its calls."""
    inputs: dict[Where, int]
    """The same of the inputs of graphs."""
    dtype: str | None
    """Of most of those operators' data."""
    matrix_per_step: float | None
    """Operations of matrix products a step; None where not all are known."""
    why: str
    """Why not."""
    mixed: bool
    """Calls had several sizes."""
    source: str
    """"compiled graphs", "the trace's operators", "" for neither."""


def work_of(side: Side) -> Work:
    """What is known of a run's work."""
    rows: dict[Key, Counter[int]] = defaultdict(Counter)
    inputs: dict[Where, Counter[int]] = defaultdict(Counter)
    dtypes: Counter[str] = Counter()
    model = side.model
    source = ""
    for operator, operands, times in _kernel_rows(side):
        source = "the trace's operators"
        _count(rows, dtypes, operator, operands, times)
    if not source:
        for region in model.regions.values():
            for operator, operands, times in _graph_rows(region, inputs):
                source = "compiled graphs"
                _count(rows, dtypes, operator, operands, times)
    flop, why = _matrix(side)
    return Work(
        {key: most(counts) for key, counts in rows.items()},
        {key: most(counts) for key, counts in inputs.items()},
        max(dtypes, key=lambda name: dtypes[name]) if dtypes else None,
        flop,
        why,
        any(len(region.laps) > 1 for region in model.regions.values()) or any(len(counts) > 1 for counts in rows.values()),
        source,
    )


def most(counts: Counter[int]) -> int:
    """The size that most calls had; the larger one of two that as many had."""
    return max(counts, key=lambda one: (counts[one], one))


def _count(
    rows: dict[Key, Counter[int]],
    dtypes: Counter[str],
    operator: str,
    operands: Sequence[tuple[str, tuple[int, ...]]],
    times: int,
) -> None:
    name = operator.rpartition("::")[2].rpartition(".")[2]
    at = _DATA.get(name)
    if at is None or len(operands) <= at or not operands[at][1]:
        return
    without = tuple(dims[1:] if place == at else dims for place, (_, dims) in enumerate(operands))
    rows[name, without][operands[at][1][0]] += times
    dtype = operands[0][0] if name == "embedding" else operands[at][0]
    if dtype:
        dtypes[short(dtype)] += times * prod(operands[at][1])


def _kernel_rows(side: Side) -> Iterator[tuple[str, Sequence[tuple[str, tuple[int, ...]]], int]]:
    """Those of a trace file; a window of a live job is but a glance, and its graphs tell more."""
    seen = side.model.kernels.get(0)
    for row in seen.rows if seen is not None else ():
        if row[1] and row[2]:
            yield row[1], row[2], row[6]


def _graph_rows(
    region: Region, inputs: dict[Where, Counter[int]]
) -> Iterator[tuple[str, Sequence[tuple[str, tuple[int, ...]]], int]]:
    """The rows of a region's graphs at each of the sizes that it was called with, as often as it was."""
    for at, calls in _sizes(region):
        symbols = dict(at)
        for graph in region.graphs:
            held = symbols or dict(graph.symbols)
            for operator, operands, _, _, times in graph.rows:
                told = [(dtype, sizes(texts, held)) for dtype, texts in operands]
                known = [(dtype, dims) for dtype, dims in told if dims is not None]
                if len(known) == len(told):
                    yield operator, known, times * calls
            if region.direction == "forward":
                for dtype, texts, times in graph.reads:
                    dims = sizes(texts, held)
                    if dims:
                        inputs[short(dtype), dims[1:]][dims[0]] += times * calls


def _sizes(region: Region) -> list[tuple[Sizes, int]]:
    found = [(at, sum(lap.calls for lap in laps)) for at, laps in region.laps.items()]
    return found or [(UNKNOWN_SIZES, max(1, region.calls))]


def _matrix(side: Side) -> tuple[float | None, str]:
    """Operations of matrix products in a step without a compilation, and why they are not known."""
    model = side.model
    if not model.regions:
        return None, "no compiled graph has told its operations"
    if not side.steady_n:
        return None, "no step without a compilation"
    if any(frame.refused_compile_id or frame.skipped for frame in model.frames.values()):
        return None, "a frame runs in eager, where operations are not counted"
    memo, total, any_known = Memo(), 0.0, False
    for region in model.regions.values():
        calls = side.calls_per_step(region)
        if not calls:
            continue
        if not region.graphs:
            return None, "the graph of a region has not been told"
        if any(graph.cut for graph in region.graphs):
            return None, "a part of a region's graph is not known"
        spread = _sizes(region)
        counted = sum(number for _, number in spread) or 1
        for at, number in spread:
            one = of_call(region, at if at else usual_sizes(region), memo)
            any_known = any_known or bool(one.known)
            of_matrix = sum(amount for (unit, _), amount in one.known.items() if unit == "matrix")
            total += of_matrix * calls * number / counted
    if not any_known:
        return None, "the sizes of the graphs are not known"
    return total, ""


# ------------------------------------------------------------------------------------------------- two of them


@dataclass(frozen=True)
class Verdict:
    """Of one check. `a` and `b` in words."""

    a: str
    b: str
    verdict: str
    why: str | None = None
    refuses: str = ""
    """The sentence by which the pair is refused; empty where it is not."""


def shapes(a: Work, b: Work) -> Verdict:
    """Whether the operators that both have were given data of the same size; else the batch sizes, where they tell."""
    if not a.source or not b.source:
        why = "no operator with its sizes was told: neither compiled graphs nor a trace with record_shapes"
        return Verdict(_told(a), _told(b), "not known", why)
    both = [key for key in a.rows if key in b.rows]
    if not both:
        why = "they have no matrix product, convolution or embedding in common"
        if a.rows and b.rows:  # each has some, with other weights
            return Verdict(_told(a), _told(b), "differs", None, f"it is another model: {why}")
        return Verdict(_told(a), _told(b), "not known", why)
    other = [key for key in both if a.rows[key] != b.rows[key]]
    if not other:
        batch = next((key for key in both if key[0] in _BATCHED), None)
        told = f"{many(len(both), 'operator')} alike" if batch is None else f"batch size {a.rows[batch]}"
        return Verdict(told, told if batch is None else f"batch size {b.rows[batch]}", "same")
    factors = {Fraction(b.rows[key], a.rows[key]) for key in other if a.rows[key]}
    batch = next((key for key in other if key[0] in _BATCHED), None)
    named = (a.rows[batch], b.rows[batch]) if batch is not None else None
    if named is None and len(factors) == 1:
        named = _by_inputs(a, b, next(iter(factors)))
    if len(factors) == 1 and named is not None and 2 * len(other) >= len(both):
        first, second = (f"batch size {one}" for one in named)
        return Verdict(first, second, "differs", None, f"the batch size is {named[0]} in A and {named[1]} in B")
    key = other[0]
    first, second = (f"{key[0]} of {one.rows[key]} rows" for one in (a, b))
    told = f"{len(other)} of {len(both)} operators that both have are given data of another size"
    return Verdict(first, second, "differs", told, f"the shapes differ: {told}, {first} in A and {second} in B")


def _by_inputs(a: Work, b: Work, factor: Fraction) -> tuple[int, int] | None:
    """The batch: the first size of a graph's input that grew by the factor; the smallest such, as others hold a length too."""
    found = [
        (first, b.inputs[where])
        for where, first in a.inputs.items()
        if first and where in b.inputs and Fraction(b.inputs[where], first) == factor
    ]
    return min(found, default=None)


def _told(one: Work) -> str:
    return f"{many(len(one.rows), 'operator')} of {one.source}" if one.source else "not told"


def dtypes(a: Work, b: Work) -> Verdict:
    """Whether most of the work is done in the same format."""
    if a.dtype is None or b.dtype is None:
        return Verdict(a.dtype or "not told", b.dtype or "not told", "not known", "no operator with its dtype was told")
    if a.dtype == b.dtype:
        return Verdict(a.dtype, b.dtype, "same")
    return Verdict(a.dtype, b.dtype, "differs", None, f"the data is {a.dtype} in A and {b.dtype} in B")


def operations(a: Work, b: Work) -> Verdict:
    """Whether a step makes as many operations in matrix products."""
    first, second = a.matrix_per_step, b.matrix_per_step
    if first is None or second is None:
        return Verdict(_flop(first), _flop(second), "not known", a.why or b.why)
    if not first or not second:
        why = "compiled graphs hold no matrix product in one of them; elementwise work is not held against each other"
        return Verdict(_flop(first), _flop(second), "not known", why)
    off = abs(second / first - 1)
    mixed = a.mixed or b.mixed
    if off <= (MIXED_FLOP if mixed else SAME_FLOP):
        rough = f"within {MIXED_FLOP:.0%}: sizes vary from call to call" if off > SAME_FLOP else None
        return Verdict(_flop(first), _flop(second), "same", rough)
    refuses = f"a step makes {_flop(first)} in matrix products in A and {_flop(second)} in B"
    return Verdict(_flop(first), _flop(second), "differs", None, refuses)


def _flop(value: float | None) -> str:
    if value is None:
        return "not known"
    for size, name in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {name}FLOP"
    return f"{value:.0f} FLOP"
