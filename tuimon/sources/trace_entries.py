"""The events of a chrome trace, some thousands at once, while the file is read.

A chunk of the list is cut behind an event and decoded in one go, its events' `args` left as they stand: nine of ten are never
asked for. What balances and parses was cut truly, so nothing is guessed. What msgspec refuses and traces hold at times (NaN,
control characters, half of a surrogate pair) is read event by event by `json`, which takes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tuimon.sources import trace_file
from tuimon.sources.trace_file import READS, Text, Unreadable

if TYPE_CHECKING:
    from tuimon.sources.entry_packed import AT_ONCE, Entry, many
else:
    try:
        from tuimon.sources.entry_packed import AT_ONCE, Entry, many
    except ImportError:
        from tuimon.sources.entry_plain import AT_ONCE, Entry, many

__all__ = ["Entry", "Events", "without_operators"]

LEAST = 2**16
"""Characters that are worth a decoding at once."""
MOST_ENDS, MOST_TRIES = 200, 12
"""Ends of objects that are looked at, from the chunk's end, and of those behind which another begins, that are tried."""

_SPACE = re.compile(r"[\s,]*")
_GOES_ON = re.compile(r"\s*,\s*(?=\{)")
_NONE = object()


_FIELDS = tuple(Entry.__annotations__)


class Events:
    """A chrome trace's events, in batches; what stands beside them is in `header`."""

    def __init__(self, text: Text, wanted: Callable[[str], bool]) -> None:
        """`wanted` tells of the header's keys whether to keep their values."""
        self.header: dict[str, Any] = {}
        self.seen = 0
        """Events so far."""
        self._text = text
        self._wanted = wanted
        self._chunks = text.chunks()
        self._buffer = ""
        self._at = 0
        self._one_by_one = False
        """What is in the buffer could not be decoded at once."""
        self._scan = json.JSONDecoder(strict=False).raw_decode

    @property
    def note(self) -> str:
        """What was amiss with the file; "" where all of it was read."""
        return self._text.note

    def __iter__(self) -> Iterator[list[Entry]]:
        """Raises Unreadable where it is no trace at all."""
        sign = self._next()
        if sign == "[":
            self._at += 1
            yield from self._list()
            if not self.seen:
                raise Unreadable(self._text.note or _no_events(self._text.first))
            self._look_behind()
            return
        if sign != "{":
            raise Unreadable("is no JSON object")
        self._at += 1
        found = False
        while True:
            sign = self._next()
            if sign in ("}", ""):
                self._at += len(sign)
                if found:
                    self._look_behind()
                break
            key = self._value()
            if not isinstance(key, str) or self._next() != ":":
                break
            self._at += 1
            if self._next() == "[" and key == "traceEvents":
                found = True
                self._at += 1
                yield from self._list()
                if self._text.note:
                    break
                continue
            value = self._value()
            if value is _NONE:
                break
            if self._wanted(key):
                self.header[key] = value
        if not found:
            raise Unreadable(self._no_trace())

    def _look_behind(self) -> None:
        """Behind the end there is nothing, or what a full disk or a file laid out beforehand leaves."""
        if self._next() not in ("", "\0") and not self._text.note:
            self._text.note = "holds more behind the trace's end (two traces in one file?): that was not read"

    def _no_trace(self) -> str:
        header = self.header
        if self._text.note:
            return self._text.note
        schema = str(header.get("schema", ""))
        if schema.startswith("tuimon."):
            what = "a comparison" if schema.startswith("tuimon.compare") else "a report"
            return f"is {what} that tuimon wrote, not a trace"
        if "nodes" in header and "schema" in header:
            return "is an execution trace of PyTorch (its graph, without times); a Kineto trace is what tuimon reads"
        if "string_table" in header:
            return "is the raw.jsonl of tlparse, which has left out much: give tuimon the TORCH_TRACE log that it was made of"
        return f"is JSON, but no trace: there are no traceEvents in it; {READS}"

    def _list(self) -> Iterator[list[Entry]]:
        while True:
            sign = self._next()
            if sign == "]":
                self._at += 1
                return
            batch = self._at_once() if sign == "{" else []
            if batch:
                self.seen += len(batch)
                yield batch
                continue
            value = self._value() if sign else _NONE
            if value is _NONE:
                if not self._text.note:
                    self._text.note = f"is damaged or cut off after {self.seen:,} events: read up to there"
                return
            if isinstance(value, dict):
                self.seen += 1
                yield [Entry(**{name: value[name] for name in _FIELDS if name in value})]

    def _at_once(self) -> list[Entry]:
        """The events from here to the last that ends in the buffer; none where they have to be read one by one."""
        buffer, at = self._buffer, self._at
        if not AT_ONCE or self._one_by_one or len(buffer) - at < LEAST:
            return []
        end, tries = len(buffer), 0
        for _ in range(MOST_ENDS):
            end = buffer.rfind("}", at, end)
            if end < 0 or tries == MOST_TRIES:
                break
            behind = _GOES_ON.match(buffer, end + 1)
            if behind is None:
                continue
            tries += 1
            try:
                found = many(f"[{buffer[at : end + 1]}]")
            except (ValueError, RecursionError):
                continue
            self._at = behind.end()
            return found
        self._one_by_one = True
        return []

    def _next(self) -> str:
        """The next sign that is no blank and no comma; "" at the end."""
        while True:
            found = _SPACE.match(self._buffer, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._more():
                return ""

    def _more(self) -> bool:
        chunk = next(self._chunks, None)
        if chunk is None:
            return False
        left = self._buffer[self._at :]
        self._buffer = left + chunk if left or not chunk.isspace() else ""
        self._at = 0
        self._one_by_one = False
        return True

    def _value(self) -> Any:
        """The value that begins here; _NONE where there is none that can be read."""
        while True:
            try:
                value, end = self._scan(self._buffer, self._at)
            except json.JSONDecodeError:
                end = -1
            except (RecursionError, ValueError, MemoryError):  # nested without end; a number of 5,000 digits
                self._text.note = self._text.note or f"is damaged after {self.seen:,} events: read up to there"
                return _NONE
            if 0 <= end < len(self._buffer):  # at the buffer's end a number may go on
                self._at = end
                return value
            if len(self._buffer) - self._at > trace_file.LONGEST_VALUE:
                return _NONE
            most = 2 * (len(self._buffer) - self._at)  # so that a long one is not looked at again with each chunk
            if not self._more():
                if end < 0:
                    return _NONE
                self._at = end
                return value
            while len(self._buffer) < most and self._more():
                pass


def without_operators(events: int, first: str) -> str:
    """What a trace of so many events is that has neither operators nor kernels. `first`: its first chunk."""
    if "dynamo_timed" in first[: trace_file.CHUNK]:
        return (
            "is a timeline of the compiler (tlparse draws it of a TORCH_TRACE log), with no operators or kernels in it: give "
            "tuimon the log itself"
        )
    return (
        f"is a trace of {events:,} event{'' if events == 1 else 's'}, but holds neither operators nor kernels: none ran while "
        "it was recorded, or torch.profiler was not asked for the activities CPU and CUDA"
    )


def _no_events(first: str) -> str:
    if _MEMORY.match(first):
        return (
            "is a memory timeline of torch.profiler (export_memory_timeline), which tuimon does not read; export_chrome_trace "
            "writes what it reads"
        )
    return f"is a JSON list, but not of a trace's events; {READS}"


_MEMORY = re.compile(r"\s*\[\s*\[\s*-?\d+\s*,\s*\d+\s*,\s*-?\d+\s*,\s*\d+\s*\]")
"""[time, action, bytes, category]."""
