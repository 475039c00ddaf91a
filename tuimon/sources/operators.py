"""The operators of a profile, nested as they were called: which was open when, and where their time went."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

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
        self._signatures: list[Signature] = []
        self._numbers: dict[tuple[str, str, bool], int] = {}
        self._kinds: list[int] = []
        """Of each signature: 2 an operator, 1 what may have launched kernels, 0 only something around."""
        self._calls: dict[Hashable, list[tuple[int, int, int, int]]] = defaultdict(list)
        """Thread -> (begin, -end, signature, sequence number or -1)."""
        self._flat: list[tuple[int, int, int, str | None]] = []
        """(signature, ns, parent, region) of each call, once they are nested; a parent comes before its children."""
        self._nested: dict[Hashable, list[tuple[int, int, int, str | None]]] = {}
        """Thread -> (begin, end, call, region) of all that was open, in the order of begin."""
        self._done = False
        self._regions: dict[str, list[int]] = {}
        self._sequences: dict[int, str | None] = {}
        """Sequence number of an autograd node -> the region that made it."""

    def __len__(self) -> int:
        return sum(map(len, self._calls.values()))

    def add(
        self, thread: Hashable, begin: int, ns: int, name: Any, args: Mapping[str, Any], *, annotation: bool = False
    ) -> None:
        """One call, or a stretch that somebody has named (an `annotation`). Raises what comes of malformed values."""
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
        sequence = args.get("Sequence number") if name.startswith("CompiledFunction") else None
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

    def open_at(self, thread: Hashable, moments: Iterable[int]) -> Iterator[Open]:
        """For moments in their order: what was open on the thread."""
        self._nest()
        waiting = iter(self._nested.get(thread, ()))
        upcoming = next(waiting, None)
        stack: list[tuple[int, Open]] = []
        nothing = Open(-1, None)
        for moment in moments:
            while upcoming is not None and upcoming[0] <= moment:
                begin, end, call, region = upcoming
                while stack and stack[-1][0] <= begin:
                    stack.pop()
                stack.append((end, Open(call, region)))
                upcoming = next(waiting, None)
            while stack and stack[-1][0] <= moment:
                stack.pop()
            yield stack[-1][1] if stack else nothing

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

    def _forwards(self, calls: list[tuple[int, int, int, int]], sequences: dict[int, str | None]) -> None:
        """Learn which region made the autograd node of each sequence number."""
        region, until = None, -(2**63)
        for begin, end, signature, sequence in calls:
            name = self._signatures[signature].name
            if name.startswith(REGION):
                region, until = _compile_id(name), -end
            elif sequence >= 0 and name == "CompiledFunction" and begin < until:
                known = sequences.get(sequence, region)
                sequences[sequence] = region if known == region else None

    def _nest_thread(
        self, thread: Hashable, calls: list[tuple[int, int, int, int]], sequences: Mapping[int, str | None], lone: str | None
    ) -> None:
        nested: list[tuple[int, int, int, str | None]] = []
        stack: list[tuple[int, int, int, str | None]] = []
        """(end, call that kernels belong to, call, region)."""
        for begin, minus_end, signature, sequence in calls:
            end = -minus_end
            while stack and (stack[-1][0] <= begin and stack[-1][0] < end):
                stack.pop()
            _, owner, parent, region = stack[-1] if stack else (0, -1, -1, None)
            call = len(self._flat)
            if self._kinds[signature] == 0:
                name = self._signatures[signature].name
                told = None
                if name.startswith(REGION):
                    told = _compile_id(name)
                elif name.startswith("CompiledFunctionBackward"):
                    told = sequences.get(sequence, lone)
                    told = None if told is None else f"{told}<"
                if told is not None and told != region:
                    region = told
                    entry = self._regions.setdefault(told, [0, 0])
                    entry[0] += 1
                    entry[1] += end - begin
            else:
                owner = call
            self._flat.append((signature, end - begin, parent, region))
            stack.append((end, owner, call, region))
            nested.append((begin, end, owner, region))
        self._nested[thread] = nested


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
