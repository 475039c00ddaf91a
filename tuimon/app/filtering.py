"""What a filter lets through: the same in every table and on every page."""

from __future__ import annotations

NOT = "!"


def matches(wanted: str, text: str) -> bool:
    """Whether `text` holds what is wanted, without regard to case; `!text`: whether it does not hold that."""
    if wanted.startswith(NOT) and wanted != NOT:
        return wanted[len(NOT) :].casefold() not in text.casefold()
    return wanted == NOT or wanted.casefold() in text.casefold()
