"""Files of other tools: opened with care, their kind found out from what is in them, and a trace's events read one by one.

A file may be anything: a fifo, a bomb, half a download. Each of these ends in one sentence (`Unreadable`), or where a part
could be read, in that part and a sentence. Memory is bounded by the chunk, not by the file.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

MOST_UNPACKED = 2**30
"""Bytes of a file, unpacked, that are read."""

CHUNK = 2**20
LONGEST_VALUE = 2**25
"""Characters of one event, or one value of the header."""

GZIP = b"\x1f\x8b"


class Unreadable(ValueError):
    """The file cannot be read; the text is a sentence for a person, without the file's name."""


_MAGIC = (
    (b"PK\x03\x04", "is a zip archive (a checkpoint, or a packed trace: unzip it first)"),
    (b"SQLite format 3", "is an SQLite data base (Nsight Systems exports those), which tuimon does not read"),
    (b"NVR", "is a report of Nsight Compute; export it: ncu --import FILE --csv --page raw > kernels.csv"),
    (b"\x7fELF", "is a program"),
    (b"\x28\xb5\x2f\xfd", "is packed with zstd: unpack it first"),
    (b"\xfd7zXZ", "is packed with xz: unpack it first"),
    (b"BZh", "is packed with bzip2: unpack it first"),
    (b"\x80\x02", "is a Python pickle (a memory snapshot?), which tuimon does not read"),
    (b"\x80\x04", "is a Python pickle (a memory snapshot?), which tuimon does not read"),
    (b"\xff\xfe", "is UTF-16 text, which no trace is"),
    (b"\xfe\xff", "is UTF-16 text, which no trace is"),
)
_GLOG = re.compile(r"(?:\[rank\d+\]:\s*)?[VIWEF]\d{4} \d\d:\d\d:\d\d\.\d+ ")
_SPACE = re.compile(r"[\s,]*")
_CSV = re.compile(r'(?:==PROF==|"?ID"?,"?Process ID"?)', re.MULTILINE)


def opened(path: Path) -> IO[bytes]:
    """The file, open. Raises Unreadable, and never waits for the other end of a fifo."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Unreadable(f"cannot be opened: {(error.strerror or str(error)).lower()}") from None
    except ValueError:  # a name with a NUL in it
        raise Unreadable("is no name that a file can have") from None
    mode = os.fstat(number).st_mode
    if not stat.S_ISREG(mode):
        os.close(number)
        what = "a directory" if stat.S_ISDIR(mode) else "a fifo" if stat.S_ISFIFO(mode) else "no ordinary file"
        raise Unreadable(f"is {what}; tuimon reads a single file in this version")
    return os.fdopen(number, "rb")


class Text:
    """What is in a file, unpacked, in chunks of text. Iterated once; afterwards `note` says what was amiss."""

    def __init__(self, path: Path, most: int = MOST_UNPACKED) -> None:
        """Raises Unreadable where the file cannot be opened, is empty or is of a kind that holds no text."""
        self.note = ""
        self._most = most
        self._file = opened(path)
        try:
            self.written_s = max(0.0, os.fstat(self._file.fileno()).st_mtime)
            """Unix time of its last change."""
            self._bytes = self._unpacked()
            first = next(self._bytes, b"")
        except OSError as error:
            self._file.close()
            raise Unreadable(f"cannot be read: {(error.strerror or str(error)).lower()}") from None
        except Unreadable:
            self._file.close()
            raise
        if not first.strip():
            self._file.close()
            raise Unreadable(self.note or ("is empty" if not first else "holds nothing but blanks"))
        for magic, sentence in _MAGIC:
            if first.startswith(magic):
                self._file.close()
                raise Unreadable(sentence)
        if b"\0" in first[:4096]:
            self._file.close()
            raise Unreadable("is no text: neither a trace nor a table")
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self.first = self._decode(first).removeprefix("\ufeff")
        """The first chunk."""

    def chunks(self) -> Iterator[str]:
        """All of it, the first chunk too."""
        try:
            yield self.first
            for chunk in self._bytes:
                yield self._decode(chunk)
        except OSError as error:
            self.note = f"could be read in part only: {(error.strerror or str(error)).lower()}"
        finally:
            self._file.close()

    def close(self) -> None:
        """Of no more use."""
        self._file.close()

    def _unpacked(self) -> Iterator[bytes]:
        packed = self._file.read(CHUNK)
        read = 0
        if not packed.startswith(GZIP):
            while packed:
                read += len(packed)
                if read > self._most:
                    self.note = f"is longer than {_megabytes(self._most)}: the rest was not read"
                    return
                yield packed
                packed = self._file.read(CHUNK)
            return
        unpack = zlib.decompressobj(wbits=31)
        while True:
            try:
                found = unpack.decompress(packed, CHUNK)
            except zlib.error:
                self.note = "is damaged: it could be unpacked in part only"
                return
            read += len(found)
            if read > self._most:
                self.note = f"unpacks to more than {_megabytes(self._most)}: the rest was not read"
                return
            if found:
                yield found
            packed = unpack.unconsumed_tail
            if unpack.eof:
                packed = unpack.unused_data or self._file.read(CHUNK)
                if not packed.startswith(GZIP):  # padding, or nothing more
                    return
                unpack = zlib.decompressobj(wbits=31)
            elif not packed and not found:
                packed = self._file.read(CHUNK)
                if not packed:
                    self.note = "ends in the middle (a download that was cut off?): read up to there"
                    return


def _megabytes(size: int) -> str:
    return f"{size // 2**20:,} MB"


def kind(text: Text) -> str:
    """ "json", "ncu", or "" for what is none of both; a sentence for a kind that is known and not read: raises Unreadable."""
    head = text.first.lstrip()
    if _GLOG.match(head):
        raise Unreadable("is a TORCH_TRACE log; this version reads Kineto traces and the CSV of Nsight Compute")
    if head[:1] in ("{", "["):
        return "json"
    if _CSV.search(text.first[:65536]):
        return "ncu"
    return ""


class Events:
    """A chrome trace's events, one by one; what stands beside them is in `header`."""

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
        self._scan = json.JSONDecoder(strict=False).raw_decode

    @property
    def note(self) -> str:
        """What was amiss with the file; "" where all of it was read."""
        return self._text.note

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Raises Unreadable where it is no trace at all."""
        sign = self._next()
        if sign == "[":
            self._at += 1
            yield from self._list()
            if not self.seen:
                raise Unreadable(self._text.note or "is a JSON list, but not of a trace's events")
            return
        if sign != "{":
            raise Unreadable("is no JSON object")
        self._at += 1
        found = False
        while True:
            sign = self._next()
            if sign in ("}", ""):
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

    def _no_trace(self) -> str:
        header = self.header
        if self._text.note:
            return self._text.note
        if str(header.get("schema", "")).startswith("tuimon.report"):
            return "is a report that tuimon wrote, not a trace"
        if "nodes" in header and "schema" in header:
            return "is an execution trace of PyTorch (its graph, without times); a Kineto trace is what tuimon reads"
        return "is JSON, but no trace: there are no traceEvents in it"

    def _list(self) -> Iterator[dict[str, Any]]:
        while True:
            sign = self._next()
            if sign == "]":
                self._at += 1
                return
            value = self._value() if sign else _NONE
            if value is _NONE:
                if not self._text.note:
                    self._text.note = f"is damaged or cut off after {self.seen:,} events: read up to there"
                return
            if isinstance(value, dict):
                self.seen += 1
                yield value

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
        self._buffer = self._buffer[self._at :] + chunk
        self._at = 0
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
            if len(self._buffer) - self._at > LONGEST_VALUE:
                return _NONE
            if not self._more():
                if end < 0:
                    return _NONE
                self._at = end
                return value


_NONE = object()
