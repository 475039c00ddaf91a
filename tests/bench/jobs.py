"""One training job for all, and the ways to watch it: nothing, tuimon in several, and what a user would take instead.

All jobs live at once; each waits for "so many steps" on a fifo, so that blocks of steps can be taken of them in turn. The job
is on one core, whatever watches it on the other.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import psutil

from tests.bench.jobs_pty import Screen

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("jobs_program.py").read_text()
"""argv: folder, arm, microseconds of a step, regions of a step. See the file."""
MISSING = "not installed: pip install 'tuimon[bench]'"
PEERS = {"traceml": "traceml_ai", "pyspy": "py-spy", "pyspy-stop": "py-spy"}
OURS = ("nothing", "run", "attach", "screen")
"""Kinds that must start."""
ALLOWED = os.sched_getaffinity(0)
"""The cores of this process at its start."""
START_S = 180.0
PATIENCE_S = 40.0


class NotHere(Exception):
    """An arm that cannot be measured, and why."""


class Broken(Exception):
    """A job that ended or did not answer, with the end of its log."""


def cores() -> tuple[int, int]:
    """(the job's, everybody else's): the last and the first core that this process may use."""
    may = sorted(ALLOWED)
    return may[-1], may[0]


def _allow(pid: int, on: set[int]) -> None:
    for path in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):  # has ended meanwhile
            os.sched_setaffinity(int(path.name), on)


def pin(pid: int, core: int) -> None:
    """All threads of a process to a core."""
    _allow(pid, {core})


def environment(folder: Path) -> dict[str, str]:
    """What job and monitor are started with: no settings of the user's, a cache of compiled code that all share."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("TUIMON_", "TORCH_LOGS", "TORCH_TRACE"))}
    return {
        **env,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
        "TORCHINDUCTOR_CACHE_DIR": os.environ.get("TORCHINDUCTOR_CACHE_DIR", str(folder / "inductor")),
        "TERM": "xterm-256color",
        "XDG_CONFIG_HOME": str(folder / "config"),
    }


class Arm:
    """One job and what watches it.

    `name`: the kind, and behind a "#" whatever tells it from others of that kind. Kinds: nothing (until `watch`), run, attach,
    screen, profiler-W-A (wait W, warm up 1, active A steps), traceml, pyspy, pyspy-stop, torch_logs, torch_trace. Raises
    NotHere where what it needs is not installed.
    """

    def __init__(self, name: str, folder: Path, step_us: float, regions: int) -> None:
        self.name, self.kind = name, name.partition("#")[0]
        self._shared, self._folder = folder, folder / name.replace("#", "-")
        self._step_us, self._regions = step_us, regions
        self._job: subprocess.Popen[bytes] | None = None
        self._extra: subprocess.Popen[bytes] | Screen | None = None
        self._in: IO[str] | None = None
        self._out: IO[str] | None = None
        self._core_rest = self._sockets = 0
        self._left = b""
        self._before = 0
        self.pid = 0
        self.counts: dict[str, Any] = {}
        """What the job itself counted, once it has ended."""
        self._check()

    def _check(self) -> None:
        if self.kind == "traceml" and (importlib.util.find_spec("traceml_ai") is None or tool("traceml") is None):
            raise NotHere(MISSING)
        if self.kind.startswith("pyspy") and tool("py-spy") is None:
            raise NotHere(MISSING)

    def launch(self) -> None:
        """Start the job, without waiting for it."""
        self._folder.mkdir(parents=True)
        for name in ("in", "out"):
            os.mkfifo(self._folder / name)
        program = self._folder / "job.py"
        program.write_text(PROGRAM)
        self._env = env = environment(self._shared)
        words = [str(self._folder), self.kind, str(self._step_us), str(self._regions)]
        argv = [sys.executable, str(program), *words]
        if self.kind == "torch_logs":
            env["TORCH_LOGS"] = "graph_breaks,recompiles,guards,perf_hints"
        elif self.kind == "torch_trace":
            env["TORCH_TRACE"] = str(self._folder / "trace")
        elif self.kind == "run":
            argv = [*self._tuimon("run"), "--", *argv]
        elif self.kind == "traceml":
            argv = [*traceml_run(), str(program), "--args", *words]
        self._job = self._spawn(argv, env)

    def start(self, core_job: int, core_rest: int) -> None:
        """Start the job if it is not, wait until it is warm, put it on its core, attach what is attached. Raises Broken."""
        if self._job is None:
            self.launch()
        self._core_rest, env = core_rest, self._env
        # opened for both directions: neither side waits for the other, and an end is seen by the process, not by the fifo
        self._in = os.fdopen(os.open(self._folder / "in", os.O_RDWR), "w")
        self._out = os.fdopen(os.open(self._folder / "out", os.O_RDWR | os.O_NONBLOCK), "rb", buffering=0)  # type: ignore[assignment]
        warm = self._answer(START_S)
        self.pid, self._before = int(warm["pid"]), int(warm["calls"])
        pin(self.pid, core_job)
        self._sockets = _sockets(self.pid)
        watch: list[str] = []
        if self.kind == "attach":
            self.watch()
        elif self.kind == "screen":
            self._extra = Screen([sys.executable, "-m", "tuimon", "attach", str(self.pid)], env, 120, 40, str(self._folder))
            pin(self._extra.pid, core_rest)
        elif self.kind.startswith("pyspy"):
            watch = [str(tool("py-spy")), "record", "--pid", str(self.pid), "-d", "36000", "-r", "100", "-o", "p.svg"]
            watch += ["--nonblocking"] * (self.kind == "pyspy")
        if watch:
            self._extra = self._spawn(watch, env, {core_rest})

    def watch(self) -> None:
        """Attach `tuimon attach --headless` and wait until it is in. Raises Broken."""
        self._extra = self._spawn([*self._tuimon("attach"), str(self.pid)], self._env, {self._core_rest})
        self._until(self.hooked, "tuimon did not attach")

    def leave(self) -> None:
        """Let it detach. Raises Broken."""
        assert isinstance(self._extra, subprocess.Popen)
        self._extra.send_signal(signal.SIGINT)
        self._extra.wait(60)
        self._until(lambda: not self.hooked(), "tuimon did not detach")

    def settle(self) -> None:
        """Wait until the screen has attached, and let nothing but the job be on its core. Raises Broken."""
        if self.kind == "screen":
            self._until(self.hooked, "tuimon did not attach")
        assert self._job is not None
        for pid in (self._job.pid, *(one.pid for one in _below(self._job.pid))):
            if pid != self.pid:  # tuimon around the job, TraceML's processes, compile workers
                pin(pid, self._core_rest)

    def park(self) -> None:
        """To the core of the others, until `unpark`: also a job that waits has threads that wake."""
        pin(self.pid, self._core_rest)

    def unpark(self) -> None:
        """Back to its own."""
        pin(self.pid, cores()[0])

    def block(self, n: int, repeats: int | None = None, regions: int | None = None) -> dict[str, Any]:
        """Have it make `n` steps: what they took, in microseconds.

        wall, thread: the median of a step; wall_mean, thread_mean: their means; process: the mean of the whole process; nivcsw;
        rss in bytes; loss, to the bit.
        `repeats`: what it does beside its regions (see `calibrated`); `regions`: another number of them. Raises Broken.
        """
        words = [n, *(one for one in (repeats, regions) if one is not None)]
        return self._ask(" ".join(map(str, words)), 60.0 + n)

    def calibrated(self, step_us: float, regions: int) -> dict[str, Any]:
        """{"repeats", "step_us"}: what makes a step of so many regions so long, and how long it is then. Raises Broken."""
        return self._ask(f"? {step_us} {regions}", 120.0)

    def hooked(self) -> bool:
        """Whether tuimon's connection is in the job: it has more sockets than before."""
        return _sockets(self.pid) > self._sockets

    def watcher_pid(self) -> int | None:
        """The process that watches, where it is one of its own."""
        return self._extra.pid if self._extra is not None else None

    def end(self) -> None:
        """End the job, then what watches it, with all that they have started; neither may hold up the others."""
        below = [one for process in (self._job, self._extra) if process is not None for one in _below(process.pid)]
        if self._in is not None and self._job is not None and self._job.poll() is None:
            with contextlib.suppress(OSError, Broken):
                self.counts = self._ask("0", PATIENCE_S)
        for one in (self._job, self._extra):
            if isinstance(one, Screen):
                one.close()
            elif one is not None:
                if one is self._extra and self.kind.startswith("pyspy"):
                    one.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    one.wait(PATIENCE_S)
                kill(one)
        _kill(below)  # TraceML's are in a session of their own and may stay
        for file in (self._in, self._out):
            if file is not None:
                file.close()

    def seen(self) -> str:
        """After the end: "8,123 of 8,123, dropped 0", the calls of regions in tuimon's report of those that the job made.

        Counted from when it was attached to; "" where there is no such report.
        """
        path = self._folder / "report.json"
        if self.kind not in ("run", "attach") or not path.exists() or "calls" not in self.counts:
            return ""
        report = json.loads(path.read_text())
        told = sum(region["calls"] for region in report["regions"])
        made = self.counts["calls"] - (self._before if self.kind == "attach" else 0)
        return f"{told:,} of {made:,}, dropped {report['coverage']['dropped']:,}"

    def _tuimon(self, command: str) -> list[str]:
        report = str(self._folder / "report.json")
        return [sys.executable, "-m", "tuimon", command, "--headless", "--format", "json", "-o", report]

    def _spawn(self, argv: Sequence[str], env: Mapping[str, str], on: set[int] | None = None) -> subprocess.Popen[bytes]:
        with open(self._folder / "log", "ab") as log:
            process = subprocess.Popen(
                argv, env=dict(env), cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        if on is not None:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(process.pid, on)
        return process

    def _ask(self, line: str, seconds: float) -> dict[str, Any]:
        assert self._in is not None
        self._in.write(f"{line}\n")
        self._in.flush()
        return self._answer(seconds)

    def _answer(self, seconds: float) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while b"\n" not in self._left:
            assert self._out is not None and self._job is not None
            data: Any = self._out.read(65536)
            if data:
                self._left += data
            elif self._job.poll() is not None or time.monotonic() > end:
                raise Broken(
                    f"{self.name}: {'has ended' if self._job.poll() is not None else 'does not answer'}\n{self._log()}"
                )
            else:
                time.sleep(0.002)
        line, _, self._left = self._left.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")[-2000:]

    def _until(self, condition: Any, otherwise: str) -> None:
        end = time.monotonic() + 60
        while not condition():
            if time.monotonic() > end:
                raise Broken(f"{self.name}: {otherwise}\n{self._log()}")
            time.sleep(0.02)


def _below(pid: int) -> list[psutil.Process]:
    try:
        found: list[psutil.Process] = psutil.Process(pid).children(recursive=True)
        return found
    except psutil.Error:
        return []


def _kill(processes: Sequence[psutil.Process]) -> None:
    for one in processes:
        with contextlib.suppress(psutil.Error):  # has ended; psutil looks that no other has its number
            one.kill()


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process, where it has not ended, and all that it has started."""
    if process.poll() is None:
        below = _below(process.pid)
        process.kill()
        process.wait()
        _kill(below)


def traceml_run() -> list[str]:
    """How TraceML is told to run a program, on ports that are free: a fixed one may be somebody else's."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        ports = one.getsockname()[1], other.getsockname()[1]
    return [str(tool("traceml")), "run", "--aggregator-port", str(ports[0]), "--master-port", str(ports[1])]


def _sockets(pid: int) -> int:
    found = 0
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # closed meanwhile
            found += os.readlink(path).startswith("socket:")
    return found


def tool(name: str) -> str | None:
    """A program beside this Python or on the path."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else shutil.which(name)


def started(names: Sequence[str], folder: Path, step_us: float, regions: int) -> tuple[list[Arm], dict[str, str]]:
    """Those of the arms that can be had, started and warm; and of the others, why not. Raises Broken."""
    core_job, core_rest = cores()
    arms: list[Arm] = []
    missing: dict[str, str] = {}
    for name in names:
        try:
            arms.append(Arm(name, folder, step_us, regions))
        except NotHere as why:
            missing[name] = str(why)
    try:
        for at, arm in enumerate(arms):
            if at == 1:  # the first has filled the cache of compiled code for the others
                for other in arms[1:]:
                    other.launch()
            try:
                arm.start(core_job, core_rest)
                arm.settle()
            except Broken as why:
                if arm.kind in OURS:
                    raise
                arm.end()
                missing[arm.name] = f"did not start: {' '.join(str(why).split())[:300]}"
        arms = [arm for arm in arms if arm.name not in missing]
        pin(os.getpid(), core_rest)  # until `end`
    except BaseException:
        end(arms)
        raise
    return arms, missing


def end(arms: Sequence[Arm]) -> None:
    """All of them, at the same time: an end takes its while."""
    _allow(os.getpid(), ALLOWED)
    threads = [threading.Thread(target=arm.end) for arm in arms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
