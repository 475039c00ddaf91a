"""Which jobs are meant by the process ids that somebody gives: a launcher's or a parent's stands for every job below it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from tuimon.attach import preflight, procfs
from tuimon.attach.find.process import Target, find_targets
from tuimon.attach.refusal import Refused

NEVER = ("loader worker", "compile worker")
LIST = "`tuimon list` shows what runs here"


def choose(pids: Sequence[int], everybody: bool) -> list[Target]:
    """The jobs that are meant, ordered by rank.

    With `pids`: each of them that is a job (or a worker that multiprocessing made, which nobody else chooses), and every job
    below each. A job that cannot be attached to is given too: attaching to it says why. `everybody` without pids: every job
    here to which tuimon can attach. Raises Refused: "no-job" where that is none; with the process's own reason where a pid is
    no job and has none below it ("dead", "not-python", "loader-worker", "compile-worker", ..).
    """
    targets = find_targets(everything=True)
    if not pids:
        return _everybody(targets) if everybody else _only_one(targets)
    chosen: dict[int, Target] = {}
    for pid in pids:
        chosen.update((target.pid, target) for target in _meant(pid, targets, _below(pid, targets)))
    return _by_rank(chosen.values())


def _everybody(targets: Sequence[Target]) -> list[Target]:
    jobs = [target for target in targets if target.kind == "job" and target.has_torch is not False]
    able = [job for job in jobs if job.attachable]
    if able:
        return _by_rank(able)
    if not jobs:
        raise Refused("no-job", f"no process here has PyTorch loaded, as far as this user may see; {LIST}")
    first = jobs[0]
    others = f" (and {len(jobs) - 1} more)" if len(jobs) > 1 else ""
    raise Refused("no-job", f"tuimon can attach to none of the PyTorch jobs here: {first.why}{others}; {LIST}")


def _only_one(targets: Sequence[Target]) -> list[Target]:
    """No pid at all: clear only where there is one job."""
    able = _everybody(targets)
    if len(able) > 1:
        raise Refused("no-job", f"there are {len(able)} PyTorch jobs here: name one by its pid, or say --all; {LIST}")
    return able


def _meant(pid: int, targets: Sequence[Target], below: list[Target]) -> list[Target]:
    """The jobs for which a pid stands."""
    own = next((target for target in targets if target.pid == pid), None)
    jobs = [target for target in below if target.kind == "job" and (target.has_torch is not False or target.rank is not None)]
    if own is None:
        if not jobs:
            _refuse_stranger(pid)
        return jobs
    if own.kind in NEVER or own.code == "helper":
        raise Refused(own.code or own.kind, own.why or f"process {pid} is a {own.kind}")
    if own.kind == "launcher":
        if not jobs:
            raise Refused("no-job", own.why or f"process {pid} has no job below it")
        return jobs
    if own.has_torch is False and jobs and own.rank is None:
        return jobs  # the parent is a Python program that has nothing to do with torch: a scheduler, a notebook's server
    return [own, *jobs]


def _below(pid: int, targets: Sequence[Target]) -> list[Target]:
    """The targets that run below a process of any kind."""
    return [target for target in targets if pid in procfs.ancestors(target.pid)]


def _refuse_stranger(pid: int) -> None:
    """Raise what stands against a process that is not on the list and has no job below it."""
    if pid == os.getpid():
        raise Refused("self", f"{pid} is tuimon itself")
    preflight.look(pid).close()
    raise Refused("no-job", f"process {pid} is no PyTorch job and has none below it; {LIST}")


def _by_rank(targets: Iterable[Target]) -> list[Target]:
    return sorted(targets, key=lambda target: (target.rank is None, target.rank or 0, target.started, target.pid))
