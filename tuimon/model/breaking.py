"""The fold over graph breaks: which boundaries there are, and why. What they cost is told by the calls.

A break is an ordinary boundary while nothing else is known: the frame goes on with a resume function. Where its compilation
fails, there is no such function, and the whole frame runs in eager: then the instruction is the boundary, whichever frames were
given up because of it.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from tuimon import events as ev
from tuimon.model.about import About
from tuimon.model.accepting import Accepted
from tuimon.model.compiling import MOST_IDS, keep
from tuimon.model.identity import is_library, plain_function, user_line
from tuimon.model.parts import Boundary, Frame, FrameKey

if TYPE_CHECKING:
    from tuimon.model.model import Model

Entry = tuple[int, str]
"""(generation, compile id)."""

Place = tuple[str, int]
"""(file, line)."""

MOST_BREAKS = 64
"""Breaks of one compilation that are kept."""

UNKNOWN = "unknown"
NAMELESS = ("", "?")


class BreakingFold:
    """Fills in the boundaries' compile-time half."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._accepted = Accepted(model)
        self._named: dict[str, Boundary] = {}
        """Ordinary boundaries by every name that a break there may have: with the instruction's offset and without."""
        self._of: dict[Entry, Boundary] = {}
        """The boundary at which an entry ends."""
        self._broken: dict[Entry, list[ev.GraphBroke]] = {}
        """The breaks of compilations that are not over, or that failed without saying at which instruction."""
        self._given_up: dict[Entry, FrameKey | None] = {}
        self._whys: dict[Entry, str] = {}
        self._own: dict[tuple[int, int], Boundary] = {}
        """Instruction -> the boundary of the frame whose own code it is, where that goes on with a resume function."""
        self._counted: dict[tuple[Entry, str, str], None] = {}
        self._worded: dict[str, Entry] = {}
        """Boundary key -> the compilation whose words it has."""
        self._tails: dict[Entry, Boundary] = {}
        """Boundaries of entries that go on with no function: what broke was the last thing in their frames."""
        self._goes_on: dict[Entry, None] = {}
        self._past = 0
        self._break_lines: dict[Entry, int] = {}
        self._exactly: dict[str, Place] = {}
        """Boundary key -> the frame's line at which it breaks, for those from before the attach."""
        self._entries: Counter[str] = Counter()
        self._resumes: dict[int, Entry] = {}
        self._synced: dict[int, tuple[int, int]] = {}

    # ------------------------------------------------------------------------------------------ for the other folds

    def of(self, entry: Entry) -> Boundary | None:
        """The boundary that this compilation's graph break left."""
        return self._of.get(entry)

    def tail(self, entry: Entry) -> Boundary | None:
        """The boundary that each call of this entry's graph ends in, where nothing of the frame is left behind the break."""
        return self._tails.get(entry)

    def adopt(self, entry: Entry, key: FrameKey | None, instrument: ev.InstrumentAdded) -> Boundary:
        """The boundary for a resume function whose graph break was not seen (it is from before the attach)."""
        line = self._break_lines.get(entry)
        boundary = self._ordinary(key, instrument.file, instrument.line if line is None else line, None, None)
        boundary.function = boundary.function or plain_function(instrument.function)
        boundary.before_attach = True
        self._entries[boundary.key] += 1
        if line is not None:
            keep(self._exactly, boundary.key, (instrument.file, line))
        keep(self._of, entry, boundary)
        self._accepted.look(boundary)
        return boundary

    # ------------------------------------------------------------------------------------------ breaks

    def broke(self, event: ev.GraphBroke, generation: int, key: FrameKey | None) -> None:
        """Dynamo stopped a graph."""
        if event.compile_id is None:
            self._past += 1
            self._fill(self._match_past(event), event, (generation, f"past {self._past}"))
            return
        entry = (generation, event.compile_id)
        if event.skipped_frame or entry in self._given_up:
            self._skip(event, entry, key)
            return
        boundary = self._ordinary(key, event.file, event.line, event.code, event.offset)
        keep(self._of, entry, boundary)
        if entry not in self._broken:
            keep(self._broken, entry, [])
        if len(self._broken[entry]) < MOST_BREAKS:
            self._broken[entry].append(event)
        self._fill(boundary, event, entry)
        if not event.before_attach:
            place = f"{os.path.basename(boundary.user_file)}:{boundary.user_line}"
            about = About("boundary", boundary.key)
            self._model.say(event.t_ns, "break", f"graph break at {place}: {event.kind}", about)

    def given_up(self, entry: Entry, key: FrameKey | None) -> str:
        """The compilation failed and its frame runs in eager: its breaks are where. Gives the last one's type, "" for none."""
        keep(self._given_up, entry, key)
        for event in self._broken.pop(entry, []):
            self._skip(event, entry, key)
        frame = self._model.frames.get(key) if key else None
        for boundary in self._model.boundaries.values():
            if frame is not None and boundary.frame == key and boundary.function in NAMELESS and boundary.file == frame.file:
                boundary.function = plain_function(frame.function)
        return self._whys.pop(entry, "")

    def done(self, entry: Entry, frame: Frame | None, with_graph: bool = False) -> None:
        """The compilation went well: its frame's own instruction is an ordinary boundary, and none of a skipped frame."""
        events = self._broken.pop(entry, [])
        boundary = self._of.get(entry)
        if frame is None or boundary is None:
            return
        if entry not in self._goes_on and with_graph:
            keep(self._tails, entry, boundary)
        elif boundary.crossings is None:
            return
        for event in events:
            if event.code is None or event.offset is None or event.code != frame.code:
                continue
            keep(self._own, (event.code, event.offset), boundary)
            skipped = self._model.boundaries.pop(_skip_key(event.code, event.offset), None)
            if skipped is not None:  # what was counted before is the same instruction, run in eager
                boundary.crossings = (boundary.crossings or 0) + (skipped.crossings or 0)
                boundary.breaks += skipped.breaks
                self._model.changed("boundaries")

    def _skip(self, event: ev.GraphBroke, entry: Entry, key: FrameKey | None) -> None:
        """This break is why a frame is skipped whole."""
        keep(self._whys, entry, f"{event.kind} ({event.also})" if event.also else event.kind)
        self._withdraw(event, entry, key)
        if event.code is not None and event.offset is not None:
            own = self._own.get((event.code, event.offset))
            if own is not None:  # evidence of the frame; the crossings are those of the frame whose code it is
                self._count(own, event, entry)
                return
            name = _skip_key(event.code, event.offset)
        elif event.before_attach or self._model.recorded.missing("crossings"):  # no instruction is named: the line has to do
            name = f"skip@{event.file}:{event.line}"
        else:
            name = _key(key, event.file, event.line, None)
        boundary = self._model.boundaries.get(name)
        if boundary is None:
            boundary = self._new(name, key, event.file, event.line)
        boundary.skipped_frame = True
        boundary.code, boundary.offset = event.code, event.offset
        if key is not None and key not in boundary.frames:
            boundary.frames.append(key)
        self._fill(boundary, event, entry)
        if not event.before_attach:
            frame = self._model.frames.get(key) if key else None
            name = frame.name if frame is not None else boundary.function
            about = About("boundary", boundary.key)
            self._model.say(event.t_ns, "break", f"{name} is left to eager as a whole: {event.kind}", about)

    def _withdraw(self, event: ev.GraphBroke, entry: Entry, key: FrameKey | None) -> None:
        """Take back what was made of a break as an ordinary one."""
        self._of.pop(entry, None)
        boundary = self._named.get(_key(key, event.file, event.line, event.offset))
        if boundary is None or self._counted.pop((entry, boundary.key, event.headline), 0) == 0:
            return
        boundary.breaks -= 1
        if boundary.breaks == 0 and not boundary.crossings:
            self._model.boundaries.pop(boundary.key, None)
            for name in [name for name, one in self._named.items() if one is boundary]:
                del self._named[name]

    def _ordinary(self, key: FrameKey | None, file: str, line: int, code: int | None, offset: int | None) -> Boundary:
        plain, exact = _key(key, file, line, None), _key(key, file, line, offset)
        boundary = self._named.get(exact)
        if boundary is None and offset is not None:
            without = self._named.get(plain)
            boundary = without if without is not None and without.offset is None else None
        if boundary is None:
            boundary = self._new(exact, key, file, line)
        if boundary.offset is None:
            boundary.code, boundary.offset = code, offset
        if boundary.key in self._model.boundaries:
            keep(self._named, exact, boundary)
            if plain not in self._named:
                keep(self._named, plain, boundary)
        return boundary

    def _new(self, name: str, key: FrameKey | None, file: str, line: int) -> Boundary:
        boundary = Boundary(name, key, "", file, line, file, line, frames=[key] if key else [])
        if self._model.room("boundaries", self._model.boundaries, MOST_IDS):
            self._model.boundaries[name] = boundary
        return boundary

    def _count(self, boundary: Boundary, event: ev.GraphBroke, entry: Entry) -> None:
        """One more decision to break there. Dynamo says the same of one compilation twice where it first tries to go on."""
        counted = (entry, boundary.key, event.headline)
        if counted not in self._counted:
            keep(self._counted, counted, None)
            boundary.breaks += 1
            self._model.changed("boundaries")

    def _fill(self, boundary: Boundary, event: ev.GraphBroke, entry: Entry) -> None:
        self._count(boundary, event, entry)
        frame = self._model.frames.get(boundary.frame) if boundary.frame else None
        told = (event.function, boundary.function, frame.function if frame is not None else "")
        boundary.function = next((name for name in told if name not in NAMELESS), "")
        boundary.before_attach = boundary.before_attach or event.before_attach
        if self._takes_words(boundary, entry):
            boundary.reason, boundary.kind, boundary.gb_id = event.reason, event.kind, event.gb_id
            boundary.headline, boundary.also = event.headline, event.also
            boundary.explanation, boundary.hints = event.explanation, event.hints
            boundary.source = event.source or boundary.source
            boundary.asked_by = ("library" if is_library(event.file) else "user") if event.requested else None
            boundary.requested = boundary.asked_by == "user"
            boundary.stack = event.stack
            boundary.user_file, boundary.user_line = user_line(event.stack, event.file, event.line)
        self._accepted.look(boundary)
        self._model.changed("boundaries")

    def _takes_words(self, boundary: Boundary, entry: Entry) -> bool:
        """Whether to take the words of this break. Of several frames that are given up at one instruction, those of the first
        one's last break, which says that it is given up."""
        if boundary.skipped_frame and boundary.reason not in ("", UNKNOWN):
            return self._worded.get(boundary.key) == entry
        keep(self._worded, boundary.key, entry)
        return True

    # ------------------------------------------------------------------------------------------ from before the attach

    def seen(self, entry: Entry, line: int | None) -> None:
        """An entry that goes on with a resume function breaks at this line of its frame's."""
        if line is not None:
            keep(self._break_lines, entry, line)

    def _match_past(self, event: ev.GraphBroke) -> Boundary:
        """The boundary that a break from before the attach belongs to. Dynamo kept no id with it, so its place decides.

        The frame's own line is the outermost of the break's stack: the break's, or the one that calls what broke. Where that
        is not known, the resume function's line, which for a broken branch is another; then the function's name decides,
        where it is not ambiguous.
        """
        past = [b for b in self._model.boundaries.values() if b.before_attach and not b.skipped_frame]
        place = (event.file, event.line)
        for at in dict.fromkeys([*((file, line) for file, line, _ in event.stack), place]):
            here = [b for b in past if self._exactly.get(b.key, (b.file, b.line) if at == place else None) == at]
            if here:
                # one that has fewer breaks than entries still lacks this one
                found = min(here, key=lambda b: (b.breaks >= self._entries[b.key], bool(b.reason)))
                return self._moved(found, event)
        same_function = [b for b in past if not b.reason and (b.file, b.function) == (event.file, event.function)]
        if len(same_function) == 1:
            return self._moved(same_function[0], event)
        return self._ordinary(None, event.file, event.line, event.code, event.offset)

    def _moved(self, boundary: Boundary, event: ev.GraphBroke) -> Boundary:
        """The boundary, at the place that Dynamo gives for the break."""
        boundary.file, boundary.line = event.file, event.line
        keep(self._named, _key(boundary.frame, event.file, event.line, None), boundary)
        return boundary

    # ------------------------------------------------------------------------------------------ instruments

    def instrument(self, event: ev.InstrumentAdded, generation: int, key: FrameKey | None) -> None:
        """Something that counts crossings was put in."""
        if event.role == "resume" and event.compile_id is not None:
            keep(self._resumes, event.instrument, (generation, event.compile_id))
            keep(self._goes_on, (generation, event.compile_id), None)
        elif event.role == "crossing" and event.code is not None and event.offset is not None:
            self._crossing(event, (generation, event.compile_id or ""), key)

    def _crossing(self, event: ev.InstrumentAdded, entry: Entry, key: FrameKey | None) -> None:
        """Its boundary is that of a skipped frame, also where its compilation has not been said to have failed yet."""
        assert event.code is not None and event.offset is not None
        at = (event.code, event.offset)
        for broke in list(self._broken.get(entry, ())):
            if (broke.code, broke.offset) == at or (broke.code is None and broke.line == event.line):
                self._broken[entry].remove(broke)
                self._withdraw(broke, entry, key)
                self._skip(replace(broke, code=event.code, offset=event.offset), entry, key)
        name = _skip_key(event.code, event.offset)
        if (event.code, event.offset) in self._own:
            return
        boundary = self._model.boundaries.get(name)
        placed = self._placed(entry, key, event)
        if boundary is None:
            if placed is not None:
                boundary = self._renamed(placed, name)
            else:  # what said why is lost
                boundary = self._new(name, key, event.file, event.line)
                boundary.reason = boundary.kind = UNKNOWN
                boundary.before_attach = event.before_attach
                if is_library(event.file) and key in self._model.frames and self._model.frames[key].user_file:
                    frame = self._model.frames[key]
                    boundary.user_file, boundary.user_line = frame.user_file, frame.user_line
        elif placed is not None:
            boundary.breaks += placed.breaks
            boundary.frames += [one for one in placed.frames if one not in boundary.frames]
            self._model.boundaries.pop(placed.key, None)
        boundary.skipped_frame = True
        boundary.code, boundary.offset = event.code, event.offset
        boundary.counted = event.counted or boundary.counted
        boundary.function = boundary.function if event.function in NAMELESS else plain_function(event.function)
        if key is not None and key not in boundary.frames:
            boundary.frames.append(key)
        self._accepted.look(boundary)
        self._model.changed("boundaries")

    def _placed(self, entry: Entry, key: FrameKey | None, event: ev.InstrumentAdded) -> Boundary | None:
        """A skipped frame's boundary of which only the line was known: that of this frame."""
        if key is None or entry not in self._given_up:
            return None
        mine = [b for b in self._model.boundaries.values() if b.skipped_frame and b.offset is None and key in b.frames]
        return next((b for b in mine if (b.file, b.line) == (event.file, event.line)), mine[0] if len(mine) == 1 else None)

    def _renamed(self, boundary: Boundary, name: str) -> Boundary:
        """The boundary under another key, in its old place among the others."""
        boundaries = self._model.boundaries
        held = [(name if one is boundary else key, one) for key, one in boundaries.items()]
        boundary.key = name
        boundaries.clear()
        boundaries.update(held)
        return boundary

    def synced(self, event: ev.SyncLooked) -> None:
        """Waits on the device, counted since the attach."""
        entry = self._resumes.get(event.instrument)
        boundary = self._of.get(entry) if entry is not None else None
        if boundary is None:
            return
        looked = max(0, event.looked)
        now = (looked, min(looked, max(0, event.waited)))
        before = self._synced.get(event.instrument, (0, 0))
        keep(self._synced, event.instrument, now)
        boundary.sync_looked = max(0, boundary.sync_looked + now[0] - before[0])
        boundary.sync_waited = max(0, boundary.sync_waited + now[1] - before[1])
        self._model.changed("boundaries")

    def accepted(self, event: ev.BoundaryAccepted) -> None:
        """The user accepts a boundary, or no longer does."""
        self._accepted.take(event)


def _key(frame: FrameKey | None, file: str, line: int, offset: int | None) -> str:
    return f"{frame or '?'}@{file}:{line}" + ("" if offset is None else f"+{offset}")


def _skip_key(code: int, offset: int) -> str:
    return f"skip@{code}:{offset}"
