"""Profiler windows of a live job: what the hook says of one, and the file that it leaves, which is read and taken away."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tuimon import events as ev
from tuimon import plain
from tuimon.hook import wire
from tuimon.sources import kineto
from tuimon.sources.trace_file import Unreadable

MOST_BYTES = 2**28
"""A window's file is read up to so many bytes; the hook keeps it far below."""

_NAME = re.compile(r"tuimon-window-\d{1,10}-\d{1,10}\.json")
_FIELDS = ("window", "state", "why", "steps", "job_s", "slower", "begin_ns", "end_ns")
_BEGINS = b'{"k":"window",'

Folder = Callable[[], int | None]
"""The folder that the job was told to write its windows' files to, opened, for its caller to close; None where it is gone."""


def is_window(kind: int, body: bytes) -> bool:
    """Whether a frame of the hook's is about a window; where frames are passed on, it has to be read on the job's own host."""
    return kind == wire.JSON_FRAME and body.startswith(_BEGINS)


def events(message: Mapping[str, Any], folder: Folder | None) -> list[ev.Event]:
    """The events in a message of kind "window": how it stands, and where it is closed what it holds.

    `folder` is where its file lies: of the path that the job tells, the last part alone is taken. None: on another host.
    """
    told = {name: message[name] for name in _FIELDS if message.get(name) is not None}
    changed = ev.WindowChanged(message["t"], **told)
    path = message.get("path")
    if changed.state != "closed" or not path or folder is None:
        return [changed]
    steps = _span(message, "first_ns", "last_ns")  # from the begin of the first whole step to the end of the last
    try:
        # a GPU goes on being recorded after `end_ns`, until the profiler is disabled
        trace = _take(os.path.basename(str(path)), changed.window, folder, steps or _span(message, "begin_ns", "end_ns"))
    except Unreadable as error:
        why = f"the profile that torch wrote {error}"
        return [replace(changed, why=f"{changed.why}; {why}" if changed.why else why)]
    seen, spans = trace.seen, replace(trace.spans, t_ns=changed.t_ns)
    if trace.cut and steps is not None:
        seen = replace(seen, t_ns=changed.t_ns, begin_ns=message["first_ns"], end_ns=message["last_ns"], steps=changed.steps)
    elif isinstance(changed.begin_ns, int) and isinstance(changed.end_ns, int):  # on the job's clock, as all else
        seen = replace(seen, t_ns=changed.t_ns, begin_ns=changed.begin_ns, end_ns=changed.end_ns)
    return [changed, seen, *([spans] if spans.spans or spans.gaps or spans.lookups else [])]


def _span(message: Mapping[str, Any], *names: str) -> tuple[int, int] | None:
    """Two moments of the message, by their names, in ns on the wall clock, which is the trace's; None where none are told."""
    told = [message.get(name) for name in ("begin_ns", "begin_wall_ns", *names)]
    if not all(type(one) is int and 0 <= one < 2**62 for one in told):
        return None
    begin, wall, first, last = (int(str(one)) for one in told)
    return (wall - begin + first, wall - begin + last) if first < last else None


def _take(name: str, window: int, folder: Folder, span: tuple[int, int] | None) -> kineto.Trace:
    """What the file holds, in that span where there is one; it is gone afterwards. Raises Unreadable.

    Its name comes from the job: only an ordinary file is touched that is called as a window's file, in that very folder.
    """
    if not _NAME.fullmatch(name):
        raise Unreadable("has a name that none has")
    place = folder()
    if place is None:
        raise Unreadable("is not there")
    try:
        file = plain.open_inside(name, place)
        try:
            return kineto.read(Path(f"/proc/self/fd/{file}"), window=window, most=MOST_BYTES, span=span)
        finally:
            os.close(file)
            with contextlib.suppress(OSError):  # the hook takes it away with itself
                os.unlink(name, dir_fd=place)
    except plain.NotPlain as error:
        raise Unreadable("is not there" if error.errno == errno.ENOENT else error.sentence) from None
    finally:
        os.close(place)
