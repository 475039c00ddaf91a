"""What one entry of the table of actions is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Scope = Literal[
    "main", "page", "both", "step", "roofline", "window", "replay", "help", "picker", "lab", "palette", "themes", "tour"
]  # fmt: skip
"""On the main screen, on a page (details, help), or on both; "step" and "window": on the page of a step, of profiler windows
alone; "roofline": on the main screen while that panel has the keys, "replay": on it while a recording is played, where they
come before those of "main". The others are screens of their own."""


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do. `call` is the name of the action method, with arguments where it has some."""

    id: str
    call: str
    keys: tuple[str, ...]
    shown: str
    """The keys as a person writes them."""
    label: str
    """One or two words, for the footer and the palette."""
    help: str
    group: str
    scope: Scope = "main"
    footer: int | None = None
    """Its rank in the footer: where there is no room, the highest goes first. None: not there."""
    several: bool = False
    """Only for several processes: not shown where one is watched."""
    why_not: str = ""
    """The name of what tells why it cannot be done here; "": it always can."""
