"""A graph's text, line by line: its classes (the graph and its subgraphs), their placeholders and their statements."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from tuimon.events import Tensor

MOST_NODES = 200_000
LONGEST_SIZE = 200
MOST_DIMENSIONS = 64


@dataclass(slots=True)
class Node:
    """A statement."""

    name: str
    operator: str
    """As in a row; "" for what gives another name to a value."""
    words: list[str]
    """The arguments by place, as texts."""
    named: dict[str, str]
    inputs: list[str]
    """The values that it takes, those in lists too."""
    output: Tensor | None
    """None also where it gives several: they are the getitems behind it."""
    scalar: bool = False
    """It gives a number."""


@dataclass(slots=True)
class Section:
    """One class of the text: the graph itself or a subgraph."""

    name: str
    places: dict[str, Tensor | None] = field(default_factory=dict)
    strides: dict[str, tuple[str, ...]] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)
    unread: int = 0
    """Lines that look like a statement and are none that is known."""


_SIGNS = {
    "@": "matmul", "+": "add", "-": "sub", "*": "mul", "/": "div", "//": "floor_divide", "%": "remainder", "**": "pow",
    "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne", "&": "bitwise_and", "|": "bitwise_or",
    "^": "bitwise_xor", "<<": "bitwise_left_shift", ">>": "bitwise_right_shift",
    "+=": "add_", "-=": "sub_", "*=": "mul_", "/=": "div_", "@=": "matmul",
}  # fmt: skip

_TENSOR = re.compile(r"([a-z]+\d*[a-z0-9]*)\[([^\[\]]*)\](?:\[([^\[\]]*)\])?")
_STATEMENT = re.compile(r'(\w+)(?:: "([^"]*)")? = (.+)')
_PLACE = re.compile(r'(\w+): "([^"]*)"')
_CLASS = re.compile(r"class (\w+)")
_CALL = re.compile(r"([\w.]+)\((.*)\)")
_ITEM = re.compile(r"(\w+)\[(.*)\]")
_SIGN = re.compile(r"(\S+) (@|\+|-|\*\*|\*|//|/|%|<<|>>|<=|<|>=|>|==|!=|&|\||\^|[-+*/@]=) (\S+)")
_PUT = re.compile(r"(\w+)\[.*\] = (.+)")
_NAMED = re.compile(r"(\w+) = (.*)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_OPENING, _CLOSING = "([{", ")]}"


def tensor(text: str) -> tuple[Tensor, tuple[str, ...]] | None:
    """The tensor that an annotation such as `f32[s77, 32][32, 1]cpu` tells, with its strides; None for anything else."""
    found = _TENSOR.match(text)
    if found is None:
        return None
    sizes, strides = _list(found[2]), _list(found[3] or "")
    if len(sizes) > MOST_DIMENSIONS or any(len(size) > LONGEST_SIZE for size in sizes):
        return None
    return (found[1], sizes), strides


def _list(text: str) -> tuple[str, ...]:
    if "(" in text:
        return tuple(split(text))
    return tuple([word.strip() for word in text.split(",")]) if text else ()


def split(text: str) -> list[str]:
    """The parts between the commas that stand in no brackets and no quotes."""
    if not any(mark in text for mark in "([{'\""):
        return [part for word in text.split(",") if (part := word.strip())]
    parts, begin, depth, quote = [], 0, 0, ""
    for at, sign in enumerate(text):
        if quote:
            if sign == quote:
                quote = ""
        elif sign in "'\"":
            quote = sign
        elif sign in _OPENING:
            depth += 1
        elif sign in _CLOSING:
            depth -= 1
        elif sign == "," and depth <= 0:
            parts.append(text[begin:at].strip())
            begin = at + 1
    parts.append(text[begin:].strip())
    return [part for part in parts if part]


def read_sections(text: str) -> tuple[list[Section], bool]:
    """The graph and its subgraphs, and whether all of the text was read."""
    sections: list[Section] = []
    section: Section | None = None
    state: Literal["body", "signature", "return"] = "body"
    nodes = 0
    for raw in text.split("\n"):
        line = raw.strip()
        if not line or line[0] == "#":
            continue
        if line.startswith("class "):
            named = _CLASS.match(line)
            section = Section(named[1] if named else "")
            sections.append(section)
            state = "body"
        elif section is None:
            continue
        elif state == "signature" or line.startswith("def forward("):
            _take_places(section, line)
            ends = line.split("#", 1)[0].rstrip()
            state = "body" if ends.endswith("):") or ") ->" in ends else "signature"
        elif state == "return" or line.startswith("return"):
            state = "return"
            section.returned += _WORD.findall(line.split("#", 1)[0].removeprefix("return"))
        else:
            nodes += 1
            if nodes > MOST_NODES:
                return sections, False
            first, *rest = [part.rstrip(";") for part in line.split(";  ", 2)]
            changed = _SIGN.fullmatch(first) if rest else None
            if changed is not None and rest[0].endswith(f" = {changed[1]}"):  # a += b;  iadd: "f32[2]" = a;  a = None
                first = rest[0].removesuffix(changed[1]) + first
            _take_statement(section, first)
    return sections, True


def _take_places(section: Section, line: str) -> None:
    for name, told in _PLACE.findall(line):
        found = tensor(told)
        section.places[name] = found[0] if found else None
        if found:
            section.strides[name] = found[1]


def _take_statement(section: Section, line: str) -> None:
    found = _STATEMENT.fullmatch(line)
    if found is None:
        put = _PUT.fullmatch(line)
        if put is not None:  # x[..] = y
            section.nodes.append(Node("", "copy_", [put[1], put[2]], {}, _WORD.findall(f"{put[1]} {put[2]}"), None))
        elif " = torch." in line:
            section.unread += 1
        return
    name, told, right = found.groups()
    output = tensor(told) if told else None
    scalar = told is not None and output is None
    node = _node(name, right, section)
    node.output, node.scalar = output[0] if output else None, scalar and told.startswith(("Sym(", "int", "float", "bool"))
    section.nodes.append(node)


def _node(name: str, right: str, section: Section) -> Node:
    """What stands on the right of a statement's "="."""
    call = _CALL.fullmatch(right)
    if call is not None:
        words, named = [], {}
        for part in split(call[2]):
            keyword = _NAMED.match(part)
            if keyword is None:
                words.append(part)
            else:
                named[keyword[1]] = keyword[2]
        operator = _operator(call[1])
        head, _, method = call[1].partition(".")
        if operator is None:  # a method: of a value that comes before
            operator = f"torch.{method.rpartition('.')[2]}"
            words.insert(0, head)
        return Node(name, operator, words, named, values_in([*words, *named.values()]), None)
    item = _ITEM.fullmatch(right)
    if item is not None:
        return Node(name, "getitem", [item[1], item[2]], {}, [item[1]], None)
    sign = _SIGN.fullmatch(right)
    if sign is not None:
        return Node(name, f"torch.{_SIGNS[sign[2]]}", [sign[1], sign[3]], {}, values_in([sign[1], sign[3]]), None)
    if right.startswith("self."):
        return Node(name, "", [right], {}, [], None)
    if "." in right and (head := right.split(".", 1)[0]).isidentifier():  # x.T, x.shape
        return Node(name, f"torch.{right.rpartition('.')[2]}"[:100], [head], {}, [head], None)
    return Node(name, "", [right], {}, values_in([right]), None)


_ROOTS = ("torch", "operator", "math", "_operator", "builtins", "einops", "fx_pytree", "pytree")


def _operator(called: str) -> str | None:
    """How a row names what is called: "addmm", "mkldnn._linear_pointwise", "torch.linear". None: a method of a value."""
    parts = called.split(".")
    if parts[0] not in _ROOTS:
        return f"torch.{called}" if len(parts) == 1 else None
    if parts[:2] == ["torch", "ops"] and len(parts) > 3:
        return parts[3] if parts[2] == "aten" else f"{parts[2]}.{parts[3]}"
    # torch.sparse.mm is not torch.mm
    return called if parts[1:2] and parts[1] in ("sparse", "masked", "ao") else f"torch.{parts[-1]}"


def values_in(words: Iterable[str]) -> list[str]:
    """The names in arguments, those within lists too; names of values and words such as True alike."""
    found: list[str] = []
    for word in words:
        if word.isidentifier():
            found.append(word)
        elif word[:1] in "[({":
            found += [part for part in _WORD.findall(word) if part not in ("None", "True", "False", "torch")]
    return found
