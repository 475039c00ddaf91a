"""Files of other tools: opened with care, their kind found out from what is in them.

A file may be anything: a fifo, a bomb, half a download. Each of these ends in one sentence (`Unreadable`), or where a part
could be read, in that part and a sentence. Memory is bounded by the chunk, not by the file.
"""

from __future__ import annotations

import codecs
import errno
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from tuimon.plain import NotPlain, open_plain
from tuimon.sources import glog
from tuimon.sources.opened import Progress, no_progress

MOST_UNPACKED = 2**30
"""Bytes of a file, unpacked, that are read."""

CHUNK = 2**20
LONGEST_VALUE = 2**25
"""Characters of one event, or one value of the header."""

GZIP = b"\x1f\x8b"


class Unreadable(ValueError):
    """The file cannot be read; the text is a sentence for a person, without the file's name."""


READS = "tuimon reads its own recordings, TORCH_TRACE logs, Kineto traces and the CSV of Nsight Compute"
"""What to say behind a kind that is known, and not read."""
PICKLE = (
    "is a Python pickle, which tuimon never opens (a memory snapshot is for pytorch.org/memory_viz, a flight recorder's dump "
    f"for torchfrtrace); {READS}"
)
_MAGIC = (
    (b"PK\x03\x04", "is a zip archive (a checkpoint, or a packed trace: unzip it first)"),
    (b"SQLite format 3", f"is an SQLite data base (Nsight Systems exports those); {READS}"),
    (b"NVR", "is a report of Nsight Compute; export it: ncu --import FILE --csv --page raw > kernels.csv"),
    (b"\x7fELF", f"is a program; {READS}"),
    (GZIP, "is packed with gzip twice: unpack it once"),
    (b"\x28\xb5\x2f\xfd", "is packed with zstd: unpack it first"),
    (b"\xfd7zXZ", "is packed with xz: unpack it first"),
    (b"BZh", "is packed with bzip2: unpack it first"),
    *((b"\x80" + bytes((protocol,)), PICKLE) for protocol in (2, 3, 4, 5)),
    (b"\xff\xfe", "is UTF-16 text, which no trace is: iconv -f UTF-16 -t UTF-8 makes it readable"),
    (b"\xfe\xff", "is UTF-16 text, which no trace is: iconv -f UTF-16 -t UTF-8 makes it readable"),
)
_CSV = re.compile(r'(?:==PROF==|"?ID"?,"?Process ID"?)', re.MULTILINE)


def opened(path: Path) -> IO[bytes]:
    """The file, open. Raises Unreadable, and never waits for the other end of a fifo."""
    try:
        return os.fdopen(open_plain(path), "rb")
    except NotPlain as error:
        reads = "; tuimon reads ordinary files, and folders of them" if error.errno == errno.EINVAL else ""
        raise Unreadable(error.sentence + reads) from None


class Text:
    """What is in a file, unpacked, in chunks of text. Iterated once; afterwards `note` says what was amiss."""

    def __init__(self, path: Path, most: int = MOST_UNPACKED) -> None:
        """Raises Unreadable where the file cannot be opened, is empty or is of a kind that holds no text."""
        self.note = ""
        self.progress: Progress = no_progress
        """Is told how much of the file has been read, chunk by chunk; what it raises comes out of `chunks`."""
        self._most = most
        self._file = opened(path)
        try:
            status = os.fstat(self._file.fileno())
            self._size = status.st_size
            self.written_s = max(0.0, status.st_mtime)
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
        # a log that several wrote to, or that a full disk damaged, may have some
        if b"\0" in first[:4096] and not glog.kind(first[: glog.LOOKED_AT].decode("utf-8", "replace")):
            self._file.close()
            raise Unreadable(f"is no text: neither a trace nor a table; {READS}")
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self.first = self._decode(first).removeprefix("\ufeff")
        """The first chunk."""

    def chunks(self) -> Iterator[str]:
        """All of it, the first chunk too."""
        try:
            yield self.first
            for chunk in self._bytes:
                self.progress(self._file.tell(), self._size)
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
    """ "torch_trace", "json", "ncu", or "" for none of these. Raises Unreadable for a kind that is known and not read."""
    head = text.first.lstrip()
    log = glog.kind(text.first)
    if log == "records":
        return "torch_trace"
    if log == "text":
        raise Unreadable("is what TORCH_LOGS prints; TORCH_TRACE=DIR has torch write the records that tuimon reads")
    if head[:1] in ("{", "["):
        return "json"
    if _CSV.search(text.first[:65536]):
        return "ncu"
    return ""
