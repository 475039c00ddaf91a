"""A file as events, read to its end."""

from __future__ import annotations

from pathlib import Path

from tuimon import events as ev
from tuimon.sources.files import no_progress, open_any


def events_of(path: Path) -> list[ev.Event]:
    """Of a file that holds one rank."""
    (opened,), left_out = open_any(path)
    assert not left_out
    return [event for batch in opened.events(no_progress) for event in batch]
