"""The fold over who the frames are: code objects, names, the cache entries that were there at the attach."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuimon import events as ev
from tuimon.model.breaking import BreakingFold
from tuimon.model.compiling import MOST_IDS, keep
from tuimon.model.identity import display_name, frame_id, is_library, is_wrapper, user_line
from tuimon.model.parts import Frame

if TYPE_CHECKING:
    from tuimon.model.model import Model

MOST_ENTRIES = 1_000
"""Cache entries of one frame that are kept; torch's own limit is 8, and 256 over all."""
MOST_OWNERS = 64
"""Modules of one frame that are kept."""


class FrameFold:
    """Makes the frames and names them."""

    def __init__(self, model: Model, breaks: BreakingFold) -> None:
        self._model = model
        self._breaks = breaks
        self._codes: dict[int, ev.CodeSeen] = {}

    def code(self, event: ev.CodeSeen) -> None:
        """A code object has a number."""
        keep(self._codes, event.code, event)

    def numbered(self, number: int) -> ev.CodeSeen | None:
        """The code object that has this number."""
        return self._codes.get(number)

    def of(self, generation: int, compile_id: str) -> Frame | None:
        """The frame that an id belongs to, made on first sight."""
        number = frame_id(compile_id)
        if number is None:
            return None
        key = f"{generation}:{number}"
        frame = self._model.frames.get(key)
        if frame is None:
            if not self._model.room("frames", self._model.frames, MOST_IDS):
                return None
            frame = Frame(key, number, generation, limit=self._model.target.recompile_limit)
            self._model.frames[key] = frame
        elif frame.limit is None:
            frame.limit = self._model.target.recompile_limit
        return frame

    def enter(self, frame: Frame, compile_id: str) -> None:
        """The frame has a cache entry of this id."""
        known = compile_id in frame.entries
        if not known and self._model.room("cache entries of a frame", frame.entries, MOST_ENTRIES):
            frame.entries.append(compile_id)

    def name(
        self,
        frame: Frame,
        function: str,
        file: str,
        line: int,
        *,
        code: int | None = None,
        owner: str = "",
        stack: tuple[tuple[str, int, str], ...] = (),
    ) -> None:
        """Take in what an event says about who a frame is."""
        if frame.code is None:
            frame.code = code
        seen = self._codes.get(frame.code) if frame.code is not None else None
        if frame.file == "":
            frame.function, frame.file, frame.line = function, file, line
            if seen is not None:
                frame.function, frame.file, frame.line = seen.function, seen.file, seen.line
        if owner and owner not in frame.owners and len(frame.owners) < MOST_OWNERS:
            frame.owners.append(owner)
        called_at = ""
        if is_library(frame.file) and stack:
            called_from = user_line(stack, frame.file, frame.line)
            if called_from[0] != frame.file and not frame.user_file:
                frame.user_file, frame.user_line = called_from
        if frame.user_file:
            called_at = f"{frame.function} from {frame.user_file.rpartition('/')[2]}:{frame.user_line}"
        qualname = seen.qualname if seen is not None else ""
        frame.display = display_name(frame.function, qualname, frame.file, frame.owners) or called_at or frame.display

    def seen(self, event: ev.FrameSeen) -> None:
        """A code object that Dynamo has in its tables at the attach."""
        model = self._model
        if not event.entries:
            self._left_to_eager(event)
        for compile_id in event.entries:
            model.generations.note(compile_id, event.code)
            frame = self.of(model.generations.current, compile_id)
            if frame is None:
                continue
            for owner in event.owners or ("",):
                self.name(frame, event.function, event.file, event.line, code=event.code, owner=owner)
            frame.before_attach = frame.before_attach or event.before_attach
            self.enter(frame, compile_id)
        for compile_id, line in event.breaks:
            self._breaks.seen((model.generations.current, compile_id), line)
        model.changed("frames")

    def _left_to_eager(self, event: ev.FrameSeen) -> None:
        """A code object without entries: the frame whose past compilation failed, where one is known."""
        for frame in reversed(self._model.frames.values()):
            place = (frame.function, frame.file, frame.line)
            if frame.skipped and frame.code is None and place == (event.function, event.file, event.line):
                frame.code = event.code
                self.name(frame, event.function, event.file, event.line, code=event.code)
                return


def called(frame: Frame, owner: str) -> str:
    """What to call one compilation of a frame: a library's wrapper serves many modules, each with compilations of its own."""
    if owner and is_wrapper(frame.file):
        return display_name(frame.function, "", frame.file, (owner,)) or frame.name
    return frame.name
