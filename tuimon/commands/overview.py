"""`tuimon --help`, which fits a screen of 80 x 24, and `tuimon help`: of a command, of the options of all, of the settings."""

from __future__ import annotations

import argparse
import ast
import os
import re
import textwrap
from collections.abc import Iterator
from typing import NoReturn

from tuimon.commands.options import USAGE, deliver, say
from tuimon.config import SETTINGS, Setting, config_file, short
from tuimon.draw.text import wrap

COMMON = "options of every command"
OUTPUT = "write the report to FILE instead of stdout"
WIDTH, NARROWEST = 80, 20
UNBROKEN = "\xa0"
"""A blank at which no line ends; none is printed."""

ABOUT = "A live monitor in the terminal for a PyTorch process that is already running."

HELP = """\
Help on WORD: a command, `options` (those of every command), or `settings`.
"""

USAGE_LINES = """\
usage: tuimon                    watch a PyTorch job that runs already; a list
       tuimon COMMAND [options]  of them comes up. Or one of these commands:
"""

GROUPS = (
    ("attach", "run", "record", "list", "demo", "lab"),
    ("replay", "report", "compare", "export"),
    ("doctor", "calibrate", "themes", "completion", "help"),
)
"""The commands as a person meets them: jobs, files, tuimon itself."""

TOPICS = (*(name for group in GROUPS for name in group), "options", "settings")
"""What `tuimon help` knows."""

CLOSING = """\
More: tuimon COMMAND --help; tuimon help options; tuimon help settings
Exit status: run, demo: the program's; else 0, 1 failed, 2 usage, 3 refused
"""

EXIT = """\
exit status: `run` and `demo` end with the program's own (128 + n where signal
n killed it); otherwise 0 done, 1 failed, 2 wrong usage, 3 cannot attach.
Data goes to stdout, everything else to stderr.
"""

SETTINGS_HEAD = """\
Each can be given as an option, or kept in the environment or in a file. What
stands first here is in force: option, environment, file, default.

The file is {path}; in it a line for each:

  theme = "light"
  interval = 0.5

`tuimon doctor` shows what is in force, and where it comes from.
"""


class TopParser(argparse.ArgumentParser):
    """The parser of `tuimon` itself: its help is an overview of the commands, not a list of all options."""

    def format_help(self) -> str:
        """All of it, in at most 24 lines of at most 80 cells."""
        rows = dict(_commands(self))
        width = max(map(len, rows)) + 2
        lines = USAGE_LINES.splitlines()
        for group in GROUPS:
            lines.append("")
            lines += [f"  {name:<{width}}{rows[name]}" for name in group]
        return "\n".join([*lines, "", *CLOSING.splitlines()]) + "\n"

    def error(self, message: str) -> NoReturn:
        """What is wrong, with the next step; no list of all that would have been right."""
        wrong = re.match(r"argument COMMAND: invalid choice: ((['\"]).*\2) \(", message)
        if wrong:
            more = meant(ast.literal_eval(wrong[1])) or "; `tuimon --help` shows them"
            message = f"there is no command {wrong[1]}{more}"
        super().error(message)


class CommandParser(argparse.ArgumentParser):
    """The parser of a command: its help tells what is the command's own, and names the options of every command."""

    def format_help(self) -> str:
        """All that is the command's own, then the names of the others."""
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        common = [action for group in self._action_groups if group.title == COMMON for action in group._group_actions]
        own = [action for action in common if action.dest == "output" and action.help != OUTPUT]
        for group in self._action_groups:
            if group.title != COMMON:
                formatter.start_section(group.title)
                formatter.add_text(group.description)
                formatter.add_arguments([*group._group_actions, *(own if group is self._optionals else ())])
                formatter.end_section()
        names = "  ".join(_option(action) for action in common if action not in own)
        lines = textwrap.wrap(names, max(NARROWEST, formatter._width - 4), break_on_hyphens=False)
        title = f"{COMMON} (`tuimon help options` explains):"
        return "\n".join([formatter.format_help(), title, *(f"  {one.replace(UNBROKEN, ' ')}" for one in lines), ""])


def _option(action: argparse.Action) -> str:
    """An option with what stands behind it, in a word that is not broken: `--interval S`, `--[no-]mouse`."""
    flags = [flag for flag in action.option_strings if flag.startswith("--")]
    if f"--no-{flags[0][2:]}" in flags:
        return f"--[no-]{flags[0][2:]}"
    value = "|".join(map(str, action.choices)) if action.choices else action.metavar
    return flags[0] if action.nargs == 0 or value is None else f"{flags[0]}{UNBROKEN}{value}"


def refuse(parser: argparse.ArgumentParser, command: str | None, words: list[str]) -> NoReturn:
    """Say that nothing is known of these words behind that command; ends the program."""
    import difflib

    one = commands(parser)[command] if command is not None else parser
    if not words[0].startswith("-"):
        one.error(f"{words[0]!r} is one word too many")
    flag = words[0].partition("=")[0]
    near = difflib.get_close_matches(flag, one._option_string_actions, 1, 0.75)
    more = f"did you mean {near[0]}?" if near else f"`tuimon {f'{command} --help' if command else 'help options'}` shows them"
    one.error(f"there is no option {flag!r}; {more}")


def meant(word: str) -> str:
    """What somebody may have meant who wrote `word` for a command: what to write instead; empty where nobody can tell."""
    if (word.isascii() and word.isdigit()) or word.startswith("ssh://"):
        return f"; to watch it: tuimon attach {word}"
    if word.endswith(".py") or word in ("python", "python3", "torchrun"):
        return f"; to start it: tuimon run -- {f'python {word}' if word.endswith('.py') else f'{word} ..'}"
    return nearest(word) or (f"; to look into it: tuimon replay {word}" if os.path.exists(word) else "")


def nearest(word: str) -> str:
    """What is spelled about like that; empty where nothing is."""
    import difflib

    near = difflib.get_close_matches(word, TOPICS, 1)
    return f"; did you mean {near[0]}?" if near else ""


def commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers of the commands, in the order of the overview."""
    (action,) = (one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    found: dict[str, argparse.ArgumentParser] = action.choices
    return {name: found[name] for group in GROUPS for name in group}


def _commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """(name, what it does) of each."""
    (action,) = (one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    return ((one.dest, one.help or "") for one in action._choices_actions)


def meanings(parser: argparse.ArgumentParser) -> dict[str, str]:
    """What each command does, in a line."""
    return dict(_commands(parser))


def run(parser: argparse.ArgumentParser, word: str | None) -> int:
    """Print the help that is asked for. Gives the exit status."""
    known = commands(parser)
    if word is None:
        return deliver(parser.format_help(), None)
    if word in known:
        return deliver(known[word].format_help(), None)
    if word == "options":
        return deliver(options_help(), None)
    if word == "settings":
        return deliver(settings_help(), None)
    say(f"there is no help on {word!r}" + (nearest(word) or f"; there is on {', '.join(TOPICS)}"))
    return USAGE


def options_help() -> str:
    """The options that every command takes."""
    from tuimon.commands.groups import add_common

    parser = argparse.ArgumentParser(
        prog="tuimon", add_help=False, usage="tuimon [COMMAND] [options]", epilog=EXIT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add_common(parser)
    return parser.format_help()


def settings_help() -> str:
    """What can be set, how, and what is the default."""
    names = max(len(setting.name) for setting in SETTINGS)
    lines = SETTINGS_HEAD.format(path=short(config_file())).splitlines()
    for setting in SETTINGS:
        flags = ", ".join(filter(None, (setting.flag, setting.off)))
        told = [
            part
            for text in (setting.help, f"{flags}; {setting.env}; {values(setting)}")
            for part in wrap(text, WIDTH - names - 2)
        ]
        lines += ["", *(f"{setting.name if not at else '':<{names}}  {part}" for at, part in enumerate(told))]
    return "\n".join(lines) + "\n"


def values(setting: Setting) -> str:
    """What it can be, and what it is where nobody says anything."""
    default = setting.shown(setting.default)
    if setting.choices:
        return f"{', '.join(setting.choices[:-1])} or {setting.choices[-1]} (default: {default})"
    return f"default: {default}"
