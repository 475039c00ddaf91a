"""`python -m tools.reference [--check]`: writes docs/commands.md from the parser, the settings and the keys; or says whether it
is as it would be written."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from tuimon.app.keymap import tables
from tuimon.commands import groups, overview
from tuimon.commands.overview import COMMON, OUTPUT
from tuimon.commands.parser import make_parser
from tuimon.config import SETTINGS

FILE = Path(__file__).resolve().parents[1] / "docs" / "commands.md"

HEAD = """\
<!-- written by `python -m tools.reference` from the code; change it there -->
# Commands, settings, keys

`tuimon` alone, on a terminal, shows the PyTorch processes of this machine to choose from. Everything else is a command:
`tuimon COMMAND [options]`. `tuimon help COMMAND` shows what stands here of one.
"""

SETTINGS_HEAD = """\
## Settings

Each can be given as an option, in the environment, or in the file `~/.config/tuimon/config.toml` (below `$XDG_CONFIG_HOME`
where that is set), which is a line for each: `theme = "light"`. An option stands above the environment, that above the file,
and that above the default. What cannot be used is told, and the rest holds. `tuimon doctor` shows what is in force and where it
comes from. `NO_COLOR` counts as the environment's word on `color`; a path in the file is relative to the file's folder.

| name | what it is | option | environment | values |
| --- | --- | --- | --- | --- |
"""

EXIT = """\
## Exit status

| status | when |
| --- | --- |
| the program's own | of `run` and `demo`; 128 + n where signal n killed it |
| 0 | done |
| 1 | it failed, and stderr says why |
| 2 | wrong usage |
| 3 | tuimon cannot attach there |

Data goes to stdout, everything else to stderr.
"""

KEYS_HEAD = """\
## Keys

No key harms the job: `q` detaches, and the job runs on. `?` shows the keys of the screen one is in.
"""


def main() -> int:
    """Gives 1 where the file is not as it would be written."""
    parser = argparse.ArgumentParser(prog="python -m tools.reference", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    made = reference()
    if not parser.parse_args().check:
        FILE.write_text(made, encoding="utf-8")
        return 0
    if FILE.exists() and FILE.read_text(encoding="utf-8") == made:
        return 0
    sys.stderr.write(f"{FILE} is not as the code has it: python -m tools.reference\n")
    return 1


def reference() -> str:
    """The whole file."""
    parser = make_parser()
    meanings = overview.meanings(parser)
    parts = [HEAD, "\n".join(f"- [`{name}`](#tuimon-{name}): {meanings[name]}" for name in overview.commands(parser)) + "\n"]
    parts += [_command(name, command) for name, command in overview.commands(parser).items()]
    common = argparse.ArgumentParser(add_help=False)
    groups.add_common(common)
    parts.append(f"## {COMMON.capitalize()}\n\n" + "".join(_group(common, title) for title in (COMMON,)))
    parts.append(SETTINGS_HEAD + "".join(_settings()))
    parts += [EXIT, KEYS_HEAD, *_keys()]
    return "\n".join(parts)


def _command(name: str, command: argparse.ArgumentParser) -> str:
    """The part on one command: what to write, what it does, its own options."""
    usage = "\n".join(f"`{line.strip()}`  " for line in (command.usage or "").splitlines())
    text = f"## tuimon {name}\n\n{usage.rstrip()}\n\n{_described(command.description or '')}\n"
    output = next(one for one in command._actions if one.dest == "output")
    for group in command._action_groups:
        if group.title != COMMON:
            text += _group(command, group.title or "")
        if group.title in ("options", "optional arguments") and output.help != OUTPUT:
            text += f"- `-o FILE, --output FILE`: {output.help}\n"
    return text


def _described(description: str) -> str:
    """The description: sentences as they are, examples as a block."""
    parts = []
    for paragraph in description.strip("\n").split("\n\n"):
        lines = paragraph.splitlines()
        block = lines[0].startswith("  ")
        parts.append("\n".join(["```text", *(line[2:] for line in lines), "```"] if block else lines))
    return "\n\n".join(parts) + "\n"


def _group(parser: argparse.ArgumentParser, title: str) -> str:
    """A group of options as a list, under its title where that says something."""
    group = next(one for one in parser._action_groups if one.title == title)
    formatter = parser._get_formatter()
    rows = [
        f"- `{_written(action)}`" + (f": {formatter._expand_help(action)}" if action.help else "") + "\n"
        for action in group._group_actions
        if action.help != argparse.SUPPRESS and action.dest != "help"
    ]
    if not rows:
        return ""
    plain = title in ("positional arguments", "options", "optional arguments", COMMON)
    return ("" if plain else f"\n{title[:1].upper()}{title[1:]}:\n\n") + "".join(rows)


def _written(action: argparse.Action) -> str:
    """An argument as it is typed."""
    value = action.metavar if isinstance(action.metavar, str) else ""
    if not value and action.choices is not None:
        value = "|".join(map(str, action.choices))
    if not action.option_strings:
        return value or action.dest
    if action.nargs == 0:
        return ", ".join(action.option_strings)
    shown = f"[{value}]" if action.nargs == "?" else value
    return ", ".join(f"{flag} {shown}" for flag in action.option_strings)


def _settings() -> Iterator[str]:
    for setting in SETTINGS:
        flags = ", ".join(f"`{flag}`" for flag in (setting.flag, setting.off) if flag)
        yield f"| `{setting.name}` | {setting.help} | {flags} | `{setting.env}` | {overview.values(setting)} |\n"


def _keys() -> Iterator[str]:
    for heading, rows in tables():
        yield f"### {heading[:1].upper()}{heading[1:]}\n\n| keys | what they do |\n| --- | --- |\n" + "".join(
            f"| {' '.join(f'`{_escaped(key)}`' for key in keys.split())} | {_escaped(text)} |\n" for keys, text in rows
        )


def _escaped(text: str) -> str:
    """For the cell of a table."""
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
