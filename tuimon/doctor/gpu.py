"""The GPUs, as far as NVML shows them; the driver gets so much time and no more."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tuimon.doctor.checks import Check, TooSlow, note, ok, problem, within
from tuimon.sources import gpu_use
from tuimon.sources.nvml import words
from tuimon.sources.nvml.source import NoBinding, binding

LIMIT_S = 5.0
XID = 8
"""nvmlEventTypeXidCriticalError."""
VGPU = 2
"""NVML_GPU_VIRTUALIZATION_MODE_VGPU."""
NO_GPU = frozenset({9, 12, words.FUNCTION_NOT_FOUND})
"""Failures that are usual on a machine without a GPU: the driver is not loaded, not there, or a stub of CUDA's is."""


@dataclass(slots=True)
class Seen:
    """What the driver has told."""

    driver: str
    devices: list[tuple[str, str | None]] = field(default_factory=list)
    """(name, why it cannot be used) of each."""
    told: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    """What was asked of the GPUs -> answer -> indices."""


def checks(limit_s: float = LIMIT_S) -> list[Check]:
    """The binding, the driver, the devices, and what these tell."""
    try:
        nvml = binding()
    except NoBinding as error:
        return [note("GPU", "NVML", f"no GPU panel: {error}")]
    try:
        seen = within(limit_s, lambda: _ask(nvml))
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
        return [_no_driver(int(error.value))]
    except Exception as error:  # noqa: BLE001 - whatever a binding raises, it is a finding
        return [
            problem(
                "GPU",
                "NVML",
                f"reading NVML failed: {type(error).__name__}: {error}",
                "pip install --upgrade nvidia-ml-py: its library and the driver's have to fit each other",
            )
        ]
    count = f"{len(seen.devices)} GPU{'' if len(seen.devices) == 1 else 's'}"
    if not seen.devices:
        what = f"NVIDIA {seen.driver}, but no GPU for this user or container"
        return [note("GPU", "driver", what, "docker run --gpus all .., or ask for a GPU where the job was submitted")]
    found = [ok("GPU", "driver", f"NVIDIA {seen.driver}, {count}")]
    for index, (name, why) in enumerate(seen.devices):
        found.append(problem("GPU", f"GPU {index}", why) if why else ok("GPU", f"GPU {index}", name))
    if words.is_wsl():
        found.append(
            note("GPU", "WSL", "under WSL the driver tells neither processes nor clock reasons", "nvidia-smi on Windows")
        )
    return [*found, *_telling(seen)]


def _no_driver(code: int) -> Check:
    """NVML did not start: what is the matter, and what helps."""
    if words.start_kind(code) == "no driver" and words.is_wsl():
        step = "update the NVIDIA driver of Windows; /usr/lib/wsl/lib has to be where the loader looks"
        return note("GPU", "NVML", "no GPU panel: WSL, and no libnvidia-ml.so.1 of the driver of Windows", step)
    what, _, step = words.cannot_start(code).partition(": ")
    told = note if code in NO_GPU else problem
    return told("GPU", "NVML", f"no GPU panel: {what}", step or None)


def _telling(seen: Seen) -> list[Check]:
    """A line for each thing that was asked and each answer, with the GPUs that gave it."""
    found = []
    for name, by_answer in seen.told.items():
        for answer, indices in by_answer.items():
            other = problem if name == "ECC" else note
            state, what, step = _MEANING.get((name, answer), (other, answer, None))
            which = "" if len(indices) == len(seen.devices) else f"GPU {_ranges(indices)}: "
            found.append(state("GPU", name, f"{which}{what}", *([step] if step else [])))
    return found


_MEANING: dict[tuple[str, str], tuple[Callable[..., Check], str, str | None]] = {
    ("virtual", "vgpu"): (
        note,
        "a virtual GPU: SM activity, ECC and PCIe are its host's to read",
        None,
    ),
    ("MIG", "on"): (
        note,
        "divided by MIG: utilization is told of none; memory is of each part, and SM activity on Hopper and newer",
        "nvidia-smi -L lists the parts; a job names its own by CUDA_VISIBLE_DEVICES=MIG-..",
    ),
    ("activity", "yes"): (ok, "SM, tensor and memory activity are told (GPM)", None),
    ("activity", "no"): (
        note,
        "no SM or tensor activity: GPM is for Hopper and newer. Utilization says that a kernel was running, not how busy",
        None,
    ),
    ("processes", "yes"): (ok, "the processes on it are told", None),
    ("XID", "yes"): (ok, "XID errors are told as they come", None),
    ("XID", "no"): (note, "the driver tells no XID errors here", "dmesg | grep -i xid, on the host"),
}
"""(what was asked, answer) -> how it is told. Any other answer is the driver's refusal, and told as it is."""


def _ask(nvml: Any) -> Seen:
    """All of it. Raises what the binding raises where NVML does not start."""
    nvml.nvmlInit()
    seen = Seen("")
    try:
        seen.driver = _text(nvml.nvmlSystemGetDriverVersion())
        for index in range(int(nvml.nvmlDeviceGetCount())):
            _look(nvml, index, seen)
        return seen
    finally:
        # with a GPU that is gone the driver may hang or crash in its own shutdown
        if not any(why in _GONE for _, why in seen.devices):
            with contextlib.suppress(nvml.NVMLError):
                nvml.nvmlShutdown()


def _look(nvml: Any, index: int, seen: Seen) -> None:
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        seen.devices.append((_text(nvml.nvmlDeviceGetName(handle)), None))
    except nvml.NVMLError as error:
        seen.devices.append(("", words.no_value(error.value)))
        return
    for name, read in _QUESTIONS.items():
        answer = _answer(nvml, handle, read)
        if answer in _GONE:  # its handle must not be used again
            seen.devices[index] = (seen.devices[index][0], answer)
            return
        if answer is not None:
            seen.told.setdefault(name, {}).setdefault(answer, []).append(index)


_GONE = frozenset(words.no_value(code) for code in words.LOST)


def _answer(nvml: Any, handle: Any, read: Callable[[Any, Any], str | None]) -> str | None:
    try:
        return read(nvml, handle)
    except nvml.NVMLError as error:
        return None if error.value == words.NOT_SUPPORTED else words.no_value(error.value)
    except AttributeError:
        return "this nvidia-ml-py is too old to ask for it"


def _virtual(nvml: Any, handle: Any) -> str | None:
    return "vgpu" if int(nvml.nvmlDeviceGetVirtualizationMode(handle)) == VGPU else None


def _mig(nvml: Any, handle: Any) -> str | None:
    return "on" if nvml.nvmlDeviceGetMigMode(handle)[0] else None


def _gpm(nvml: Any, handle: Any) -> str:
    try:
        return "yes" if nvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice else "no"
    except nvml.NVMLError as error:
        if error.value in (words.NOT_SUPPORTED, words.FUNCTION_NOT_FOUND):
            return "no"
        raise


def _errors(nvml: Any, handle: Any) -> str | None:
    counted = int(nvml.nvmlDeviceGetTotalEccErrors(handle, 1, 0))  # uncorrected, since the driver was loaded
    if not counted or counted >= 1 << 63:
        return None
    return f"{counted} memory error{'s' if counted > 1 else ''} that ECC could not correct: have the GPU reset"


def _processes(nvml: Any, handle: Any) -> str:
    nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    return "yes"


def _xid(nvml: Any, handle: Any) -> str:
    return "yes" if int(nvml.nvmlDeviceGetSupportedEventTypes(handle)) & XID else "no"


_QUESTIONS: dict[str, Callable[[Any, Any], str | None]] = {
    "virtual": _virtual, "MIG": _mig, "activity": _gpm, "ECC": _errors, "processes": _processes, "XID": _xid,
}  # fmt: skip


def of_process(pid: int) -> list[Check]:
    """Which GPUs a process and its children have open; nothing where they have none."""
    minors = gpu_use.opened(pid)()
    if minors is None:
        return [note("process", "GPUs", "which GPUs it has open cannot be seen: it is another user's")]
    if not minors:
        return []
    return [ok("process", "GPUs", f"it has /dev/nvidia{_ranges(minors)} open (CUDA opens those too that it does not use)")]


def _ranges(numbers: Iterable[int]) -> str:
    """`0-3,7`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
