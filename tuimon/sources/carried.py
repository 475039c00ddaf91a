"""Events as JSON objects and back, for every event alike: the fields and their types are read off the dataclasses.

What is read may come from a job, from another host or an old file, so nothing in it is taken on trust: a value that does not
have its field's type is a ValueError, and so is a number or a time that no clock and no counter gives. Texts are cut to a
length that does no harm. A field that is not known here (a newer tuimon wrote it) is passed over; one that is missing has its
default, or there is an error.
"""

from __future__ import annotations

import dataclasses
import math
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from tuimon import events

T = TypeVar("T")
E = TypeVar("E", bound=events.Event)
Reader = Callable[[Any], Any]

LONGEST_TEXT = 4000
"""Characters of one text that are kept; as many as are shown of one at most."""

LONGEST_NAME = 300
"""The same, of a name: models keep thousands of them."""

LONGEST_ID = 64
"""Characters of a compile id. A longer one is none: cut, it would be another's."""

CUT = ".."

LATEST_WALL_S = 1e11
"""Unix times beyond this are none (the year 5138): a calendar could not tell them."""

CLASSES: dict[str, type[events.Event]] = {
    name: value
    for name, value in vars(events).items()
    if isinstance(value, type) and issubclass(value, events.Event) and value is not events.Event
}
"""Every event by its class's name."""


def encode(event: events.Event) -> dict[str, Any]:
    """An event as an object that `json` can write."""
    fields = {field.name: getattr(event, field.name) for field in dataclasses.fields(event)}
    return {"k": "event", "type": type(event).__name__, **fields}


def decode(message: Mapping[str, Any]) -> list[events.Event]:
    """The event in such an object; none where this tuimon does not know its type. Raises ValueError for a malformed one."""
    cls = CLASSES.get(str(message.get("type")))
    return [] if cls is None else [build(cls, message)]


def checked(event: E) -> E:
    """The same event, with every value checked and every text cut as in `build`. Raises ValueError."""
    return build(type(event), {field.name: getattr(event, field.name) for field in dataclasses.fields(event)})


def build(cls: type[T], values: Mapping[str, Any]) -> T:
    """An instance of a dataclass from JSON values, each checked against its field's type. Raises ValueError."""
    found: dict[str, Any] = {}
    for name, (reader, optional) in _fields(cls).items():
        if name in values:
            try:
                found[name] = reader(values[name])
            except ValueError as error:
                raise ValueError(f"{cls.__name__}.{name}: {error}") from None
        elif not optional:
            raise ValueError(f"{cls.__name__}.{name} is missing")
    return cls(**found)


_known: dict[type, dict[str, tuple[Reader, bool]]] = {}


def _fields(cls: type) -> dict[str, tuple[Reader, bool]]:
    """Of each field: what reads it, and whether it may be missing. Worked out once for a class."""
    if cls not in _known:
        _known[cls] = _read_off(cls)
    return _known[cls]


def _read_off(cls: Any) -> dict[str, tuple[Reader, bool]]:
    hints = get_type_hints(cls)
    missing = dataclasses.MISSING
    return {
        field.name: (
            _of_a_field(field.name, _reader(hints[field.name])),
            field.default is not missing or field.default_factory is not missing,
        )
        for field in dataclasses.fields(cls)
    }


def _of_a_field(name: str, reader: Reader) -> Reader:
    """The reader of a field's type, with what the field's name says beyond it: a time, an id, a name."""

    def read(value: Any) -> Any:
        found = reader(value)
        if isinstance(found, str):
            if name in _NAMES:
                return sys.intern(_shortened(found, LONGEST_NAME))
            if name == "file":
                return sys.intern(found)
            if name == "compile_id" and len(found) > LONGEST_ID:
                raise _unfit(value)
        elif (name.endswith("_ns") and found is not None and not -(2**63) <= found < 2**63) or (
            name == "wall_s" and not 0 <= found <= LATEST_WALL_S
        ):
            raise _unfit(value)
        return found

    return read


# Of names and files there are far fewer than events that tell them: ten thousand regions lie in some dozen files.
_NAMES = frozenset(
    {
        "name",
        "function",
        "qualname",
        "owner",
        "backend",
        "thread",
        "phase",
        "limit",
        "counted",
        "python",
        "torch",
        "how",
        "user",
    }
    | {"job", "what"}
)


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - len(CUT)] + CUT


def _reader(hint: Any) -> Reader:
    """What turns a JSON value into one of that type, or raises ValueError."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _either([_reader(one) for one in arguments])
    if origin is Literal:
        return _one_of(arguments)
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return _many(_reader(arguments[0]), tuple)
        return _row([_reader(one) for one in arguments])
    if origin is list:
        return _many(_reader(arguments[0]), list)
    if isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields"):
        return _named(hint)
    return _PLAIN[hint]


def _named(cls: Any) -> Reader:
    """Of a NamedTuple, which is written as a row."""
    row = _row([_reader(hint) for hint in get_type_hints(cls).values()])
    return lambda value: cls(*row(value))


def _either(readers: list[Reader]) -> Reader:
    def read(value: Any) -> Any:
        for reader in readers:
            try:
                return reader(value)
            except ValueError:
                continue
        raise _unfit(value)

    return read


def _one_of(allowed: tuple[Any, ...]) -> Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, str) or value not in allowed:
            raise _unfit(value)
        return value

    return read


def _many(reader: Reader, kind: type) -> Reader:
    def read(value: Any) -> Any:
        return kind([reader(one) for one in _items(value)])

    return read


def _row(readers: list[Reader]) -> Reader:
    def read(value: Any) -> Any:
        items = _items(value)
        if len(items) != len(readers):
            raise _unfit(value)
        return tuple([reader(one) for reader, one in zip(readers, items, strict=True)])

    return read


def _items(value: Any) -> Any:
    if not isinstance(value, (list, tuple)):
        raise _unfit(value)
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _unfit(value)
    return _shortened(value, LONGEST_TEXT)


def _whole(value: Any) -> int:
    if type(value) is not int or not -(2**63) <= value < 2**64:
        raise _unfit(value)
    return value


def _real(value: Any) -> float:
    # a float that was whole may have been written without its point
    if type(value) is float:
        # with room for sums: what has no limit, or is far beyond any, was not measured
        if not math.isfinite(value) or abs(value) >= 2**64:
            raise _unfit(value)
        return value
    return float(_whole(value))


def _truth(value: Any) -> bool:
    if type(value) is not bool:
        raise _unfit(value)
    return value


def _nothing(value: Any) -> None:
    if value is not None:
        raise _unfit(value)


def _unfit(value: Any) -> ValueError:
    return ValueError(f"a value that does not belong there: {repr(value)[:60]}")


_PLAIN: dict[Any, Reader] = {str: _text, int: _whole, float: _real, bool: _truth, type(None): _nothing, object: lambda v: v}
