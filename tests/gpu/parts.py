"""The parts of the check on a real device: `python -m tests.gpu.parts PART` prints its rows, one JSON list a line.

Each is a process of its own, so that one which hangs in the driver costs its own time and no more.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.gpu import agree
from tests.gpu.agree import FIELDS, Row
from tests.gpu.training import PROGRAM
from tuimon import events as ev
from tuimon.sources.nvml.source import NvmlSource

ROUNDS, ROUND_S = 5, 2.2
"""Longer than the slow values are kept."""
LOAD = """
import time, torch
x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
print("begins", flush=True)
until = time.monotonic() + 60
while time.monotonic() < until:
    for _ in range(20): y = x @ x
    torch.cuda.synchronize()
"""


@contextmanager
def read() -> Iterator[list[ev.Event]]:
    """What the source of GPUs puts while somebody looks; it may still be starting."""
    got: list[ev.Event] = []
    source = NvmlSource(got.append, os.getpid(), pcie=False)
    source.start()
    try:
        yield got
    finally:
        source.stop()


def until(condition: Callable[[], Any], seconds: float) -> bool:
    """Whether it comes true in time."""
    pause, deadline = threading.Event(), time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        pause.wait(0.02)
    return True


def samples(got: list[ev.Event]) -> list[ev.GpuSampled]:
    """The readings of the first GPU."""
    return [one for one in got if isinstance(one, ev.GpuSampled) and one.index == 0]


def none_come(got: list[ev.Event]) -> bool:
    """Whether it has been said that there will be none."""
    return any(isinstance(one, ev.GpuUnavailable) for one in got)


def why_none(got: list[ev.Event]) -> str:
    """Why there is none."""
    return next((one.why for one in got if isinstance(one, ev.GpuUnavailable)), "NVML did not answer in time")


def values(_device: str) -> Iterator[Row]:
    """Each reading lies between what nvidia-smi says right before and right behind it."""
    if shutil.which("nvidia-smi") is None:
        yield Row("values", "nvidia-smi", "skipped", "there is no nvidia-smi")
        return
    words = ["nvidia-smi", f"--query-gpu={','.join(field.smi for field in FIELDS)}", "--format=csv,noheader,nounits"]

    def smi() -> dict[str, float | str | None]:
        return agree.smi(subprocess.run(words, capture_output=True, text=True, timeout=20, check=True).stdout)[0]

    rounds: list[agree.Around] = []
    with read() as got:
        until(lambda: samples(got), 10)
        for _ in range(ROUNDS):
            before, n = smi(), len(samples(got))
            if not until(lambda n=n: len(samples(got)) > n, ROUND_S + 2):  # type: ignore[misc]
                yield Row("values", "readings", "failed", why_none(got))
                return
            rounds.append((before, samples(got)[n], smi()))
            time.sleep(ROUND_S)
    yield from agree.agreements(rounds)
    took = [one.took_s for _, one, _ in rounds if one.took_s is not None]
    yield Row("values", "NVML's time for a reading", "ok", f"{max(took, default=0.0) * 1e3:.2f} ms at most of {len(took)}")
    for what, why in rounds[-1][1].missing:
        yield Row("values", what, "skipped", f"not told: {why}")


def activity(_device: str) -> Iterator[Row]:
    """GPM at rest and at work."""
    with read() as got:
        until(lambda: len(samples(got)) >= 4, 12)
        idle = samples(got)[1:]
        if not idle:
            yield Row("activity", "GPM", "skipped", why_none(got))
            return
        with subprocess.Popen([sys.executable, "-c", LOAD], stdout=subprocess.PIPE) as load:
            try:
                assert load.stdout is not None
                if load.stdout.readline() != b"begins\n":
                    yield Row("activity", "the load", "failed", "torch could not use the GPU")
                    return
                n = len(samples(got))
                until(lambda: len(samples(got)) >= n + 6, 12)
            finally:
                load.kill()
        yield from agree.activity(idle, samples(got)[n + 1 :])


def xid(_device: str) -> Iterator[Row]:
    """The driver takes the registration for XID events; none is provoked."""
    with read() as got:
        until(lambda: samples(got) or none_come(got), 10)
        if not samples(got):
            yield Row("xid", "registration", "skipped", why_none(got))
            return
        refused = until(lambda: _refused(got), 3)
        waits = any(thread.name == "tuimon-nvml-xid" for thread in threading.enumerate())
    if refused:
        yield Row("xid", "registration", "failed", str(_refused(got)))
    else:
        yield Row("xid", "registration", "ok" if waits else "failed", f"its thread {'waits' if waits else 'is not there'}")
    seen = [one.xid for one in got if isinstance(one, ev.XidSeen)]
    yield Row("xid", "while it was looked", "ok", f"XID {seen}" if seen else "none came")


def _refused(got: list[ev.Event]) -> str | None:
    return next((one.why for one in got if isinstance(one, ev.NotAvailable) and one.what == "gpu xid"), None)


def training(device: str) -> Iterator[Row]:
    """The device's clock, a window, the pool and the GPU's name, of compiled bf16 training steps."""
    from tests.support import hooked

    with tempfile.TemporaryDirectory() as folder, read() as got:
        place = Path(folder)
        (place / "windows").mkdir()
        backend = "inductor" if device != "cpu" else "aot_eager"
        outcome = hooked.run(PROGRAM.format(device=device, backend=backend, folder=str(place / "windows")), place)
        yield from told(outcome.values, outcome.model, outcome.events, samples(got))


def told(truth: dict[str, Any], model: Any, events: list[ev.Event], readings: list[ev.GpuSampled]) -> Iterator[Row]:
    """What the job says of itself beside what tuimon has of it."""
    closed = [one for one in events if isinstance(one, ev.WindowChanged) and one.state == "closed"]
    kernels = [one for one in events if isinstance(one, ev.KernelsSeen)]
    ends = [f"{one.state}: {one.why}" for one in events if isinstance(one, ev.WindowChanged)]
    if closed and kernels:
        what = f"{closed[-1].steps} steps, {len(kernels[-1].rows)} kinds of kernels, on {kernels[-1].device or 'the CPU'}"
        cost = "" if closed[-1].job_s is None else f"; the job stood still for {closed[-1].job_s * 1e3:.1f} ms"
        yield Row("training", "window", "ok", what + cost)
    else:
        yield Row("training", "window", "failed", ends[-1] if ends else "no word of it came")
    stats = truth.get("stats")
    if stats is None:
        for name in ("device clock", "pool", "uuid", "listed"):
            yield Row("training", name, "skipped", "the job ran on the CPU")
        return
    timed = [one for one in model.regions.values() if one.device.n]
    device_ms = sum(one.device.total_ns / one.device.n for one in timed) / 1e6
    yield agree.nearly("training", "device clock: regions of a step", device_ms or None, truth["step_ms"], 0.4, 1.15, " ms")
    pool = model.surroundings.pools.get(0)
    if pool is None:
        why = model.coverage.instruments.get("memory pool", "nothing was told")
        yield Row("training", "pool", "failed", why)
        return
    pairs = {
        "allocated_bytes.all.current": pool.allocated_bytes, "reserved_bytes.all.current": pool.reserved_bytes,
        "active_bytes.all.current": pool.active_bytes, "inactive_split_bytes.all.current": pool.inactive_split_bytes,
        "allocated_bytes.all.peak": pool.allocated_peak_bytes, "num_alloc_retries": pool.retries, "num_ooms": pool.ooms,
    }  # fmt: skip
    for name, ours in pairs.items():
        yield Row("training", f"pool: {name}", "ok" if ours == stats[name] else "failed", f"tuimon {ours}, torch {stats[name]}")
    uuids = {one.uuid for one in readings if one.uuid}
    here = [uuid for uuid in uuids if pool.uuid is not None and agree.same_uuid(uuid, pool.uuid)]
    same = here and agree.same_uuid(here[0], truth["uuid"])
    yield Row("training", "uuid", "ok" if same else "failed", f"torch {truth['uuid']}, hook {pool.uuid}, NVML {sorted(uuids)}")
    listed = {one.pid for sample in readings for one in sample.processes}
    if truth["pid"] in listed:
        yield Row("training", "listed", "ok", f"the driver lists the job's pid {truth['pid']}")
    else:
        where = "a container: these are the host's pids" if listed else "it lists none"
        yield Row("training", "listed", "skipped", f"pid {truth['pid']} is not in the driver's list {sorted(listed)} ({where})")


def overhead(device: str) -> Iterator[Row]:
    """What the hook costs a compiled bf16 step on the device, rounds without and with it in turn."""
    import torch

    from tests.bench.hook_cost import compare, compile_ratio
    from tuimon.hook import timers
    from tuimon.hook.outbox import Outbox

    cuda = device != "cpu"
    rounds = 8 if cuda else 2
    for name, wanted_s, reach in (("a step of 1 ms", 1e-3, 1.02), ("a step of 10 ms", 1e-2, 1.005)):
        step = _step(torch, device, wanted_s)
        base, by_wall, _ = compare(step, rounds, max(10, round((0.5 if cuda else 0.1) / wanted_s)))
        yield agree.overhead(f"{name} ({base * 1e3:.2f} ms here)", by_wall, reach)
    costs = sorted(timers.cost_of_a_call(Outbox) for _ in range(25))
    yield Row("overhead", "one timed region call", "ok" if costs[12] <= 1000 else "failed", f"+{costs[12]:.0f} ns, reach 1000")
    yield agree.overhead("compiling (aot_eager, CPU time)", compile_ratio(8 if cuda else 2), 1.03)
    with read() as got:
        until(lambda: samples(got), 10)
        if samples(got):
            before = time.process_time()
            time.sleep(5)
            part = (time.process_time() - before) / 5
            good = part <= 0.05
            yield Row(
                "overhead", "reading the GPUs once a second", "ok" if good else "failed", f"{part:.2%} of a core, reach 5%"
            )
        else:
            yield Row("overhead", "reading the GPUs once a second", "skipped", why_none(got))


def _step(torch: Any, device: str, wanted_s: float) -> Callable[[], None]:
    """A training step of a compiled bf16 network that takes about so long, its end waited for."""
    cuda = device != "cpu"
    width = 2048 if cuda else 64
    layer = torch.nn.Linear(width, width, bias=False).to(device, torch.bfloat16)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.0)
    compiled = torch.compile(layer, backend="inductor" if cuda else "aot_eager")
    x = torch.randn(width, width, device=device, dtype=torch.bfloat16)
    repeats = 0

    def step() -> None:
        compiled(x).float().square().mean().backward()
        y = x
        for _ in range(repeats):
            y = torch.mm(x, x)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if cuda:
            torch.cuda.synchronize()
        assert y is not None

    def took(times: int) -> float:
        begin = time.perf_counter()
        for _ in range(times):
            step()
        return (time.perf_counter() - begin) / times

    took(10)
    least = took(20)
    repeats = 100
    each = (took(20) - least) / 100
    repeats = max(0, round((wanted_s - least) / each)) if each > 0 else 0
    return step


PARTS: dict[str, tuple[Callable[[str], Iterator[Row]], float]] = {
    "values": (values, 45.0), "activity": (activity, 50.0), "xid": (xid, 20.0), "training": (training, 90.0),
    "overhead": (overhead, 85.0),
}  # fmt: skip
"""Name -> what it does, and seconds after which it is ended: under five minutes in all."""


def main() -> int:
    """One part."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.parts", description=__doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    options = parser.parse_args()
    for row in PARTS[options.part][0](options.device):
        if options.device == "cpu" and row.part == "overhead" and row.state != "skipped":  # small, and on whatever machine
            row = row._replace(state="skipped", what=f"not judged on the CPU: {row.what}")
        sys.stdout.write(json.dumps(row) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
