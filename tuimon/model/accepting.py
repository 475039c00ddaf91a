"""The boundaries that the user has looked at and lives with. What survives edits tells them: never a line number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuimon import events as ev
from tuimon.model.identity import plain_function, same_tail
from tuimon.model.parts import Boundary

if TYPE_CHECKING:
    from tuimon.model.model import Model

MOST_ACCEPTED = 1_000


class Accepted:
    """Marks boundaries as accepted, those too that come later."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._held: dict[tuple[str, str, str, str], str] = {}
        """(file, function, kind, source) -> note."""

    def take(self, event: ev.BoundaryAccepted) -> None:
        """The user accepts a boundary; or, with a note that is None, takes that back."""
        which = (event.file, event.function, event.kind, event.source.strip())
        if event.note is None:
            self._held.pop(which, None)
        elif which in self._held or self._model.room("accepted boundaries", self._held, MOST_ACCEPTED):
            self._held[which] = event.note
        for boundary in self._model.boundaries.values():
            self.look(boundary)
        self._model.changed("boundaries")

    def look(self, boundary: Boundary) -> None:
        """Mark this boundary, if it is one of them."""
        boundary.accepted = next((note for which, note in self._held.items() if self._is(boundary, *which)), None)

    def _is(self, boundary: Boundary, file: str, function: str, kind: str, source: str) -> bool:
        if kind != boundary.kind or (source and boundary.source and source != boundary.source):
            return False
        if not (same_tail(file, boundary.user_file) or same_tail(file, boundary.file)):
            return False
        names = {boundary.function}
        frame = self._model.frames.get(boundary.frame) if boundary.frame else None
        if frame is not None:
            names |= {frame.name, frame.function, plain_function(frame.function)}
        return function in names
