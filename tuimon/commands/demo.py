"""`tuimon demo [NAME]`: a bundled training program, and the monitor on it; or a list of them, or the tour."""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
from pathlib import Path

import tuimon
from tuimon.app.tour import Tour, TourError, load
from tuimon.commands import run as run_command
from tuimon.commands.options import FAILED, USAGE, Options, deliver, say
from tuimon.draw.text import wrap

DEFAULT = "train_small_gpt"
SHORT = ("graph_break", "recompiles", "slow_step", "roofline", "clean")
"""Those with one thing to see, in the order to try them."""
STEPS = 60
"""How far a demonstration goes where nobody looks on."""


def folder() -> Path | None:
    """Where the demos are: beside the package in a checkout, in it when installed from a wheel. None: neither."""
    package = Path(tuimon.__file__).parent
    for candidate in (package / "_shipped" / "demos", package.parent / "demos"):
        if (candidate / f"{DEFAULT}.py").is_file():
            return candidate
    return None


def available(demos: Path) -> dict[str, Path]:
    """The demos by name."""
    return {path.stem: path for path in sorted(demos.glob("[a-z]*.py"))}


def about(path: Path) -> str:
    """The first line of a demo's docstring; "" where it has none."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0]


def listed(known: dict[str, Path]) -> list[str]:
    """All demos, a line each: the short ones, then the others."""
    short = [name for name in SHORT if name in known]
    others = sorted(set(known) - set(short), key=lambda name: (name != DEFAULT, name))

    def told(names: list[str]) -> list[str]:
        return [f"  {name if first else '':<17}{line}" for name in names for first, line in _wrapped(about(known[name]))]

    return ["one thing to see, in under two minutes:", *told(short), "longer:", *told(others)]


def _wrapped(text: str) -> list[tuple[bool, str]]:
    """Its lines, and whether each is the first."""
    return [(not at, line) for at, line in enumerate(wrap(text, 60))]


def run(name: str | None, options: Options, *, list_them: bool = False, tour: bool = False) -> int:
    """Start the demo of that name; or print which there are; or play the tour.

    Without a screen it ends after `options.steps` steps, 60 where nothing is said.
    """
    demos = folder()
    if demos is None:
        say("the demos are not installed with this copy of tuimon: clone the repository and run `make demo`")
        return FAILED
    known = available(demos)
    if list_them:
        words = ["", "tuimon demo NAME starts one (train_small_gpt where none is named).", "tuimon demo --tour needs no torch."]
        return deliver("\n".join([*listed(known), *words, ""]), options.output)
    if tour:
        from tuimon.commands import tour as touring

        return touring.run(demos, options)
    path = known.get(name or DEFAULT)
    if path is None:
        names = ", ".join([*(one for one in SHORT if one in known), *(one for one in known if one not in SHORT)])
        say(f"there is no demo {name!r}; there are {names}; `tuimon demo --list` tells what each shows")
        return USAGE
    if importlib.util.find_spec("torch") is None:
        say("the demos need torch, which is not installed here: pip install 'tuimon[torch]'")
        return FAILED
    command = [sys.executable, str(path)]
    if not options.screen and options.duration is None:
        command += ["--steps", str(options.steps or STEPS)]
    # one thread leaves the other cores to the compiler and to tuimon, and steps take the same time again and again
    env = {"OMP_NUM_THREADS": "1", **os.environ}
    say(f"demo {path.stem}: {about(path)}")
    say("the first step takes a while: it is compiled")
    return run_command.run(command, options, env, ends_with_us=True, tour=_strip(demos, path.stem) if options.screen else None)


def _strip(demos: Path, name: str) -> Tour | None:
    """What a short demo says below the monitor; None for the others."""
    file = demos / "tour" / f"{name}.toml"
    try:
        return load(file, name) if file.is_file() else None
    except TourError as error:
        say(f"what to press cannot be shown: {error}")
        return None
