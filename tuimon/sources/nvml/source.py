"""The GPUs of this host, read through NVML on threads of their own.

NVML answers from the driver, without root and without touching the job. It also hangs when the driver is sick, so nothing of
it runs on the thread of the screen, and each GPU has a thread, so that a hanging one does not silence the others. One more
thread never enters the driver: it tells of the calls that do not come back.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
import time
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any, cast

from tuimon.events import GpuSilent, GpuUnavailable, NotAvailable
from tuimon.sources.nvml import words
from tuimon.sources.nvml.device import Device
from tuimon.sources.nvml.processes import Job
from tuimon.sources.nvml.readers import Calls
from tuimon.sources.nvml.xid import XidSource
from tuimon.sources.ticker import Put, Ticker

LEAST_PERIOD_S = 0.25
SILENT_S = 2.0
"""A call that takes longer is told of, and so is a reading of many calls that together take longer: it is all late."""
WATCH_S = 1.0

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
    except Exception as error:  # noqa: BLE001 - another module of that name may fail in any way
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
    """Puts one `GpuSampled` for each GPU every `period` seconds, or one `GpuUnavailable` that says why there is none, and a
    `GpuSilent` each second for each GPU that has not answered for `SILENT_S`, and one when it answers again. Behind the reading
    of a GPU in MIG mode come those of its parts, and in between the errors of `XidSource`.

    `pid` is the process whose part of each GPU is wanted, `family` gives its pids with those of its children, `opened` the
    minors of the GPUs that it has open (both are called on several threads); None leaves that out. `everybody` asks for what
    every process holds (`GpuSampled.held`), `pcie` for what goes over PCIe, which blocks. No period below
    `LEAST_PERIOD_S` is kept. A GPU that is lost is reported as such
    every period and never touched again; the others are read on.
    """

    def __init__(
        self,
        put: Put,
        pid: int | None = None,
        period: float = 1.0,
        *,
        everybody: bool = False,
        pcie: bool = False,
        family: Callable[[], frozenset[int]] | None = None,
        opened: Callable[[], frozenset[int] | None] | None = None,
    ) -> None:
        self._put = put
        self._period = max(period, LEAST_PERIOD_S)
        self._job = None if pid is None else Job(pid, family, opened)
        self._everybody = everybody
        self._pcie = pcie
        self._opening = Calls()
        self._nvml: Any = None
        self._devices: list[Device] = []
        self._calls: dict[int | None, Calls] = {None: self._opening}
        self._silent: set[int | None] = set()
        self._lock = threading.Lock()
        self._reading = 0
        """Threads that have not ended; the last one ends NVML."""
        self._tickers: list[Ticker] = []
        self._xids: XidSource | None = None
        self._opener = Ticker("tuimon-nvml-open", 1.0, self._open_all, self._failed)
        self._watch = Ticker("tuimon-nvml", WATCH_S, self._look, self._failed)

    def start(self) -> None:
        """Start reading on threads of its own. Raises RuntimeError if started before."""
        self._opener.start()
        self._watch.start()

    def stop(self, timeout: float = 2.0) -> bool:
        """End the threads, waiting at most `timeout` seconds. False if one is stuck in the driver: it is left to itself then,
        does not keep the program from ending, and puts nothing any more."""
        until = time.monotonic() + timeout
        self._watch.stop(0.0)
        with self._lock:  # an opener that comes later finds the watch stopping, and starts none
            tickers: list[Ticker | XidSource] = [*self._tickers, *([self._xids] if self._xids is not None else [])]
        for ticker in tickers:
            ticker.stop(0.0)
        ended = [ticker.stop(max(0.0, until - time.monotonic())) for ticker in (self._opener, self._watch, *tickers)]
        return all(ended)

    @property
    def alive(self) -> bool:
        """Some thread still reads."""
        return self._opener.alive or any(ticker.alive for ticker in self._tickers)

    def waiting_since(self) -> float | None:
        """Seconds that the longest of the present calls into the driver has taken; None between calls. Any thread.

        Starting the driver may take seconds and any call some milliseconds; it is a fact worth a line from about 2 s on.
        """
        waits = [calls.waiting() for calls in list(self._calls.values())]
        return max((wait for wait in waits if wait is not None), default=None)

    def _look(self) -> bool:
        """Tell of the calls that do not come back. Never calls the driver."""
        alive = self.alive  # before: what ends meanwhile is looked at once more
        for index, calls in list(self._calls.items()):
            since, name = calls.stuck()
            if since is not None and since >= SILENT_S:
                self._silent.add(index)
                self._put(GpuSilent(time.monotonic_ns(), index, since, name))
            elif index in self._silent:
                self._silent.discard(index)
                self._put(GpuSilent(time.monotonic_ns(), index, None, ""))
        if self._xids is not None:
            self._xids.look(SILENT_S)
        return alive

    def _open_all(self) -> bool:
        unavailable = self._open()
        if unavailable is not None:
            if not self._watch.stopping:
                self._put(unavailable)
                if None in self._silent:  # the start had been told of as hanging
                    self._put(GpuSilent(time.monotonic_ns(), None, None, ""))
            self._watch.stop(0.0)
            return False
        with self._lock:
            if self._watch.stopping:
                self._end()
                return False
            self._reading = len(self._devices) + 1
            for device in self._devices:
                ticker = Ticker(
                    f"tuimon-nvml-{device.index}", self._period, self._rounds(device), self._failed, self._closing(device)
                )
                self._tickers.append(ticker)
                ticker.start()
            self._xids = XidSource(self._put, self._nvml, Calls(), self._devices, self._over)
            self._xids.start()
        return False

    def _rounds(self, device: Device) -> Callable[[], bool]:
        def round_() -> bool:
            sample = device.sample()
            if self._watch.stopping:
                return False
            self._put(sample)
            for part in device.parts():
                self._put(part)
            return True

        return round_

    def _closing(self, device: Device) -> Callable[[], None]:
        def close() -> None:
            try:
                if device.lost is None:
                    device.close()
            finally:
                self._over()

        return close

    def _over(self) -> None:
        """One of the threads that read has ended; the last one ends NVML."""
        with self._lock:
            self._reading -= 1
            last = not self._reading
        if last:
            self._end()

    def _open(self) -> GpuUnavailable | None:
        """Start NVML and find the GPUs; None, or the event that says why there is none."""

        def none(why: str, kind: str) -> GpuUnavailable:
            return GpuUnavailable(time.monotonic_ns(), why, cast(Any, kind))

        try:
            self._nvml = binding()
        except NoBinding as error:
            return none(str(error), "binding")
        try:
            self._opening(self._nvml.nvmlInit)
            count = int(self._opening(self._nvml.nvmlDeviceGetCount))
        except self._nvml.NVMLError as error:
            kind = words.start_kind(error.value)
            if kind == "no driver" and words.is_wsl():
                return none("WSL without the NVIDIA driver of Windows, or without its /usr/lib/wsl/lib: update both", "wsl")
            return none(words.cannot_start(error.value), kind)
        except Exception as error:  # noqa: BLE001 - the binding's NVMLLibraryMismatchError is of no family
            return none(f"the Python package nvidia-ml-py failed: {type(error).__name__}: {error}", "binding")
        if count == 0:
            return none("the NVIDIA driver is here but shows no GPU to this user or container", "no gpu")
        devices = []
        for index in range(count):
            calls = Calls()
            self._calls[index] = calls
            devices.append(Device(self._nvml, calls, index, self._job, everybody=self._everybody, pcie=self._pcie))
        self._devices = devices
        return None

    def _end(self) -> None:
        # a driver that has lost a GPU may hang or crash in its own shutdown; the end of the process does the same work
        if not any(device.lost for device in self._devices):
            with contextlib.suppress(self._nvml.NVMLError):
                self._opening(self._nvml.nvmlShutdown)

    def _failed(self, error: BaseException) -> None:
        if not self._watch.stopping:
            self._put(NotAvailable(time.monotonic_ns(), "gpu", f"reading NVML failed: {type(error).__name__}: {error}"))
