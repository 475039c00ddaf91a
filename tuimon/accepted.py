"""Boundaries that somebody has looked at and lives with: a small TOML file beside the project, or in the user's own folder.

The file is the user's. It is written by adding and taking out whole entries of text, so that comments, order and keys that
tuimon does not know stay as they were; what was written is read back before it takes the old file's place.

    [[boundary]]
    file = "model.py"
    function = "forward"
    kind = "logging.Logger method not supported for non-export cases"
    source = "log.info(x.shape)"
    note = "one line a step, wanted"
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuimon import events as ev
from tuimon import toml
from tuimon.plain import NotPlain, open_plain

NAME = "tuimon-accepted.toml"
HEADER = "[[boundary]]"
PROJECT_MARKS = (".git", "pyproject.toml")
MOST_BYTES = 1 << 20
MOST_ENTRIES = 1_000
_ABOUT = "# Graph-break boundaries that were looked at and are accepted; tuimon shows them in the background.\n"


class AcceptedError(Exception):
    """The file cannot be read or written; the message is a sentence for a person."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One accepted boundary: what survives edits of the code."""

    file: str
    """Relative to the project's folder, or the whole path; compared from its end."""
    function: str
    kind: str
    source: str = ""
    note: str = ""

    @property
    def which(self) -> tuple[str, str, str, str]:
        """What tells it from others; the note does not."""
        return self.file, self.function, self.kind, self.source

    def event(self, t_ns: int) -> ev.BoundaryAccepted:
        """It, for the model."""
        return ev.BoundaryAccepted(t_ns, self.file, self.function, self.kind, self.source, self.note)


# ------------------------------------------------------------------------------------------------- where


def user_file() -> Path:
    """The file in the user's own folder."""
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(config) / "tuimon" / "accepted.toml"


def project_of(place: str | os.PathLike[str]) -> Path | None:
    """The nearest folder at or above a place that holds a project; None where there is none, or the place is not here."""
    path = Path(place)
    if not path.is_absolute() or not os.path.exists(path):
        return None
    home = Path(os.path.expanduser("~"))
    for folder in [path, *path.parents]:
        # os.path: for a Path, a name that is too long and a folder that is locked are errors
        if any(os.path.exists(folder / mark) for mark in PROJECT_MARKS):
            # a home folder under version control is nobody's project
            return None if folder in (home, Path(folder.anchor)) else folder
    return None


# ------------------------------------------------------------------------------------------------- reading


def load(path: Path) -> tuple[list[Entry], list[str]]:
    """The entries of a file, and a sentence for each that cannot be used. A file that is not there has none.

    Raises AcceptedError where the file cannot be read or is not TOML.
    """
    document = _parsed(_read(path), path)
    entries, problems = [], []
    listed = document.get("boundary", [])
    if not isinstance(listed, list):
        return [], [f"{path}: write each boundary under a heading {HEADER}, with two brackets"]
    for number, one in enumerate(listed[:MOST_ENTRIES], 1):
        entry = _entry(one)
        if entry is None:
            problems.append(f"{path}: boundary {number} lacks `file`, `function` or `kind`, as texts")
        else:
            entries.append(entry)
    if len(listed) > MOST_ENTRIES:
        problems.append(f"{path}: only the first {MOST_ENTRIES} boundaries are used")
    return entries, problems


def _entry(one: Any) -> Entry | None:
    if not isinstance(one, dict):
        return None
    fields = {name: one.get(name, "") for name in ("file", "function", "kind", "source", "note")}
    if not all(isinstance(value, str) for value in fields.values()) or not (fields["file"] and fields["function"]):
        return None
    if "kind" not in one:
        return None
    return Entry(**fields)


def _read(path: Path) -> str:
    try:
        with os.fdopen(open_plain(path, most=MOST_BYTES), "rb") as file:
            return file.read(MOST_BYTES).decode("utf-8")
    except NotPlain as error:
        if error.errno == errno.ENOENT:
            return ""
        raise AcceptedError(f"{path} {error.sentence}") from None
    except UnicodeDecodeError:
        raise AcceptedError(f"{path} is not UTF-8 text") from None
    except OSError as error:
        raise AcceptedError(f"{path} cannot be read: {error.strerror or error}") from None


def _parsed(text: str, path: Path) -> dict[str, Any]:
    try:
        return toml.parse(text)
    except toml.NotToml as error:
        raise AcceptedError(f"{path} is {error}") from None


# ------------------------------------------------------------------------------------------------- writing


def save(path: Path, entry: Entry) -> None:
    """Add an entry, or give the one that is there another note. Raises AcceptedError."""
    text = _read(path)
    document = _parsed(text, path)
    listed = _listed(document, path)
    wanted = [one for one in listed if not _is(one, entry)]
    kept = _without(text, path, listed, entry)
    if kept and not kept.endswith("\n"):
        kept += "\n"
    new = f"{kept or _ABOUT}\n{_text(entry)}"
    _check(new, path, document, [*wanted, _fields(entry)])
    _replace(path, new)


def remove(path: Path, entry: Entry) -> bool:
    """Take an entry out; gives whether it was there. Raises AcceptedError."""
    text = _read(path)
    document = _parsed(text, path)
    listed = _listed(document, path)
    wanted = [one for one in listed if not _is(one, entry)]
    if len(wanted) == len(listed):
        return False
    new = _without(text, path, listed, entry)
    _check(new, path, document, wanted)
    _replace(path, new)
    return True


def _listed(document: dict[str, Any], path: Path) -> list[Any]:
    listed = document.get("boundary", [])
    if not isinstance(listed, list):
        raise AcceptedError(f"{path}: `boundary` is no list of entries; it was left as it is")
    return listed


def _is(one: Any, entry: Entry) -> bool:
    known = _entry(one)
    return known is not None and known.which == entry.which


def _without(text: str, path: Path, listed: list[Any], entry: Entry) -> str:
    """The text without the entries that this one would be. Each entry of the list begins with its own heading."""
    if not any(_is(one, entry) for one in listed):
        return text
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)  # what else Python takes for a line end may stand in a TOML string
    starts = [at for at, line in enumerate(lines) if line.split("#", 1)[0].replace(" ", "").strip() == HEADER]
    if len(starts) != len(listed):
        raise AcceptedError(f"{path} writes its entries in a way that tuimon cannot change; take the entry out by hand")
    out = lines[: starts[0]]
    for one, start, end in zip(listed, starts, [*starts[1:], len(lines)], strict=True):
        block = lines[start:end]
        if not _is(one, entry):
            out += block
            continue
        # what follows the entry's own lines (a comment, another table) is somebody else's
        size = _size_of_entry(block)
        out += block[size:]
    return "".join(out).rstrip("\n") + "\n" if "".join(out).strip() else ""


def _size_of_entry(block: list[str]) -> int:
    """How many lines of a block belong to the entry: up to its last key, before a blank line, a comment or another table."""
    for at, line in enumerate(block[1:], 1):
        bare = line.strip()
        if not bare or bare.startswith(("#", "[")):
            return at + (1 if not bare else 0)
    return len(block)


def _check(text: str, path: Path, document: dict[str, Any], wanted: list[Any]) -> None:
    """That the new text says what it is meant to, and all else that the old one said."""
    try:
        said = _parsed(text, path)
    except AcceptedError:
        raise AcceptedError(f"{path} is written in a way that tuimon cannot change; it was left as it is") from None
    meant = {**document, "boundary": wanted}
    if not wanted:
        meant.pop("boundary")
        said = {key: value for key, value in said.items() if key != "boundary" or value}
    if said != meant:
        raise AcceptedError(f"{path} is written in a way that tuimon cannot change; it was left as it is")


def _fields(entry: Entry) -> dict[str, str]:
    fields = {"file": entry.file, "function": entry.function, "kind": entry.kind}
    if entry.source:
        fields["source"] = entry.source
    return {name: _sound(value) for name, value in {**fields, "note": entry.note}.items()}


def _sound(value: str) -> str:
    return value.encode("utf-8", "replace").decode("utf-8")


def _text(entry: Entry) -> str:
    # JSON's way to write a string is TOML's, but for the character DEL
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in _fields(entry).items()]
    return "\n".join([HEADER, *lines]).replace("\x7f", "\\u007f") + "\n"


def _replace(path: Path, text: str) -> None:
    """Put the text into the file's place at once: a reader sees the old one or the new one."""
    try:
        path = _real(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            old: os.stat_result | None = path.stat()
        except FileNotFoundError:
            old = None
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
                _give_to(file.fileno(), old, path.parent)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise AcceptedError(f"{path} cannot be written: {error.strerror or error}") from None


def _real(path: Path) -> Path:
    """Where a link leads, if it is the user's own: somebody else's must not lead us anywhere."""
    if not path.is_symlink():
        return path
    if path.lstat().st_uid != os.geteuid():
        raise AcceptedError(f"{path} is a link that belongs to somebody else; it was left as it is")
    return Path(os.path.realpath(path))


def _give_to(handle: int, old: os.stat_result | None, folder: Path) -> None:
    """The new file is like the old one; and what root writes into a project belongs to the project's owner."""
    if old is not None:
        os.fchmod(handle, stat.S_IMODE(old.st_mode))
    else:
        umask = os.umask(0)
        os.umask(umask)
        os.fchmod(handle, 0o666 & ~umask)
    like = old or folder.stat()
    if os.geteuid() == 0 and like.st_uid != 0:
        os.fchown(handle, like.st_uid, like.st_gid)
