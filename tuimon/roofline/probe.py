"""The calibration's child: times matrix products and memory kernels, and tells every repeat. It judges nothing.

It is run by its path in an interpreter that has torch (`python -I probe.py '{...}'`), never imported: no process of tuimon's
imports torch. It needs the standard library and torch only. What it is asked for is a JSON object, its only argument:

    device    "cpu" or "cuda:N"
    threads   [1, 8]: the numbers of threads to measure with, one after the other (a CPU); 0 is torch's own choice
    path      folders to look for torch in, before the interpreter's own
    budget_s  seconds for all of it, from the start of the process
    repeat_s  seconds that one repeat takes at least
    dram      bytes of an array that no cache holds
    l2, llc   bytes of the cache that each core has for itself, and of the last level; 0 where that is not known
    dtypes    which matrix products, e.g. ["f32", "bf16"]

Each line on stdout is a JSON object with the key "k": "lacking" (why there is no torch to use), "begin" (versions, the device),
"set" (the next number of threads), "probe" (what will be timed), "repeat" (one timing: work a second, CPU seconds a second and
thread, seconds a second that several threads waited for a CPU, CPU seconds a second of others), "resized" (a probe goes on with
another size: its repeats so far are void), "failed" (a probe that this torch or device cannot run, and why), "end".
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from typing import Any

STARTED = time.perf_counter()
LARGEST = {"cpu": 2048, "cuda": 8192}
SMALLEST = {"cpu": 128, "cuda": 1024}
MOST_REPEATS = 12
PER_REPEAT = 8
"""Products that fit into a repeat, about."""
MOST_AGAIN = 3
"""How often the size of a product may be chosen anew."""
LAYOUTS = ("NN", "NT", "TN")
TICK = 1 / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure what the argument asks for."""
    asked = json.loads(sys.argv[1])
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a library prints must not come between the lines

    def tell(kind: str, **fields: Any) -> None:
        out.write(json.dumps({"k": kind, **fields}) + "\n")

    warnings.simplefilter("ignore")
    sys.path[:0] = asked.get("path", [])
    device = asked["device"]
    try:
        import torch

        facts = _facts(torch, device)
    except (ImportError, OSError, RuntimeError, AssertionError) as error:
        tell("lacking", why=f"{error}".strip().splitlines()[0][:200] if f"{error}".strip() else type(error).__name__)
        return
    torch.manual_seed(0)
    torch.set_grad_enabled(False)
    deadline = STARTED + asked["budget_s"]
    tell("begin", import_s=time.perf_counter() - STARTED, **facts)
    if device == "cpu":
        sets = list(dict.fromkeys(threads or torch.get_num_threads() for threads in asked["threads"]))
        for at, threads in enumerate(sets):
            torch.set_num_threads(threads)
            tell("set", threads=threads, left=len(sets) - at)
            share = time.perf_counter() + (deadline - time.perf_counter()) / (len(sets) - at)
            _round_robin(_Cpu(torch, threads), asked, share, tell)
    else:
        _round_robin(_Cuda(torch, device), asked, deadline, tell)
    tell("end", took_s=time.perf_counter() - STARTED)


def _facts(torch: Any, device: str) -> dict[str, Any]:
    facts: dict[str, Any] = {"torch": torch.__version__, "python": sys.version.split()[0]}
    if device != "cpu":
        properties = torch.cuda.get_device_properties(device)
        facts.update(
            name=properties.name,
            memory_bytes=properties.total_memory,
            cache_bytes=getattr(properties, "L2_cache_size", None),
            capability=f"{properties.major}.{properties.minor}",
            runtime=torch.version.cuda or torch.version.hip,
        )
    return facts


# ------------------------------------------------------------------------------------------------- where and how time is taken


class _Cpu:
    def __init__(self, torch: Any, threads: int) -> None:
        self.torch, self.threads, self.device, self.kind = torch, threads, "cpu", "cpu"
        self.arrays: dict[int, Any] = {}

    def repeat(
        self, call: Any, least_s: float, calls: int | None = None
    ) -> tuple[int, float, float | None, float | None, float]:
        """Of at least one call: (calls, seconds, CPU seconds a second and thread, seconds a second that threads waited for a
        CPU, CPU seconds a second of others)."""
        waited, busy = self._waited_s(), _busy_s()
        used, begun = time.process_time(), time.perf_counter()
        done = 0
        while True:
            call()
            done += 1
            took = time.perf_counter() - begun
            if took >= least_s or done == calls:
                break
        used = time.process_time() - used
        others = _busy_s() - busy - used  # in ticks: only the mean of many says something
        after = self._waited_s()
        share = None if waited is None or after is None else (after - waited) / took
        return done, took, used / took / self.threads, share, others / took

    def _waited_s(self) -> float | None:
        """Seconds for which a thread of this process was ready and no CPU was free for it, in all; of one thread its CPU time
        tells it better. None where the kernel does not tell."""
        if self.threads == 1:
            return None
        total = 0
        try:
            for thread in os.listdir("/proc/self/task"):
                with open(f"/proc/self/task/{thread}/schedstat", encoding="ascii") as file:
                    total += int(file.read().split()[1])
        except (OSError, ValueError, IndexError):
            return None
        return total / 1e9


class _Cuda:
    threads: int | None = None

    def __init__(self, torch: Any, device: str) -> None:
        self.torch, self.device, self.kind = torch, device, "cuda"
        self.arrays: dict[int, Any] = {}
        torch.cuda.set_device(device)
        a = torch.randn(4096, 4096, device=device, dtype=torch.float16)
        begun = time.perf_counter()
        while time.perf_counter() - begun < 1.5:  # until the clocks have risen and settled
            for _ in range(20):
                a @ a
            torch.cuda.synchronize()

    def repeat(
        self, call: Any, least_s: float, calls: int | None = None
    ) -> tuple[int, float, float | None, float | None, float]:
        """As on a CPU; the seconds are the device's own, and of the processor nothing is told."""
        cuda = self.torch.cuda
        if calls is None:
            _, once, *_ = self.repeat(call, 0, 1)
            calls = max(1, round(least_s / max(once, 1e-6)))
        first, last = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        first.record()
        for _ in range(calls):
            call()
        last.record()
        last.synchronize()
        return calls, first.elapsed_time(last) / 1000, None, None, 0.0


def _busy_s() -> float:
    """CPU seconds that all processors together have spent on anything."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            fields = [int(field) for field in file.readline().split()[1:9]]
    except (OSError, ValueError):
        return 0.0
    user, nice, system, _idle, _waiting, irq, softirq, steal = fields
    return (user + nice + system + irq + softirq + steal) * TICK


# ------------------------------------------------------------------------------------------------- what is timed


def _round_robin(place: Any, asked: dict[str, Any], deadline: float, tell: Any) -> None:
    """All probes in turn, again and again until the time is over: a passing load hits a repeat of each, not all of one."""
    probes: list[list[Any]] = []
    for build, fields in _wanted(place, asked):
        try:
            call, work, size = build()
        except (RuntimeError, ValueError, TypeError, AttributeError, NotImplementedError, MemoryError) as error:
            tell("failed", why=f"{type(error).__name__}: {error}"[:200].splitlines()[0], threads=place.threads, **fields)
            continue
        number = f"{place.threads or 0}.{len(probes)}"
        tell("probe", probe=number, threads=place.threads, size=size, **fields)
        probes.append([number, call, work, size, build if fields["way"] in LAYOUTS else None, 0])
    for done in range(MOST_REPEATS):
        for probe in probes:
            if time.perf_counter() > deadline and done:
                return
            number, call, work, size, build, again = probe
            calls, took, share, waited, others = place.repeat(call, asked["repeat_s"])
            tell("repeat", probe=number, rate=work * calls / took, cpu=share, waited=waited, others=others, s=took)
            if build is not None and calls > 3 * PER_REPEAT and again < MOST_AGAIN and time.perf_counter() < deadline:
                # so many fit into a repeat: another load was there when the size was chosen, and larger ones may be faster
                probe[1:4] = build()
                probe[5] += 1
                if probe[3] != size:
                    tell("resized", probe=number, size=probe[3])


def _wanted(place: Any, asked: dict[str, Any]) -> Any:
    for dtype in asked["dtypes"]:
        # A library may have a fast way for one layout alone, or one operator a way of its own: in bf16 on a processor without
        # such units, TN was 18 times as fast as NN, and attention twice as fast as TN. All of them, or the peak is far too low.
        for layout in ("NT",) if dtype == "f8" else LAYOUTS:
            yield (
                lambda dtype=dtype, layout=layout: _product(place, asked, dtype, layout),
                {"what": "peak", "dtype": dtype, "way": layout},
            )
        if place.kind == "cpu" and dtype in ("f16", "bf16"):
            yield lambda dtype=dtype: _attention(place, dtype), {"what": "peak", "dtype": dtype, "way": "attention"}
    sizes = {"DRAM": asked["dram"]}
    l2, llc = asked.get("l2", 0), asked.get("llc", 0)
    if place.kind == "cpu" and l2 and llc:
        size = max(2 * l2 * place.threads, llc // 12)
        if 3 * size <= llc * 3 // 4:
            sizes["LLC"] = size  # the cores' own caches do not hold it, and three of them fit into the last level
    for boundary, size in sizes.items():
        for way in ("read", "copy", "in place", "triad"):
            yield (
                lambda way=way, size=size: _memory(place, way, size),
                {"what": "bandwidth", "boundary": boundary, "way": way},
            )


def _product(place: Any, asked: dict[str, Any], dtype: str, layout: str) -> tuple[Any, float, str]:
    """A square matrix product: of the largest size that a repeat has time for, or a smaller one if that was clearly faster."""
    n, best, window = SMALLEST[place.kind], None, asked["repeat_s"]
    while True:
        call = _call(place, dtype, layout, n)
        place.repeat(call, 0, 1)
        times = [place.repeat(call, 0, 1)[1]]
        while len(times) < 8 and sum(times) < window / 2:
            times.append(place.repeat(call, 0, 1)[1])
        took = min(times)  # a load that passes must not choose the size
        rate = 2 * n**3 / took
        if best is None or rate > 0.9 * best[0]:
            best = (max(rate, best[0]) if best else rate, call, n)
        if took * PER_REPEAT > window or n >= LARGEST[place.kind]:
            return best[1], 2.0 * best[2] ** 3, f"{best[2]}"
        n *= 2


def _attention(place: Any, dtype: str) -> tuple[Any, float, str]:
    torch = place.torch
    heads, tokens, width = 8, 512, 64
    kind = {"f16": torch.float16, "bf16": torch.bfloat16}[dtype]
    q, k, v = (torch.randn(1, heads, tokens, width, device=place.device).to(kind) for _ in range(3))
    attention = torch.nn.functional.scaled_dot_product_attention
    attention(q, k, v)
    return (lambda: attention(q, k, v)), 4.0 * heads * tokens * tokens * width, f"{heads}x{tokens}x{width}"


def _call(place: Any, dtype: str, layout: str, n: int) -> Any:
    torch = place.torch
    if dtype == "f8":
        a = torch.randn(n, n, device=place.device).to(torch.float8_e4m3fn)
        b = torch.randn(n, n, device=place.device).to(torch.float8_e4m3fn).t()
        one = torch.ones((), device=place.device)
        return lambda: torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    kinds = {"f64": torch.float64, "f32": torch.float32, "tf32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
    kind = kinds[dtype]
    a = torch.randn(n, n, device=place.device).to(kind)
    b = torch.randn(n, n, device=place.device).to(kind)
    out = torch.empty(n, n, device=place.device, dtype=kind)
    if layout == "NT":
        b = b.t()
    if layout == "TN":
        a = a.t()
    if place.kind == "cpu" or dtype not in ("f32", "tf32"):
        return lambda: torch.mm(a, b, out=out)

    def call() -> None:
        torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
        torch.mm(a, b, out=out)

    return call


def _memory(place: Any, way: str, size: int) -> tuple[Any, float, str]:
    """A kernel over arrays of `size` bytes, and the bytes that it must read and write."""
    torch = place.torch
    n = size // 4
    if size not in place.arrays:
        place.arrays[size] = [torch.ones(n, device=place.device) for _ in range(3)]
    a, b, c = place.arrays[size]
    told = f"{size / 2**20:.4g} MiB"
    if way == "read":
        return (lambda: a.sum()), 4.0 * n, told
    if way == "in place":
        return (lambda: a.mul_(1.0)), 8.0 * n, told
    if way == "copy":
        return (lambda: b.copy_(a)), 8.0 * n, told
    return (lambda: torch.add(a, b, alpha=3.0, out=c)), 12.0 * n, told


if __name__ == "__main__":
    main()
