"""Whether somebody else could put code of theirs in the place of tuimon's: it may run as root, and part of it runs in jobs."""

from __future__ import annotations

import grp
import os
import pwd
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import tuimon
from tuimon.doctor.checks import Check, note, ok

NAMED = 3
"""So many of them are named."""
MOST_LINKS = 40


def code() -> list[Path]:
    """What is run: all of the package, the interpreter, and the folders that it imports from, or in which one of those that are
    not there would be made."""
    package = Path(tuimon.__file__).parent
    found = [package, *package.rglob("*"), Path(sys.executable)]
    for entry in sys.path:
        path = Path(entry or os.curdir)
        if path.is_absolute() and not path.exists():  # what is no path at all may stand there, too, for a finder of its own
            path = next(above for above in path.parents if above.exists())
        found.append(path)
    return list(dict.fromkeys(path.absolute() for path in found if path.exists()))


def check(paths: Iterable[Path] | None = None, user: int | None = None) -> Check:
    """Who may write to one of these (None: `code`), or to what leads there, but root and this user (None: we)."""
    user = os.geteuid() if user is None else user
    paths = code() if paths is None else list(paths)
    exposed: dict[Path, str] = {}
    places = {**{place: False for path in paths for place in _leading(path)}, **dict.fromkeys(paths, True)}
    for place, is_code in places.items():
        try:
            who = _who_else(place.stat(), user, is_code)
        except OSError:  # gone meanwhile
            continue
        if who:
            exposed[place] = who
    if not exposed:
        return ok("machine", "installation", f"nobody but {'root' if user == 0 else 'you and root'} may write to its code")
    named = [f"{folder} ({who})" for folder, who in list(exposed.items())[:NAMED]]
    more = f" and {len(exposed) - NAMED} more" if len(exposed) > NAMED else ""
    if user == 0:
        what, step = (
            "what tuimon runs as root here is theirs",
            "install it for root where root alone may write: sudo pipx install tuimon",
        )
    else:
        what, step = (
            "what tuimon runs here, and in your jobs, is theirs",
            "chmod go-w FOLDER, or install it in a folder of yours",
        )
    they = "others" if len(exposed) > 1 or next(iter(exposed.values())) == "others may write" else "somebody else"
    return note("machine", "installation", f"{they} may change its code: {', '.join(named)}{more}; {what}", step)


def _leading(path: Path) -> Iterator[Path]:
    """All folders that lead there, by its links and without, and what it is at last."""
    yield from path.parents
    for _ in range(MOST_LINKS):
        if not path.is_symlink():
            break
        path = Path(os.path.normpath(path.parent / path.readlink()))
        yield from path.parents
    real = Path(os.path.realpath(path))
    yield real
    yield from real.parents


def _who_else(facts: os.stat_result, user: int, is_code: bool) -> str:
    """Who may change what is there, beside root and this user; empty where nobody may.

    In a sticky folder nobody renames what is another's; but where code is imported from, it is enough to add some.
    """
    if facts.st_uid not in (0, user):
        return f"of {_user(facts.st_uid)}"
    if stat.S_ISDIR(facts.st_mode) and facts.st_mode & stat.S_ISVTX and not is_code:
        return ""
    if facts.st_mode & stat.S_IWOTH:
        return "others may write"
    if facts.st_mode & stat.S_IWGRP and facts.st_gid != 0 and not _is_alone(facts.st_gid, user):
        return f"group {_group(facts.st_gid)} may write"
    return ""


def _is_alone(group: int, user: int) -> bool:
    """Whether it is the user's private group, as many systems give each user one."""
    try:
        found, own = grp.getgrgid(group), pwd.getpwuid(user)
    except KeyError:
        return False
    return own.pw_gid == group and found.gr_name == own.pw_name and set(found.gr_mem) <= {own.pw_name}


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
