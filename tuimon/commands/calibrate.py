"""`tuimon calibrate`: measured ceilings of this machine's devices, kept, and used by themselves from then on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

from tuimon.commands.calibration_table import lines, markdown
from tuimon.commands.idle_gpus import Gpu, gpus
from tuimon.commands.options import DONE, FAILED, USAGE, Options, deliver, say
from tuimon.commands.progress import LiveLine, bar
from tuimon.commands.torch_found import Interpreter, interpreter
from tuimon.draw import format as fmt
from tuimon.report.render import to_json
from tuimon.roofline import calibration, hardware
from tuimon.roofline.calibration import Calibration, CalibrationError
from tuimon.roofline.gates import PRESSURE
from tuimon.roofline.measuring import (
    CannotMeasure,
    Measured,
    Outcome,
    asked_of_a_cpu,
    asked_of_a_gpu,
    measure,
    outcomes,
)

SCHEMA = "tuimon.calibration/1"
WAIT_S = 15.0
"""How long a machine that is busy may take to become quiet."""
MATRIX_F64 = ("8.0", "9.0", "10.0")
"""Compute capabilities whose matrix units take f64."""

Refusal = tuple[str, str, int | None, str]
"""(the device's name, what of it, threads, why it was not measured)."""


def run(
    options: Options,
    *,
    show: bool = False,
    python: str | None = None,
    threads: int | None = None,
    device: str | None = None,
) -> int:
    """Measure, keep, and deliver what came of it; `show`: only deliver what is kept.

    Gives 0 where all that was asked for was measured and kept; 1 where something was refused (what was kept before stays).
    """
    if show:
        return _show(options)
    shown, why_none = gpus()
    chosen = _chosen(device, shown, why_none)
    if isinstance(chosen, str):
        say(chosen)
        return USAGE
    found = interpreter(python)
    if isinstance(found, str):
        say(found)
        return FAILED
    say(f"torch of {found.python} ({found.whose})")
    made: list[Calibration] = []
    refused: list[Refusal] = []
    for one in chosen:
        try:
            if isinstance(one, Gpu) or one != "cpu":
                new, not_kept = _of_a_gpu(found, one)
            else:
                new, not_kept = _of_the_cpu(found, threads)
        except CannotMeasure as error:
            name = one.name if isinstance(one, Gpu) else one
            refused.append((name, "everything", threads, str(error)))
            say(f"{name}: not calibrated: {error}; what was kept before stays as it is")
            continue
        refused += not_kept
        if new is None:
            continue
        try:
            made.append(_keep(new))
        except CalibrationError as error:
            refused.append((new.name, "everything", threads, str(error)))
            say(str(error))
    status = _deliver(made, refused, options)
    return FAILED if refused else status


def _chosen(device: str | None, shown: Sequence[Gpu], why_none: str) -> list[Gpu | str] | str:
    """What to measure, or a sentence why that cannot be chosen."""
    if device is None:
        return ["cpu", *shown]
    if device == "cpu":
        return ["cpu"]
    name, _, number = device.partition(":")
    if name != "cuda" or not (number or "0").isdecimal() or len(number) > 9:
        return f"--device {device}: it is cpu or cuda:N"
    for gpu in shown:
        if gpu.index == int(number or 0):
            return [gpu]
    if shown:
        return f"--device {device}: the driver shows {len(shown)} GPU{'s' if len(shown) > 1 else ''}, from cuda:0 on"
    # one that NVML does not show: of another maker, or without the binding
    say(f"that nobody else uses {device} cannot be told ({why_none})")
    return [f"cuda:{int(number or 0)}"]


# ------------------------------------------------------------------------------------------------- measuring


def _of_the_cpu(found: Interpreter, threads: int | None) -> tuple[Calibration | None, list[Refusal]]:
    cpu = hardware.cpu()
    if threads is not None and threads > cpu.cpus:
        raise CannotMeasure(f"{threads} threads on {cpu.cpus} CPU{'s' if cpu.cpus > 1 else ''} would wait for each other")
    _wait_for_quiet()
    asked = asked_of_a_cpu([1, 0] if threads is None else [threads], cpu.l2_bytes, cpu.llc_bytes, cpu.memory_bytes)
    if not cpu.llc_bytes:
        say("the kernel does not tell the size of the last cache: its bandwidth is not measured")
    say(f"measuring {cpu.name}, {cpu.cpus} CPUs, for about {asked['budget_s'] + 0.5:.0f} s; leave the machine alone meanwhile")
    # its own number of threads is what torch takes without being told, as most jobs do
    environment = {name: value for name, value in os.environ.items() if name not in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    with Progress(asked["budget_s"]) as progress:
        measured = measure(found.python, asked, found.path, progress, environment)
    came = outcomes(measured, _now(), lambda of: "matrix", clock_mhz=cpu.clock_mhz)
    new = Calibration(
        key=cpu.key,
        kind="cpu",
        name=f"{cpu.name} ({cpu.cpus} CPUs)",
        memory_bytes=None,
        cache_bytes=cpu.llc_bytes,
        figures=tuple(one.figure for one in came if one.figure is not None),
    )
    return _judged(new, came, measured)


def _of_a_gpu(found: Interpreter, gpu: Gpu | str) -> tuple[Calibration | None, list[Refusal]]:
    known = gpu if isinstance(gpu, Gpu) else None
    device = f"cuda:{known.index}" if known is not None else str(gpu)
    if known is not None:
        why = known.busy()
        if why is not None:
            raise CannotMeasure(why)
    asked = asked_of_a_gpu(device)
    say(
        f"measuring {known.name if known is not None else device} for about {asked['budget_s']:.0f} s; leave it alone meanwhile"
    )
    environment = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # the order in which NVML counts
    with Progress(asked["budget_s"]) as progress:

        def on(kind: str, message: Mapping[str, Any]) -> None:
            progress(kind, message)
            if known is not None and kind == "repeat":
                known.look()

        measured = measure(found.python, asked, found.path, on, environment)
    told = measured.begin
    name = known.name if known is not None else str(told.get("name", device))
    memory = (known.memory_bytes if known is not None else None) or told.get("memory_bytes")
    capability = str(told.get("capability", ""))
    amd = "hip" in str(told.get("torch", "")) or "rocm" in str(told.get("torch", ""))

    def unit_of(dtype: str) -> str:
        takes = dtype not in ("f32", "f64") or amd or (dtype == "f64" and capability in MATRIX_F64)
        return "matrix" if takes else "vector"

    came = outcomes(measured, _now(), unit_of, _memory_of(name), clock_mhz=known.clock_mhz if known is not None else None)
    held = ", ".join(sorted(known.reasons - {"idle"})) if known is not None else ""
    if held:
        say(f"{name}: its clock was held down meanwhile ({held}): these are its ceilings under that limit")
    new = Calibration(
        key=_key(name, memory),
        kind="gpu",
        name=name,
        memory_bytes=memory,
        cache_bytes=told.get("cache_bytes") or None,
        figures=tuple(one.figure for one in came if one.figure is not None),
        driver=known.driver if known is not None else str(told.get("runtime") or ""),
    )
    return _judged(new, came, measured)


def _memory_of(name: str) -> str:
    """How the tables call that GPU's own memory."""
    from tuimon.roofline.machines import find

    machine = find(name, None)
    return machine.memory if machine is not None else "DRAM"


def _key(name: str, memory: int | None) -> str:
    words = "".join(character if character.isalnum() else "-" for character in name.lower() if character.isascii())
    return f"gpu-{'-'.join(filter(None, words.split('-')))}-{round((memory or 0) / 2**30)}gib"[:120]


def _judged(new: Calibration, came: Sequence[Outcome], measured: Measured) -> tuple[Calibration | None, list[Refusal]]:
    """What can be kept of it, and what was refused; told on the way."""
    for of, way, why in measured.failed:
        say(f"{new.name}: {of} {way} is not measured: this torch or device cannot ({why})")
    refused: list[Refusal] = []
    for one in came:
        if one.figure is None:
            refused.append((new.name, one.of, one.threads, one.why))
            say(f"{new.name}: {_what(one.of, one.threads)} refused: {one.why}{_by_cpu_time(one)}")
            if any(verdict.clean for _, verdict in one.verdicts):
                say(f"  its ways: {_ways(one)}")
    waited = hardware.pressure()
    told = "" if waited is None else f", tasks waited for a CPU in {waited:.0f} % of the last ten seconds"
    say(f"{new.name}: measured in {measured.took_s:.1f} s; load {os.getloadavg()[0]:.1f}{told}")
    if not new.figures:
        say(f"{new.name}: nothing was kept; what was kept before stays as it is")
        return None, refused
    return new, refused


def _what(of: str, threads: int | None) -> str:
    return of if threads is None else f"{of} with {threads} thread{'s' if threads > 1 else ''}"


def _ways(one: Outcome) -> str:
    """What its repeats were like, for whoever wonders why."""
    unit = "FLOP/s" if one.what == "peak" else "B/s"
    found = []
    for probe, verdict in one.verdicts:
        cv = "" if verdict.cv is None else f", cv {verdict.cv:.0%}"
        median = fmt.si(verdict.median, unit)
        found.append(f"{probe.way} {probe.size}: {median}, {verdict.clean} of {verdict.repeats} clean{cv}")
    return "; ".join(found)


def _by_cpu_time(one: Outcome) -> str:
    """What arithmetic alone would give, where the threads had only a part of the CPU."""
    rates = [verdict.by_cpu_time for _, verdict in one.verdicts if verdict.by_cpu_time]
    if one.what != "peak" or one.threads != 1 or not rates:
        return ""  # several threads spend CPU time on waiting for each other
    return f" (by CPU time about {fmt.si(max(rates), 'FLOP/s')}; not kept)"


def _wait_for_quiet() -> None:
    """Until the CPUs are not fought for. Raises CannotMeasure where that does not come in time."""
    began = time.monotonic()
    told = False
    while True:
        waited = hardware.pressure()
        if waited is None or waited <= PRESSURE:
            return
        if not told:
            told = True
            say(
                f"tasks waited for a CPU in {waited:.0f} % of the last ten seconds: waiting for the machine to become quiet, "
                f"{WAIT_S:.0f} s at most (Ctrl-C ends it)"
            )
        if time.monotonic() - began > WAIT_S:
            raise CannotMeasure(
                f"another load has the CPU: tasks waited for one in {waited:.0f} % of the last ten seconds "
                f"(at most {PRESSURE:.0f} % may be); try again when the machine is quiet"
            )
        time.sleep(0.5)


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _keep(new: Calibration) -> Calibration:
    kept, problems = calibration.load_all()
    for problem in problems:
        say(problem)
    older = next((one for one in kept if one.key == new.key), None)
    whole = older.joined(new) if older is not None else new
    say(f"kept in {calibration.keep(whole)}")
    return new


class Progress(LiveLine):
    """What is going on, on stderr: one line that changes on a terminal, else a line for each part."""

    def __init__(self, budget_s: float) -> None:
        """`budget_s`: how long the child may take."""
        super().__init__()
        self._budget_s = budget_s
        self._began = time.monotonic()
        self._probes: dict[str, str] = {}
        self._best: dict[str, float] = {}

    def __enter__(self) -> Progress:
        self._bar("starting Python with torch")
        return self

    def __call__(self, kind: str, message: Mapping[str, Any]) -> None:
        """Take in a line of the child's."""
        if kind == "begin":
            self._say(f"torch {message.get('torch')} is there after {message.get('import_s', 0):.1f} s")
        elif kind == "set":
            threads = message.get("threads")
            self._say(f"with {threads} thread{'s' if threads != 1 else ''}")
        elif kind == "probe":
            of = message.get("dtype") or message.get("boundary")
            self._probes[str(message["probe"])] = f"{of} {message['way']}"
        elif kind == "repeat" and self.live:
            number, rate = str(message["probe"]), float(message["rate"])
            name = self._probes.get(number, "")
            self._best[number] = max(rate, self._best.get(number, 0.0))
            unit = "B/s" if name[:3] in ("DRA", "LLC", "HBM") else "FLOP/s"
            self._bar(f"{name} {fmt.si(rate, unit)} (best {fmt.si(self._best[number], unit)})")

    def _bar(self, text: str) -> None:
        took = time.monotonic() - self._began
        left = max(0.0, self._budget_s - took)
        self.show(f"{bar(took / self._budget_s)} {left:3.0f} s left  {text}")

    def _say(self, text: str) -> None:
        self.clear()
        say(text)


# ------------------------------------------------------------------------------------------------- what is delivered


def _show(options: Options) -> int:
    kept, problems = calibration.load_all()
    for problem in problems:
        say(problem)
    if not kept:
        say(f"nothing is calibrated here ({calibration.folder()}); `tuimon calibrate` does it")
        if options.format != "json":
            return FAILED
    return _deliver(kept, [], options) or (DONE if kept else FAILED)


def _deliver(made: Sequence[Calibration], refused: Sequence[Refusal], options: Options) -> int:
    if options.format == "json":
        named = ("device", "of", "threads", "why")
        text = to_json(
            {
                "schema": SCHEMA,
                "folder": str(calibration.folder()),
                "devices": [_as_json(one) for one in made],
                "refused": [dict(zip(named, one, strict=True)) for one in refused],
            }
        )
        return deliver(text, options.output)
    write: Callable[[Calibration], list[str]] = markdown if options.format == "md" else lines
    text = "\n\n".join("\n".join(write(one)) for one in made)
    return deliver(f"{text}\n", options.output) if made else DONE


def _as_json(one: Calibration) -> dict[str, Any]:
    figures = [{**asdict(figure), "quality": figure.quality} for figure in one.figures]
    return {**asdict(one), "figures": figures}
