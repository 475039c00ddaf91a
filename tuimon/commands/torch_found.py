"""An interpreter that has torch: tuimon's own environment need not have one."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from dataclasses import dataclass

from tuimon.attach.find.belongings import torch_library
from tuimon.attach.find.process import find_targets

NONE_FOUND = (
    "there is no torch next to tuimon and no PyTorch job of yours runs here whose torch could be used: "
    "pip install 'tuimon[torch]', or --python /path/of/the/job's/python"
)


@dataclass(frozen=True, slots=True)
class Interpreter:
    """What to start, and the folders that have to be added for it to find torch."""

    python: str
    path: tuple[str, ...] = ()
    whose: str = ""
    """Where it was found, in words."""


def interpreter(given: str | None) -> Interpreter | str:
    """The one that was given, else tuimon's own if it has torch, else that of a running job; or a sentence why not."""
    if given is not None:
        found = shutil.which(given)
        return Interpreter(found, whose="as given") if found else f"--python: {given} is no program that can be started"
    if importlib.util.find_spec("torch") is not None:
        return Interpreter(sys.executable, whose="next to tuimon")
    return _of_a_job() or NONE_FOUND


def _of_a_job() -> Interpreter | None:
    for target in find_targets():
        if target.kind != "job" or not target.has_torch or target.container is not None:
            continue
        try:
            if os.stat(f"/proc/{target.pid}").st_uid != os.geteuid():
                continue  # what another user has installed is not run as this one
            executable = os.readlink(f"/proc/{target.pid}/exe")
            with open(f"/proc/{target.pid}/maps", encoding="utf-8", errors="replace") as file:
                library = torch_library(file.read())
        except OSError:
            continue
        if library is None or not os.access(executable, os.X_OK):
            continue
        packages = os.path.dirname(os.path.dirname(os.path.dirname(library)))  # ../site-packages/torch/lib/libtorch.so
        if os.path.isdir(os.path.join(packages, "torch")):
            return Interpreter(executable, (packages,), f"that of the running job {target.pid}")
    return None
