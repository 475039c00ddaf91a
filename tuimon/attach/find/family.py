"""All processes of the machine as one picture, and what each Python among them is to its family.

Words on a command line do not settle it: a loader worker made by fork has its job's command line, one made by spawn has the
same as a rank that `torch.multiprocessing.spawn` made. These do, in this order:

1. torch (from 2.5 on) names the main thread of a loader worker: pt_data_worker.
2. A process that has a GPU of its own, or threads that only a working torch makes, does work of its own.
3. What multiprocessing made has work of its own if its parent has none: the parent sits in one and the same wait, as one that
   joins its ranks does. A parent that gets on with a job keeps the child for a worker.

Only reads of /proc; one that is not allowed counts as "not seen".
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import cached_property
from typing import Literal

from tuimon.attach import calls, procfs
from tuimon.attach.find import belongings, command_lines

Kind = Literal["job", "launcher", "loader worker", "compile worker", "worker"]

WORKER_NAME, LAUNCHER_NAME = "pt_data_worker", "pt_elastic"
NAMES_ITS_WORKERS = (2, 5)
"""The first torch that does."""
ROOM_OF_TORCH = 128 << 20
"""A process with less address space than this, in bytes, has no libtorch."""
OWN_THREADS = ("pt_nccl", "pt_gloo", "gloo_", "pt_autograd", "pt_data_pin", "cuda-EvtHandlr", "nccl")
"""What the threads are called that only a process has which computes."""
WAITS = frozenset({"poll", "ppoll", "select", "pselect6", "wait4", "waitid", "epoll_wait", "epoll_pwait", "epoll_pwait2"})
KERNEL_WAITS = ("poll_schedule_timeout", "do_poll", "do_sys_poll", "do_select", "ep_poll", "do_epoll_wait", "do_wait")
SAME_WAIT_S = 0.05
PF_KTHREAD = 0x00200000


class Process:
    """One process as it was when first looked at; the rest is read when asked for."""

    def __init__(self, pid: int) -> None:
        """Raises OSError, ValueError or IndexError when it is gone."""
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
        fields = text[text.rindex(")") + 2 :].split()
        self.pid = pid
        self.comm = text[text.index("(") + 1 : text.rindex(")")]
        self.state = fields[0]
        self.ppid = int(fields[1])
        self.kernel = bool(int(fields[6]) & PF_KTHREAD)
        self.started = int(fields[19])
        """Clock ticks since boot."""
        self.size = int(fields[20])
        """Bytes of address space."""

    @cached_property
    def argv(self) -> list[str]:
        """Its command line; empty where it has none."""
        words = self._read("cmdline").rstrip(b"\0").split(b"\0")
        return [word.decode("utf-8", "replace") for word in words] if words != [b""] else []

    @cached_property
    def exe(self) -> str:
        """The program's file; empty where it may not be seen."""
        try:
            return os.readlink(f"/proc/{self.pid}/exe").removesuffix(" (deleted)")
        except OSError:
            return ""

    @cached_property
    def maps(self) -> str | None:
        """Its memory map; None where it may not be seen."""
        try:
            with open(f"/proc/{self.pid}/maps", "rb") as file:
                return file.read().decode("utf-8", "replace")
        except OSError:
            return None

    @cached_property
    def environment(self) -> dict[str, str]:
        """What it was started with."""
        return procfs.environment(self.pid)

    @cached_property
    def descriptors(self) -> dict[int, str] | None:
        """Its open files."""
        return belongings.descriptors(self.pid)

    @cached_property
    def threads(self) -> list[str]:
        """The names of its threads."""
        return belongings.thread_names(self.pid)

    @cached_property
    def birth(self) -> bytes:
        """What the kernel gave the program at its start, with random addresses in it: a fork has its parent's."""
        return self._read("auxv")

    @cached_property
    def torch(self) -> str | None:
        """The path of its libtorch; None where there is none, or nothing can be seen."""
        return belongings.torch_library(self.maps) if self.size >= ROOM_OF_TORCH and self.maps else None

    @cached_property
    def has_torch(self) -> bool | None:
        """Whether torch is loaded; None where that cannot be seen."""
        if self.size < ROOM_OF_TORCH:
            return False
        if self.maps:
            return self.torch is not None
        return True if any(name.startswith("pt_") for name in self.threads) else None

    @cached_property
    def gpus(self) -> list[int] | None:
        """The GPUs that it uses."""
        files = None if self.descriptors is None else self.descriptors.values()
        return belongings.gpus(files, self.maps, self.environment)

    @cached_property
    def python(self) -> bool:
        """Whether it is a Python program by one of its names, or has torch in it."""
        if self.kernel or not self.argv:
            return False
        if command_lines.is_python(self.comm, self.argv, ""):
            return True
        return command_lines.is_python("", [], self.exe) or bool(self.size >= ROOM_OF_TORCH and self.torch)

    def name_now(self) -> str:
        """What its main thread is called at this moment."""
        return self._read("comm").decode("utf-8", "replace").rstrip("\n")

    def _read(self, name: str) -> bytes:
        try:
            with open(f"/proc/{self.pid}/{name}", "rb") as file:
                return file.read()
        except OSError:
            return b""


class Machine:
    """All processes that can be seen, at one moment."""

    def __init__(self) -> None:
        self.processes: dict[int, Process] = {}
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    process = Process(int(name))
                except (OSError, ValueError, IndexError):
                    continue  # gone while we looked
                if process.state not in "ZX":
                    self.processes[process.pid] = process
        self._kinds: dict[int, Kind] = {}
        self._waiting: dict[int, bool] = {}

    def parent(self, process: Process) -> Process | None:
        """The process that made it, or that adopted it."""
        parent = self.processes.get(process.ppid)
        return parent if parent is not None and parent.started <= process.started else None

    def ancestors(self, process: Process) -> Iterator[Process]:
        """Its parent, the parent's parent and so on."""
        seen = {process.pid}
        above = self.parent(process)
        while above is not None and above.pid not in seen:
            yield above
            seen.add(above.pid)
            above = self.parent(above)

    def pythons(self) -> list[Process]:
        """All Python programs but ours."""
        own = os.getpid()
        return [
            process
            for process in self.processes.values()
            if process.python and process.pid != own and not command_lines.is_tuimon(process.argv)
        ]

    def kind(self, process: Process) -> Kind:
        """What a Python program is, for itself: the parent of ranks is still a job here, see `launchers`."""
        if process.pid not in self._kinds:
            self._kinds[process.pid] = self._kind(process)
        return self._kinds[process.pid]

    def _kind(self, process: Process) -> Kind:
        parent = self.parent(process)
        family = parent is not None and parent.python
        if command_lines.is_compile_worker(process.argv):
            return "compile worker"
        if process.comm == WORKER_NAME:
            return "loader worker"
        if process.comm == LAUNCHER_NAME or command_lines.launcher(process.argv):
            return "launcher"
        made = command_lines.made_by_multiprocessing(process.argv)
        forked = family and parent is not None and is_fork(process, parent)
        if made == "tracker" or (made == "forkserver" and not forked):
            return "worker"
        if not made and not forked:
            return "job"
        if family and parent is not None:
            above = self.kind(parent)
            if above == "compile worker":
                return "compile worker"
            if above == "loader worker":
                return "worker"
        works = self._works_for_itself(process, self.maker(process))
        if process.name_now() == WORKER_NAME:
            return "loader worker"  # it has got its name since it was first looked at
        return "job" if works else "worker"

    def _works_for_itself(self, process: Process, maker: Process | None) -> bool:
        if is_starting(process):
            return False
        theirs = [] if maker is None else maker.gpus or []
        if any(name.startswith(OWN_THREADS) for name in process.threads) or set(process.gpus or []) - set(theirs):
            return True
        if process.torch is None:
            return False
        if not belongings.at_least(belongings.torch_version(process.pid, process.torch), NAMES_ITS_WORKERS):
            return False  # it could be a loader worker
        if maker is None or not maker.python or maker.torch is None:
            return True  # a server whose supervisor knows nothing of torch, or ranks whose parent has gone
        return self.only_waits(maker)

    def maker(self, process: Process) -> Process | None:
        """The program for which multiprocessing has made a process: its parent, or the one that has the fork server."""
        parent = self.parent(process)
        if parent is not None and command_lines.made_by_multiprocessing(parent.argv) == "forkserver":
            grandparent = self.parent(parent)
            return grandparent if not (grandparent and is_fork(parent, grandparent)) else parent
        return parent

    def only_waits(self, process: Process) -> bool:
        """Whether it computes nothing: no GPU, no threads of a working torch, and the main thread stays in one wait."""
        if process.pid not in self._waiting:
            self._waiting[process.pid] = not _has_work(process) and _stays_in_one_wait(process.pid)
        return self._waiting[process.pid]

    def launchers(self, jobs: list[Process]) -> list[Process]:
        """Those of the jobs that only wait for others of them, which multiprocessing has made."""
        makers = {self.maker(job) for job in jobs if self._is_made(job)}
        return [job for job in jobs if job in makers and self.only_waits(job)]

    def _is_made(self, process: Process) -> bool:
        parent = self.parent(process)
        return bool(command_lines.made_by_multiprocessing(process.argv)) or (parent is not None and is_fork(process, parent))


def is_fork(child: Process, parent: Process) -> bool:
    """Whether a child has been forked off its parent, and started no program since."""
    if child.birth and parent.birth:
        return child.birth == parent.birth and child.exe == parent.exe
    return child.argv == parent.argv  # another user's: all that can be seen


def is_starting(process: Process) -> bool:
    """Whether what multiprocessing made still reads what it is to do: it holds that pipe under two numbers until it knows."""
    pipes: set[str] = set()
    for number, name in (process.descriptors or {}).items():
        if number > 2 and name.startswith("pipe:"):
            if name in pipes and _is_read_end(process.pid, number):
                return command_lines.made_by_multiprocessing(process.argv) is not None
            pipes.add(name)
    return False


def _is_read_end(pid: int, number: int) -> bool:
    try:
        with open(f"/proc/{pid}/fdinfo/{number}", encoding="ascii") as file:
            flags = next((int(line.split()[1], 8) for line in file if line.startswith("flags:")), os.O_WRONLY)
    except (OSError, ValueError):
        return False
    return flags & os.O_ACCMODE == os.O_RDONLY


def _has_work(process: Process) -> bool:
    return bool(process.gpus) or any(name.startswith(OWN_THREADS) for name in process.threads)


def _stays_in_one_wait(pid: int) -> bool:
    sleeps = procfs.sleeps(pid, pid)
    if sleeps is None or not _is_in_a_wait(pid):
        return False
    time.sleep(SAME_WAIT_S)
    return procfs.sleeps(pid, pid) == sleeps and _is_in_a_wait(pid)


def _is_in_a_wait(pid: int) -> bool:
    call = procfs.thread_call(pid, pid)
    if call is not None:
        return call.number is not None and calls.name(call.number) in WAITS
    try:  # who may not attach may still see where in the kernel it sleeps
        with open(f"/proc/{pid}/wchan", encoding="ascii") as file:
            return file.read().startswith(KERNEL_WAITS)
    except (OSError, ValueError):
        return False
