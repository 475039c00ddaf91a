"""Settings: what each is, and what is in force: a flag over the environment over the file of the user over the default.

The file is `tuimon/config.toml` in the folder that XDG_CONFIG_HOME names (else ~/.config): a flat table, `theme = "light"`.
Nothing in it is ever fatal: what cannot be used is a sentence in `Config.problems`, and the rest holds.
"""

from __future__ import annotations

import errno
import math
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tuimon.plain import NotPlain, open_plain

MOST_BYTES = 100_000
MOST_MS = 86_400_000
"""A day."""
MOST_UNKNOWN = 5
"""So many names in the file that are no setting's are told one by one: more are another program's file."""
LONGEST = 40
"""Characters of a value that are shown of it, where it cannot be used."""
_YES, _NO = ("1", "on", "true", "yes"), ("0", "off", "false", "no")


class Setting(NamedTuple):
    """One thing that can be set. In the environment it is TUIMON_ and its name in capitals."""

    name: str
    kind: type
    """bool, int, float, str or Path."""
    default: object
    """None: what `unset` says."""
    flag: str
    help: str
    choices: tuple[str, ...] = ()
    off: str = ""
    """The flag that says no (`--no-mouse`), where there is one."""
    unset: str = ""
    least: float | None = None
    """Numbers: this or more; None: above 0."""
    most: float = math.inf

    @property
    def env(self) -> str:
        """Its name in the environment."""
        return f"TUIMON_{self.name.upper()}"

    def shown(self, value: object) -> str:
        """A value for a person, as it stands in the file, but for the quotes."""
        if value is None:
            return self.unset
        if isinstance(value, bool):
            return "true" if value else "false"
        return f"{value:g}" if isinstance(value, float) else str(value)


ON_OFF = ("auto", "on", "off")
INTERVAL = "seconds between two updates of the screen; without one, between two lines on stderr"

SETTINGS: tuple[Setting, ...] = (
    Setting("theme", str, None, "--theme", "colours of the screen; `tuimon themes` lists them", unset="by the terminal"),
    Setting("background", str, "auto", "--background", "of the terminal: what theme to begin with", ("auto", "dark", "light")),
    Setting("color", str, "auto", "--color", "colours, or none (as NO_COLOR asks for)", ("auto", "none"), off="--no-color"),
    Setting("ascii", bool, False, "--ascii", "draw with ASCII characters only", off="--no-ascii"),
    Setting("mouse", str, "auto", "--mouse", "the mouse on the screen; auto: not over SSH", ON_OFF, off="--no-mouse"),
    Setting("clipboard", bool, True, "--clipboard", "let `y` set the terminal's clipboard (OSC 52)", off="--no-clipboard"),
    Setting("interval", float, None, "--interval", INTERVAL, unset="0.25; over SSH 0.5"),
    Setting(
        "slow_over", float, None, "--slow-over", "a slow step takes at least so many ms longer than the usual one",
        unset="10", least=0, most=MOST_MS,
    ),
    Setting("stacks", bool, True, "--stacks", "look at the job's stack where nothing else tells", off="--no-stacks"),
    Setting("ceilings", Path, None, "--ceilings", "ceilings and machines of your own, for the roofline", unset="none"),
    Setting("max_size", int, 512, "--max-size", "MB of a recording, of each process"),
)  # fmt: skip

BY_NAME = {setting.name: setting for setting in SETTINGS}


class Resolved(NamedTuple):
    """What is in force, and where it comes from."""

    value: object
    where: str
    """"--theme", "TUIMON_THEME", "~/.config/tuimon/config.toml:3", "default"."""


@dataclass(frozen=True)
class Config:
    """All settings by name."""

    values: dict[str, Resolved]
    problems: tuple[str, ...] = ()
    path: Path | None = None
    """The file, whether it is there or not."""

    def __getitem__(self, name: str) -> Any:
        """The value that is in force."""
        return self.values[name].value

    def without(self, name: str, why: str) -> Config:
        """The same where that setting turned out not to be of use: `why` ends the sentence, and the default holds."""
        problem = f"{self.values[name].where}: {name} {why}"
        values = {**self.values, name: Resolved(BY_NAME[name].default, "default")}
        return Config(values, (*self.problems, problem), self.path)


def config_file(environ: Mapping[str, str] = os.environ) -> Path:
    """Where a user's settings are looked for."""
    home = environ.get("HOME") or os.path.expanduser("~")
    return Path(environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")) / "tuimon" / "config.toml"


def resolve(flags: Mapping[str, object], environ: Mapping[str, str] = os.environ, path: Path | None = None) -> Config:
    """What is in force. `flags`: what the command line gives, by name of setting, None for what it does not give; `path`: the
    file, where it is not the usual one. Never raises."""
    path = config_file(environ) if path is None else path
    shown = short(path, environ)
    problems: list[str] = []
    text = _read(path, shown, problems)
    table = _table(text, shown, problems)
    lines = _lines(text)
    unknown = [name for name in table if name not in BY_NAME]
    for name in unknown[:MOST_UNKNOWN]:
        problems.append(f"{_at(shown, lines.get(name))}: there is no setting {_clip(repr(name))}{_meant(name)}")
    if len(unknown) > MOST_UNKNOWN:
        problems.append(f"{shown}: {len(unknown) - MOST_UNKNOWN} more names in it are no setting's")
    values = {}
    for setting in SETTINGS:
        flag = flags.get(setting.name)
        found = Resolved(flag, _flag(setting, flag)) if flag is not None else _of_environment(setting, environ, problems)
        if setting.name in table:  # read even where something stands above it: what is wrong in the file is always said
            where = _at(shown, lines.get(setting.name))
            try:
                value = _of_toml(setting, table[setting.name], path.parent)
            except ValueError as error:
                problems.append(f"{where}: {setting.name} {error}")
            else:
                found = found or Resolved(value, where)
        values[setting.name] = found or Resolved(setting.default, "default")
    return Config(values, tuple(problems), path)


def short(path: Path, environ: Mapping[str, str] = os.environ) -> str:
    """A path as a person writes it: with ~ for the home."""
    home = environ.get("HOME") or os.path.expanduser("~")
    text = str(path)
    return "~" + text[len(home) :] if len(home) > 1 and text.startswith(home.rstrip("/") + "/") else text


def _meant(name: str) -> str:
    import difflib

    near = difflib.get_close_matches(name, BY_NAME, 1)
    return f"; did you mean {near[0]}?" if near else f"; there are {', '.join(BY_NAME)}"


def _flag(setting: Setting, value: object) -> str:
    """The flag that gave this value."""
    return setting.off if setting.off and value in (False, "off", "none") else setting.flag


def _of_environment(setting: Setting, environ: Mapping[str, str], problems: list[str]) -> Resolved | None:
    """An empty variable is as good as none."""
    text = environ.get(setting.env)
    if text:
        try:
            return Resolved(_of_text(setting, text), setting.env)
        except ValueError as error:
            problems.append(f"{setting.env} {error}")
    if setting.name == "color" and environ.get("NO_COLOR"):
        return Resolved("none", "NO_COLOR")
    return None


# ------------------------------------------------------------------------------------------------ values


def _of_text(setting: Setting, text: str) -> object:
    """A value from a word. Raises ValueError, with the end of a sentence."""
    word = text.strip().lower()
    if setting.kind is bool or setting.choices == ON_OFF:
        if word in _YES + _NO:
            return word in _YES if setting.kind is bool else "on" if word in _YES else "off"
        if setting.kind is bool:
            raise ValueError(f"is {_clip(repr(text))}: it is 1 or 0")
    if setting.kind in (int, float):
        try:
            return _number(setting, setting.kind(text))
        except (ValueError, OverflowError):
            raise ValueError(f"is {_clip(repr(text))}: {_wanted(setting)}") from None
    if setting.kind is Path:
        return _path(text)
    return _word(setting, word if setting.choices else text)


def _of_toml(setting: Setting, value: object, folder: Path) -> object:
    """A value from the file; its paths are relative to its folder. Raises ValueError, with the end of a sentence."""
    if isinstance(value, bool):
        if setting.kind is bool:
            return value
        if setting.choices == ON_OFF:
            return "on" if value else "off"
    elif setting.kind in (int, float) and isinstance(value, (int, float)):
        return _number(setting, value)
    elif isinstance(value, str) and setting.kind is Path and value:
        return folder / _path(value)
    elif isinstance(value, str) and setting.kind is str:
        return _word(setting, value)
    raise ValueError(f"is {_as_written(value)}: {_wanted(setting)}")


def _as_written(value: object) -> str:
    """A value of the file, about as it stands there."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        return "a table" if isinstance(value, dict) else "an array"
    return _clip(repr(value) if isinstance(value, str) else str(value))


def _clip(text: str) -> str:
    return text if len(text) <= LONGEST + 2 else f"{text[:LONGEST]}.."


def _number(setting: Setting, value: float) -> float:
    low = value > 0 if setting.least is None else value >= setting.least
    if not (low and value <= min(setting.most, sys.float_info.max)) or (setting.kind is int and value != int(value)):
        raise ValueError(f"is {_clip(str(value))}: {_wanted(setting)}")
    return int(value) if setting.kind is int else float(value)


def _word(setting: Setting, word: str) -> str:
    if not word or (setting.choices and word not in setting.choices):
        raise ValueError(f"is {_clip(repr(word))}: {_wanted(setting)}")
    return word


def _path(text: str) -> Path:
    """A file's name; ~ is the home. Raises ValueError, with the end of a sentence."""
    try:
        if "\0" in text:
            raise ValueError(f"is {_clip(repr(text))}: no file has such a name")
        return Path(text).expanduser()
    except RuntimeError:
        raise ValueError(f"is {_clip(repr(text))}: there is no home of that name") from None


def _wanted(setting: Setting) -> str:
    """What it has to be."""
    if setting.choices:
        return f"it is {', '.join(setting.choices[:-1])} or {setting.choices[-1]}"
    if setting.kind is bool:
        return "it is true or false"
    if setting.kind in (int, float):
        whole = "whole number" if setting.kind is int else "number"
        below = f" to {setting.most:.0f}" if setting.most < math.inf else ""
        return f"it is a {whole} above 0" if setting.least is None else f"it is a {whole} from {setting.least:g}{below}"
    return "it is the name of a file" if setting.kind is Path else "it is a text"


# ------------------------------------------------------------------------------------------------ the file


def _read(path: Path, shown: str, problems: list[str]) -> str:
    try:
        with os.fdopen(open_plain(path), "rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) <= MOST_BYTES:
            return data.decode("utf-8-sig")
        problems.append(f"{shown} is larger than {MOST_BYTES} bytes, which no settings are: the defaults hold")
    except NotPlain as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            problems.append(f"{shown} {error.sentence}: the defaults hold")
    except UnicodeDecodeError:
        problems.append(f"{shown} is not UTF-8 text: the defaults hold")
    except OSError as error:
        problems.append(f"{shown} cannot be read ({error.strerror or error}): the defaults hold")
    return ""


def _table(text: str, shown: str, problems: list[str]) -> dict[str, Any]:
    if not text:
        return {}
    from tuimon import toml  # here: where there is no file, no command pays for a parser

    try:
        return toml.parse(text)
    except toml.NotToml as error:
        problems.append(f"{shown} is not TOML, so nothing in it holds: {str(error).removeprefix('not TOML: ')}")
        return {}


def _lines(text: str) -> dict[str, int]:
    """The line on which each name is set."""
    found: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        named = re.match(r"""\s*\[?\s*["']?([A-Za-z0-9_-]+)["']?\s*[].=]""", line)
        if named:
            found.setdefault(named[1], number)
    return found


def _at(shown: str, line: int | None) -> str:
    return shown if line is None else f"{shown}:{line}"
