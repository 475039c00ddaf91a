"""Any file, or a folder of them, as the events of jobs that are over: what replay, report, compare and export are fed with.

The kind of a file is found out from what is in it, never from its name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tuimon import events as ev
from tuimon.sources import kineto, ncu
from tuimon.sources.opened import Kind as Kind
from tuimon.sources.opened import Opened as Opened
from tuimon.sources.opened import Piece as Piece
from tuimon.sources.opened import Progress as Progress
from tuimon.sources.opened import Stopped as Stopped
from tuimon.sources.opened import no_progress as no_progress
from tuimon.sources.recording import is_recording, open_recording
from tuimon.sources.torch_trace import open_log
from tuimon.sources.trace_events import looks_like_trace, of_counters, of_trace, rank_of, ranks_apart
from tuimon.sources.trace_file import READS, Text, Unreadable, kind

SHORT = "is no kind of file that tuimon reads"
UNKNOWN = f"{SHORT}: {READS.removeprefix('tuimon reads ')}"
MOST_FILES = 4096
"""Files of one folder that are looked at."""
MOST_WHYS, MOST_NAMES = 6, 3
"""So many reasons why files of a folder were left out are told, and of each so many files are named."""

NAMES: dict[Kind, tuple[str, str]] = {
    "recording": ("recording", "recordings"),
    "torch_trace": ("TORCH_TRACE log", "TORCH_TRACE logs"),
    "kineto": ("Kineto trace", "Kineto traces"),
    "ncu": ("table of Nsight Compute", "tables of Nsight Compute"),
}


def open_any(path: Path) -> tuple[list[Opened], list[str]]:
    """What a file or a folder holds, by rank, and sentences on what of a folder was left out. Raises Unreadable."""
    return _folder(path) if os.path.isdir(path) else (_file(path), [])


def _file(path: Path, *, alone: bool = True) -> list[Opened]:
    """`alone`: it was named itself; what is wrong with a trace is said when it is read."""
    if is_recording(path):
        return open_recording(path)
    text = Text(path)
    try:
        what = kind(text)
        if what == "torch_trace":
            return open_log(path, text)
        if what == "json":
            rank = rank_of(path, text)
            if not alone and not looks_like_trace(text):
                kineto.read_text(text)
            return [Opened("kineto", path, path.name if rank is None else f"rank {rank}", rank, partial(_trace, path))]
        if what == "ncu" or _has_columns(text.first):
            return [Opened("ncu", path, path.name, None, lambda _: iter([_counters(path)]))]
        raise Unreadable(UNKNOWN)
    finally:
        text.close()


def _trace(path: Path, progress: Progress) -> Iterator[list[ev.Event]]:
    text = Text(path)
    text.progress = progress
    yield from of_trace(path, kineto.read_text(text), text.written_s)


def _counters(path: Path) -> list[ev.Event]:
    text = Text(path)
    return of_counters(path, ncu.read_text(text), text)


def _has_columns(first: str) -> bool:
    """Whether it begins like a table: two lines with as many commas. Prose has some in one line and some in the next."""
    lines = [line for line in first[:65536].splitlines() if line.strip()][:2]
    return len(lines) == 2 and lines[0].count(",") > 2 and lines[1].count(",") >= lines[0].count(",")


def _some(names: list[str]) -> str:
    """`a.html, which`, `a.html, b.html and 3 more, each of which`: what is said of them follows."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"{', '.join(names[:MOST_NAMES])}{more}, {'which' if len(names) == 1 else 'each of which'}"


def _folder(path: Path) -> tuple[list[Opened], list[str]]:
    """Every ordinary file in it, one level deep, by its content. Mixed kinds are refused: nobody could say what is one job."""
    found: list[Opened] = []
    refused: dict[str, list[str]] = {}
    empty = 0
    try:
        entries = sorted((one.name, one.is_file(), one.is_dir()) for one in os.scandir(path))
        names = [name for name, is_file, _ in entries if is_file]
        within = [name for name, _, is_folder in entries if is_folder]
    except OSError as error:
        raise Unreadable(f"cannot be opened: {(error.strerror or str(error)).lower()}") from None
    for name in names[:MOST_FILES]:
        try:
            if (path / name).stat().st_size == 0:
                empty += 1
                continue
            opened = _file(path / name, alone=False)
            found += [one for one in opened if one.path not in {other.path for other in found}]  # a later part of a recording
        except (Unreadable, OSError) as error:
            why = SHORT if str(error) == UNKNOWN else str(error).partition(f"; {READS}")[0]
            refused.setdefault(why, []).append(name)
    left = [f"{empty} of the files are empty and were left out"] if empty > 1 else ["1 file is empty and was left out"] * empty
    left += [f"left out: {_some(named)} {why}" for why, named in list(refused.items())[:MOST_WHYS]]
    more = sum(len(named) for named in list(refused.values())[MOST_WHYS:])
    left += [f"left out: {more} more that cannot be read"] if more else []
    left += [f"{len(names) - MOST_FILES} more files were not looked at"] if len(names) > MOST_FILES else []
    kinds = {one.kind for one in found}
    if len(kinds) > 1:
        counts = [(sum(one.kind == what for one in found), what) for what in sorted(kinds)]
        held = " and ".join(f"{n} {NAMES[what][n > 1]}" for n, what in counts)
        raise Unreadable(f"holds {held}: name one of them")
    if not found:
        why = f" ({'; '.join(left)}); {READS}" if left else ": it has no files"
        inner = (
            f", and does not look into folders within: name one of them ({', '.join(within[:MOST_NAMES])})" if within else ""
        )
        raise Unreadable(f"is a folder in which tuimon finds nothing to read{why}{inner}")
    found, alike = ranks_apart(found)
    return found, left + alike
