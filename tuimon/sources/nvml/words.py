"""What NVML's numbers mean, in words a person can act on: return codes and the reasons for a clock below its maximum.

The numbers are the public ones of NVIDIA's nvml.h (enum nvmlReturn_t, nvmlClocksEventReason*). They are written down here
because most of this must work, and be tested, where no binding and no driver is.
"""

from __future__ import annotations

from pathlib import Path

NOT_SUPPORTED = 3
NO_PERMISSION = 4
TIMEOUT = 10
FUNCTION_NOT_FOUND = 13
LIB_RM_VERSION_MISMATCH = 18
ARGUMENT_VERSION_MISMATCH = 25
UNKNOWN = 999

LOST = frozenset({15, 16, 28})
"""The GPU is gone (fell off the bus, needs a reset, not found): its handle must not be used again. Clients that went on
using one have crashed inside the driver's library."""

PERMANENT = frozenset({NOT_SUPPORTED, FUNCTION_NOT_FOUND, ARGUMENT_VERSION_MISMATCH, 26})
"""Answers that will be the same next time: asking again is only cost."""

WSL = "under WSL the driver does not tell it: read nvidia-smi on Windows"
VGPU = "a virtual GPU does not tell it: ask on its host"
MIG = "not told of a GPU in MIG mode: see its parts"

_START = {
    NO_PERMISSION: (
        "no permission to use the NVIDIA driver (the /dev/nvidia* files are not open to this user or container): "
        "start the container with --gpus all, or look at its device rules"
    ),
    8: "the GPU lacks external power: check its power cables",
    9: "the NVIDIA driver is installed but not loaded: load the kernel module nvidia, or start the container with GPU access",
    12: "no NVIDIA driver here (libnvidia-ml.so.1 was not found)",
    FUNCTION_NOT_FOUND: "libnvidia-ml.so.1 lacks functions that tuimon needs (a stub library, or a driver that is too old)",
    15: "a GPU has fallen off the bus: see dmesg for its XID, then reset or reboot",
    16: "a GPU needs a reset: nvidia-smi --gpu-reset, or reboot",
    UNKNOWN: (
        "the NVIDIA driver answers with an unknown error (999): in a container its access to the GPUs was taken away, "
        "so start it anew; elsewhere see dmesg for an XID"
    ),
    LIB_RM_VERSION_MISMATCH: (
        "the NVIDIA driver was upgraded while the old one is still loaded: reboot, "
        "or restart the container with the libraries of the driver"
    ),
}

_KINDS = {
    NO_PERMISSION: "no permission",
    9: "not loaded",
    12: "no driver",
    15: "lost",
    16: "lost",
    LIB_RM_VERSION_MISMATCH: "mismatch",
}

_VALUE = {
    1: "NVML is not initialised",
    2: "refused by the driver as an invalid request",
    NOT_SUPPORTED: "not supported on this GPU",
    NO_PERMISSION: "no permission",
    6: "not found",
    7: "the driver's list grew while it was read",
    TIMEOUT: "timed out",
    11: "an interrupt of the GPU does not work (see dmesg)",
    FUNCTION_NOT_FOUND: "needs a newer driver",
    14: "the GPU's own ROM is damaged",
    15: "GPU lost: it fell off the bus (see dmesg for its XID)",
    16: "GPU needs a reset",
    17: "blocked by the operating system",
    LIB_RM_VERSION_MISMATCH: "driver upgraded: reboot",
    ARGUMENT_VERSION_MISMATCH: "needs a newer driver",
    19: "in use by another program",
    20: "the driver has no memory left for it",
    21: "the driver has no data for it yet",
    27: "not ready yet",
    28: "GPU not found any more",
    UNKNOWN: "unknown driver error",
}

# nvmlClocksEventReason*, in the order of their bits
_REASONS = (
    (0x001, "idle"),
    (0x002, "application clocks"),
    (0x004, "power cap"),
    (0x008, "hardware slowdown"),
    (0x010, "sync boost"),
    (0x020, "thermal (software)"),
    (0x040, "thermal (hardware)"),
    (0x080, "power brake"),
    (0x100, "display clocks"),
)


def cannot_start(code: int) -> str:
    """One sentence for the panel: why there is no GPU to read, and what helps. `code` is what nvmlInit or the count gave."""
    return _START.get(code, f"NVML did not start: error {code}")


def start_kind(code: int) -> str:
    """`GpuUnavailable.kind` for the same code; empty for one without a kind."""
    return _KINDS.get(code, "")


def unsupported(field: str, virtual: str, mig: bool | None) -> str | None:
    """Why a value that the driver does not support is not there, where more than that is known."""
    if virtual == "wsl" and field in ("processes", "_use", "throttle"):
        return WSL
    if mig and field in ("utilization", "_use", "activity"):
        return MIG
    return VGPU if virtual == "vgpu" else None


def is_wsl() -> bool:
    """Whether this Linux runs under Windows."""
    try:
        return "microsoft" in Path("/proc/sys/kernel/osrelease").read_text(encoding="ascii", errors="replace").lower()
    except OSError:
        return False


def no_value(code: int) -> str:
    """A few words: why one value of one GPU could not be read."""
    return _VALUE.get(code, f"NVML error {code}")


def clock_reasons(bits: int) -> tuple[str, ...]:
    """The reasons, in words, for which the driver holds the clocks where they are; bits it invented since are shown raw."""
    words = [word for bit, word in _REASONS if bits & bit]
    rest = bits & ~sum(bit for bit, _ in _REASONS)
    if rest:
        words.append(f"reason {rest:#x}")
    return tuple(words)
