"""What one call of a compiled graph computes and moves: its rows by formula, at the sizes that the call had."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tuimon.events import GraphSeen
from tuimon.events.graphs import Edge
from tuimon.model.parts import Sizes
from tuimon.roofline.counts.operations import Operations, Shape, operations
from tuimon.roofline.counts.sizes import sizes, tensor_bytes
from tuimon.roofline.machines import Unit, dtype_of

Class = tuple[Unit, str]
"""(unit, dtype) of operations: whose peak they are held against."""

NO_SIZES = "the sizes of its symbols are not known"
MOST_KEPT = 4096


@dataclass(slots=True)
class Counted:
    """One call: operations by class and the bytes that must cross its edge. None where that is not known, never 0."""

    by_class: Counter[Class] | None
    """None: not all of them are known."""
    read: float | None
    written: float | None
    unknown: tuple[str, ...] = ()
    """Operators without a formula."""
    why_not: str = ""
    """Why operations are not known."""
    model_bytes: float | None = None
    """What Inductor's own model of reads and writes says, where it holds for these sizes."""
    masked: bool = False
    """Attention was given a mask: pairs that it takes out are counted all the same."""
    known: Counter[Class] = field(default_factory=Counter)
    """Those with a formula, also where others have none."""
    total: int | None = field(init=False)
    """All operations of a call."""
    bytes: float | None = field(init=False)
    """Each input that is read once, each output once: no call moves less than this across its edge."""

    def __post_init__(self) -> None:
        self.total = None if self.by_class is None else sum(self.by_class.values())
        self.bytes = None if self.read is None or self.written is None else self.read + self.written


class Memo:
    """Counts graphs once for each set of sizes. It holds the graphs it has counted, so that an id stands for one of them."""

    def __init__(self) -> None:
        self._held: dict[tuple[int, Sizes], tuple[GraphSeen, Counted]] = {}

    def counted(self, graph: GraphSeen, at: Sizes) -> Counted:
        """What a call of the graph with these sizes does."""
        key = (id(graph), at)
        known = self._held.get(key)
        if known is None:
            if len(self._held) >= MOST_KEPT:
                self._held.clear()
            known = self._held[key] = graph, count(graph, at)
        return known[1]


def together(parts: Sequence[Counted]) -> Counted:
    """Several graphs that run in one call."""
    if len(parts) == 1:
        return parts[0]
    known: Counter[Class] = Counter()
    for part in parts:
        known.update(part.known)
    complete = all(part.by_class is not None for part in parts)
    # what one of them writes and another reads crosses an edge twice
    reads, writes, models = ([getattr(part, name) for part in parts] for name in ("read", "written", "model_bytes"))
    return Counted(
        known if complete else None,
        _sum(reads),
        _sum(writes),
        tuple(dict.fromkeys(name for part in parts for name in part.unknown)),
        next((part.why_not for part in parts if part.why_not), ""),
        _sum(models),
        any(part.masked for part in parts),
        known,
    )


def _sum(values: Sequence[float | None]) -> float | None:
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def count(graph: GraphSeen, at: Sizes) -> Counted:
    """Evaluate a graph's rows and edges with the symbols at these sizes."""
    symbols = dict(at)
    known: Counter[Class] = Counter()
    unknown: dict[str, None] = {}
    sized, masked = True, False
    for operator, inputs, outputs, arguments, times in graph.rows:
        read = _shapes(inputs, symbols)
        written = _shapes(outputs, symbols)
        if read is None or written is None:
            sized = False
            continue
        told = read_arguments(arguments)
        masked = masked or told.get("mask") is True
        found = operations(operator, read, written, told)
        if found is None:
            unknown[operator] = None
        else:
            add_classes(known, found, read, written, times)
    complete = sized and not unknown and not graph.cut
    holds = graph.model_bytes is not None and (not at or not graph.symbols or dict(graph.symbols) == symbols)
    return Counted(
        by_class=known if complete else None,
        read=_edge(graph.reads, symbols),
        written=_edge(graph.writes, symbols),
        unknown=tuple(unknown),
        why_not="" if complete else _why(graph, tuple(unknown), sized),
        model_bytes=graph.model_bytes if holds and sized else None,
        masked=masked,
        known=known,
    )


def _why(graph: GraphSeen, unknown: tuple[str, ...], sized: bool) -> str:
    if graph.cut:
        return f"a part of its graph is not known: {graph.why or 'cut'}"
    if unknown:
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        return f"no formula for {unknown[0]}{more}"
    return "" if sized else NO_SIZES


def _shapes(tensors: Sequence[tuple[str, tuple[str, ...]]], symbols: Mapping[str, int]) -> tuple[Shape, ...] | None:
    found = []
    for dtype, texts in tensors:
        dims = sizes(texts, symbols)
        if dims is None:
            return None
        found.append((dtype, dims))
    return tuple(found)


def _edge(edges: Sequence[Edge], symbols: Mapping[str, int]) -> float | None:
    total = 0.0
    for dtype, texts, times in edges:
        dims = sizes(texts, symbols)
        one = None if dims is None else tensor_bytes(dtype, dims)
        if one is None:
            return None
        total += one * times
    return total


def read_arguments(text: str) -> dict[str, Any]:
    """The arguments of a row; {} where there are none that can be read."""
    if not text:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def add_classes(into: Counter[Class], found: Operations, inputs: Sequence[Shape], outputs: Sequence[Shape], times: int) -> None:
    """Count operations by the unit and the dtype that they are done in."""
    if found.matrix:
        into["matrix", _matrix_dtype(inputs, outputs)] += found.matrix * times
    if found.vector:
        into["vector", _vector_dtype(inputs, outputs)] += found.vector * times


def _matrix_dtype(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> str:
    """That of the operands: of the first tensor with rows and columns."""
    for dtype, dims in (*inputs, *outputs):
        if len(dims) >= 2:
            return dtype_of(dtype)
    return _vector_dtype(inputs, outputs)


def _vector_dtype(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> str:
    for dtype, _ in (*outputs, *inputs):
        return dtype_of(dtype)
    return ""
