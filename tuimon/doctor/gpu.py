"""The GPUs, as far as NVML shows them; the driver gets so much time and no more."""

from __future__ import annotations

import contextlib
from typing import Any

from tuimon.doctor.checks import Check, TooSlow, note, ok, problem, within
from tuimon.sources import nvml_words as words
from tuimon.sources.nvml import NoBinding, binding

LIMIT_S = 5.0


def checks(limit_s: float = LIMIT_S) -> list[Check]:
    """The binding, the driver and the devices."""
    try:
        nvml = binding()
    except NoBinding as error:
        return [note("GPU", "NVML", f"no GPU panel: {error}")]
    try:
        driver, devices = within(limit_s, lambda: _ask(nvml))
    except TooSlow:
        return [
            problem(
                "GPU",
                "NVML",
                f"the NVIDIA driver has not answered within {limit_s:g} s; tuimon goes on without it",
                "see dmesg for an XID; nvidia-smi will hang as well",
            )
        ]
    except nvml.NVMLError as error:
        return [note("GPU", "NVML", f"no GPU panel: {words.cannot_start(error.value)}")]
    except Exception as error:  # noqa: BLE001 - whatever a binding raises, it is a finding
        return [problem("GPU", "NVML", f"reading NVML failed: {type(error).__name__}: {error}")]
    count = f"{len(devices)} GPU{'' if len(devices) == 1 else 's'}"
    if not devices:
        return [note("GPU", "driver", f"NVIDIA {driver}, but no GPU for this user or container", "docker run --gpus all ..")]
    found = [ok("GPU", "driver", f"NVIDIA {driver}, {count}")]
    for index, (name, why) in enumerate(devices):
        found.append(problem("GPU", f"GPU {index}", why) if why else ok("GPU", f"GPU {index}", name))
    return found


def _ask(nvml: Any) -> tuple[str, list[tuple[str, str | None]]]:
    """The driver's version, and (name, why it cannot be used) of each device."""
    nvml.nvmlInit()
    try:
        devices: list[tuple[str, str | None]] = []
        for index in range(int(nvml.nvmlDeviceGetCount())):
            try:
                name = nvml.nvmlDeviceGetName(nvml.nvmlDeviceGetHandleByIndex(index))
                devices.append((_text(name), None))
            except nvml.NVMLError as error:
                devices.append(("", words.no_value(error.value)))
        return _text(nvml.nvmlSystemGetDriverVersion()), devices
    finally:
        with contextlib.suppress(nvml.NVMLError):
            nvml.nvmlShutdown()


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
