"""The settings that are in force, and where each comes from."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping

from tuimon.config import BY_NAME, Config, Setting, short
from tuimon.doctor.checks import Check, note, ok

HOW = "tuimon help settings"
NEAR = 0.85
"""From here on a name is taken for a slip."""


def checks(config: Config, environ: Mapping[str, str] = os.environ, theme: str | None = None) -> list[Check]:
    """The file, every setting, and what else of tuimon's the environment holds (its name only: a value may be a secret).

    `theme`: the one that the screen would begin with, after all of it.
    """
    found = [_file(config, environ)]
    found += [note("settings", "not used", problem, HOW) for problem in config.problems]
    found += [_setting(BY_NAME[name], value, where, theme) for name, (value, where) in config.values.items()]
    known = {setting.env for setting in BY_NAME.values()}
    others = sorted(name for name in environ if name.startswith("TUIMON_") and name not in known)
    for name in others[:]:
        near = difflib.get_close_matches(name, known, 1, NEAR)
        if near:
            others.remove(name)
            found.append(note("settings", "environment", f"{name} is no setting; did you mean {near[0]}?", HOW))
    if others:
        found.append(ok("settings", "environment", f"{', '.join(others)} {'is' if len(others) == 1 else 'are'} set, too"))
    return found


def as_json(config: Config) -> dict[str, dict[str, object]]:
    """name -> value (None: not set, what is usual holds) and where it comes from."""
    return {
        name: {"value": value if isinstance(value, (bool, int, float, str, type(None))) else str(value), "where": where}
        for name, (value, where) in config.values.items()
    }


def _file(config: Config, environ: Mapping[str, str]) -> Check:
    if config.path is None:
        return ok("settings", "file", "none is read")
    shown = short(config.path, environ)
    try:
        os.stat(config.path)
    except (FileNotFoundError, NotADirectoryError):
        shown += " (is not there)"
    except OSError:
        pass  # why it cannot be read is said below
    return ok("settings", "file", shown)


def _setting(setting: Setting, value: object, where: str, theme: str | None) -> Check:
    shown = setting.shown(value)
    if setting.name == "theme" and theme is not None and value != theme:
        shown += f": {theme}" if value is None else f", shown as {theme}"
    return ok("settings", setting.name, f"{shown}  (default)" if where == "default" else f"{shown}  from {where}")
