"""Which boundaries of a job are accepted: what the files that concern it say, and what a person adds while it is watched."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from tuimon import events as ev
from tuimon.accepted import NAME, AcceptedError, Entry, load, project_of, remove, save, user_file
from tuimon.model import Model
from tuimon.model.parts import Boundary

MOST_FILES = 1_000
MOST_FOLDERS = 64
"""Source files that are looked for, and project folders that are looked into, for one job."""
LONGEST_NOTE = 200


class Marks:
    """The accepted boundaries of one job: those in the files that concern it, and what a person adds."""

    def __init__(self, here: bool = True) -> None:
        """`here`: whether the job's files are on this machine."""
        self._here = here
        self._read: dict[Path, None] = {}
        self._files: dict[str, Path | None] = {}
        self._begun = False

    def news(self, model: Model) -> list[ev.Event]:
        """What is to be told to the model now: at first the user's file and that of the current folder, then those of the
        projects whose boundaries have come up; and a line for the log on what cannot be used. Reads files."""
        found: list[ev.Event] = []
        if not self._begun:
            self._begun = True
            found += self._of(user_file(), model)
            with contextlib.suppress(OSError):
                found += self._of_project(os.getcwd(), model)
        if self._here and len(self._files) < MOST_FILES:
            for boundary in model.boundaries.values():
                file = boundary.user_file or boundary.file
                if file and file not in self._files:
                    found += self._of_project(file, model)
        return found

    def accept(self, model: Model, boundary: Boundary, note: str) -> tuple[ev.BoundaryAccepted, Path]:
        """Accept a boundary: write it down. Gives the event for the model and the file. Raises AcceptedError."""
        path, entry = self._place(boundary, note[:LONGEST_NOTE])
        save(path, entry)
        return entry.event(model.now_ns), path

    def withdraw(self, model: Model, boundary: Boundary) -> tuple[list[ev.BoundaryAccepted], Path]:
        """Take that back, wherever it was written down. Gives the events for the model. Raises AcceptedError."""
        path, entry = self._place(boundary, "")
        taken: list[ev.BoundaryAccepted] = []
        where, trouble = path, ""
        for one in dict.fromkeys([path, *self._read]):
            try:
                listed = load(one)[0]
            except AcceptedError as error:
                trouble = trouble or str(error)
                continue
            for known in [known for known in listed if _about(known, boundary, entry)]:
                remove(one, known)
                where = one
                taken.append(ev.BoundaryAccepted(model.now_ns, known.file, known.function, known.kind, known.source, None))
        if not taken:
            raise AcceptedError(trouble or "this boundary is in no file that tuimon knows of")
        return taken, where

    def _of_project(self, place: str, model: Model) -> list[ev.Event]:
        if place not in self._files:
            self._files[place] = project_of(place)
        folder = self._files[place]
        if folder is None or folder / NAME in self._read or len(self._read) >= MOST_FOLDERS:
            return []
        return self._of(folder / NAME, model)

    def _of(self, path: Path, model: Model) -> list[ev.Event]:
        self._read[path] = None
        try:
            entries, problems = load(path)
        except AcceptedError as error:
            entries, problems = [], [str(error)]
        lines = [ev.Line(model.now_ns, sentence) for sentence in problems[:3]]
        return [*lines, *(entry.event(model.now_ns) for entry in entries)]

    def _place(self, boundary: Boundary, note: str) -> tuple[Path, Entry]:
        file = boundary.user_file or boundary.file
        folder = project_of(file) if self._here else None
        path = user_file() if folder is None else folder / NAME
        self._read.setdefault(path)
        told = file if folder is None else os.path.relpath(file, folder)
        return path, Entry(told, boundary.function, boundary.kind, boundary.source, note)


def _about(known: Entry, boundary: Boundary, entry: Entry) -> bool:
    """Whether an entry of a file is about this boundary: written by us, or by hand with less of the path."""
    file = boundary.user_file or boundary.file
    same_file = known.file == entry.file or file == known.file or file.endswith(f"/{known.file}")
    same_source = not known.source or not entry.source or known.source == entry.source
    return same_file and same_source and (known.function, known.kind) == (entry.function, entry.kind)
