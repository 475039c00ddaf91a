"""What other screens cost: memray's live mode and nvitop. Prints a table; asserts nothing.

    python -m tests.bench.peers [--rounds N]

memray on a program that allocates a little, connected to by a port; nvitop on the device of this machine, or where there is
none on the scripted NVML of tests/support/fake_nvml. At 120x40, a few seconds each round: CPU, bytes to the terminal, memory.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench import command, jobs, noise, table
from tests.support.fake_nvml.build import build, compiler
from tests.support.terminal import Terminal

SECONDS = 8.0
PROGRAM = "import time\nkept = []\nwhile True:\n    kept = [bytes(1000) for _ in range(1000)]\n    time.sleep(0.05)\n"


def cpu_s(pid: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int) -> float:
    """What of a process is in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextlib.contextmanager
def memray(folder: Path) -> Iterator[Terminal]:
    """memray's screen, connected. Raises NotHere."""
    tool = jobs.tool("memray")
    if tool is None:
        raise jobs.NotHere(jobs.MISSING)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    program = folder / "allocates.py"
    program.write_text(PROGRAM)
    words = [tool, "run", "--live-remote", "--live-port", port, str(program)]
    job = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        screen = Terminal([tool, "live", port], 120, 40, {**os.environ, "TERM": "xterm-256color"})
        try:
            if not screen.wait_for(lambda: screen.sees("Heap") or screen.sees("Memory"), 30.0):
                raise jobs.NotHere("memray live showed nothing within 30 s")
            yield screen
        finally:
            screen.close()
    finally:
        job.kill()
        job.wait()


@contextlib.contextmanager
def nvitop(folder: Path) -> Iterator[Terminal]:
    """nvitop's screen. Raises NotHere."""
    tool = jobs.tool("nvitop")
    if tool is None:
        raise jobs.NotHere(jobs.MISSING)
    env = {**os.environ, "TERM": "xterm-256color", "PYTHONUTF8": "1"}
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        env.update(scripted(folder))
    screen = Terminal([tool, "-m", "full"], 120, 40, env)
    try:
        if not screen.wait_for(lambda: screen.sees("NVITOP") or screen.sees("GPU"), 30.0):
            raise jobs.NotHere("nvitop showed nothing within 30 s")
        yield screen
    finally:
        screen.close()


def scripted(folder: Path) -> dict[str, str]:
    """The environment in which NVML is the scripted one. Raises NotHere without a C compiler."""
    if compiler() is None:
        raise jobs.NotHere("no device, and no C compiler for the scripted NVML")
    build(folder)
    script = folder / "nvml.script"
    script.write_text("count 1\n")
    return {"LD_LIBRARY_PATH": str(folder), "FAKE_NVML_SCRIPT": str(script)}


def watched(screen: Terminal, seconds: float) -> tuple[float, float, float]:
    """(share of a core in %, bytes a second, MB)."""
    screen.read(2.0)
    began, cpu, start = time.monotonic(), cpu_s(screen.pid), len(screen.data)
    while (left := began + seconds - time.monotonic()) > 0:
        screen.read(left)
    took = time.monotonic() - began
    return 100 * (cpu_s(screen.pid) - cpu) / took, (len(screen.data) - start) / took, memory_mb(screen.pid)


PEERS: tuple[tuple[str, Callable[[Path], contextlib.AbstractContextManager[Terminal]]], ...] = (
    ("memray live", memray),
    ("nvitop", nvitop),
)


def measure(rounds: int) -> table.Section:
    """All of it; less than five rounds are short ones."""
    seconds = 2.0 if rounds < noise.ROUNDS else SECONDS
    rows: list[table.Row] = []
    gate = noise.Gate()
    for name, peer in PEERS:
        try:
            with tempfile.TemporaryDirectory(prefix="tuimon-bench-") as folder, peer(Path(folder)) as screen:
                found = [watched(screen, seconds) for _ in range(rounds)]
        except jobs.NotHere as why:
            rows.append(table.row(name, [], "", note=str(why)))
            continue
        for at, unit in enumerate(("% of a core", "B/s", "MB")):
            rows.append(table.row(name, [one[at] for one in found], unit))
    return table.Section("Other screens", rows, gate.verdict([1.0] * rounds))


if __name__ == "__main__":
    sys.exit(command.main("peers", __doc__, measure, rounds=5))
