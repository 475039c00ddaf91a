"""TOML as a person or a stranger may have written it: whatever is the matter with it, one kind of error says so."""

from __future__ import annotations

import sys
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class NotToml(ValueError):
    """What is wrong, in a few words: "not UTF-8 text", "not TOML: ..."."""


def parse(data: bytes | str) -> dict[str, Any]:
    """The document. Raises NotToml, also where the parser itself fails: deep nesting, numbers of thousands of digits."""
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
    except UnicodeDecodeError:
        raise NotToml("not UTF-8 text") from None
    try:
        document: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is a ValueError, and so is int() of too many digits
        raise NotToml(f"not TOML: {error}") from None
    return document
