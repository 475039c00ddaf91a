"""The GPUs of this host, read through NVML on a thread of its own.

NVML answers from the driver, without root and without touching the job. It also hangs when the driver is sick, so nothing of
it runs on the thread of the screen: `waiting_since` tells how long the present call has taken.
"""

from __future__ import annotations

import contextlib
import importlib
import time
import warnings
from types import ModuleType
from typing import Any

from tuimon.events import GpuUnavailable, NotAvailable
from tuimon.sources import nvml_words as words
from tuimon.sources.nvml_device import EVERY_PROCESS, Calls, Device, Reader, process_reader
from tuimon.sources.ticker import Put, Ticker

_NEEDED = ("nvmlInit", "nvmlMemory_v2", "nvmlDeviceGetTemperatureV", "nvmlDeviceGetCurrentClocksEventReasons", "NVMLError")


class NoBinding(Exception):
    """The Python module that talks to NVML cannot be used; the text is a sentence for the panel."""


def binding() -> ModuleType:
    """The module `pynvml` of the distribution nvidia-ml-py. Raises NoBinding, with what to do, if it is another one.

    Old releases of a distribution named `pynvml` install a package of the same name, which wins over nvidia-ml-py's module
    when both are there, lacks calls that we need, and makes `pip check` complain of nothing.
    """
    # the present `pynvml` distribution greets every import with a FutureWarning; it would be printed over the screen
    warnings.filterwarnings("ignore", message=".*pynvml.*", category=FutureWarning)
    try:
        module = importlib.import_module("pynvml")
    except ImportError as error:
        raise NoBinding(f"the Python package nvidia-ml-py cannot be imported ({error}): pip install nvidia-ml-py") from None
    lacking = [name for name in _NEEDED if not hasattr(module, name)]
    if hasattr(module, "__path__") or lacking:
        where = getattr(module, "__file__", None) or "an unknown place"
        raise NoBinding(
            f"the Python module pynvml at {where} is not nvidia-ml-py's: "
            "pip uninstall pynvml, then pip install --force-reinstall nvidia-ml-py"
        )
    return module


class NvmlSource:
    """Puts one `GpuSampled` for each GPU every `period` seconds, or one `GpuUnavailable` that says why there is none.

    `pid` is the process whose memory on each GPU is wanted; None leaves that out, `everybody` asks for that of every process
    (`GpuSampled.held`). A GPU that is lost is reported as such every period and never touched again; the others are read on.
    """

    def __init__(self, put: Put, pid: int | None = None, period: float = 1.0, *, everybody: bool = False) -> None:
        self._put = put
        self._of_processes: tuple[Reader, ...] = (EVERY_PROCESS,) if everybody else ()
        if pid is not None:
            self._of_processes += (process_reader(pid),)
        self._calls = Calls()
        self._nvml: Any = None
        self._initialised = False
        self._devices: list[Device] = []
        self._ticker = Ticker("tuimon-nvml", period, self._round, self._failed, self._close)

    def start(self) -> None:
        """Start reading on a thread of its own. Raises RuntimeError if started before."""
        self._ticker.start()

    def stop(self, timeout: float = 2.0) -> bool:
        """End the thread, waiting at most `timeout` seconds. False if it is stuck in the driver: it is left to itself then,
        does not keep the program from ending, and puts nothing any more."""
        return self._ticker.stop(timeout)

    @property
    def alive(self) -> bool:
        """The thread still reads."""
        return self._ticker.alive

    def waiting_since(self) -> float | None:
        """Seconds that the present call into the driver has taken; None between calls. Any thread.

        Starting the driver may take seconds and any call some milliseconds; it is a fact worth a line from about 2 s on.
        """
        return self._calls.waiting()

    def _round(self) -> bool:
        if not self._devices:
            why = self._open()
            if why is not None:
                if not self._ticker.stopping:
                    self._put(GpuUnavailable(time.monotonic_ns(), why))
                return False
        for device in self._devices:
            sample = device.sample()
            if self._ticker.stopping:
                return False
            self._put(sample)
        return True

    def _open(self) -> str | None:
        """Start NVML and find the GPUs; None, or the sentence that says why not."""
        try:
            self._nvml = binding()
        except NoBinding as error:
            return str(error)
        try:
            self._calls(self._nvml.nvmlInit)
            self._initialised = True
            count = int(self._calls(self._nvml.nvmlDeviceGetCount))
        except self._nvml.NVMLError as error:
            return words.cannot_start(error.value)
        if count == 0:
            return "the NVIDIA driver is here but shows no GPU to this user or container"
        devices = [Device(self._nvml, self._calls, index, *self._of_processes) for index in range(count)]
        if all(device.lost for device in devices):
            return f"{count} GPU{'s' if count > 1 else ''} here, none of which can be opened: {devices[0].lost}"
        self._devices = devices
        return None

    def _close(self) -> None:
        # a driver that has lost a GPU may hang or crash in its own shutdown; the end of the process does the same work
        if self._initialised and not any(device.lost for device in self._devices):
            with contextlib.suppress(self._nvml.NVMLError):
                for device in self._devices:
                    device.close()
                self._calls(self._nvml.nvmlShutdown)

    def _failed(self, error: BaseException) -> None:
        self._put(NotAvailable(time.monotonic_ns(), "gpu", f"reading NVML failed: {type(error).__name__}: {error}"))
