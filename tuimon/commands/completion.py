"""`tuimon completion SHELL`: what a shell needs to complete tuimon's commands, options, files and processes by tab."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from tuimon.commands import overview, values
from tuimon.commands.demo import available, folder
from tuimon.commands.options import FAILED, deliver, say

PIDS = "tuimon list --pids 2>/dev/null"

ZSH_PIDS = f"""
_tuimon_pids() {{
  compadd -- ${{(f)"$({PIDS})"}}
}}
"""
"""shtab's own way would ask once, when the completion is loaded."""

BASH_COMPLETE = re.compile(r"^(complete .*-F )(\S+)( tuimon)$", re.MULTILINE)
BASH_EQUALS = r"""_tuimon() {
  local word at
  local -a words=()
  for ((at = 0; at <= COMP_CWORD; at++)); do
    word="${COMP_WORDS[at]}"
    if [[ "$word" != "=" ]]; then
      words+=("$word")
    elif ((at == COMP_CWORD)); then
      words+=("")
    fi
  done
  local -a COMP_WORDS=("${words[@]}")
  local COMP_CWORD=$((${#words[@]} - 1))
  \2
}

\1_tuimon\3"""
"""bash hands `--theme=li` over as three words, and what shtab makes would take the last one for a command."""


def run(parser: argparse.ArgumentParser, shell: str) -> int:
    """Print the completion of the commands that `parser` reads. Gives the exit status."""
    try:
        import shtab
    except ImportError:
        say("completion is made by the package shtab, which is not installed here: pip install shtab")
        return FAILED
    for command, meaning in overview.meanings(parser).items():
        overview.commands(parser)[command].description = meaning  # fish shows it beside the command, in a line
    for one in (parser, *overview.commands(parser).values()):
        for action in one._actions:
            _told(action, shtab)
    text = shtab.complete(parser, shell)
    return deliver(BASH_COMPLETE.sub(BASH_EQUALS, text) if shell == "bash" else text, None)


def _told(action: argparse.Action, shtab: Any) -> None:
    """Tell for an argument what stands there; what has choices tells it itself."""
    told: Any = action
    if action.type in (Path, values.prom) or action.dest in ("program", "walk", "python"):
        told.complete = shtab.FILE
    elif action.metavar == "PID":
        told.complete = _pids(shtab)
    elif action.dest == "theme":
        action.choices = _themes()
    elif action.dest == "name" and action.metavar == "NAME":
        demos = folder()
        action.choices = list(available(demos)) if demos is not None else None
    elif action.dest == "about":
        action.choices = overview.TOPICS


def _pids(shtab: Any) -> dict[str, Any]:
    """The processes that can be attached to, at the moment of the tab."""
    told: dict[str, Any] = shtab.cmd(PIDS)
    return {**told, "zsh": "_tuimon_pids", "preamble": {**told["preamble"], "zsh": ZSH_PIDS}}


def _themes() -> list[str]:
    from tuimon.app.look.themes import load_themes

    return list(load_themes().themes)
