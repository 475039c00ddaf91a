"""Themes: TOML files that give every role a look. Read as data, checked whole, and never fatal: a bad file is a message.

A file has `name`, `dark` (true or false), `ansi` (true: only the terminal's own colours), optionally `base` (the shipped theme
that it starts from), and a table `[roles]`: role = "bold #56b4e9 on #202020". `text` gives the screen's own two colours.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuimon import toml
from tuimon.app.look.roles import ROLES
from tuimon.plain import NotPlain, open_plain

DEFAULT = "dark"
MONO = "mono"
ORDER = ("dark", "light", "high-contrast", "colour-blind", "ansi16", "mono")
"""The order in which `t` goes through the shipped ones; a user's own follow."""

MOST_BYTES = 100_000
_ATTRIBUTES = ("bold", "dim", "italic", "underline", "reverse", "strike")
_HEX = re.compile(r"#[0-9a-f]{6}")
_ANSI = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
ANSI_NAMES = frozenset(["default", *_ANSI, *(f"bright-{name}" for name in _ANSI)])
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,30}")


class ThemeError(ValueError):
    """A theme file cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class Look:
    """How a role looks. A colour is "#rrggbb", a name of `ANSI_NAMES`, or None for the screen's own."""

    color: str | None = None
    background: str | None = None
    attributes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Theme:
    """One theme. Every role of `ROLES` has a look."""

    name: str
    dark: bool
    ansi: bool
    looks: dict[str, Look]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was found: themes by name in the order of the `t` key, and a sentence for each file that cannot be used."""

    themes: dict[str, Theme]
    problems: list[str] = field(default_factory=list)
    yours: dict[str, str] = field(default_factory=dict)
    """The names of the user's own themes, and the files that they are in."""
    broken: dict[str, str] = field(default_factory=dict)
    """The files that cannot be used, and why."""
    gone: set[str] = field(default_factory=set)
    """Those of `yours` that are no longer there."""

    def again(self, found: Loaded, keep: Iterable[str]) -> None:
        """Take over what was found now. A theme among `keep` whose file is gone, or broken, stays as it was last."""
        kept = {name: self.themes[name] for name in keep if name in self.themes and name not in found.themes}
        mine = {name: file for name, file in self.yours.items() if name in kept}
        themes = {**found.themes, **kept}
        self.themes.clear()
        self.themes.update(themes)
        self.broken.clear()
        self.broken.update(found.broken)
        self.yours.clear()
        self.yours.update({**found.yours, **mine})
        self.gone.clear()
        self.gone.update(set(mine.values()) - set(found.broken))
        self.problems[:] = found.problems


def parse_look(text: str, ansi: bool) -> Look:
    """A look from words: attributes, a colour, and "on" with a background. Raises ThemeError."""
    color: str | None = None
    background: str | None = None
    attributes = set()
    words = iter(text.lower().split())
    for word in words:
        if word in _ATTRIBUTES:
            attributes.add(word)
        elif word == "on":
            background = _color(next(words, ""), ansi)
        elif color is None:
            color = _color(word, ansi)
        else:
            raise ThemeError(f"{word!r} is a second colour")
    return Look(color, background, frozenset(attributes))


def _color(word: str, ansi: bool) -> str:
    if word in ANSI_NAMES:
        if not ansi:
            raise ThemeError(f"{word!r} is one of the terminal's own colours: the theme needs `ansi = true` for that")
        return word
    if not _HEX.fullmatch(word):
        raise ThemeError(f"{word!r} is no colour; write #rrggbb, or one of the terminal's names where `ansi = true`")
    if ansi:
        raise ThemeError(f"{word!r} in a theme with `ansi = true`: only the terminal's own colours there")
    return word


def parse_theme(data: str, bases: dict[str, Theme]) -> Theme:
    """A theme from the text of a file. Raises ThemeError."""
    try:
        document = toml.parse(data)
    except toml.NotToml as error:
        raise ThemeError(str(error)) from None
    unknown = set(document) - {"name", "title", "dark", "ansi", "base", "roles"}
    if unknown:
        raise ThemeError(f"unknown {', '.join(sorted(unknown))}")
    name = document.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ThemeError("`name` must be small letters, digits and hyphens")
    base = _base(document, bases)
    dark = _flag(document, "dark", base.dark if base else True)
    ansi = _flag(document, "ansi", base.ansi if base else False)
    if base is not None and base.ansi != ansi:
        raise ThemeError(f"`base` {base.name!r} has ansi = {str(base.ansi).lower()}, this theme has not")
    looks = dict(base.looks) if base else {}
    looks.update(_roles(document.get("roles", {}), ansi))
    lacking = [role for role in ROLES if role not in looks]
    if lacking:
        raise ThemeError(f"no look for {', '.join(lacking[:5])}{' and more' if len(lacking) > 5 else ''} (or give a `base`)")
    if looks["text"].color is None or looks["text"].background is None:
        raise ThemeError('role "text" needs both colours: "COLOUR on BACKGROUND"')
    return Theme(name, dark, ansi, looks, str(document.get("title", name)))


def _base(document: dict[str, Any], bases: dict[str, Theme]) -> Theme | None:
    base = document.get("base")
    if base is None:
        return None
    if not isinstance(base, str) or base not in bases:
        raise ThemeError(f"`base` {base!r} is none of {', '.join(bases)}")
    return bases[base]


def _flag(document: dict[str, Any], name: str, default: bool) -> bool:
    value = document.get(name, default)
    if not isinstance(value, bool):
        raise ThemeError(f"`{name}` must be true or false")
    return value


def _roles(table: Any, ansi: bool) -> dict[str, Look]:
    if not isinstance(table, dict):
        raise ThemeError("`roles` must be a table: [roles]")
    looks = {}
    for role, text in table.items():
        if role not in ROLES:
            raise ThemeError(f"there is no role {role!r}")
        if not isinstance(text, str):
            raise ThemeError(f'role "{role}": write its look as a text')
        try:
            looks[role] = parse_look(text, ansi)
        except ThemeError as error:
            raise ThemeError(f'role "{role}": {error}') from None
    return looks


def shipped_folder() -> Path:
    """Where the themes that come with tuimon are: in the installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent.parent
    installed = package / "_shipped" / "themes"
    return installed if installed.is_dir() else package.parent / "themes"


def user_folder() -> Path:
    """Where a user's own themes are looked for."""
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(config) / "tuimon" / "themes"


def load_themes(shipped: Path | None = None, user: Path | None = None) -> Loaded:
    """All themes. A file that cannot be used gives a sentence in `problems`; without any theme, a plain one stands in."""
    found: dict[str, Theme] = {}
    problems: list[str] = []
    yours: dict[str, str] = {}
    broken: dict[str, str] = {}
    for folder in (shipped or shipped_folder(), user or user_folder()):
        bases = dict(found)
        for path in _toml_files(folder):
            try:
                theme = read_theme(path, bases)
            except ThemeError as error:
                problems.append(f"theme {path.name}: {error}")
                broken[path.name] = str(error)
            else:
                found[theme.name] = theme
                if bases:
                    yours[theme.name] = path.name
    if not found:
        found[MONO] = plain()
        problems.append("no theme could be read: showing without colours")
    names = [name for name in ORDER if name in found]
    names += sorted(name for name in found if name not in ORDER)
    return Loaded({name: found[name] for name in names}, problems, yours, broken)


def stamps(folder: Path | None = None) -> tuple[tuple[str, int, int], ...]:
    """What tells whether a user's themes may have changed: the name, the time and the size of each file."""
    found = []
    for path in _toml_files(folder or user_folder()):
        try:
            told = path.stat()
        except OSError:
            continue
        found.append((path.name, told.st_mtime_ns, told.st_size))
    return tuple(found)


def read_theme(path: Path, bases: dict[str, Theme]) -> Theme:
    """The theme of a file; `bases` are those that it may start from. Raises ThemeError."""
    return parse_theme(_read(path), bases)


def _toml_files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".toml")
    except OSError:
        return []  # no folder of one's own is the usual case


def _read(path: Path) -> str:
    try:
        with os.fdopen(open_plain(path), "rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise ThemeError(f"larger than {MOST_BYTES} bytes, which no theme is")
        return data.decode("utf-8")
    except NotPlain as error:
        raise ThemeError(f"it {error.sentence}") from None
    except UnicodeDecodeError:
        raise ThemeError("not UTF-8 text") from None
    except OSError as error:
        raise ThemeError(f"cannot be read: {error.strerror or error}") from None


def plain() -> Theme:
    """A theme without any file: the terminal's own two colours, attributes for what must stand out."""
    looks = {role: Look() for role in ROLES}
    looks["text"] = Look("default", "default")
    for role in ("strong", "title-focus", "brand", "key"):
        looks[role] = Look(attributes=frozenset(["bold"]))
    for role in ("selected", "frozen"):
        looks[role] = Look(attributes=frozenset(["reverse"]))
    return Theme(MONO, True, True, looks, "no colours")
