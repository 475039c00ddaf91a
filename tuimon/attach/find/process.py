"""The PyTorch processes of this machine, and whether each can be attached to. Reads only: nobody is stopped.

The standard library alone: the same code runs at the far end of an ssh line, where nothing else need be installed.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass, replace

from tuimon.attach import preflight, procfs
from tuimon.attach.find import belongings, command_lines, ranks
from tuimon.attach.find.family import Kind, Machine, Process
from tuimon.attach.refusal import Refused

__all__ = ["Kind", "Target", "describe", "find_targets"]


@dataclass(frozen=True, slots=True)
class Target:
    """One process. What is not known is None."""

    pid: int
    kind: Kind
    """"job" computes. "launcher" only starts and waits for jobs, "loader worker" and "compile worker" serve one; "worker" is
    anything else that multiprocessing made for a job."""
    parent: int | None
    """The nearest launcher or job above it that is on the list too."""
    rank: int | None
    local_rank: int | None
    world_size: int | None
    job: str | None
    """The name of the job, from torchrun or the scheduler."""
    user: str | None
    started: float
    """Unix time, in seconds."""
    age: float
    """Seconds since then."""
    command: list[str]
    python: str | None
    has_torch: bool | None
    """Whether libtorch is mapped; None where the memory map may not be read."""
    gpus: list[int] | None
    """The NVIDIA devices that it uses; [] for none."""
    container: str | None
    """Name or short id of the container in which it is and tuimon is not; "yes" for one without a name."""
    attachable: bool
    how: str | None
    """The way that `tuimon attach` would take: "injected" or "remote_exec"."""
    code: str | None
    """Why not, as a short code.."""
    why: str | None
    """..and as a sentence with the next step."""


def find_targets(*, everything: bool = False) -> list[Target]:
    """The processes here that have torch loaded, or may have: Python programs into which we may not look; and their launchers.

    Ranks that have not loaded torch yet are among them. `everything` adds workers of all kinds and Python programs without
    torch. Each launcher or job is followed by what runs below it; ranks are in order.
    """
    machine = Machine()
    kinds = _kinds(machine)
    shown = [process for process, kind in kinds.items() if everything or _is_of_interest(machine, process, kind, kinds)]
    shown += [above for above in _launchers_above(machine, kinds, shown) if above not in kinds]
    kinds.update((process, "launcher") for process in shown if process not in kinds)
    found = []
    for process in shown:
        target = _target(machine, process, kinds, {process.pid for process in shown})
        if target is not None:
            found.append(target)
    return [_without_jobs(target, found) for target in _in_order(found)]


def describe(pid: int) -> Target | None:
    """One process as `find_targets(everything=True)` would show it; None for one that is no Python program (any more)."""
    return next((target for target in find_targets(everything=True) if target.pid == pid), None)


def _kinds(machine: Machine) -> dict[Process, Kind]:
    kinds = {process: machine.kind(process) for process in machine.pythons()}
    jobs = [process for process, kind in kinds.items() if kind == "job"]
    kinds.update((process, "launcher") for process in machine.launchers(jobs))
    return kinds


def _is_of_interest(machine: Machine, process: Process, kind: Kind, kinds: dict[Process, Kind]) -> bool:
    if kind == "launcher":
        return True
    if kind != "job":
        return False
    if process.has_torch is not False:
        return True
    started_by = next((kinds[above] for above in machine.ancestors(process) if above in kinds), None)
    return started_by == "launcher" and ranks.place(process.environment).rank is not None


def _launchers_above(machine: Machine, kinds: dict[Process, Kind], shown: list[Process]) -> list[Process]:
    """The launchers that are no Python programs: mpirun, srun; a shell's script where several jobs have none nearer."""
    found: list[Process] = []
    scripts: dict[Process, int] = {}
    for job in [process for process in shown if kinds.get(process) == "job"]:
        for above in machine.ancestors(job):
            if kinds.get(above) in ("launcher", "job"):
                break
            if command_lines.launcher(above.argv):
                if above not in found:
                    found.append(above)
                break
            if command_lines.is_script_of_a_shell(above.argv):
                scripts[above] = scripts.get(above, 0) + 1
                break
    return found + [script for script, jobs in scripts.items() if jobs > 1]


# --------------------------------------------------------------------------------------------------------- one of them


def _target(machine: Machine, process: Process, kinds: dict[Process, Kind], shown: set[int]) -> Target | None:
    kind = kinds[process]
    try:
        facts = procfs.status(process.pid)
    except OSError:
        return None  # gone while we looked
    age = max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - process.started / os.sysconf("SC_CLK_TCK"))
    python, how, code, why = _verdict(machine, process, kind, kinds)
    if code in ("dead", "zombie", "kernel-thread"):
        return None
    place = _place(machine, process, kind)
    return Target(
        pid=process.pid,
        kind=kind,
        parent=next((above.pid for above in machine.ancestors(process) if above.pid in shown and _leads(above, kinds)), None),
        rank=place.rank,
        local_rank=place.local_rank,
        world_size=place.world_size,
        job=place.job,
        user=_user(facts),
        started=time.time() - age,
        age=age,
        command=process.argv,
        python=python,
        has_torch=process.has_torch,
        gpus=process.gpus,
        container=belongings.container(process.pid, facts, process.environment),
        attachable=code is None,
        how=how,
        code=code,
        why=why,
    )


def _leads(process: Process, kinds: dict[Process, Kind]) -> bool:
    """Whether it is a launcher, or a job that may have torch: any other Python program above says nothing."""
    return kinds.get(process) == "launcher" or (kinds.get(process) == "job" and process.has_torch is not False)


def _verdict(
    machine: Machine, process: Process, kind: Kind, kinds: dict[Process, Kind]
) -> tuple[str | None, str | None, str | None, str | None]:
    """(Python version, how, code, sentence) of attaching to it."""
    helper = command_lines.made_by_multiprocessing(process.argv) in ("tracker", "forkserver") and kind == "worker"
    if kind in ("job", "worker") and not (helper and process.has_torch is False):
        try:
            seen = preflight.look(process.pid)
        except Refused as refusal:
            return _version_by_name(process), None, refusal.code, refusal.sentence
        try:
            return "{}.{}".format(*seen.python), getattr(seen, "how", "injected"), None, None
        finally:
            seen.close()
    version = _version_by_name(process) if process.python else None
    if kind == "launcher":
        jobs = [other for other, its in kinds.items() if its == "job" and process in machine.ancestors(other)]
        below = [job.pid for job in jobs if job.has_torch is not False or ranks.place(job.environment).rank is not None]
        what = f"process {process.pid} only starts others and waits for them"
        if below:
            return version, None, "launcher", f"{what}: `tuimon attach {process.pid}` attaches to its jobs ({_some(below)})"
        return version, None, "launcher", f"{what}; there are none yet: try again when its ranks run"
    owner = next(
        (above.pid for above in machine.ancestors(process) if kinds.get(above) == "job" and _leads(above, kinds)), None
    )
    name = "helper" if helper else kind
    what = f"process {process.pid} is a {name}"
    if owner is None:
        return version, None, name.replace(" ", "-"), f"{what} without a job: that one has ended, or only starts others"
    return version, None, name.replace(" ", "-"), f"{what} of job {owner}: attach to that one, `tuimon attach {owner}`"


def _without_jobs(target: Target, targets: list[Target]) -> Target:
    """A launcher that stands for jobs to which tuimon cannot attach: it cannot be attached to either."""
    if target.code != "launcher":
        return target
    parents = {other.pid: other.parent for other in targets}
    jobs = [other for other in targets if other.kind == "job" and target.pid in _above(other, parents)]
    if not jobs or any(job.attachable for job in jobs):
        return target
    why = f"tuimon can attach to none of the jobs that process {target.pid} has started ({_some([job.pid for job in jobs])})"
    return replace(target, code="no-job", why=f"{why}: {jobs[0].why}")


def _above(target: Target, parents: dict[int, int | None]) -> set[int]:
    found: set[int] = set()
    above = target.parent
    while above is not None and above not in found:
        found.add(above)
        above = parents.get(above)
    return found


def _some(pids: list[int]) -> str:
    return ", ".join(map(str, pids[:4])) + (f" and {len(pids) - 4} more" if len(pids) > 4 else "")


def _place(machine: Machine, process: Process, kind: Kind) -> ranks.Place:
    """Its place in a job. What multiprocessing made has got its maker's environment: that says nothing of its own rank."""
    place = ranks.place(process.environment)
    parent = machine.parent(process)
    inherits = kind == "job" and parent is not None and parent.python and _same_rank(machine, process, parent)
    if kind == "launcher" or inherits:
        return ranks.Place(None, None, None, place.job)
    return place


def _same_rank(machine: Machine, process: Process, parent: Process) -> bool:
    place, above = ranks.place(process.environment), ranks.place(parent.environment)
    made = command_lines.made_by_multiprocessing(process.argv) is not None or process.birth == parent.birth
    return made and place[:3] == above[:3]


def _version_by_name(process: Process) -> str | None:
    """The Python version, from the names of its files."""
    found = re.search(r"/libpython(3\.\d+)", process.maps or "") or re.search(r"/lib/python(3\.\d+)/", process.maps or "")
    found = found or re.search(r"python(3\.\d+)$", process.exe)
    return found[1] if found else None


def _user(facts: dict[str, str]) -> str | None:
    import pwd

    try:
        uid = int(facts["Uid"].split()[0])
    except (KeyError, ValueError, IndexError):
        return None
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _in_order(targets: list[Target]) -> list[Target]:
    """Families together, the parent first; brothers by rank, then by start."""
    listed = {target.pid for target in targets}
    below: dict[int | None, list[Target]] = {}
    for target in targets:
        below.setdefault(target.parent if target.parent in listed else None, []).append(target)
    for family in below.values():
        family.sort(key=lambda target: (target.rank is None, target.rank or 0, target.started, target.pid))
    ordered: list[Target] = []
    waiting = below.get(None, [])[::-1]
    while waiting:
        target = waiting.pop()
        ordered.append(target)
        waiting += below.get(target.pid, [])[::-1]
    return ordered
