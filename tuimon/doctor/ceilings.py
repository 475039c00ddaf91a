"""The ceilings that are in force here: what the roofline would hold this machine's devices against."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tuimon.doctor.checks import Check, note, ok
from tuimon.roofline import hardware
from tuimon.roofline.inforce import known

CALIBRATE = "tuimon calibrate"


def checks(gpus: Sequence[str] = (), extra: Path | None = None) -> list[Check]:
    """Of the processor, and of the GPUs of these names. `extra`: the file of --ceilings, which can be used."""
    figures = known(extra)
    cpu = hardware.cpu()
    found = [note("ceilings", "files", problem) for problem in figures.problems]
    if figures.host is None:
        what = f"{cpu.name}, {cpu.cpus} CPUs: not calibrated, so the roofline of a job on it has no roof"
        found.append(note("ceilings", "CPU", what, CALIBRATE))
    else:
        kept = next(one for one in figures.calibrations if one.key == cpu.key)
        threads = " and ".join(str(one) for one in figures.host.threads)
        dates = sorted(figure.date[:10] for figure in kept.figures)
        told = f"{kept.name}: calibrated on {dates[-1]} with {threads} thread{'' if threads == '1' else 's'}"
        found.append(ok("ceilings", "CPU", told))
    for name in dict.fromkeys(gpus):
        machine = figures.of_name(name)
        calibrated = any(one.name == name for one in figures.calibrations)
        if calibrated:
            found.append(ok("ceilings", name, "calibrated"))
        elif machine is not None:
            found.append(ok("ceilings", name, f"{machine.name}, by its maker's figures and what the driver tells"))
        else:
            what = "no maker's figures: only what the driver tells of its memory and cores"
            found.append(note("ceilings", name, what, f"{CALIBRATE}, or declare them: --ceilings FILE"))
    if figures.own:
        found.append(ok("ceilings", "own", f"declared: {', '.join(one.name for one in figures.own[:8])}"))
    return found
