"""What it takes to open files of other tools: `python -m tests.bench.files [FILE..]` prints it.

For each file: seconds until the first screen of `tuimon replay` in a pseudo terminal (from the start of the process until
what the file holds is on it), CPU seconds and peak memory of `tuimon report`, and that memory over the file's unpacked size.
Without files: a Kineto trace of 4 MB packed, made up after the largest that profilers write, and of what lies in
`../shared/files` the largest trace and the largest log. Both cores' load is
printed: wall times are worth something on an idle machine only, CPU times on any.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.terminal import Terminal

SHARED = next((one for one in (Path(__file__).parents[3] / "shared/files", Path("/work/shared/files")) if one.is_dir()), None)
AIM_S, AIM_TIMES = 2.0, 10.0


def made_up(path: Path, packed: int = 4 * 10**6) -> Path:
    """A trace of steps of a model: operators with shapes, launches, kernels, Python functions and what links them."""
    text = bytearray(b'{"schemaVersion": 1, "baseTimeNanoseconds": 1751410836000000000, "traceEvents": [\n')
    at, number, step = 1000.0, 0, 0
    parts: list[bytes] = []
    size = 0
    with gzip.GzipFile(path, "wb", compresslevel=6, mtime=0) as file:
        while path.stat().st_size < packed:
            begin = at
            for layer in range(60):
                number += 1
                at += 37.3 + number % 11
                sizes = [[32, 64 * (1 + layer % 8), 56, 56], [64, 64, 3, 3]]
                common = {"ph": "X", "pid": 4711, "tid": 4711}
                events: list[dict[str, object]] = [
                    {**common, "cat": "cpu_op", "name": f"aten::op{layer}", "ts": at, "dur": 30.125,
                     "args": {"External id": number, "Sequence number": number, "Fwd thread id": 0, "Input Dims": sizes,
                              "Input type": ["float", "float"], "Concrete Inputs": ["", ""], "Ev Idx": number}},
                    {**common, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + 3, "dur": 4.5,
                     "args": {"cbid": 211, "correlation": number, "External id": number}},
                    {**common, "tid": 7, "cat": "kernel", "name": f"void at::native::kernel{layer}<float, 4>(int, float*)",
                     "ts": at + 90, "dur": 25.75 + number % 7,
                     "args": {"device": 0, "context": 1, "stream": 7, "correlation": number, "grid": [98, 1, 1],
                              "block": [256, 1, 1], "registers per thread": 64, "est. achieved occupancy %": number % 100}},
                    {"ph": "s", "id": number, "pid": 4711, "tid": 4711, "ts": at + 3, "cat": "ac2g", "name": "ac2g"},
                    {"ph": "f", "id": number, "pid": 0, "tid": 7, "ts": at + 90, "cat": "ac2g", "name": "ac2g", "bp": "e"},
                ]  # fmt: skip
                events += [
                    {**common, "cat": "python_function", "name": f"torch/nn/modules/module.py({1500 + n}): _call_impl",
                     "ts": at - n, "dur": 33.0 + n, "args": {"Python parent id": number, "Python id": number + n}}
                    for n in range(3)
                ]  # fmt: skip
                parts += [json.dumps(one).encode() + b",\n" for one in events]
            step += 1
            name = f"ProfilerStep#{step}"
            parts.append(json.dumps({"ph": "X", "cat": "user_annotation", "name": name, "pid": 4711, "tid": 4711, "ts": begin,
                                     "dur": at + 40 - begin, "args": {}}).encode() + b",\n")  # fmt: skip
            text += b"".join(parts)
            parts.clear()
            file.write(bytes(text))
            file.flush()
            size += len(text)
            text.clear()
        file.write(b"{}]}")
    return path


def unpacked(path: Path) -> int:
    """Bytes in it."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    if not packed:
        return path.stat().st_size
    with gzip.open(path) as file:
        return sum(len(chunk) for chunk in iter(lambda: file.read(2**20), b""))


def first_screen(path: Path) -> tuple[float, float, float]:
    """Seconds from the start of `tuimon replay` until its screen is there, until all of the file is on it, and its CPU time."""
    env = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    began = time.monotonic()
    terminal = Terminal([sys.executable, "-m", "tuimon", "replay", str(path)], 120, 36, env)
    try:
        terminal.wait_for(lambda: terminal.sees("roofline") or terminal.sees("regions"), 120)
        there = time.monotonic() - began
        terminal.wait_for(lambda: terminal.sees("read to its end") or terminal.sees("detached"), 120)
        return there, time.monotonic() - began, _cpu(terminal.pid)
    finally:
        terminal.write("q")
        terminal.ended()
        terminal.close()


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def report(path: Path) -> tuple[float, float, int]:
    """(seconds, CPU seconds, peak bytes) of `tuimon report`."""
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    code = "import resource, sys; from tuimon import cli; cli.main(['report', sys.argv[1], '-o', '/dev/null']); " \
           "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - began, cpu, int(done.stderr.split()[-1]) * 1024


def main(arguments: list[str]) -> None:
    """Print some lines for each file."""
    out = sys.stdout.write
    out(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    out(f"aims: first screen <= {AIM_S:g} s; memory <= {AIM_TIMES:g} times the unpacked size\n")
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty.json"
        empty.write_text(
            '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]}'
        )
        _, least_cpu, least = report(empty)
        out(f"a trace of one event: CPU {least_cpu:.2f} s, peak {least / 1e6:.0f} MB\n")
        for path in [Path(one) for one in arguments] or [made_up(Path(folder) / "made-up.pt.trace.json.gz"), *_largest()]:
            size = unpacked(path)
            seconds, cpu, peak = report(path)
            screens, wholes, cpus = zip(*(first_screen(path) for _ in range(3)), strict=True)
            out(
                f"{path.name}: {path.stat().st_size / 1e6:.1f} MB, {size / 1e6:.1f} MB unpacked\n"
                f"  replay: first screen {_spread(screens)}, all of it {_spread(wholes)}, CPU until then {_spread(cpus)}\n"
                f"  report: {seconds:.2f} s, CPU {cpu:.2f} s, peak {peak / 1e6:.0f} MB ({peak / size:.1f} times; "
                f"{(peak - least) / size:.1f} times above that of one event)\n"
            )


def _spread(seconds: tuple[float, ...]) -> str:
    ordered = sorted(seconds)
    return f"{ordered[len(ordered) // 2]:.2f} s [{ordered[0]:.2f}-{ordered[-1]:.2f}]"


def _largest() -> list[Path]:
    if SHARED is None:
        return []
    found = []
    for pattern in ("*.json.gz", "*.log"):
        every = sorted(SHARED.rglob(pattern), key=lambda one: one.stat().st_size)
        found += every[-1:]
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
