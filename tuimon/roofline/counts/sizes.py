"""Sizes as graphs tell them: numbers, or expressions of the symbols that stand for dynamic dimensions.

The expressions are sympy's as torch prints them ("2*s27", "(s77//2)", "Max(1, s0)"). They come from a job, so they are read,
never executed: what is not arithmetic on whole numbers is unknown.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import prod

from tuimon.roofline.dtypes import bits

LONGEST = 300
"""Characters of an expression that is still read."""
LARGEST = 10**18
MOST_EXPONENT = 16

_PLAIN = re.compile(r"[\w+\-*/%(), ]+", re.ASCII)
_GLUED = re.compile(r"(?<!\w)\d+[A-Za-z_]", re.ASCII)
"""A name that begins with a digit: Python's parser warns of it on stderr."""


class _Unknown(Exception):
    """The expression has no value that could be trusted."""


def size(text: str, symbols: Mapping[str, int]) -> int | None:
    """The value of a size; None where it is no arithmetic, or has a symbol whose value is not known."""
    if text.isascii() and text.isdigit():
        value = int(text) if len(text) < 19 else LARGEST + 1
        return value if value <= LARGEST else None
    tree = _parsed(text)
    if tree is None:
        return None
    try:
        value = _value(tree, symbols)
    except (_Unknown, RecursionError):
        return None
    return value if 0 <= value <= LARGEST else None


def sizes(texts: Iterable[str], symbols: Mapping[str, int]) -> tuple[int, ...] | None:
    """All sizes of a tensor, or None where one is unknown."""
    found = []
    for text in texts:
        value = size(text, symbols)
        if value is None:
            return None
        found.append(value)
    return tuple(found)


def tensor_bytes(dtype: str, dims: Iterable[int]) -> float | None:
    """Bytes of a dense tensor; `dtype` as any source prints it. None for a type of unknown width."""
    width = bits(dtype)
    return None if width is None else prod(dims) * width / 8


@lru_cache(4096)
def _parsed(text: str) -> ast.expr | None:
    if len(text) > LONGEST or _PLAIN.fullmatch(text) is None or _GLUED.search(text) is not None:
        return None
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr, symbols: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return _within(node.value)
    if isinstance(node, ast.Name) and node.id in symbols:
        return _within(symbols[node.id])
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = _value(node.operand, symbols)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp):
        return _within(_binary(type(node.op), _value(node.left, symbols), _value(node.right, symbols)))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args and not node.keywords:
        return _within(_call(node.func.id, [_value(argument, symbols) for argument in node.args]))
    raise _Unknown


def _within(value: int) -> int:
    if abs(value) > LARGEST:
        raise _Unknown
    return value


def _binary(operator: type[ast.operator], left: int, right: int) -> int:
    if operator is ast.Add:
        return left + right
    if operator is ast.Sub:
        return left - right
    if operator is ast.Mult:
        return left * right
    if operator is ast.Pow and 0 <= right <= MOST_EXPONENT:
        return int(left**right)
    if right == 0:
        raise _Unknown
    if operator is ast.FloorDiv:
        return left // right
    if operator is ast.Mod:
        return left % right
    if operator is ast.Div and left % right == 0:
        return left // right
    raise _Unknown


def _call(name: str, values: list[int]) -> int:
    if name in ("Max", "max"):
        return max(values)
    if name in ("Min", "min"):
        return min(values)
    if len(values) == 2 and name in ("FloorDiv", "CleanDiv"):
        return _binary(ast.FloorDiv, *values)
    if len(values) == 2 and name in ("Mod", "PythonMod", "ModularIndexing"):
        return _binary(ast.Mod, *values)
    raise _Unknown
