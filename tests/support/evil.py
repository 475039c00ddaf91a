"""Events as a hostile job would have them: in every text of its own what acts on a terminal, on markup, on a shell."""

from __future__ import annotations

import re
import typing
import unicodedata
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, Literal

from tests.support.fake_feed import FakeFeed, FakeFleet
from tuimon import events as ev

EVIL = "\x1b]0;e\x07\x9b31m\u202e\r\n\t\ud800\ue000\ufffe[bold]x[/]</text><b>&lt;\"'`;$(x)|"
SEEN = re.compile(r"\[bold\]x\[/\]|</text>|\?\]0;e")
"""What is left of it where it is shown."""
_ID = re.compile(r"[\d/_?-]*")


def evil(text: str) -> str:
    """The same text with something else in it; the same for the same, so that what belongs together still meets."""
    if _ID.fullmatch(text) or text.startswith("torch_dynamo_resume_in"):
        return text
    at = text.rfind("/", 0, -1) + 3  # near the begin of what is shown: the end may be cut
    return text[:at] + EVIL + text[at:]


def hostile(event: ev.Event) -> ev.Event:
    """The event with such texts wherever a text may be anything."""
    kind: Any = type(event)
    return replace(event, **{name: _evil(getattr(event, name)) for name in _free(kind)})


def hostile_feed(given: Iterable[ev.Event] | FakeFeed | FakeFleet) -> FakeFeed | FakeFleet:
    """A feed of such events, or what is made of one that is there."""
    if isinstance(given, FakeFleet):
        for member in given.members:
            hostile_feed(member)
        return given
    feed = given if isinstance(given, FakeFeed) else FakeFeed(given)
    feed.title = evil(feed.title)
    feed.pending = [hostile(event) for event in feed.pending]
    return feed


def acts(text: str) -> list[str]:
    """Characters of it that no screen may get: controls, marks of direction, halves of pairs, what no standard knows."""
    return [char for char in text if unicodedata.category(char)[0] == "C" or unicodedata.category(char) in ("Zl", "Zp")]


def moves(text: str) -> list[str]:
    """Characters of it that a terminal acts on, line ends apart."""
    return [
        char
        for char in text
        if (
            char != "\n"
            and (unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") or unicodedata.bidirectional(char) in _BIDI)
        )
        or char in "\u200e\u200f\u061c"
    ]


_BIDI = frozenset({"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"})


@cache
def _free(kind: type[Any]) -> tuple[str, ...]:
    """The fields of a dataclass that hold texts which may be anything."""
    hints = typing.get_type_hints(kind)
    return tuple(
        one.name
        for one in fields(kind)
        if one.name not in _KEPT and _has(hints[one.name], str) and not _has(hints[one.name], Literal)
    )


_KEPT = frozenset({"compile_id", "how", "uuid", "pci", "pci_bus_id", "instruments", "states", "device"})
"""Names that mean something, and are not shown as they are."""


def _has(hint: Any, what: Any) -> bool:
    return hint is what or typing.get_origin(hint) is what or any(_has(inner, what) for inner in typing.get_args(hint))


def _evil(value: Any) -> Any:
    if isinstance(value, str):
        return evil(value)
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(map(_evil, value))
    if is_dataclass(value) and not isinstance(value, type):
        return hostile(value)  # type: ignore[arg-type]
    return value
