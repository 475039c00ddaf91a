"""Writes a recording: events in their order, as blocks that are appended, in segments that together keep to a size."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from tuimon import events as ev
from tuimon.sources.recording import format as layout
from tuimon.sources.recording.items import Body, Mark, Unfit, parts
from tuimon.sources.recording.place import here
from tuimon.sources.recording.prelude import MOST_WEIGHT, Prelude
from tuimon.sources.recording.segments import KEPT, Files
from tuimon.sources.redact import redacted

FULL_ROWS = 8192
FULL_BYTES = 2**20
"""A block that holds as much is written."""

LEAST = 2**20
"""Bytes of the least recording that can be asked for: its first segment holds what names things."""


class Writer:
    """One recording. Not for several threads at a time.

    After an OSError the file ends with its last whole block, and nothing more can be written.
    """

    def __init__(
        self, path: Path, *, source: bool = False, most: int = 512 << 20, force: bool = False, local: bool = False
    ) -> None:
        """`source`: keep the lines of the model's source. `most`: bytes of all its files together. `local`: the job runs on
        this machine.

        Raises OSError (FileExistsError for a file that is there, unless `force`), ValueError for a size that is none.
        """
        if most < LEAST:
            raise ValueError(f"a recording needs {LEAST // 2**20} MB at least")
        self.path = path
        self.unfit = 0
        """Events that could not be written: a value in them is none that an event can have."""
        self.unfit_why = ""
        self.rows = 0
        """Samples that were written, those of dropped segments included."""
        self.steps = 0
        self._source = source
        self._host = here() if local else 0
        self._each = most // KEPT
        self._files = Files(path, force)
        self._prelude = Prelude(min(MOST_WEIGHT, most // 2**12))  # unpacked, a half of a segment; packed, a tenth
        self._session = os.urandom(16)
        self._wall_s, self._mono_ns = time.time(), time.monotonic_ns()
        self._last_ns = 0
        self._at_ns = 0
        self._marks: dict[int, Mark] = {}
        self._body = Body()
        self._filled: list[ev.Event] = []
        """What is in it."""
        try:
            self._begin()
        except OSError:
            self._files.close()
            raise

    @property
    def began_ns(self) -> int:
        """CLOCK_MONOTONIC of this machine at which it began: what `at_ns` counts from."""
        return self._mono_ns

    @property
    def bytes(self) -> int:
        """Of all files that are there."""
        return self._files.total

    def put(self, at_ns: int, events: Sequence[ev.Event]) -> None:
        """Add what was applied to a model at once, `at_ns` after the recording began. Raises OSError."""
        for event in events:
            kept = event if self._source else redacted(event)
            for part in () if kept is None else parts(kept):
                self._add(at_ns, part)
        self._beat(at_ns)

    def _add(self, at_ns: int, event: ev.Event) -> None:
        try:
            self._body.event(event)
        except Unfit as error:
            self.unfit += 1
            self.unfit_why = str(error)
            return
        self._filled.append(event)
        if self._body.rows >= FULL_ROWS or self._body.size >= FULL_BYTES:
            self._beat(at_ns)
            self.flush(self.steps)

    def _beat(self, at_ns: int) -> None:
        if self._body:
            self._at_ns = at_ns
            self._body.beat(at_ns)

    def flush(self, steps: int) -> None:
        """Write what is there as a block. `steps`: how many were over. Raises OSError."""
        self.steps = steps
        if not self._body:
            return
        body, self._body = self._body, Body()
        block = body.block(layout.DATA, steps)
        if self._files.size + len(block) > self._each and self._files.size > layout.HEAD:
            self._end(layout.GOES_ON)
            self._begin()
        self._files.append(block)
        self.rows += body.rows
        self._prelude.put(self._filled)
        self._last_ns = self._filled[-1].t_ns
        self._filled = []

    def sync(self) -> None:
        """Have the disk hold what was written: after a loss of power it is there. May take its time. Raises OSError."""
        self._files.sync()

    def close(self) -> None:
        """Write what is left, and that this is the end. Raises OSError."""
        try:
            self.flush(self.steps)
            self._end(layout.END)
            self._files.sync()
        finally:
            self._files.close()

    def abandon(self) -> None:
        """Give it up as it is. Raises nothing."""
        self._files.close()

    def _begin(self) -> None:
        number = self._files.segment + 1
        head = layout.FileHead(self._session, number, self._wall_s, self._mono_ns, ev.SCHEMA, self._source, self._host)
        self._files.begin(head.pack())
        self._marks[number] = Mark(number, self.rows, self._last_ns)
        if number > 1:
            self._repeat(number)
        self._prelude.segment = number

    def _repeat(self, number: int) -> None:
        """The prelude of a later segment."""
        body, segment = Body(self._at_ns), 0
        for told, event in self._prelude.by_segment():
            if told != segment or not body:
                segment = told
                body.mark(self._marks[told])
            body.event(event)
            if body.size >= FULL_BYTES:
                self._files.append(body.block(layout.PRELUDE, self.steps))
                body = Body(self._at_ns)
        if left_out := self._prelude.left_out:
            why = f"{left_out:,} events of dropped parts that named something or told of compilations had no room in later ones"
            body.event(ev.NotAvailable(self._last_ns, "part of the recording", why))
        body.mark(self._marks[number])
        self._files.append(body.block(layout.PRELUDE, self.steps))

    def _end(self, kind: int) -> None:
        self._files.append(Body(self._at_ns).block(kind, self.steps))
