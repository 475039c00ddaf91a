"""A compiled graph's text, as torch prints it (`print_readable`), read: what it computes, and what must cross its edge.

A text may be anything: there is no exception for it, and what could not be understood is said (`cut` and `why`). Nothing of the
text itself goes on, neither names nor comments: only operators, dtypes, sizes and the few arguments that a formula needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from tuimon.events import Edge, GraphRow, Tensor
from tuimon.sources import arguments
from tuimon.sources.graph_lines import LONGEST_SIZE, Node, Section, read_sections, values_in

MOST_ROWS = 1500
"""Distinct rows of a graph; one of more is `cut`."""

DEEPEST = 8
"""So deep may subgraphs be within subgraphs."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a graph's text says, in the terms of `GraphSeen`."""

    rows: tuple[GraphRow, ...] = ()
    reads: tuple[Edge, ...] = ()
    writes: tuple[Edge, ...] = ()
    cut: bool = False
    why: str = ""


WHOLE_VIEWS = frozenset({
    "view", "_unsafe_view", "reshape", "permute", "transpose", "t", "T", "mT", "swapaxes", "unsqueeze", "squeeze",
    "expand", "expand_as", "view_as", "detach", "alias", "flatten", "unflatten", "movedim", "requires_grad_",
    "lift_fresh", "lift_fresh_copy", "_conj", "squeeze_", "unsqueeze_", "detach_", "_reshape_alias",
})  # fmt: skip
"""Operators that give the same elements in another shape, without a copy (`reshape` mostly)."""

PART_VIEWS = frozenset({
    "slice", "select", "split", "split_with_sizes", "chunk", "unbind", "narrow", "diagonal", "as_strided",
    "tensor_split", "getitem", "unfold",
})  # fmt: skip
"""Operators that give some of the elements, without a copy."""

GATHERS = frozenset({
    "embedding", "index", "index_select", "gather", "take", "take_along_dim", "_unsafe_index",
})  # fmt: skip
"""Operators that read of their first input no more elements than they give."""

SCATTERS = frozenset({
    "index_put", "_unsafe_index_put", "index_copy", "slice_scatter", "select_scatter", "diagonal_scatter",
})  # fmt: skip
"""Operators that put their last tensor into a part of their first. In place (a cache of keys, say) the rest is not touched."""

TRANSPARENT = frozenset({
    "tag_activation_checkpoint", "wrap", "wrap_activation_checkpoint", "wrap_with_autocast",
    "wrap_with_set_grad_enabled", "invoke_subgraph", "inline_wrap", "checkpoint", "dynamo_bypassing_wrapper",
    "hints_wrapper", "strict_mode",
})  # fmt: skip
"""Higher-order operators that run their subgraph once, and nothing else."""

NOTHING = frozenset({
    "_assert_async", "_assert_scalar", "_assert_tensor_metadata", "sym_size", "sym_numel", "sym_stride",
    "sym_storage_offset", "set_grad_enabled", "_set_grad_enabled", "_enter_autocast", "_exit_autocast",
    "_C._set_grad_enabled", "sym_constrain_range", "_functorch.predispatch",
})  # fmt: skip
"""What is in graphs and computes nothing."""


def read(text: str, level: Literal["aten", "torch"]) -> Content:
    """What the graph computes. Never raises for a text: one that is no graph gives `cut` and why."""
    sections, whole = read_sections(text)
    if not sections:
        return Content(cut=True, why="the graph's text could not be read")
    main, rest = sections[0], {one.name: one for one in sections[1:]}
    counted: Counter[GraphRow] = Counter()
    why = "" if whole else "the graph's text is longer than is read"
    for section, times in _run(main, rest):
        why = why or ("lines of the graph's text could not be read" if section.unread else "")
        for row in _rows(section, level, rest):
            counted[row] += times
    if len(counted) > MOST_ROWS:
        counted.clear()
        why = f"more than {MOST_ROWS} different operations"
    reads, writes = _edges(main)
    rows = tuple((operator, ins, outs, args, times) for (operator, ins, outs, args, _), times in counted.items())
    return Content(rows, reads, writes, bool(why), why)


def _run(main: Section, rest: dict[str, Section]) -> Iterator[tuple[Section, int]]:
    """The sections that run when the graph is called, each with how often."""
    waiting: list[tuple[Section, int, int]] = [(main, 1, 0)]
    budget = 10_000
    while waiting and budget > 0:
        budget -= 1
        section, times, depth = waiting.pop()
        yield section, times
        if depth < DEEPEST and rest:
            called = Counter(name for node in section.nodes for name in _subgraphs(node, rest))
            waiting += [(rest[name], times * count, depth + 1) for name, count in called.items()]


def _subgraphs(node: Node, rest: dict[str, Section]) -> list[str]:
    if not node.operator.startswith("higher_order.") or node.operator[13:] not in TRANSPARENT:
        return []
    return [name for name in node.inputs if name in rest][:1]


def _plain(operator: str) -> str:
    return operator.removeprefix("torch.")


def _rows(section: Section, level: Literal["aten", "torch"], rest: dict[str, Section]) -> Iterator[GraphRow]:
    """A row for each node that computes something."""
    values = _values_of(section)
    items: dict[str, list[tuple[str, Tensor]]] = {}
    for node in section.nodes:
        if node.operator == "getitem" and node.output is not None and node.words[0] not in values:
            items.setdefault(node.words[0], []).append((node.words[1], node.output))
    for node in section.nodes:
        plain = _plain(node.operator)
        if not plain or node.scalar or plain in WHOLE_VIEWS or plain in PART_VIEWS or plain in NOTHING:
            continue
        if _subgraphs(node, rest):
            continue
        ins = tuple([values[name] for name in node.inputs if name in values])
        several = sorted(items.get(node.name, ()), key=_place)
        outs = (node.output,) if node.output is not None else tuple([one for _, one in several])
        if not ins and not outs:
            continue
        operator = node.operator if level == "torch" or node.operator != f"torch.{plain}" else plain
        yield operator[:200], ins, outs, _told(operator, node, values), 1


def _told(operator: str, node: Node, values: dict[str, Tensor]) -> str:
    def tensor(place: int) -> bool:
        given = [node.words[place]] if place < len(node.words) else []
        return any(one in values for one in (*given, *(node.named.get(name, "") for name in arguments.MASK_NAMES)))

    def find(place: int, name: str) -> str | None:
        return node.words[place] if place < len(node.words) else node.named.get(name)

    return arguments.told(operator, find, tensor)


def _values_of(section: Section) -> dict[str, Tensor]:
    """The tensor behind each name."""
    values = {name: told for name, told in section.places.items() if told is not None}
    for node in section.nodes:
        if node.output is not None:
            values[node.name] = node.output
        elif not node.operator and node.inputs and node.inputs[0] in values:
            values[node.name] = values[node.inputs[0]]
    return values


# -------------------------------------------------------------------------------------------------- what crosses the edge


def _edges(section: Section) -> tuple[tuple[Edge, ...], tuple[Edge, ...]]:
    """(what is read of the inputs, what is written): each once, a view as what it is a view of."""
    values = _values_of(section)
    root: dict[str, str] = {}
    """A view -> what it is a view of, in the end."""
    part: set[str] = set()
    """Views of some of the elements only."""
    inputs = dict.fromkeys(name for name, told in section.places.items() if told is not None)
    whole: dict[str, None] = {}
    parts: dict[str, dict[str, Tensor]] = {}
    """Input -> what of it is read, by the name of the view or of what was gathered."""
    written: dict[str, None] = {}
    put: dict[str, dict[str, Tensor]] = {}
    """Input -> what was put into it."""
    in_place = _in_place(section)

    def base(name: str) -> str:
        return root.get(name, name)

    def reads(name: str) -> None:
        origin = base(name)
        if name in part and name in values:
            parts.setdefault(origin, {})[name] = values[name]
        else:
            whole[origin] = None

    for node in section.nodes:
        plain = _plain(node.operator)
        if not plain and node.words[0].startswith("self.") and node.output is not None:
            inputs[node.name] = None  # a constant of the graph
            continue
        first = node.inputs[0] if node.inputs else ""
        of_several = plain == "getitem" and first not in values and first not in root
        if not plain or plain in WHOLE_VIEWS or (plain in PART_VIEWS and not of_several):
            root[node.name] = base(first)
            if plain in PART_VIEWS or first in part:
                part.add(node.name)
            continue
        if plain == "getitem" or plain in NOTHING:
            continue
        taken = node.inputs
        if node.name in in_place or (plain[-1:] == "_" and plain[:-1] in SCATTERS and first):
            root[node.name] = base(first)
            if plain == "copy_":
                continue  # what it copies is there already
            taken = taken[1:]
            told = [values[name] for name in taken if name in values]
            put.setdefault(base(first), {})[node.name] = told[-1] if told else ("", ("0",))
        elif plain.endswith("_") and not plain.endswith("__") and first:  # in place: the first of them, or the first list
            mutated = values_in(node.words[:1])
            for name in mutated:
                written[base(name)] = None
            root[node.name] = base(first)
            if plain == "copy_":
                taken = taken[len(mutated) :]
        elif plain in GATHERS and node.output is not None and first:
            table = taken[1] if node.operator == "torch.embedding" and len(taken) > 1 else first  # the ids come first there
            parts.setdefault(base(table), {})[node.name] = node.output
            taken = [name for name in taken if name != table]
        elif plain == "copy":
            taken = taken[1:]  # only the sizes of the first count
        for name in taken:
            reads(name)
    new = [base(name) for name in section.returned]
    made = [name for name in dict.fromkeys([*new, *written]) if name in values and (name not in inputs or name in written)]
    read = [_spanned(values[name], section.strides.get(name, ())) for name in inputs if name in whole]
    read += [_some(values[name], parts[name].values()) for name in inputs if name in parts and name not in whole]
    wrote = [_spanned(values[name], section.strides.get(name, ())) for name in made]
    wrote += [_some(values[name], put[name].values()) for name in put if name in inputs and name not in written]
    return _merged(read), _merged(wrote)


def _in_place(section: Section) -> set[str]:
    """What AOTAutograd writes as a copy with a part replaced, and the copy of that back to where it is from: a compiler does
    both in place."""
    scattered = {node.name: node.inputs[0] for node in section.nodes if _plain(node.operator) in SCATTERS and node.inputs}
    found: set[str] = set()
    for node in section.nodes:
        if _plain(node.operator) != "copy_" or len(node.inputs) < 2:
            continue
        home, at = node.inputs[:2]
        chain = [node.name]
        while at in scattered and len(chain) <= len(scattered):
            chain.append(at)
            at = scattered[at]
        if at == home and len(chain) > 1:
            found.update(chain)
    return found


def _spanned(told: Tensor, strides: tuple[str, ...]) -> Tensor:
    """The elements that are there: along a dimension that was expanded it is one."""
    dtype, sizes = told
    if "0" not in strides or len(strides) != len(sizes):
        return told
    return dtype, tuple(["1" if stride == "0" else size for size, stride in zip(sizes, strides, strict=True)])


def _some(whole: Tensor, taken: Iterable[Tensor]) -> Tensor:
    """Of this tensor no more than what was taken of it."""
    dtype, sizes = whole
    numbers = [_product(one[1]) for one in taken]
    limit = _product(sizes)
    total = " + ".join(numbers)
    if all(number.isdecimal() for number in (*numbers, limit)):
        return dtype, (str(min(int(limit), sum(map(int, numbers)))),)
    size = f"Min({limit}, {total})"
    return (dtype, (size,)) if len(size) <= LONGEST_SIZE else whole


def _product(sizes: tuple[str, ...]) -> str:
    """The number of elements, as digits or as an expression."""
    number, factors = 1, []
    for size in sizes:
        if size.isdecimal() and len(size) < 19:
            number *= int(size)
        else:
            factors.append(f"({size})")
    if number > 2**62:
        return "0" if not factors else "*".join(factors)
    return str(number) if not factors else "*".join([str(number), *factors])


def _merged(told: list[Tensor]) -> tuple[Edge, ...]:
    counted = Counter(told)
    return tuple((dtype, sizes, times) for (dtype, sizes), times in counted.items())


def _place(item: tuple[str, Tensor]) -> int:
    return int(item[0]) if item[0].isdecimal() and len(item[0]) < 10 else 0
