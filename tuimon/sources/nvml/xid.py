"""The errors that the driver reports by number ("XID"), as they come.

They are waited for on a thread of their own, as the only way to have them is a call that blocks until there is one.
"""

from __future__ import annotations

import contextlib
import ctypes
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tuimon.events import NotAvailable, XidSeen
from tuimon.sources.nvml import words
from tuimon.sources.nvml.readers import Calls
from tuimon.sources.ticker import Put, Ticked, Ticker

WAIT_MS = 200
"""A wait ends after so long, so that the thread can be ended: whoever leaves waits for it."""
PAUSE_S = 0.05
"""Between two waits: a driver that answers at once, for ever, must not make the thread spin."""
REST_S = 1.0
MOST_FAILURES = 5

_NONE = 0xFFFFFFFF


class Opened(Protocol):
    """A GPU that somebody else opens and reads."""

    index: int
    handle: Any
    """None while it is not open."""

    @property
    def lost(self) -> str | None:
        """Why it must not be touched any more; None while it may be."""


class XidSource(Ticked):
    """Puts one `XidSeen` for each error of these GPUs, and one `NotAvailable` ("gpu xid") where they are not told.

    NVML must have been started, and must not be ended before this has. `ended` is called last, on the thread.
    """

    def __init__(
        self, put: Put, nvml: Any, calls: Calls, devices: Sequence[Opened], ended: Callable[[], None] | None = None
    ) -> None:
        self._put = put
        self._nvml = nvml
        self._calls = calls
        self._pending = list(devices)
        """Those that are not registered yet: each is when it has been opened."""
        self._devices = list(devices)
        self._set: Any = None
        self._index: dict[int | None, int] = {}
        """The address behind a handle -> the GPU's index."""
        self._asked: list[Opened] = []
        """Those that are."""
        self._refused: dict[str, list[int]] = {}
        self._failures = 0
        self._rest_until = 0.0
        self._late = False
        self._ended = ended
        self._ticker = Ticker("tuimon-nvml-xid", PAUSE_S, self._round, self._failed, self._close)

    def look(self, most_s: float) -> None:
        """Tell, once, of a call that has taken longer than that. From a thread that does not enter the driver."""
        since, name = self._calls.stuck()
        if since is not None and since >= most_s and not self._late:
            self._late = True
            self._cannot(f"the driver had not answered for {since:.0f} s ({name}): XID errors may be told late or not at all")

    def _round(self) -> bool:
        if time.monotonic() < self._rest_until:
            return True
        try:
            if self._set is None:
                self._set = self._calls(self._nvml.nvmlEventSetCreate)
        except self._nvml.NVMLError as error:
            self._cannot(words.no_value(error.value))
            return False
        self._register()
        if not self._index:
            self._rest_until = time.monotonic() + WAIT_MS / 1000  # none is open yet
            return bool(self._pending)
        try:
            data = self._calls(self._nvml.nvmlEventSetWait_v2, self._set, WAIT_MS)
        except self._nvml.NVMLError as error:
            return self._no_event(int(error.value))
        self._failures = 0
        if data.eventType == self._nvml.nvmlEventTypeXidCriticalError and not self._ticker.stopping:
            instance = None if data.gpuInstanceId == _NONE else int(data.gpuInstanceId)
            # the handle of an event is only compared, never used; pointers of ctypes are equal only as objects
            index = self._index.get(_address(data.device))
            self._put(XidSeen(time.monotonic_ns(), index, int(data.eventData), instance))
        return True

    def _no_event(self, code: int) -> bool:
        if code == words.TIMEOUT:
            self._failures = 0
            return True
        if any(device.lost is not None for device in self._asked):
            self._anew()
            return True
        self._failures += 1
        self._rest_until = time.monotonic() + REST_S
        if self._failures < MOST_FAILURES:
            return True
        self._cannot(f"the wait for them fails: {words.no_value(code)}")
        return False

    def _anew(self) -> None:
        """The wait fails, and a GPU is lost that has a part in it: ask for the errors of the others by a set without it. The
        old one is left as it is, for it knows the lost one."""
        self._set, self._failures = None, 0
        self._index.clear()
        self._asked.clear()
        self._refused.clear()
        self._pending = [device for device in self._devices if device.lost is None]

    def _register(self) -> None:
        """Ask for the errors of each GPU that has been opened since the last look."""
        before = len(self._pending)
        for device in list(self._pending):
            handle = device.handle
            if device.lost is not None:
                self._pending.remove(device)
            elif handle is not None:
                self._pending.remove(device)
                why = self._ask(handle)
                if why is None:
                    self._index[_address(handle)] = device.index
                    self._asked.append(device)
                else:
                    self._refused.setdefault(why, []).append(device.index)
        if len(self._pending) < before and not self._pending and self._refused:
            some = "" if self._index else " of any GPU"
            of = "; ".join(f"GPU {', '.join(map(str, sorted(indices)))}: {why}" for why, indices in self._refused.items())
            self._cannot(f"XID errors are not told{some} ({of})")

    def _ask(self, handle: Any) -> str | None:
        """Why its errors cannot be asked for; None where they are."""
        wanted = self._nvml.nvmlEventTypeXidCriticalError
        try:
            if not self._calls(self._nvml.nvmlDeviceGetSupportedEventTypes, handle) & wanted:
                return words.no_value(words.NOT_SUPPORTED)
            self._calls(self._nvml.nvmlDeviceRegisterEvents, handle, wanted, self._set)
        except self._nvml.NVMLError as error:
            return words.no_value(error.value)
        return None

    def _close(self) -> None:
        try:
            # as with the rest of NVML: nothing more is asked of a driver that has lost a GPU
            if self._set is not None and not any(device.lost for device in self._devices):
                with contextlib.suppress(self._nvml.NVMLError):
                    self._calls(self._nvml.nvmlEventSetFree, self._set)
        finally:
            if self._ended is not None:
                self._ended()

    def _cannot(self, why: str) -> None:
        if not self._ticker.stopping:
            self._put(NotAvailable(time.monotonic_ns(), "gpu xid", why))

    def _failed(self, error: BaseException) -> None:
        self._cannot(f"waiting for XID errors failed: {type(error).__name__}: {error}")


def _address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value
