"""What a guard text is taken apart into, and the words that all kinds share."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

LONGEST_TEXT = 8_000
LONGEST_LINE = 1_000
LONGEST_GUARD = 500
"""Characters of a text, of its first line, and of an expression in that, that are looked at."""
LONGEST_VALUE = 60
FEW = 3
"""So many values of a string, a bool or an enum are what a mode switch has."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One guard that failed, in a person's words."""

    kind: str
    """A short id: "size", "dtype", "value", "identity", .. "unknown"."""
    subject: str
    """The user's name for the argument or attribute; empty where the guard is about none."""
    before: str | None
    """What the graph was made for."""
    now: str | None
    """What came; None where it is not known."""
    sentence: str
    """What changed, one line."""
    advice: str = ""
    """What usually helps, one line; empty where nothing is to be done."""
    why: str = ""
    """Why that is likely here, one line."""
    expected: bool = False
    """No fault: it happens once in a program that is as it should be (train and eval, a first size that varies)."""


@dataclass(frozen=True, slots=True)
class Given:
    """A guard text, taken apart."""

    guard: str
    """The expression or the remark itself, one line."""
    hint: str
    now: Mapping[str, str]
    owner: str
    history: Sequence[Given] = field(default_factory=tuple)
    """The same of the frame's recompiles before this one, oldest first."""

    def name(self, expression: str) -> str:
        """The user's name for what the expression stands for."""
        return _name(expression, self.owner)

    def value(self, expression: str) -> str | None:
        """The expression's value in the call that failed, None where it was not read."""
        for key in (expression, without_locals(expression)):
            if key in self.now:
                return short(self.now[key])
        return next((short(text) for key, text in self.now.items() if without_locals(key) == without_locals(expression)), None)


def plain(text: str) -> str:
    """One line of printable characters: what is shown may come from anywhere."""
    text = " ".join(text.split())
    return text if text.isprintable() else "".join(char if char.isprintable() else "?" for char in text)


def short(text: str, most: int = LONGEST_VALUE) -> str:
    """A value, cut where it is long."""
    text = plain(text)
    return text if len(text) <= most else text[: most - 3] + "..."


_LOCAL = re.compile(r"\bL\[(['\"])(\w+)\1\]")
_GLOBAL = re.compile(r"\bG\[(['\"])([\w.]+)\1\]")
_MEMBER = re.compile(r"\._(?:modules|parameters|buffers)\[(['\"])(\w+)\1\]")
_ITEM = re.compile(r"\b(?:dict|list|tuple)\.__getitem__\((.+?), ([^()]+)\)")
_WRAPPED = re.compile(r"^___(?:from_numpy|as_tensor|get_torch_function_mode_stack_at)\((.+)\)$")
_CELL = re.compile(r"\.__closure__\[\d+\]\.cell_contents\b")
_DEFAULT = re.compile(r"\.__(?:kw)?defaults__\b")
_STACK = re.compile(r"^___stack(\d+)$")
READ_AT_BREAK = "the value read at the break"


def without_locals(expression: str) -> str:
    """`L['x'].n` as `x.n`: how newer versions of torch write it."""
    return _LOCAL.sub(r"\2", expression)


def _name(expression: str, owner: str) -> str:
    text = _GLOBAL.sub(r"\2", without_locals(plain(expression)))
    wrapped = _WRAPPED.match(text)
    if wrapped:
        text = wrapped[1]
    text = _ITEM.sub(r"\1[\2]", text)
    text = _MEMBER.sub(lambda found: f"[{found[2]}]" if found[2].isdigit() else f".{found[2]}", text)
    text = _DEFAULT.sub(" (a default)", _CELL.sub(" (a variable it closes over)", text))
    if _STACK.match(text):
        return READ_AT_BREAK
    if owner and re.match(r"fn(?=$|[.\[])", text):  # the library's wrapper calls what it wraps `fn`
        text = plain(owner).split("(", 1)[0] + text[2:]
    return short(text)


def parsed(guard: str) -> ast.expr | None:
    """A guard as an expression; None where it is none."""
    try:
        return ast.parse(guard, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def source_of(guard: str, node: ast.AST) -> str:
    """The piece of the guard that a node stands for."""
    return ast.get_source_segment(guard, node) or ""


def changed(subject: str, before: str | None, now: str | None, verb: str = "is", past: str = "was") -> str:
    """`x.dtype is float64, was float32`, or as much of it as is known."""
    if now is not None and before is not None and now != before:
        return f"{subject} {verb} {now}, {past} {before}"
    if before is not None:
        return f"{subject} {verb} no longer {before}"
    return f"{subject} changed"


def trend(values: Sequence[str | None]) -> str:
    """How a number goes on over the recompiles, oldest first: "it grows by 1 from one recompile to the next", or nothing."""
    numbers = []
    for value in values:
        try:
            numbers.append(float(value or ""))
        except ValueError:
            return ""
    if len(numbers) < 3:
        return ""
    steps = {later - earlier for earlier, later in pairwise(numbers)}
    if len(steps) == 1:
        (step,) = steps
        if step:
            return f"it {'grows' if step > 0 else 'falls'} by {abs(step):g} from one recompile to the next"
    if len(numbers) > 3 and len(set(numbers)) == 2:
        return "it goes back and forth between two values"
    return f"{len(set(numbers))} values so far"
