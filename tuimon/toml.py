"""TOML as a person or a stranger may have written it: whatever is the matter with it, one kind of error says so."""

from __future__ import annotations

import sys
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


DEEPEST = 50
"""Tables and arrays within each other. What is deeper is no file of ours, and what looks at it may not come to its end."""

LONGEST = 2100
"""Bits of a whole number: of so many Python makes a text whatever it is set to. Hexadecimal ones it reads without a limit."""

TOO_DEEP = f"not TOML that is meant so: more than {DEEPEST} levels of tables in tables"
TOO_LARGE = "not TOML: a whole number of hundreds of digits"


class NotToml(ValueError):
    """What is wrong, in a few words: "not UTF-8 text", "not TOML: ..."."""


def parse(data: bytes | str) -> dict[str, Any]:
    """The document. Raises NotToml, also where the parser itself fails, and for what nobody means and hardly anything can take:
    whole numbers of hundreds of digits, deep nesting."""
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
    except UnicodeDecodeError:
        raise NotToml("not UTF-8 text") from None
    try:
        document: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise NotToml(f"not TOML: {error}") from None
    except RecursionError:
        raise NotToml(TOO_DEEP) from None
    except ValueError:  # int() of more digits than Python takes
        raise NotToml(TOO_LARGE) from None
    _look(document)
    return document


def _look(document: dict[str, Any]) -> None:
    """Level by level: names with dots nest as deep as they are long."""
    level: list[Any] = [document]
    for _ in range(DEEPEST):
        below: list[Any] = []
        for value in level:
            if isinstance(value, int) and value.bit_length() > LONGEST:
                raise NotToml(TOO_LARGE)
            if isinstance(value, (dict, list)):
                below += value.values() if isinstance(value, dict) else value
        level = below
        if not level:
            return
    raise NotToml(TOO_DEEP)
