"""What every formula of operations stands on: the call it is asked about, the counts it gives, and the table it is found in.

Policy of the counts. A contraction counts two matrix operations per multiply-add (eight where the numbers are complex), on
integers as on floats; zeros of a padding count, as in every published count. Vector operations are one per arithmetic function
of ATen and element (exp, erf and tanh count one), n - outputs for a sum of n numbers. Comparisons, minima and maxima, signs,
copies, casts, views, gathers, random numbers and what ranks exchange count none, and that none is known. Elementwise arithmetic
on integers counts none: it is no floating-point operation.

A formula either is exact by that policy or raises `Unknown`. Two things alone are taken as usual where a trace does not hold
them, as they are a few Kths of a product whose size is known: the factors of addmm and what oneDNN fuses behind a product.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tuimon.roofline.dtypes import is_complex, is_float

Sizes = tuple[int, ...]
Shape = tuple[str, Sizes]
"""(dtype as torch prints it in graphs or Kineto in traces, sizes)."""

NO_TENSOR = frozenset(
    ("", "Scalar", "ScalarList", "GenericList", "TensorList", "Int", "Double", "Bool", "None", "Device", "Layout", "Generator")
)
"""What stands for the type of an argument that is no tensor. Kineto's old files have "Int", "Double" and "Bool" for scalars."""


class Unknown(Exception):
    """No exact count can be given for this call."""


@dataclass(frozen=True, slots=True)
class Operations:
    """FLOP of one call. A sum or a product of two floats is one, a fused multiply-add two."""

    matrix: int = 0
    """Contractions: what matrix units do."""
    vector: int = 0
    """Elementwise functions and reductions."""

    def __add__(self, other: Operations) -> Operations:
        return Operations(self.matrix + other.matrix, self.vector + other.vector)


@dataclass(frozen=True, slots=True)
class Call:
    """One call: its tensors in the order of the schema, its results where they are known, its arguments by name."""

    operator: str
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    arguments: Mapping[str, Any]
    traced: bool = False
    """Told by a trace: it holds numbers, flags and lists of them, never a text."""

    def sizes(self, place: int) -> Sizes:
        """Of the input at that place among the tensors."""
        if place >= len(self.inputs):
            raise Unknown(f"{self.operator} has no tensor {place}")
        return self.inputs[place][1]

    def dtype(self, place: int = 0) -> str:
        return self.inputs[place][0] if place < len(self.inputs) else ""

    def has(self, place: int) -> bool:
        return place < len(self.inputs)

    def out(self, place: int = 0) -> Sizes | None:
        """Sizes of a result, None where the caller does not know them."""
        return self.outputs[place][1] if place < len(self.outputs) else None

    def get(self, key: str, default: Any = None) -> Any:
        """An argument; `default` (the schema's) where it is left out. Raises Unknown where the caller could not read them."""
        if key not in self.arguments:
            if self.arguments.get("known") is False:
                raise Unknown(f"{self.operator}: {key} is not known")
            return default
        return plain_value(self.arguments[key])

    def word(self, key: str, default: str) -> str:
        """A text, `default` where it is left out. Raises Unknown where it may have been there and the trace did not hold it."""
        value = self.get(key, default)
        if not isinstance(value, str) or (self.traced and key not in self.arguments):
            raise Unknown(f"{self.operator}: {key} is not known")
        return value

    def flag(self, key: str, default: bool | None = None) -> bool:
        value = self.get(key, default)
        if isinstance(value, (bool, int, float)):
            return bool(value)
        raise Unknown(f"{self.operator}: {key} is not known")

    def number(self, key: str, default: float | None = None) -> float:
        value = self.get(key, default)
        if isinstance(value, (int, float)):
            return value
        raise Unknown(f"{self.operator}: {key} is not known")

    def integers(self, key: str, n: int, default: int | None = None) -> Sizes:
        """A list of n whole numbers; one alone stands for n equal ones."""
        value = self.get(key, default)
        if isinstance(value, bool):
            raise Unknown(f"{self.operator}: {key} is no list of numbers")
        if isinstance(value, int):
            return (value,) * n
        if isinstance(value, (list, tuple)) and all(isinstance(x, int) and not isinstance(x, bool) for x in value):
            if len(value) == 1:
                return (int(value[0]),) * n
            if len(value) == n:
                return tuple(value)
        raise Unknown(f"{self.operator}: {key} is not known")


Formula = Callable[[Call], Operations]
FORMULAS: dict[str, Formula] = {}
"""By operator: without a namespace in ATen, "mkldnn._linear_pointwise" elsewhere."""
WORDS: dict[str, str] = {}
"""The formula of each in words, with its source."""


def formula(names: str | Iterable[str], words: str) -> Callable[[Formula], Formula]:
    """Put a function into the table, under one or more operators (names apart by spaces)."""

    def take(function: Formula) -> Formula:
        for name in names.split() if isinstance(names, str) else names:
            if name in FORMULAS:
                raise ValueError(f"two formulas for {name}")
            FORMULAS[name] = function
            WORDS[name] = words
        return function

    return take


def is_tensor(shape: Shape) -> bool:
    """False for what stands in the place of a scalar, a list or None. A tensor without sizes is one of a single number."""
    return bool(shape[1]) or shape[0] not in NO_TENSOR


def numel(sizes: Sizes) -> int:
    return prod(sizes)


def contraction(multiply_adds: int, dtype: str = "") -> int:
    """Operations of so many multiply-adds: two each. A complex one is four products and four sums of real numbers."""
    return multiply_adds * (8 if is_complex(dtype) else 2)


def elementwise(count: int, dtype: str = "") -> int:
    """Operations of so many arithmetic functions of numbers of that type; `Unknown` for complex ones."""
    if is_complex(dtype):
        raise Unknown("complex numbers")
    return count if is_float(dtype) else 0


def broadcast(shapes: Sequence[Sizes]) -> Sizes:
    """The sizes of an elementwise result (https://pytorch.org/docs/stable/notes/broadcasting.html)."""
    rank = max((len(s) for s in shapes), default=0)
    result = []
    for i in range(rank):
        sizes = {s[i - rank + len(s)] for s in shapes if i - rank + len(s) >= 0} - {1}
        if len(sizes) > 1:
            raise Unknown(f"sizes {shapes} do not fit")
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def plain_value(value: Any) -> Any:
    """An argument as a value: a trace has them as text ("True", "[1, 1]", "0."), a graph's text as they are."""
    if not isinstance(value, str):
        return value
    try:
        return ast.literal_eval(value.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value


def require(condition: bool) -> None:
    """Shapes that do not fit the operator make its count unknown, never wrong."""
    if not condition:
        raise Unknown("sizes do not fit the operator")
