"""Running the calibration's child, and what of its repeats is worth keeping."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuimon.roofline.calibration import Figure, Way
from tuimon.roofline.gates import OTHERS, Repeat, Verdict, judge, others

PROBE = Path(__file__).with_name("probe.py")
BUDGET_S = 13.0
"""Of the child, from its start, the import of torch included; on a CPU the whole command takes 15 s."""
REPEAT_S = 0.03
CPU_DTYPES = ("f32", "bf16", "f64", "f16")
GPU_DTYPES = ("bf16", "f16", "tf32", "f32", "f64", "f8")
_DRAM_LEAST = 128 << 20
_GRACE_S = 30.0
"""How much longer than its budget the child may take: a loaded machine imports torch slowly."""
_MOST_LINE = 1 << 16


class CannotMeasure(Exception):
    """Nothing was measured; the message is a sentence with the reason."""


@dataclass(slots=True)
class Probe:
    """One thing that is timed, and its repeats."""

    what: str
    of: str
    way: str
    size: str
    threads: int | None
    repeats: list[Repeat] = field(default_factory=list)


@dataclass(slots=True)
class Measured:
    """What the child told."""

    begin: Mapping[str, Any] = field(default_factory=dict)
    probes: list[Probe] = field(default_factory=list)
    failed: list[tuple[str, str, str]] = field(default_factory=list)
    """(dtype or boundary, way, why): what this torch or device cannot do."""
    took_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """A figure with the verdicts on its ways; `figure` is None where it was refused, and `why` says why."""

    what: str
    of: str
    threads: int | None
    verdicts: tuple[tuple[Probe, Verdict], ...]
    figure: Figure | None
    why: str


def asked_of_a_cpu(threads: Sequence[int], l2: int | None, llc: int | None, available: int | None) -> dict[str, Any]:
    """What the child is asked for. `threads`: 0 is torch's own choice; sizes in bytes, None where they are not known.

    Raises CannotMeasure where there is not enough memory for arrays that no cache holds.
    """
    dram = max(_DRAM_LEAST, 4 * (llc or 0))
    if available is not None and 4 * dram > available:
        dram = available // 4
        if dram < 2 * (llc or 0) or dram < _DRAM_LEAST // 4:
            raise CannotMeasure(
                f"{available >> 20} MiB of memory are free, which is too little for arrays that the caches do not hold"
            )
    return {
        "device": "cpu", "threads": list(threads), "budget_s": BUDGET_S, "repeat_s": REPEAT_S, "dram": dram,
        "l2": l2 or 0, "llc": llc or 0, "dtypes": CPU_DTYPES,
    }  # fmt: skip


def asked_of_a_gpu(device: str) -> dict[str, Any]:
    """As above, of a GPU: "cuda:0"."""
    return {"device": device, "threads": [], "budget_s": 25.0, "repeat_s": 0.05, "dram": 1 << 30, "dtypes": GPU_DTYPES}


def measure(
    python: str,
    asked: Mapping[str, Any],
    path: Sequence[str] = (),
    on: Callable[[str, Mapping[str, Any]], None] = lambda kind, message: None,
    environment: Mapping[str, str] | None = None,
) -> Measured:
    """Run the child in the interpreter `python` and take in what it tells; `on(kind, message)` is called for each line.

    `path`: folders where it finds torch. Raises CannotMeasure, with the reason.
    """
    measured, by_number = Measured(), {}
    command = [python, "-I", str(PROBE), json.dumps({**asked, "path": list(path)})]
    ended = False
    with tempfile.TemporaryFile() as errors:
        try:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=environment)
        except OSError as error:
            raise CannotMeasure(f"{python} cannot be started: {error.strerror or error}") from None
        try:
            for message in _messages(child, asked["budget_s"] + _GRACE_S):
                kind = message.get("k")
                if kind == "lacking":
                    raise CannotMeasure(f"{python} has no torch that can be used ({message.get('why')})")
                if kind == "begin":
                    measured.begin = message
                elif kind == "probe":
                    of = message.get("dtype") or message.get("boundary") or ""
                    probe = Probe(message["what"], of, message["way"], message["size"], message["threads"])
                    by_number[message["probe"]] = probe
                    measured.probes.append(probe)
                elif kind == "repeat" and message.get("probe") in by_number:
                    by_number[message["probe"]].repeats.append(
                        Repeat(message["rate"], message["cpu"], message["others"], message["s"], message["waited"])
                    )
                elif kind == "resized" and message.get("probe") in by_number:
                    by_number[message["probe"]].size = message["size"]
                    by_number[message["probe"]].repeats.clear()
                elif kind == "failed":
                    of = message.get("dtype") or message.get("boundary") or ""
                    measured.failed.append((of, message["way"], message["why"]))
                elif kind == "end":
                    measured.took_s, ended = message["took_s"], True
                on(str(kind), message)
            status = child.wait()
        except (KeyError, TypeError) as error:
            raise CannotMeasure(f"the measuring process told something that makes no sense: {error!r}") from None
        finally:
            _end(child)
        if not ended:
            errors.seek(max(0, errors.seek(0, os.SEEK_END) - 2_000))
            last = errors.read().decode("utf-8", "replace").strip().splitlines()
            why = f": {last[-1][:200]}" if last else ""
            raise CannotMeasure(f"the measuring process ended early, with status {status}{why}")
    return measured


def _messages(child: subprocess.Popen[bytes], most_s: float) -> Iterator[dict[str, Any]]:
    """The lines of the child, as they come. Raises CannotMeasure where it does not come to its end in time."""
    assert child.stdout is not None
    deadline = time.monotonic() + most_s
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                raise CannotMeasure(f"the measuring process has not ended within {most_s:.0f} s: the machine is too busy")
            data = os.read(child.stdout.fileno(), 1 << 16)
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > _MOST_LINE:
                raise CannotMeasure("the measuring process told something that makes no sense: a line without an end")
            for line in lines:
                with contextlib.suppress(ValueError):
                    message = json.loads(line)
                    if isinstance(message, dict):
                        yield message


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.kill()
    child.wait()
    if child.stdout is not None:
        child.stdout.close()


# ------------------------------------------------------------------------------------------------- what is kept


def outcomes(
    measured: Measured, date: str, unit_of: Callable[[str], Any], main_memory: str = "DRAM", clock_mhz: float | None = None
) -> list[Outcome]:
    """For each figure what came of it. One is kept only when all of its ways are clean: the best of some would be too low.

    `unit_of` tells which unit does the products of a dtype, `main_memory` how the device's own memory is called.
    """
    groups: dict[tuple[int | None, str, str], list[Probe]] = {}
    for probe in measured.probes:
        groups.setdefault((probe.threads, probe.what, probe.of), []).append(probe)
    found = []
    for (threads, what, of), probes in groups.items():
        of = main_memory if of == "DRAM" else of
        verdicts = tuple((probe, judge(probe.repeats)) for probe in probes)
        why = _why_not(what, verdicts)
        figure = None
        if not why:
            best, verdict = max(verdicts, key=lambda pair: pair[1].best or 0.0)
            figure = Figure(
                what="peak" if what == "peak" else "bandwidth",
                of=of,
                value=verdict.best or 0.0,
                ways=tuple(_way(probe, one) for probe, one in verdicts),
                date=date,
                torch=str(measured.begin.get("torch", "")),
                unit=unit_of(of) if what == "peak" else "matrix",
                threads=best.threads,
                spread=verdict.spread or 0.0,
                clock_mhz=clock_mhz,
            )
        found.append(Outcome(what, of, threads, verdicts, figure, why))
    return found


def _why_not(what: str, verdicts: Sequence[tuple[Probe, Verdict]]) -> str:
    refused = [(probe, verdict) for probe, verdict in verdicts if verdict.best is None]
    if refused:
        probe, verdict = refused[0]
        more = f" (and {len(refused) - 1} more of its ways)" if len(refused) > 1 else ""
        return f"{probe.way}: {verdict.why}{more}"
    if what == "bandwidth":
        used = others([repeat for probe, _ in verdicts for repeat in probe.repeats])
        if used > OTHERS:
            return f"other work used {used:.1f} CPUs meanwhile (at most {OTHERS:g} may: they share the memory)"
    return ""


def _way(probe: Probe, verdict: Verdict) -> Way:
    return Way(
        way=probe.way,
        size=probe.size,
        best=verdict.best or 0.0,
        median=verdict.median,
        cv=verdict.cv or 0.0,
        clean=verdict.clean,
        repeats=verdict.repeats,
    )
