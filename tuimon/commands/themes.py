"""`tuimon themes`: the themes there are, and whether a file can be used as one."""

from __future__ import annotations

import os
from pathlib import Path

from tuimon.app.look import themes
from tuimon.commands.options import DONE, FAILED, Options, deliver, say
from tuimon.config import config_file, short
from tuimon.draw.text import clean, pad
from tuimon.report.render import to_json

NOWHERE = Path(os.devnull)
"""A folder without files: a theme's `base` is a shipped one."""

SCHEMA = "tuimon.themes/1"


def run(options: Options, check: Path | None = None) -> int:
    """List the themes, or check one file. Gives 1 where a file cannot be used, with the reason."""
    if check is not None:
        return _check(check)
    found = themes.load_themes()
    own = short(themes.user_folder())
    if options.format == "json":
        listed = [{"name": one.name, "title": one.title, "dark": one.dark, "ansi": one.ansi} for one in found.themes.values()]
        told = {"schema": SCHEMA, "themes": listed, "folder": str(themes.user_folder()), "problems": found.problems}
        return deliver(to_json(told), options.output)
    names = max(len(name) for name in found.themes)
    lines = []
    for name, one in found.themes.items():
        yours = f"  (yours: {found.yours[name]})" if name in found.yours else ""
        lines.append(f"{pad(clean(name), names)}  {clean(one.title)}{clean(yours)}")
    lines += ["", "tuimon --theme NAME shows one; T on the screen tries them"]
    lines += [f'theme = "NAME" in {short(config_file())} keeps it', f"files of your own: {own}"]
    lines += [clean(problem) for problem in found.problems]
    return deliver("".join(f"{line}\n" for line in lines), options.output) or (FAILED if found.problems else DONE)


def _check(path: Path) -> int:
    """Whether it is a theme: the shipped ones can be its `base`."""
    try:
        theme = themes.read_theme(path, themes.load_themes(user=NOWHERE).themes)
    except themes.ThemeError as error:
        say(f"{clean(str(path))}: {error}")
        return FAILED
    say(f"{clean(str(path))} can be used: theme {theme.name}, {theme.title}")
    return DONE
