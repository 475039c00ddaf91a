"""What a command line says that a program is: a launcher, one of tuimon's own, a helper of multiprocessing, a compile worker.

Only words are looked at here, so that it can be tried without processes. What the words leave open, `family` settles.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import NamedTuple

PYTHONS = ("python", "pypy")
_LAUNCHERS = {
    "torchrun", "accelerate", "accelerate-launch", "deepspeed", "horovodrun", "composer", "colossalai",
    "mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "orted", "prted", "hydra_pmi_proxy",
    "hydra_bstrap_proxy", "srun", "slurmstepd",
}  # fmt: skip
_LAUNCHER_MODULES = (
    "torch.distributed.run", "torch.distributed.launch", "torch.distributed.launcher", "torch.distributed.elastic",
    "accelerate.commands", "deepspeed.launcher", "horovod.runner", "composer.cli", "colossalai.cli",
)  # fmt: skip
_SHELLS = {"bash", "sh", "dash", "zsh", "ksh", "fish"}
_COMPILE = ("compile_worker", "torch/_inductor/__autotune_main__", "torch/_inductor/autotune_process")
_PYTHON_OPTIONS_WITH_VALUE = {"-W", "-X", "--check-hash-based-pycs"}


class Program(NamedTuple):
    """What a command line starts."""

    kind: str
    """"module" (-m), "code" (-c) or "file"; "" for an interpreter alone."""
    name: str
    rest: list[str]


def program(argv: Sequence[str]) -> Program:
    """What runs: behind the interpreter and its options, where there is one."""
    if not argv:
        return Program("", "", [])
    if not _base(argv[0]).startswith(PYTHONS):
        return Program("file", argv[0], list(argv[1:]))
    words = iter(enumerate(argv[1:], 1))
    for at, word in words:
        if word in ("-m", "-c"):
            what = argv[at + 1] if at + 1 < len(argv) else ""
            return Program("module" if word == "-m" else "code", what, list(argv[at + 2 :]))
        if word in _PYTHON_OPTIONS_WITH_VALUE:
            next(words, None)
        elif not word.startswith("-") or word == "-":
            return Program("file", word, list(argv[at + 1 :]))
    return Program("", "", [])


def launcher(argv: Sequence[str]) -> str | None:
    """The name of the launcher that a command line is, None where it is none. Shells are told by `is_script_of_a_shell`."""
    kind, name, _ = program(argv)
    if kind == "module":
        return name if name == "torchrun" or name.startswith(_LAUNCHER_MODULES) else None
    if kind != "file":
        return None
    base = _base(name).partition(":")[0]  # a title: "slurmstepd: [42.0]"
    if base in _LAUNCHERS:
        return base
    module = name.removesuffix(".py").replace("/", ".")
    return next((known for known in _LAUNCHER_MODULES if f".{known}." in f".{module}." and name.endswith(".py")), None)


def is_script_of_a_shell(argv: Sequence[str]) -> bool:
    """Whether it is a shell with something to run, not one that waits for a person."""
    return bool(argv) and _base(argv[0]) in _SHELLS and any(not word.startswith("-") for word in argv[1:])


def is_python(comm: str, argv: Sequence[str], exe: str) -> bool:
    """Whether one of its names is Python's; torch gives its own names ("pt_..") to threads."""
    names = (comm, _base(argv[0]) if argv else "", _base(exe))
    return any(name.startswith(PYTHONS) for name in names) or comm.startswith("pt_")


def is_compile_worker(argv: Sequence[str]) -> bool:
    """Whether it is one of the processes in which Inductor compiles or tries kernels."""
    kind, name, _ = program(argv)
    return kind in ("module", "file") and any(word in name.replace(".", "/") for word in _COMPILE)


def is_tuimon(argv: Sequence[str]) -> bool:
    """Whether it is tuimon itself, its helper or its far end."""
    kind, name, rest = program(argv)
    if kind == "code":
        return "tuimon.attach.inject.helper" in name or "tuimon.relay" in name
    if kind == "module":
        return name.split(".")[0] == "tuimon"
    return _base(name) in ("tuimon", "tuimon.pyz") or any(
        word == "-m" and then.split(".")[0] == "tuimon" for word, then in itertools.pairwise(rest[:3])
    )


def made_by_multiprocessing(argv: Sequence[str]) -> str | None:
    """ "spawn", "forkserver" or "tracker": the code that Python's multiprocessing has put on the command line."""
    kind, code, _ = program(argv)
    if kind == "code":
        if "multiprocessing.spawn" in code:
            return "spawn"
        if "multiprocessing.forkserver" in code:
            return "forkserver"
        if "multiprocessing.resource_tracker" in code or "multiprocessing.semaphore_tracker" in code:
            return "tracker"
    return None


def _base(word: str) -> str:
    return os.path.basename(word)
