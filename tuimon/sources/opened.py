"""What a file that was opened is to whoever folds it; what opens each kind of file is built on these."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from tuimon import events as ev

Kind = Literal["recording", "torch_trace", "kineto", "ncu"]
Progress = Callable[[int, int], None]
"""Is told (bytes read, bytes in all) of the file as it lies on the disk; raises `Stopped` to give up."""


class Stopped(Exception):
    """Whoever reads does not want the rest."""


class Piece(NamedTuple):
    """A part of a recording."""

    block: int
    """The block of the file that it begins in, from 0 on, through all segments."""
    at_ns: int
    """When it was taken in, in ns since the recording began."""
    events: list[ev.Event]


@dataclass(frozen=True)
class Opened:
    """One rank of what a file or a folder holds; mostly the only one."""

    kind: Kind
    path: Path
    label: str
    """"rank 3", or the file's name."""
    rank: int | None
    events: Callable[[Progress], Iterator[list[ev.Event]]]
    """Reads it, once, in batches that were one application to a model each. Raises Unreadable before the first batch only."""
    again: Callable[[int, Progress], Iterator[Piece]] | None = None
    """A recording: reads it from that block on, as often as wanted. None: other kinds are read from their begin."""
    began_s: float | None = None
    """A recording: when it began, as Unix time."""
    rows: int | None = None
    """A recording: the samples in it."""
    local: bool = False
    """A recording: the job ran on this machine, so that what is known of this machine holds for it."""


def no_progress(_read: int, _of: int) -> None:
    """For who does not want to know."""
