"""Files that a person names, and that may be somebody else's work: what is no ordinary file is refused, and never opened."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tuimon.accepted import AcceptedError
from tuimon.accepted import load as load_accepted
from tuimon.app.details.source import read_excerpt
from tuimon.app.look.themes import ThemeError, read_theme
from tuimon.app.tour import TourError
from tuimon.app.tour import load as load_tour
from tuimon.config import resolve
from tuimon.lab.walk import WalkError, load_walk
from tuimon.plain import JobFiles
from tuimon.roofline.calibration import load_all
from tuimon.roofline.ceilings import CeilingError, load_ceilings
from tuimon.sources.files import open_any
from tuimon.sources.recording.segments import head_of
from tuimon.sources.trace_file import Unreadable


def refused(kind: type[Exception], read: Callable[[Path], object]) -> Callable[[Path], str]:
    """The sentence of the reader's own error."""

    def why(path: Path) -> str:
        with pytest.raises(kind) as error:
            read(path)
        return str(error.value)

    return why


def of_folder(path: Path) -> str:
    """Calibrations are read as they lie in a folder; the file of this test is one of them, under a name of theirs."""
    place = path.parent / "calibrations"
    place.mkdir()
    (place / "x.toml").symlink_to(path)
    return " ".join(load_all(place)[1])


READERS: dict[str, Callable[[Path], str]] = {
    "a trace, a log, a recording": refused(Unreadable, lambda path: open_any(path)),
    "the head of a recording": lambda path: "" if head_of(path) is None else "read",
    "accepted boundaries": refused(AcceptedError, load_accepted),
    "a theme": refused(ThemeError, lambda path: read_theme(path, {})),
    "a tour": refused(TourError, load_tour),
    "a walk": refused(WalkError, load_walk),
    "settings": lambda path: " ".join(resolve({}, {}, path).problems),
    "ceilings": refused(CeilingError, lambda path: load_ceilings(path)),
    "a calibration": of_folder,
    "source": lambda path: read_excerpt(str(path), 1).why_not,
    "source of a job": lambda path: read_excerpt(str(path), 1, files=JobFiles(os.getpid())).why_not,
}
KINDS = {"fifo": "is a fifo", "device": "is a device", "socket": "is a socket", "folder": "is a directory"}

_seen: list[tuple[str, int]] | None = None
"""What is opened, while somebody looks."""


def _look(event: str, told: tuple[object, ...]) -> None:
    if event == "open" and _seen is not None:
        path, _, flags = told
        if isinstance(path, (str, bytes, os.PathLike)) and isinstance(flags, int):
            _seen.append((os.fsdecode(path), flags))


@pytest.fixture(scope="module", autouse=True)
def audited() -> None:
    """Hear of each opening of a file. There is no way to take such a hook out again; it hears nothing outside of `opened`."""
    sys.addaudithook(_look)


@contextlib.contextmanager
def opened() -> Iterator[list[tuple[str, int]]]:
    """Paths that are opened meanwhile, with flags."""
    global _seen
    _seen = []
    try:
        yield _seen
    finally:
        _seen = None


@pytest.fixture(params=KINDS)
def odd(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, str]]:
    """(something that is no file, what it is called)."""
    path = tmp_path / "odd"
    with contextlib.ExitStack() as stack:
        if request.param == "fifo":
            os.mkfifo(path)
        elif request.param == "device":
            path.symlink_to("/dev/null")
        elif request.param == "socket":
            monkeypatch.chdir(tmp_path)
            stack.enter_context(socket.socket(socket.AF_UNIX)).bind("odd")
        else:
            path.mkdir()
        yield path, KINDS[request.param]


@pytest.mark.parametrize("name", READERS)
def test_what_is_no_file_is_not_opened(name: str, odd: tuple[Path, str]) -> None:
    path, called = odd
    if path.is_dir() and name == "a trace, a log, a recording":
        pytest.skip("a folder of them is read")
    with opened() as paths:
        why = READERS[name](path)
    assert called in why or name == "the head of a recording", why
    ours = [flags for found, flags in paths if os.path.basename(found) in ("odd", "x.toml", "null")]
    assert ours and all(flags & os.O_PATH for flags in ours)
    assert not [found for found, _ in paths if found.startswith("/proc/self/fd/")]  # nor by what was looked at
