"""Guards on objects and on the state of the process: identity, classes, grad mode, autocast, modes, backends."""

from __future__ import annotations

import re
from collections.abc import Callable

from tuimon.model.readings.common import FEW, READ_AT_BREAK, Given, Reading, changed, short

_TYPE_ID = re.compile(r"^___check_type_id\((?P<name>.+), \d+\)(?:, type=<class '(?P<was>[^']+)'>)?")
_OBJECT_ID = re.compile(r"^___check_obj_id\((?P<name>.+), \d+\)(?:, type=<class '(?P<was>[^']+)'>)?")
_STATE = re.compile(r"^GLOBAL_STATE changed: (?P<what>.*)$|^___check_global_state\(\)")
_DUPLICATES = re.compile(r"^Duplicate tensors? found:? ?(?:where not expected!)? ?(?P<names>.*)$")
_GONE = re.compile(r"(?:because |^)(?P<name>(?:(?!because ).)*?)\s*got deallocated")
_BACKEND = re.compile(r"Cached backend: (?P<before>.+?)(?: \(id=\w+\))?\. New backend: (?P<now>.+?)(?: \(id=\w+\))?(?:\.|$)")
_NO_CODE = re.compile(r"^CodeGuardAccessor: Not a function on (?P<name>.+?)\.__code__$")
_NAN = re.compile(r"__(?:math|numpy)_isnan\((?P<name>.+?)\)")
_HINT_TYPE = re.compile(r"^type (?P<was>\w+)")
_CODE = ("code", "function", "builtin_function_or_method", "method", "functools.partial")

_STATES: dict[str, tuple[str, str, str, bool]] = {
    # what Dynamo calls it: the subject, advice, why, whether it is no fault the first time
    "grad_mode": (
        "grad mode",
        "",
        "no_grad(), inference_mode() or a validation loop: with and without gradients there is a graph each; it happens once",
        True,
    ),
    "autocast": (
        "autocast",
        "enter autocast in the same way around every call",
        "within and outside autocast there is a graph each",
        True,
    ),
    "default_dtype": (
        "the default dtype",
        "set the default dtype once, at the start",
        "it decides the dtype of new tensors",
        False,
    ),
    "num_threads": (
        "torch's number of threads",
        "set the number of threads once, at the start",
        "torch.set_num_threads() was called between two calls",
        False,
    ),
    "deterministic_algorithms": (
        "the use of deterministic algorithms",
        "switch deterministic algorithms once, at the start",
        "torch.use_deterministic_algorithms() was called between two calls",
        False,
    ),
    "torch_function": ("torch function handling", "", "DisableTorchFunction was entered or left", False),
    "allow_tf32": ("TF32 for matrix products", "set the precision of matrix products once, at the start", "", False),
}


def read(given: Given) -> Reading | None:
    """A guard on an object's identity or class, or on the state of the process; None where it is about something else."""
    guard = given.guard
    for pattern, reader in _READERS:
        found = pattern.search(guard)
        if found:
            return reader(given, found)
    return None


def _type(given: Given, found: re.Match[str]) -> Reading:
    name = given.name(found["name"])
    hinted = _HINT_TYPE.match(given.hint)
    before = (found["was"] or (hinted["was"] if hinted else "")).rsplit(".", 1)[-1] or None
    now = given.value(f"type({found['name']})") or given.value(found["name"])
    earlier = sum(past.guard.startswith("___check_type_id(") for past in given.history)
    return Reading(
        "type",
        name,
        before,
        now,
        f"{name} is a {now}, was a {before}"
        if now and before
        else f"{name} is of another class{f' than {before}' if before else ''}",
        f"keep {name} of one class" if re.search(r"[.\[]", name) else f"pass {name} as the same class in every call",
        "one compiled wrapper serves several classes, and each takes an entry of the limit"
        if earlier
        else "each class is a graph of its own",
    )


def _object(given: Given, found: re.Match[str]) -> Reading:
    name = given.name(found["name"]).replace(".__code__", "")
    was = (found["was"] or "").strip()
    sort = was.rsplit(".", 1)[-1]
    now = given.value(found["name"])
    if was in _CODE or found["name"].endswith(".__code__"):
        return Reading(
            "identity",
            name,
            "a function",
            "another function",
            f"{name} is another function than before",
            *_of_function(given, found["name"].endswith(".__code__") or was == "code"),
        )
    if now is not None and sort and now.startswith(f"{sort}."):
        return _member(given, name, sort, now)
    return Reading(
        "identity",
        name,
        sort or None,
        now,
        f"{name} is another {sort or 'object'} than before" + (f": {now}" if now else ""),
        "pass the same object in every call: create it once. Of an enum, each member has a graph of its own",
        "Dynamo guards on the object itself: one that is made anew for each call does not fit",
    )


def _of_function(given: Given, by_code: bool) -> tuple[str, str]:
    """(advice, why) where another function came than the graph was made for."""
    if by_code:  # a lambda that is made anew at the same place has the same code, and fits
        return (
            "nothing if there are few of them; else pass the same one, or compile what calls each by itself",
            "Dynamo traces into the function, so each has a graph of its own; one that is defined anew by the same code fits",
        )
    return (
        "define the function once, outside what is called again and again, and pass the same one",
        "a lambda, closure or functools.partial that is made in each call is a new object each time",
    )


def _no_function(given: Given, found: re.Match[str]) -> Reading:
    """One of torch's own wrappers, compiled for a function, was given a module or a method."""
    name = given.name(found["name"])
    return Reading(
        "type",
        name,
        "a function",
        "no plain function",
        f"{name} is no plain function, was one",
        "",
        "one wrapper of torch's serves all that is compiled through it: each module, method or function takes an entry",
    )


def _member(given: Given, name: str, sort: str, now: str) -> Reading:
    """Another member of an enum: like a string that names a mode."""
    earlier = sum(
        bool(_OBJECT_ID.match(past.guard)) and past.name(past.guard[16:].split(",")[0]) == name for past in given.history
    )
    few = earlier < FEW - 1
    return Reading(
        "identity",
        name,
        sort,
        now,
        f"{name} is {now}, was another {sort}",
        "" if few else f"{name} takes many values: keep it out of the compiled function",
        "a member of an enum is a constant to Dynamo: one graph for each of a few modes is as it should be"
        if few
        else "a member of an enum is a constant to Dynamo",
        expected=few,
    )


def _global_state(given: Given, found: re.Match[str]) -> Reading:
    what = (found["what"] or "").strip()
    names = [one for one in re.split(r"[ ,]+", what) if one]
    known = next((entry for name in names for key, entry in _STATES.items() if name.startswith(key)), None)
    if known is None:
        subject = short(", ".join(names)) or "torch's global state"
        return Reading(
            "global state",
            subject,
            None,
            None,
            f"{subject} changed",
            "set it once, before the first call",
            "a graph is made for it",
        )
    subject, advice, why, once = known
    repeated = sum(past.guard.startswith("GLOBAL_STATE") for past in given.history) > 1
    device = re.search(r"autocast\((\w+)\)", what)
    verb = "was switched" if once else "was changed"
    return Reading(
        "global state",
        subject,
        None,
        None,
        f"{subject}{f' on {device[1]}' if device else ''} {verb} between two calls",
        advice,
        why,
        expected=once and not repeated,
    )


def _modes(given: Given, found: re.Match[str]) -> Reading:
    return Reading(
        "global state",
        "torch function modes",
        None,
        None,
        "a torch function mode, or a default device, was entered or left between two calls",
        "enter it in the same way around every call: `with torch.device(..)` and set_default_device are such modes",
        "the modes that are active are part of what a graph is made for",
    )


def _duplicates(given: Given, found: re.Match[str]) -> Reading:
    names = [given.name(name) for name in re.findall(r"[\"']((?:L\[['\"]\w+['\"]\]|[^\"'])+)[\"']", found["names"])]
    told = " and ".join(names[:3]) or short(found["names"]) or "two arguments"
    return Reading(
        "duplicate",
        names[0] if names else "",
        "different tensors",
        "one tensor",
        f"{told} are one and the same tensor, were different ones",
        "clone() one of them where that is not meant",
        "the graph was made for inputs that do not share memory",
    )


def _deallocated(given: Given, found: re.Match[str]) -> Reading:
    name = given.name(found["name"].strip(" '\"")) if found["name"].strip() else "an object"
    if name == READ_AT_BREAK:
        return Reading(
            "deallocated",
            "an object on the stack at the graph break before",
            "alive",
            "gone",
            "an object that waited on the stack at the graph break, which the graph was made for, is gone",
            "give the break a line of its own: v = loss.item(), then use v; so nothing else (a bound method) waits there",
            "an entry is thrown away with the object that it is guarded on, and a bound method is made anew at each call",
        )
    return Reading(
        "deallocated",
        name,
        "alive",
        "gone",
        f"{name} that the graph was made for is gone",
        "keep it alive: create it once instead of in each call",
        "an entry is thrown away with the object that it is guarded on",
    )


def _backend(given: Given, found: re.Match[str]) -> Reading:
    told = _BACKEND.search(given.guard)
    before, now = (short(told["before"]), short(told["now"])) if told else (None, None)
    return Reading(
        "backend",
        "backend",
        before,
        now,
        changed("the backend", before, now),
        "compile once and call the result; pass the same backend object (functools.partial) each time",
        "torch.compile was called again with another backend, mode or options on the same function",
    )


def _nan(given: Given, found: re.Match[str]) -> Reading:
    name = given.name(found["name"])
    now = given.value(found["name"])
    return Reading(
        "value",
        name,
        "nan",
        now,
        changed(name, "nan", now),
        f"pass {name} as a tensor: torch.tensor(..)",
        "a float is a constant of the graph, and nan is equal to nothing",
    )


_READERS: tuple[tuple[re.Pattern[str], Callable[[Given, re.Match[str]], Reading]], ...] = (
    (_TYPE_ID, _type),
    (_OBJECT_ID, _object),
    (_STATE, _global_state),
    (re.compile(r"^___check_torch_function_mode_stack\(\)"), _modes),
    (_DUPLICATES, _duplicates),
    (_GONE, _deallocated),
    (re.compile(r"^BACKEND_MATCH failure|backend mismatch"), _backend),
    (_NAN, _nan),
    (_NO_CODE, _no_function),
)
