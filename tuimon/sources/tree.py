"""The job's processes as a tree: what is a loader worker, what compiles, and what each takes of the machine. Read from /proc.

A process is known by its pid *and* the time of its start: a pid is given away again. One that cannot be read, or ends while it
is read, is passed over; the others are told.
"""

from __future__ import annotations

import os
import re
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tuimon.events import NotAvailable, ProcessTreeSampled, TreeRow
from tuimon.sources.kernel import RunQueue, read
from tuimon.sources.ticker import Put, Ticked, Ticker

PROC = Path("/proc")
PERIOD_S = 2.0
MOST_ROWS = 64
MOST_BELOW = 512
"""Processes below the job that are looked at."""
REST = 40
"""After a reading that took t seconds there is none for REST times t: on a machine full of processes it stays cheap."""
LOADER = "pt_data_worker"
"""What torch (from 2.5 on) calls the main thread of a loader worker."""
COMPILES = ("_inductor/compile_worker", "_inductor/__autotune_main__", "_inductor/autotune_process")
"""What stands in the command line of a process that compiles for the job (`attach.find.command_lines` has its own list)."""
COMPILERS = frozenset({
    "c++", "g++", "gcc", "cc", "clang", "clang++", "cc1", "cc1plus", "as", "ld", "collect2", "lto1", "lto-wrapper", "nvcc",
    "cicc", "ptxas", "fatbinary", "nvlink", "cudafe++", "ld.lld", "ld.gold", "ninja", "hipcc",
})  # fmt: skip
"""Programs that compile, whoever has called them: torch's compilers do, and so does the building of an extension."""
MAKERS = ("multiprocessing.spawn", "multiprocessing.forkserver")
Kind = Literal["job", "loader worker", "compile worker", "worker", "other"]
State = Literal["running", "sleeping", "disk", "stopped", "zombie", "idle", ""]
_STATES: dict[str, State] = {
    "R": "running", "S": "sleeping", "D": "disk", "T": "stopped", "t": "stopped", "Z": "zombie", "I": "idle",
}  # fmt: skip
_VERSION = re.compile(r"-[\d.]+$")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Stat:
    """What /proc/PID/stat says of a process."""

    pid: int
    name: str
    state: str
    parent: int
    cpu_s: float
    """On a core, all threads, so far."""
    started: int
    """Clock ticks since boot."""
    rss_bytes: int


def stat(text: str) -> Stat | None:
    """From the text of the file (proc(5)); None if malformed."""
    # the name stands in parentheses and may itself hold spaces and parentheses
    begin, end = text.find("("), text.rfind(")")
    fields = text[end + 1 :].split()
    try:
        cpu_s = (int(fields[11]) + int(fields[12])) / _TICKS
        found = Stat(
            int(text[:begin]), text[begin + 1 : end], fields[0], int(fields[1]), cpu_s, int(fields[19]), int(fields[21]) * _PAGE
        )
        if found.rss_bytes >= 1 << 63:
            return None
    except (IndexError, ValueError):
        return None
    return found


def _stat_of(pid: int, proc: Path) -> Stat | None:
    return stat(read(proc / str(pid) / "stat") or "")


def below(pid: int, proc: Path = PROC, most: int = MOST_BELOW, kept_s: float = 0.0) -> list[Stat]:
    """The processes that `pid` has made, and those that these have made, parents first; at most `most`.

    `kept_s`: who made whom may be known from so long ago. To find that out takes a look at every process of the machine, and
    several threads may want it for several jobs; what is told of each process is read now all the same.
    """
    children = _seen.children(proc, kept_s) if kept_s > 0 else _children(proc)
    ordered: list[Stat] = []
    seen, waiting = {pid}, [pid]
    while waiting and len(ordered) < most:
        parent = waiting.pop(0)
        for told in children.get(parent, ()):
            child = told if kept_s <= 0 else _stat_of(told.pid, proc)
            if child is not None and child.parent == parent and child.pid not in seen:
                seen.add(child.pid)
                waiting.append(child.pid)
                ordered.append(child)
    return ordered[:most]


def _children(proc: Path) -> dict[int, list[Stat]]:
    """Parent -> the processes that it has made, of all."""
    children: dict[int, list[Stat]] = {}
    try:
        names = os.listdir(proc)
    except OSError:
        return children
    for name in names:
        if name.isdecimal():
            found = _stat_of(int(name), proc)
            if found is not None:
                children.setdefault(found.parent, []).append(found)
    return children


class _Seen:
    """Who made whom, as it was seen last. Any thread: while one looks, the others wait for what it finds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._proc: Path | None = None
        self._at = 0.0
        self._children: dict[int, list[Stat]] = {}

    def children(self, proc: Path, kept_s: float) -> dict[int, list[Stat]]:
        with self._lock:
            if self._proc != proc or time.monotonic() - self._at >= kept_s:
                self._children, self._proc, self._at = _children(proc), proc, time.monotonic()
            return self._children


_seen = _Seen()


def kind_of(name: str, argv: list[str], parent: Kind, parents_argv: list[str]) -> Kind:
    """What a process below the job is, by its name, its command line and those of its parent."""
    if name == LOADER:
        return "loader worker"
    runs = _program(argv).replace(".", "/")
    if any(mark in runs for mark in COMPILES) or parent == "compile worker" or (argv and _compiler(argv[0])):
        return "compile worker"
    if any(maker in word for word in argv for maker in MAKERS) or (argv and argv == parents_argv):
        return "worker"  # made by multiprocessing, or by fork alone
    return "other"


def _compiler(program: str) -> bool:
    """Whether it is one, also by a name with a version or an architecture: "x86_64-linux-gnu-g++-12"."""
    name = _VERSION.sub("", program.rpartition("/")[2])
    return name in COMPILERS or name.rpartition("-")[2] in COMPILERS


def _program(argv: list[str]) -> str:
    """The module or the file that an interpreter runs: never its arguments, and not the code behind -c."""
    words = iter(argv[1:])
    for word in words:
        if word == "-m":
            return next(words, "")
        if word == "-c":
            return ""
        if word in ("-W", "-X"):
            next(words, None)
        elif not word.startswith("-"):
            return word
    return ""


@dataclass(slots=True)
class _Known:
    """What is kept of a process from one reading to the next."""

    queue: RunQueue
    at: float
    cpu_s: float
    io: int | None = None
    io_at: float = 0.0
    waited_s: float | None = None
    asked: bool = False
    argv: tuple[str, list[str]] = ("", [])
    """Its name and its command line: with `exec` both change."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Of the job and all processes below it."""

    cpu_percent: float | None
    rss_bytes: int


class Tree:
    """Readings of one job's processes."""

    def __init__(self, pid: int, proc: Path = PROC, kept_s: float = 0.0) -> None:
        """`kept_s` as of `below`."""
        self._pid = pid
        self._proc = proc
        self._kept_s = kept_s
        self._started: int | None = None
        self._known: dict[tuple[int, int], _Known] = {}
        self.totals: Totals | None = None
        """As of the last reading; None before the first."""

    def sample(self) -> ProcessTreeSampled | None:
        """One reading; None when the job is gone, or its pid stands for another process."""
        job = _stat_of(self._pid, self._proc)
        if job is None or self._started not in (None, job.started) or (job.state in "ZX" and not self._threads_left()):
            return None
        self._started = job.started
        processes = [job, *(one for one in below(self._pid, self._proc, kept_s=self._kept_s) if one.state != "X")]
        now, kept = time.monotonic(), {}
        used: dict[int, float | None] = {}
        ran: dict[int, bool] = {}
        for one in processes:
            key = (one.pid, one.started)
            known = self._known.get(key)
            if known is None:
                known = _Known(RunQueue(self._folder(one) / "task"), now, one.cpu_s)
                used[one.pid], ran[one.pid] = None, True
            else:
                by = one.cpu_s - known.cpu_s
                used[one.pid] = max(0.0, 100.0 * by / (now - known.at)) if now > known.at else None
                ran[one.pid] = by > 0
                known.at, known.cpu_s = now, one.cpu_s
            kept[key] = known
        self._known = kept
        shares = [share for share in used.values() if share is not None]
        self.totals = Totals(sum(shares) if shares else None, sum(one.rss_bytes for one in processes))
        kinds = self._kinds(processes)
        busiest = sorted(processes[1:], key=lambda one: (-(used[one.pid] or 0.0), -one.rss_bytes, one.pid))
        rows = [self._row(one, kinds[one.pid], used[one.pid], ran[one.pid]) for one in (job, *busiest[: MOST_ROWS - 1])]
        return ProcessTreeSampled(time.monotonic_ns(), tuple(rows), len(processes) - len(rows))

    def _folder(self, of: Stat) -> Path:
        return self._proc / str(of.pid)

    def _threads_left(self) -> bool:
        """A first thread that has ended is a zombie while the others go on."""
        try:
            return len(os.listdir(self._proc / str(self._pid) / "task")) > 1
        except OSError:
            return False

    def _kinds(self, processes: list[Stat]) -> dict[int, Kind]:
        job = processes[0]
        kinds: dict[int, Kind] = {job.pid: "job"}
        lines = {job.pid: self._argv(job)}
        for one in processes[1:]:  # parents first
            lines[one.pid] = self._argv(one)
            kinds[one.pid] = kind_of(one.name, lines[one.pid], kinds.get(one.parent, "other"), lines.get(one.parent, []))
        return kinds

    def _argv(self, of: Stat) -> list[str]:
        known = self._known[of.pid, of.started]
        name, argv = known.argv
        if name != of.name or not argv:
            argv = (read(self._folder(of) / "cmdline") or "").rstrip("\0").split("\0")
            known.argv = (of.name, argv)
        return argv if argv != [""] else []

    def _row(self, of: Stat, kind: Kind, used: float | None, ran: bool) -> TreeRow:
        known = self._known[of.pid, of.started]
        if ran or not known.asked:  # one that did not run did not wait long either
            known.waited_s, known.asked = known.queue.seconds(), True
        io, io_at = _io(read(self._folder(of) / "io")), time.monotonic()
        rate = None
        if io is not None and known.io is not None and io_at > known.io_at:
            rate = max(0.0, (io - known.io) / (io_at - known.io_at))
        known.io, known.io_at = io, io_at
        # what has ended has given its memory back
        rss = None if of.state == "Z" else of.rss_bytes
        return TreeRow(of.pid, of.parent, kind, of.name, used, rss, _STATES.get(of.state, ""), known.waited_s, rate)


def _io(text: str | None) -> int | None:
    """Bytes from and to devices so far, of the text of /proc/PID/io."""
    total = None
    for line in (text or "").splitlines():
        name, _, value = line.partition(": ")
        if name in ("read_bytes", "write_bytes") and value.isdecimal():
            total = (total or 0) + int(value)
    return total


class TreeSource(Ticked):
    """Puts a `ProcessTreeSampled` every `period` seconds until the process `pid` is gone."""

    def __init__(self, put: Put, pid: int, period: float = PERIOD_S, proc: Path = PROC) -> None:
        self._put = put
        self._tree = Tree(pid, proc, 0.9 * period)  # a new look in each round of one job, one look for those of several
        self._rest_until = 0.0
        self._ticker = Ticker("tuimon-tree", period, self._round, self._failed)

    def totals(self) -> Totals | None:
        """Of the job and all below it, as of the last reading. For `HostSource`."""
        return self._tree.totals

    def _round(self) -> bool:
        begin = time.monotonic()
        if begin < self._rest_until:
            return True
        found = self._tree.sample()
        end = time.monotonic()
        self._rest_until = end + REST * (end - begin)
        if found is None or self._ticker.stopping:
            return False
        self._put(found)
        return True

    def _failed(self, error: BaseException) -> None:
        what = f"reading the job's processes failed: {type(error).__name__}: {error}"
        self._put(NotAvailable(time.monotonic_ns(), "process tree", what))
