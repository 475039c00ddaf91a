"""The texts of the lines that the hook names: a place in a file says more with the line beside it.

Looked up in tuimon's process, once for a line, where the target runs on this host; never in the job. The job names the files:
they are looked for where it would find them, in its own root, and read only if it may read them itself.
"""

from __future__ import annotations

import io
import os
import tokenize
from collections import OrderedDict
from collections.abc import Iterable

from tuimon import events as ev
from tuimon import plain

MOST_CODES, MOST_LINES, MOST_FILES = 20_000, 20_000, 16
"""Code objects, lines told and files that are remembered."""
LARGEST_FILE = 4_000_000
LONGEST_LINE = 200


class Lines:
    """Puts a `SourceSeen` behind each event that names a line for the first time."""

    def __init__(self, pid: int | None = None) -> None:
        """`pid`: the process whose files they are; None: files are looked for as tuimon itself finds them."""
        self.of_job = None if pid is None else plain.JobFiles(pid)
        self._code_file: dict[int, str] = {}
        self._told: set[tuple[str, int]] = set()
        self._files: OrderedDict[str, list[str]] = OrderedDict()

    def told(self, events: Iterable[ev.Event]) -> list[ev.Event]:
        """The events, with the texts of the lines in them that were not told yet."""
        found: list[ev.Event] = []
        for event in events:
            found.append(event)
            if isinstance(event, ev.CodeSeen):
                if len(self._code_file) < MOST_CODES:
                    self._code_file[event.code] = event.file
            elif isinstance(event, ev.StackSeen):
                for code, line, _, _ in event.rows:
                    self._tell(found, event, self._code_file.get(code), line)
            elif isinstance(event, ev.SiteSeen):
                self._tell(found, event, self._code_file.get(event.code), event.line)
                for file, line, _ in event.stack:
                    self._tell(found, event, file, line)
        return found

    def _tell(self, found: list[ev.Event], event: ev.Event, file: str | None, line: int) -> None:
        if file is None or (file, line) in self._told or len(self._told) >= MOST_LINES:
            return
        self._told.add((file, line))
        text = self._text(file, line)
        if text:
            found.append(ev.SourceSeen(event.t_ns, file, line, text))

    def _text(self, file: str, line: int) -> str:
        lines = self._files.get(file)
        if lines is None:
            lines = self._files[file] = _lines(file, self.of_job)
            if len(self._files) > MOST_FILES:
                self._files.popitem(last=False)
        else:
            self._files.move_to_end(file)
        return lines[line - 1].strip()[:LONGEST_LINE] if 0 < line <= len(lines) else ""


def _lines(file: str, of_job: plain.JobFiles | None) -> list[str]:
    """The lines of a source file; none where it cannot be read, or is no ordinary file of a sane size."""
    if not os.path.isabs(file) or not file.endswith((".py", ".pyw")):
        return []
    try:
        handle = (plain.open_plain if of_job is None else of_job.open)(file, most=LARGEST_FILE)
        with os.fdopen(handle, "rb") as source:
            data = source.read(LARGEST_FILE)
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return data.decode(encoding).splitlines()
    except (OSError, SyntaxError, UnicodeError, LookupError, ValueError):
        return []
