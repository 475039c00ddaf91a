"""Why a frame was compiled again, in a person's words: Dynamo's guard text read as what changed, and what helps.

Pure: from a text (and the values that the hook could read beside it) to a `Reading`. A text that is not known gives one of
kind "unknown" with Dynamo's own first line, never an error: torch words its guards anew from version to version.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from tuimon.model.readings import state, tensors, values
from tuimon.model.readings.common import LONGEST_GUARD, LONGEST_LINE, LONGEST_TEXT, Given, Reading, plain, short

if TYPE_CHECKING:
    from tuimon.model.model import Model
    from tuimon.model.parts import Recompile

__all__ = ["Reading", "guard_of", "reading", "reading_of", "readings"]

NOTHING: Mapping[str, str] = MappingProxyType({})
REMEMBERED = 16
"""Earlier recompiles of a frame that are looked at to see how a value goes on."""

_COMMENT = re.compile(r"\s{2,}#")
_HINT = re.compile(r"\(HINT: (?P<hint>.*?)\)?\s*$", re.DOTALL)
_ENTRY = re.compile(r"^!?[\d/]*\d+/\d+: ")
_CASES = (tensors.read, state.read, values.read)


def reading(guard: str, now: Mapping[str, str] = NOTHING, *, owner: str = "", history: Sequence[str] = ()) -> Reading:
    """What a guard that failed says.

    `guard` is Dynamo's text for one cache entry, with or without the entry's id, source line and stack. `now` gives values in
    the call that failed, by the guard's expression; `owner` what a library's wrapper wraps ("Sequential(..)"); `history` the
    texts of the frame's recompiles before this one, oldest first. Never raises.
    """
    return _read(guard[:LONGEST_TEXT], tuple(now.items()), owner, tuple(text[:LONGEST_LINE] for text in history[-REMEMBERED:]))


def reading_of(model: Model, recompile: Recompile) -> Reading:
    """The reading of one of the model's recompiles, in the light of the frame's earlier ones."""
    earlier: list[str] = []
    for other in reversed(model.recompiles[: _place(model, recompile)]):
        if other.compilation.frame == recompile.compilation.frame and not other.compilation.refused:
            earlier.append(other.reason)
            if len(earlier) == REMEMBERED:
                break
    return _of(recompile, earlier[::-1])


def readings(model: Model) -> list[Reading]:
    """The readings of all recompiles of the model, in their order: one look at each."""
    earlier: defaultdict[str | None, list[str]] = defaultdict(list)
    found = []
    for recompile in model.recompiles:
        past = earlier[recompile.compilation.frame]
        found.append(_of(recompile, past))
        if not recompile.compilation.refused:
            past.append(recompile.reason)
    return found


def guard_of(text: str) -> str:
    """The guard alone, in one line: without the entry's id, the source line that Dynamo quotes, its hint and the stack."""
    return _given(text[:LONGEST_TEXT], NOTHING, "", ()).guard


def _place(model: Model, recompile: Recompile) -> int:
    for at in range(len(model.recompiles) - 1, -1, -1):
        if model.recompiles[at] is recompile:
            return at
    return 0


def _of(recompile: Recompile, earlier: Sequence[str]) -> Reading:
    owner = recompile.compilation.owner
    if not recompile.failed and recompile.compilation.refused:
        return Reading("unknown", "", None, None, "the limit was reached; torch told no guard")
    return reading(recompile.reason, dict(recompile.now), owner=owner, history=earlier)


@lru_cache(maxsize=1024)
def _read(text: str, now: tuple[tuple[str, str], ...], owner: str, history: tuple[str, ...]) -> Reading:
    values_now = dict(now)
    past = tuple(_given(one, NOTHING, owner, ()) for one in history)
    given = _given(text, values_now, owner, past)
    if given.guard:
        for case in _CASES:
            found = case(given)
            if found is not None:
                return found
    return _unknown(given)


def _given(text: str, now: Mapping[str, str], owner: str, history: Sequence[Given]) -> Given:
    body = text.partition("\nUser stack trace:")[0].strip()
    hint = _HINT.search(body)
    first = _ENTRY.sub("", body.split("\n", 1)[0])
    if hint and hint.start() < len(body) and "(HINT: " in first:
        first = first[: first.index("(HINT: ")]
    first = _COMMENT.split(first, maxsplit=1)[0]
    return Given(plain(first[:LONGEST_LINE]), plain(hint["hint"]) if hint else "", now, owner, history)


def _unknown(given: Given) -> Reading:
    if not given.guard:
        return Reading("unknown", "", None, None, "Dynamo told no reason")
    return Reading("unknown", "", None, None, f"Dynamo says: {short(given.guard, 200)}", short(given.hint, LONGEST_GUARD))
