"""`tuimon demo [NAME]`: a bundled training program, and the monitor on it."""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
from pathlib import Path

import tuimon
from tuimon.commands import run as run_command
from tuimon.commands.options import FAILED, USAGE, Options, say

DEFAULT = "train_small_gpt"
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


def run(name: str | None, options: Options) -> int:
    """Start the demo of that name. Without a screen it ends after `options.steps` steps, 60 where nothing is said."""
    demos = folder()
    if demos is None:
        say("the demos are not installed with this copy of tuimon: clone the repository and run `make demo`")
        return FAILED
    known = available(demos)
    path = known.get(name or DEFAULT)
    if path is None:
        say(f"there is no demo {name!r}; there are:")
        for other, file in known.items():
            say(f"  {other:<18}{about(file)}")
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
    return run_command.run(command, options, env, ends_with_us=True)
