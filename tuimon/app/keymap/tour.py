"""The keys that the tour has beyond those of the screens that it walks through."""

from __future__ import annotations

from tuimon.app.action import Action

TOUR: tuple[Action, ...] = (
    Action("tour", "app.tour", ("ctrl+t",), "ctrl+t", "skip", "The tour's next stop, whatever was done.", "tour", "tour", 0),
)
