"""Guards on Python values: numbers, strings, attributes of modules, lengths, keys; what can be read as an expression."""

from __future__ import annotations

import ast
import re

from tuimon.model.readings.common import (
    FEW,
    LONGEST_GUARD,
    READ_AT_BREAK,
    Given,
    Reading,
    changed,
    parsed,
    short,
    source_of,
    trend,
    without_locals,
)

_GROUP = re.compile(r"\.param_groups\[(?P<at>\d+)\]\[['\"](?P<name>\w+)['\"]\]")
_MODULE_HINT = "integer attributes of the nn.Module"
_SYNTH = re.compile(r"\.__(?:code|class|dict|mro|bases)__\b")


def read(given: Given) -> Reading | None:
    """A guard that is a comparison or a test of values; None where it is none."""
    node = parsed(given.guard[:LONGEST_GUARD])
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _not(given, node.operand)
    if isinstance(node, ast.Call):
        return _call(given, node, missing=False)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _compare(given, node, node.ops[0])
    if isinstance(node, ast.Compare):
        return _bounded(given, node)
    return None


def _compare(given: Given, node: ast.Compare, operator: ast.cmpop) -> Reading | None:
    left, right = source_of(given.guard, node.left), source_of(given.guard, node.comparators[0])
    if isinstance(operator, (ast.Is, ast.IsNot)):
        return _identity(given, left, right, isinstance(operator, ast.IsNot))
    if isinstance(operator, (ast.Eq, ast.NotEq)):
        inner = _inside(node.left, "len") or _inside(node.left, "___tuple_iterator_len")
        if inner is not None:
            # of a dict, Dynamo writes the test that found out (`len(d) != 1`), not the one that should hold
            return _length(given, source_of(given.guard, inner), left, right)
        keys = _keys_of(given.guard, node.left)
        if keys is not None:
            return _key_order(given, keys, right)
    if isinstance(operator, ast.Eq):
        return _value(given, left, right, node.comparators[0])
    if isinstance(operator, ast.NotEq) and isinstance(node.left, (ast.Name, ast.Attribute, ast.Subscript)):
        return _excluded(given, left, right)
    return _bounded(given, node)


def _inside(node: ast.AST, function: str) -> ast.AST | None:
    """The argument of a call of a function of this name."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function and len(node.args) == 1:
        return node.args[0]
    return None


def _keys_of(guard: str, node: ast.AST) -> str | None:
    """The dictionary in `list(dict.keys(d))[0]` and `list(dict.keys(d))`."""
    if isinstance(node, ast.Subscript):
        node = node.value
    inner = _inside(node, "list")
    if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr == "keys":
        return source_of(guard, inner.args[0] if inner.args else inner.func.value)
    return None


# ------------------------------------------------------------------------------------------------- values


def _value(given: Given, left: str, right: str, node: ast.AST) -> Reading | None:
    literal = node.operand if isinstance(node, ast.UnaryOp) else node
    constant = isinstance(literal, (ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.Set))
    before, now = short(given.name(right) if not constant else right), given.value(left)
    group = _GROUP.search(left)
    if group:
        return _optimizer(given, group, left, before, now)
    if left.endswith(".training"):
        return _training(given, left, before)
    subject = given.name(left)
    told = trend([*_earlier(given, left), before, now] if now is not None else [*_earlier(given, left), before])
    if subject == READ_AT_BREAK:
        return Reading(
            "stack value",
            subject,
            before,
            now,
            changed(subject, before, now),
            "keep it a tensor on the way through the function, or end the compiled function before it is read",
            "what item() or an eager call gives is a plain value to the code behind it: a number is guarded by value once, and "
            "symbolic after that",
            expected=len(_earlier(given, left)) < 2,
        )
    if _MODULE_HINT in given.hint:
        return Reading(
            "module attribute",
            subject,
            before,
            now,
            changed(subject, before, now),
            "keep the count outside the module, or in a tensor (register_buffer); or set "
            "torch._dynamo.config.allow_unspec_int_on_nn_module = True",
            f"integer attributes of a module are constants to Dynamo{f'; {told}' if told else ''}",
        )
    advice, why, expected = _about(given, left, subject, literal, told)
    return Reading("value", subject, before, now, changed(subject, before, now), advice, why, expected)


def _about(given: Given, left: str, subject: str, literal: ast.AST, told: str) -> tuple[str, str, bool]:
    """What helps with a value of this type, why it is likely, and whether it is no fault."""
    earlier = len(_earlier(given, left))
    value = literal.value if isinstance(literal, ast.Constant) else None
    as_tensor = _as_tensor(left, subject)
    if left.endswith((".start", ".stop", ".step")) and isinstance(value, int):
        return (
            f"keep {subject.rsplit('.', 1)[0]} the same from call to call",
            f"the bounds of a range or slice are constants of the graph{f'; {told}' if told else ''}",
            not earlier,
        )
    if isinstance(value, bool):
        return "", "a flag has two values, and a graph for each", True
    if isinstance(value, str):
        if earlier < FEW - 1:
            return "", "a string is a constant to Dynamo: one graph for each of a few modes is as it should be", True
        return f"{subject} takes many values: keep it out of the compiled function", "a string is a constant to Dynamo", False
    if isinstance(value, float):
        if not earlier:
            return (
                f"to spare this one as well: {as_tensor}",
                "a float is a constant at first; once it has changed, Dynamo passes it in, as far as it can",
                True,
            )
        return (
            as_tensor,
            f"a float is a constant to Dynamo{f'; {told}' if told else ''}",
            False,
        )
    if isinstance(value, int):
        if not earlier:
            return (
                f"to spare this one as well: torch.compile(.., dynamic=True), or {as_tensor}",
                "an int is a constant at first; once it has changed, Dynamo makes it dynamic where the code allows it",
                True,
            )
        return (
            f"{as_tensor}, or keep to a few values; with dynamic=False in force, let it be dynamic",
            f"each value is compiled anew: the code needs the number itself (a loop of that length), or dynamic=False holds"
            f"{f'; {told}' if told else ''}",
            False,
        )
    return f"keep {subject} the same from call to call, or pass it as a tensor", "Dynamo made it a constant of the graph", False


def _excluded(given: Given, left: str, right: str) -> Reading:
    """`n != 0`: the graph is for all values but one, and that one came."""
    subject, value = given.name(left), short(right)
    return Reading(
        "value",
        subject,
        f"not {value}",
        value,
        f"{subject} is {value}, the graph is for other values",
        "",
        f"the code goes another way where {subject} is {value}: that takes a graph of its own, once",
        expected=True,
    )


def _bounded(given: Given, node: ast.Compare) -> Reading | None:
    """`2 <= n <= 5`, `n < m`: the graph is for a range of values, as the code goes another way outside it."""
    sides = [node.left, *node.comparators]
    if not all(isinstance(operator, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for operator in node.ops):
        return None
    names = [source_of(given.guard, side) for side in sides if isinstance(side, (ast.Name, ast.Attribute, ast.Subscript))]
    if not names:
        return None
    subject, now, holds = given.name(names[0]), given.value(names[0]), short(given.name(given.guard))
    earlier = sum(past.guard == given.guard for past in given.history)
    return Reading(
        "value",
        subject,
        holds,
        now,
        f"{subject} is {now}, the graph is for {holds}" if now is not None else f"{holds} no longer holds",
        f"{subject} goes to and fro across a branch of the code: take the branch out of the function" if earlier else "",
        "the code, or an operation in it, goes another way for other values: each way has a graph of its own",
        expected=not earlier,
    )


def _as_tensor(left: str, subject: str) -> str:
    """How a number becomes a tensor: an argument is passed as one, anything else is made one where it lives."""
    argument = re.fullmatch(r"\w+", without_locals(left)) is not None
    return f"pass {subject} as a tensor: torch.tensor(..)" if argument else f"make {subject} a tensor: torch.tensor(..)"


def _earlier(given: Given, left: str) -> list[str]:
    """The values that the frame's earlier recompiles were guarded on, for the same expression, oldest first."""
    beginning = f"{left} == "
    return [past.guard[len(beginning) :] for past in given.history if past.guard.startswith(beginning)]


def _optimizer(given: Given, group: re.Match[str], left: str, before: str, now: str | None) -> Reading:
    name = group["name"]
    subject = f"{'the learning rate' if name == 'lr' else name} of parameter group {group['at']}"
    told = trend([*_earlier(given, left), before, *([now] if now is not None else [])])
    return Reading(
        "learning rate" if name == "lr" else "value",
        subject,
        before,
        now,
        changed(subject, before, now),
        "make it a tensor: lr=torch.tensor(0.01)" if name == "lr" else f"make {name} a tensor, or leave it as it is",
        f"a scheduler changes it, and a Python float is a constant to Dynamo{f'; {told}' if told else ''}",
    )


def _training(given: Given, left: str, before: str) -> Reading:
    subject = given.name(left)
    # twice or more at one module: eval and train have a graph each by then
    repeated = len(_earlier(given, left)) > 1
    mode = "eval" if before == "True" else "train"
    owner = subject.rsplit(".", 1)[0]
    return Reading(
        "training",
        subject,
        before,
        "False" if before == "True" else "True",
        f"{owner} was switched to {mode}()",
        "switch whole models, not single modules in turns" if repeated else "",
        "train and eval have a graph each; it happens once",
        expected=not repeated,
    )


# ------------------------------------------------------------------------------------------------- containers


def _length(given: Given, container: str, left: str, before: str) -> Reading:
    subject, now = given.name(container), given.value(left)
    past = [value for one in given.history for value in (_length_before(one, container),) if value is not None]
    told = trend([*past, before, *([now] if now is not None else [])])
    grows = told.startswith("it grows")
    return Reading(
        "list length",
        subject,
        before,
        now,
        changed(f"len({subject})", before, now),
        f"keep {subject} out of the compiled function: append outside, or use a tensor of fixed size"
        if grows or past
        else f"if {subject} keeps changing its length, keep it out of the compiled function",
        f"the number of items is part of the graph{f'; {told}' if told else ''}",
    )


def _length_before(past: Given, container: str) -> str | None:
    if past.guard == f"not {container}":
        return "0"
    for operator in ("==", "!="):
        beginning = f"len({container}) {operator} "
        if past.guard.startswith(beginning):
            return past.guard[len(beginning) :]
    return None


def _key_order(given: Given, container: str, before: str) -> Reading:
    subject = given.name(container)
    return Reading(
        "dict keys",
        subject,
        short(before),
        None,
        f"the keys of {subject} are others, or in another order: no longer {short(before)}",
        f"build {subject} with the same keys in the same order in every call",
        "the order of keys is part of the graph",
    )


def _not(given: Given, node: ast.AST) -> Reading | None:
    if isinstance(node, ast.Call):
        return _call(given, node, missing=True)
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        container = source_of(given.guard, node)
        return _length(given, container, f"len({container})", "0")
    return None


def _call(given: Given, node: ast.Call, missing: bool) -> Reading | None:
    function = source_of(given.guard, node.func)
    arguments = [source_of(given.guard, argument) for argument in node.args]
    if function == "___dict_contains" and len(arguments) == 2:
        return _key(given, arguments[1], arguments[0], missing)
    if function in ("set.__contains__", "dict.__contains__", "frozenset.__contains__") and len(arguments) == 2:
        return _key(given, arguments[0], arguments[1], missing)
    if function in ("hasattr", "___check_hasattr") and len(arguments) == 2:
        return _attribute(given, arguments[0], arguments[1], missing)
    return None


def _key(given: Given, container: str, key: str, missing: bool) -> Reading:
    attribute = container.endswith(".__dict__")
    if attribute:
        return _attribute(given, container.removesuffix(".__dict__"), key, missing)
    subject, key = given.name(container), short(key)
    before, now = (f"without {key}", f"with {key}") if missing else (f"with {key}", f"without {key}")
    return Reading(
        "dict keys",
        subject,
        before,
        now,
        f"{key} is {'in' if missing else 'no longer in'} {subject}",
        f"give {subject} the same keys in every call",
        "each set of keys is a graph of its own",
    )


def _attribute(given: Given, owner: str, name: str, missing: bool) -> Reading:
    subject = f"{given.name(owner)}.{name.strip(chr(39) + chr(34))}"
    before, now = ("missing", "there") if missing else ("there", "missing")
    return Reading(
        "attribute",
        subject,
        before,
        now,
        f"the attribute {subject} is {now}, was {before}",
        "set it in __init__, to None where there is nothing yet",
        "Dynamo guards on an attribute being there",
    )


def _identity(given: Given, left: str, right: str, negated: bool) -> Reading:
    subject = given.name(left)
    if right == "None":
        now = given.value(left)
        before = "not None" if negated else "None"
        now = "None" if negated else now
        sentence = (
            f"{subject} is None, was not"
            if negated
            else f"{subject} is {now or 'no longer None'}, was None"
            if now
            else (f"{subject} is no longer None")
        )
        return Reading(
            "none",
            subject,
            before,
            now,
            sentence,
            "",
            "with and without it there is a graph each; it happens once",
            expected=True,
        )
    other = given.name(right)
    if _SYNTH.search(left):
        subject = _SYNTH.sub("", subject)
    before, now = ("two objects", "one object") if negated else ("one object", "two objects")
    return Reading(
        "identity",
        subject,
        before,
        now,
        f"{subject} and {other} are {now}, were {before}",
        "",
        "arguments that are one and the same object share a place in the graph; each pattern has its own",
        expected=True,
    )
