"""The operators of a profile, nested as they were called: which was open when, and where their time went."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

MOST_SIGNATURES = 200_000

WHOLE = frozenset({
    "aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::addbmm", "aten::mv", "aten::addmv", "aten::dot",
    "aten::vdot", "aten::_int_mm", "aten::_scaled_mm", "aten::_grouped_mm", "aten::mkldnn_convolution",
    "aten::thnn_conv2d", "aten::_slow_conv2d_forward", "aten::slow_conv3d_forward", "aten::_slow_conv2d_backward",
    "aten::convolution_backward", "aten::mkldnn_rnn_layer", "aten::mkldnn_rnn_layer_backward",
    "aten::_scaled_dot_product_flash_attention_for_cpu", "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
    "mkldnn::_linear_pointwise", "mkldnn::_convolution_pointwise", "mkl::_mkl_linear", "aten::conv_depthwise3d",
    "aten::_conv_depthwise2d",
})  # fmt: skip
"""Operators that are counted with all that they call, however little of their time is their own."""

REGION = "Torch-Compiled Region: "
LOOKUP = "TorchDynamo Cache Lookup"
_GRAPH = ("## Call CompiledFxGraph ", "CompiledFunction")
"""The call of a region's graph: what a region encloses behind it is the code after a graph break, further regions included."""
_COMPILE_ID = re.compile(r"!?\d{1,6}(?:/\d{1,6}){1,2}(?:_\d{1,4})?")
_NO_OPERATOR = (
    "autograd::engine::", "torch::autograd::", "TorchDynamo", "Torch-Compiled", "CompiledFunction", "ProfilerStep",
    "Optimizer.", "PyTorch Profiler", "##", "enumerate(", "nn.Module", "DistributedDataParallel", "Pregraph", "Iteration",
)  # fmt: skip
_BACKWARD = re.compile(r"Backward\d*$")
_KERNELS = ("triton_", "cpp_fused", "graph_")
_COMMUNICATION = ("nccl:", "gloo:", "record_param_comms")


@dataclass(frozen=True, slots=True)
class Signature:
    """What is the same for all calls of an operator with the same operands."""

    name: str
    dims: list[Any] = ()  # type: ignore[assignment]
    types: list[Any] = ()  # type: ignore[assignment]
    concrete: list[Any] = ()  # type: ignore[assignment]


class Ran(NamedTuple):
    """One call of a compiled region: from its begin to the end of its graph's call."""

    thread: Hashable
    begin: int
    end: int
    region: str
    """The compile id; a backward's ends in "<"."""


_Call = tuple[int, int, int, int]
"""(begin, -end, signature, sequence number or -1): in the order of begin, what encloses comes before what is enclosed."""


@dataclass(frozen=True, slots=True)
class Open:
    """What was open at a moment on a thread."""

    call: int
    """The innermost operator's call, -1 where none was."""
    region: str | None
    """The compile id of the region around it; a backward's ends in "<"."""


class Operators:
    """All calls of operators of a file. Add them, in any order; then ask."""

    def __init__(self) -> None:
        self.begin: int | None = None
        self.end: int | None = None
        self.holds_open = True
        """Whether `open_at` will be asked: what it needs is a third of the memory. Set before anything is asked."""
        self._signatures: list[Signature] = []
        self._numbers: dict[tuple[str, str, bool], int] = {}
        self._kinds: list[int] = []
        """Of each signature: 2 an operator, 1 what may have launched kernels, 0 only something around."""
        self._tells: list[int] = []
        """Of each signature: what it tells of regions, _A_REGION, .. or 0."""
        self._has_node: list[bool] = []
        self._calls: dict[Hashable, list[_Call]] = defaultdict(list)
        """By thread."""
        self._flat: list[tuple[int, int, int, str | None]] = []
        """(signature, ns, parent, region) of each call, once they are nested; a parent comes before its children."""
        self._nested: dict[Hashable, list[tuple[int, int, int, str | None, int]]] = {}
        """Thread -> (begin, end, call, region, end of the region) of all that was open, in the order of begin."""
        self._done = False
        self._ran: list[Ran] = []
        self._regions: dict[str, list[int]] = {}
        self._sequences: dict[int, str | None] = {}
        """Sequence number of an autograd node -> the region that made it."""

    def __len__(self) -> int:
        return sum(map(len, self._calls.values()))

    def number(self, name: Any, args: Mapping[str, Any], *, annotation: bool = False) -> int:
        """The number of a signature. `annotation`: a stretch that somebody has named. Raises what comes of malformed values."""
        if not isinstance(name, str):
            raise TypeError("no name")
        dims = args.get("Input Dims") or args.get("Input dims") or ()
        types, concrete = args.get("Input type") or (), args.get("Concrete Inputs") or ()
        key = (name, f"{dims}{types}{concrete}" if dims else "", annotation)
        number = self._numbers.get(key)
        if number is None:
            if len(self._signatures) >= MOST_SIGNATURES:
                raise ValueError("too many different operators")
            told = [list(one) if isinstance(one, list) else [] for one in (dims, types, concrete)]
            number = self._numbers[key] = len(self._signatures)
            self._signatures.append(Signature(name, *told))
            self._kinds.append(_kind(name, bool(dims), annotation))
            self._tells.append(_telling(name))
            self._has_node.append(name.startswith("CompiledFunction"))
        return number

    def add(self, thread: Hashable, begin: int, ns: int, number: int, sequence: Any = None) -> None:
        """One call of that signature; its sequence number is of the autograd node that it made or ran."""
        if not self._has_node[number]:
            sequence = None
        self._calls[thread].append((begin, -begin - ns, number, sequence if type(sequence) is int else -1))
        self.begin = begin if self.begin is None or begin < self.begin else self.begin
        self.end = begin + ns if self.end is None or begin + ns > self.end else self.end

    def cut(self, begin: int, end: int) -> bool:
        """Leave only the calls that began in that span, ns; whether those are any, else all are left. Before anything is asked.

        A backward in it may belong to a forward before it: which is learnt first.
        """
        self._learn()
        left = {thread: [call for call in calls if begin <= call[0] < end] for thread, calls in self._calls.items()}
        every = [call for calls in left.values() for call in calls]
        if not every:
            return False
        self._calls = defaultdict(list, {thread: calls for thread, calls in left.items() if calls})
        self.begin, self.end = min(call[0] for call in every), max(-call[1] for call in every)
        return True

    def signature(self, number: int) -> Signature:
        """The signature of that number."""
        return self._signatures[number]

    def of_call(self, call: int) -> tuple[int, str | None]:
        """(signature, region) of a call."""
        signature, _, _, region = self._flat[call]
        return signature, region

    def regions(self) -> tuple[tuple[str, int, int], ...]:
        """(compile id, calls, ns) of the compiled regions."""
        self._nest()
        return tuple((compile_id, n, ns) for compile_id, (n, ns) in sorted(self._regions.items()))[:1000]

    def ran(self) -> list[Ran]:
        """The calls of compiled regions, by thread in the order of begin."""
        self._nest()
        return self._ran

    def named(self, wanted: Callable[[str], str]) -> Iterator[tuple[Hashable, int, int, str, str]]:
        """(thread, begin, end, name, role) of calls to whose name `wanted` gives a role; by thread, in the order of begin."""
        self._nest()
        roles = [wanted(one.name) for one in self._signatures]
        if not any(roles):
            return
        for thread, calls in self._calls.items():
            for begin, minus_end, number, _ in calls:
                if roles[number]:
                    yield thread, begin, -minus_end, self._signatures[number].name, roles[number]

    def is_idle(self, thread: Hashable, begin: int, end: int) -> bool:
        """Whether no call began on the thread between the two times."""
        calls = self._calls.get(thread, ())
        at = bisect_left(calls, (begin,))
        return at >= len(calls) or calls[at][0] >= end

    def open_at(self, thread: Hashable, moments: Iterable[int]) -> Iterator[Open]:
        """For moments in their order: what was open on the thread."""
        self._nest()
        waiting = iter(self._nested.get(thread, ()))
        upcoming = next(waiting, None)
        stack: list[tuple[int, int, Open]] = []
        nothing = Open(-1, None)
        for moment in moments:
            while upcoming is not None and upcoming[0] <= moment:
                begin, end, call, region, until = upcoming
                while stack and stack[-1][0] <= begin:
                    stack.pop()
                stack.append((end, until, Open(call, region)))
                upcoming = next(waiting, None)
            while stack and stack[-1][0] <= moment:
                stack.pop()
            if not stack:
                yield nothing
            else:
                _, until, found = stack[-1]
                yield found if moment < until else Open(found.call, None)

    def times(self) -> Iterator[tuple[int, str | None, int]]:
        """(signature, region, ns) of each call that stands for itself, so that each moment stands once.

        An operator that mostly consists of others (`aten::linear`) does not: its own time goes to the longest of those.
        """
        self._nest()
        own = [ns if self._kinds[signature] == 2 else 0 for signature, ns, _, _ in self._flat]
        longest: dict[int, tuple[int, int]] = {}
        parents: list[int] = []
        for call, (signature, ns, parent, _) in enumerate(self._flat):
            while parent >= 0 and self._kinds[self._flat[parent][0]] != 2:
                parent = self._flat[parent][2]
            parents.append(parent)
            if parent >= 0 and self._kinds[signature] == 2:
                own[parent] -= ns
                if ns > longest.get(parent, (-1, -1))[0]:
                    longest[parent] = ns, call
        totals: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for call, (signature, ns, _, _) in enumerate(self._flat):
            total = totals[self._signatures[signature].name]
            total[0] += max(own[call], 0)
            total[1] += ns
        whole = {name for name, (mine, ns) in totals.items() if name in WHOLE or 2 * mine >= ns}
        given: dict[int, int] = defaultdict(int)
        within = bytearray(len(self._flat))
        for call, (signature, ns, _, region) in enumerate(self._flat):
            parent = parents[call]
            if self._kinds[signature] != 2 or (parent >= 0 and within[parent]):
                within[call] = parent >= 0 and within[parent]
                continue
            if call not in longest or self._signatures[signature].name in whole:
                within[call] = 1
                yield signature, region, ns + given[call]
            else:
                given[longest[call][1]] += max(own[call], 0) + given[call]

    def _nest(self) -> None:
        if self._done:
            return
        self._done = True
        self._learn()
        sequences = self._sequences
        ordered = sorted(self._calls.items(), key=lambda one: not any(call[3] >= 0 for call in one[1]))
        only = {one for one in sequences.values() if one is not None}
        lone = next(iter(only)) if len(only) == 1 else None
        for thread, calls in ordered:
            self._nest_thread(thread, calls, sequences, lone)

    def _learn(self) -> None:
        for calls in self._calls.values():
            calls.sort()
            self._forwards(calls, self._sequences)

    def _forwards(self, calls: list[_Call], sequences: dict[int, str | None]) -> None:
        """Learn which region made the autograd node of each sequence number."""
        region, until = None, -(2**63)
        for begin, end, signature, sequence in calls:
            if self._tells[signature] == _A_REGION:
                region, until = _compile_id(self._signatures[signature].name), -end
            elif sequence >= 0 and self._signatures[signature].name == "CompiledFunction" and begin < until:
                known = sequences.get(sequence, region)
                sequences[sequence] = region if known == region else None

    def _graphs_end(self, calls: list[_Call]) -> dict[int, int]:
        """Where the graph's call of each region is over, by the region's place in `calls`.

        Where it is not told (another backend's), that is when the cache is looked up for the code behind a break, or the end.
        """
        ends: dict[int, int] = {}
        open_: list[list[int]] = []
        """[place, end, end of its graph's call or -1, whether the code behind it has been reached]."""
        for place, (begin, minus_end, signature, _) in enumerate(calls):
            tells = self._tells[signature]
            if not tells:
                continue
            while open_ and open_[-1][1] <= begin:
                open_.pop()
            if open_ and tells != _A_GRAPH and not open_[-1][3]:
                if open_[-1][2] < 0:
                    ends[open_[-1][0]] = begin
                open_[-1][3] = 1
            if tells == _A_REGION:
                ends[place] = -minus_end
                open_.append([place, -minus_end, -1, 0])
            elif tells == _A_GRAPH and open_ and not open_[-1][3]:
                open_[-1][2] = max(open_[-1][2], min(-minus_end, open_[-1][1]))
                ends[open_[-1][0]] = open_[-1][2]
        return ends

    def _nest_thread(self, thread: Hashable, calls: list[_Call], sequences: Mapping[int, str | None], lone: str | None) -> None:
        nested: list[tuple[int, int, int, str | None, int]] = []
        ends = self._graphs_end(calls)
        stack: list[tuple[int, int, int, str | None, int]] = []
        """(end, call that kernels belong to, call, region, end of the region)."""
        for place, (begin, minus_end, signature, sequence) in enumerate(calls):
            end = -minus_end
            while stack and (stack[-1][0] <= begin and stack[-1][0] < end):
                stack.pop()
            _, owner, parent, region, until = stack[-1] if stack else (0, -1, -1, None, 0)
            if begin >= until:
                region = None
            call = len(self._flat)
            if self._kinds[signature] == 0:
                name = self._signatures[signature].name
                told, over = None, end
                if self._tells[signature] == _A_REGION:
                    told, over = _compile_id(name), ends[place]
                elif name.startswith("CompiledFunctionBackward"):
                    told = sequences.get(sequence, lone)
                    told = None if told is None else f"{told}<"
                if told is not None and told != region:
                    region, until = told, over
                    entry = self._regions.setdefault(told, [0, 0])
                    entry[0] += 1
                    entry[1] += over - begin
                    self._ran.append(Ran(thread, begin, over, told))
            else:
                owner = call
            self._flat.append((signature, end - begin, parent, region))
            stack.append((end, owner, call, region, until))
            if self.holds_open:
                nested.append((begin, end, owner, region, until))
        self._nested[thread] = nested


_A_REGION, _A_LOOKUP, _A_GRAPH = 1, 2, 3


def _telling(name: str) -> int:
    if name.startswith(REGION):
        return _A_REGION
    if name.startswith(LOOKUP):
        return _A_LOOKUP
    return _A_GRAPH if name.startswith(_GRAPH[0]) or name == _GRAPH[1] else 0


def _compile_id(name: str) -> str | None:
    found = _COMPILE_ID.match(name, len(REGION))
    return found[0] if found else None


def _kind(name: str, sizes: bool, annotation: bool) -> int:
    if name.startswith(_NO_OPERATOR) or _BACKWARD.search(name):
        return 0
    if name.startswith(_COMMUNICATION):
        return 1
    if annotation:
        return 0
    if "::" in name or name.startswith(_KERNELS):
        return 2
    return 1 if sizes else 0
