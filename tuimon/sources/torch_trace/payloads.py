"""The payloads that are JSON, read with care."""

from __future__ import annotations

import json
from typing import Any


def parsed(payload: str | None) -> Any:
    """The value in a payload; None where it is no JSON."""
    if payload is None:
        return None
    try:
        return json.loads(payload)
    except (ValueError, RecursionError, MemoryError):
        return None


def chromium(payload: str | None) -> dict[str, Any] | None:
    """The event in a payload of "chromium_event"; None where it cannot be read."""
    found = parsed(payload)
    return found if isinstance(found, dict) else None
