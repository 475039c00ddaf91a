"""The device's own clock, and what is seen of waiting for the device.

On a CPU there is nothing to do: a region is done when it returns. On CUDA a region returns when its kernels have been queued.
So around one call in `EVERY` two events of the device are recorded, which costs no waiting, and asked for later, on the hook's
thread. Nothing here ever synchronises, and nothing is recorded while a stream is being captured for a CUDA graph.

The same events tell of waiting. Where the device has not reached the region's end when the region returns, and has when the
boundary behind it is over, somebody in between has waited for it (`tensor.item()`), or the boundary took longer than the device
had left to do. Where it never has, nobody waits there.

Asking whether an event is over would break a capture that goes on on another thread, unless the asking thread has said that it
is none of it; CUDA has a call for that, which torch does not show. The hook's thread makes it through ctypes, which torch has
loaded, and without it this clock stays off.

What runs on the job's threads here is hidden from Dynamo with all that it calls, which is torch's own code and not the job's.
"""

import sys
import time
from _thread import get_ident
from collections import deque

from .facts import hide_from_dynamo
from .remains import Mortal

EVERY = 16  # calls of a region, of which one is timed on the device
MOST = 64  # pairs of events that exist at a time
INSTRUMENT = "device clock"
RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED


class DeviceClock(metaclass=Mortal):
    """What `regions` asks for its timers: those of `timers`, or, where the job uses CUDA, ones that time on the device too."""

    def __init__(self, hook):
        self._hook = hook
        self._cuda = None
        self._off = False
        self._exchanged = False
        self._free = {}  # device -> pairs of events that nobody uses
        self._made = 0
        self._open = deque()  # (instrument, begin ns, pair): calls that the device may not be done with
        self._behind = {}  # thread -> the event at the end of the region that it came out of last, if it was timed
        self._looks = {}  # instrument of a resume function -> [looked, waited]
        self._told = {}

    def is_there(self):
        """Whether regions are to be timed on the device: once the job has initialised CUDA, and while nothing has failed."""
        if self._off:
            return False
        if self._cuda is None:
            cuda = sys.modules.get("torch.cuda")
            if getattr(cuda, "_initialized", False) is not True:  # what `is_initialized()` gives, without a call
                return False
            self._take(cuda)
        return not self._off

    def _take(self, cuda):
        names = ("Event", "is_current_stream_capturing", "current_device")
        missing = [name for name in names if not hasattr(cuda, name)]
        mine = (DeviceClock._start, DeviceClock._finish, DeviceClock._crossed)
        hidden = [hide_from_dynamo(function.__code__) for function in mine]
        if missing:
            self._stop(f"this torch has no torch.cuda.{missing[0]}")
        elif None in hidden:
            self._stop("this torch cannot hide functions from Dynamo")
        elif _capture_mode() is None:
            self._stop("CUDA's driver has no cuThreadExchangeStreamCaptureMode here")
        else:
            for hide, _ in hidden:
                hide()
            self._cuda = cuda
            self._hook.instrument(INSTRUMENT, "on")

    def _stop(self, why):
        self._off = True
        self._hook.instrument(INSTRUMENT, why)

    # ---------------------------------------------------------------- on the job's threads

    def sized_timer(self, fn, number, outbox, sizes):
        """As `timers.sized_timer`, and every `EVERY`th call is timed on the device as well."""
        return self.call_timer(fn, number, outbox, sizes.of)

    def call_timer(self, fn, number, outbox, of=None):
        """As `timers.call_timer`; every `EVERY`th call is timed on the device as well.

        `of(args)` gives the instrument of a call where it is not the same for all.
        """
        now, ident, dropped, limit = time.monotonic_ns, get_ident, outbox.dropped, outbox.limit
        queue, here = outbox.queue, self._hook.here
        put, size = queue.append, len
        start, finish, behind = self._start, self._finish, self._behind
        left = [0]

        def region(*args):
            pair = None
            if here[0]:
                if behind:
                    behind.pop(ident(), None)
                if left[0]:
                    left[0] -= 1
                else:
                    left[0] = EVERY - 1
                    pair = start()
            begin, raised = now(), 1
            try:
                result = fn(*args)
                raised = 0
                return result
            finally:
                if here[0]:
                    end = now()
                    one = number if of is None else of(args)
                    if pair is not None:
                        finish(one, begin, pair)
                    if size(queue) < limit:
                        put((one, ident(), raised, begin, end))
                    else:
                        dropped[0] += 1

        return region

    def resume_timer(self, fn, number, outbox):
        """As `timers.resume_timer`; looks at the device where the region before was timed on it."""
        now, ident, dropped, limit = time.monotonic_ns, get_ident, outbox.dropped, outbox.limit
        queue, here = outbox.queue, self._hook.here
        put, size = queue.append, len
        behind, crossed = self._behind, self._crossed

        def resume(*args):
            if here[0]:
                at, thread = now(), ident()
                event = behind.pop(thread, None) if behind else None
                if event is not None:
                    crossed(number, event)
                if size(queue) < limit:
                    put((number, thread, 0, at, at))
                else:
                    dropped[0] += 1
            return fn(*args)

        return resume

    def _start(self):
        """A pair of events of which the first is recorded; None where nothing is to be timed now."""
        if self._off:
            return None
        try:
            if self._cuda.is_current_stream_capturing():
                return None
            device = self._cuda.current_device()
            pair = self._pair(device)
            if pair is not None:
                pair[0].record()
            return pair
        except Exception as error:  # noqa: BLE001 - the job must never see it
            self._stop(f"failed: {type(error).__name__}: {str(error)[:200]}")
            return None

    def _pair(self, device):
        free = self._free.setdefault(device, [])
        if free:
            return free.pop()
        if self._made >= MOST:
            return None
        self._made += 1
        event = self._cuda.Event
        return event(enable_timing=True), event(enable_timing=True), device

    def _finish(self, number, begin, pair):
        if self._off:
            return
        try:
            if self._cuda.is_current_stream_capturing() or self._cuda.current_device() != pair[2]:
                self._free[pair[2]].append(pair)
                return
            pair[1].record()
            self._open.append((number, begin, pair))
            if not pair[1].query():  # otherwise the device is done already, and a wait would not be seen
                self._behind[get_ident()] = pair[1]
        except Exception as error:  # noqa: BLE001 - as above
            self._stop(f"failed: {type(error).__name__}: {str(error)[:200]}")

    def _crossed(self, number, event):
        if self._off:
            return
        try:
            if self._cuda.is_current_stream_capturing():
                return
            seen = self._looks.setdefault(number, [0, 0])
            seen[0] += 1
            seen[1] += bool(event.query())
        except Exception as error:  # noqa: BLE001 - as above
            self._stop(f"failed: {type(error).__name__}: {str(error)[:200]}")

    # ---------------------------------------------------------------- on the hook's thread

    def poll(self):
        """Queue what the device has done since the last time. For the hook's own thread."""
        self._hook.guarded(INSTRUMENT, self._poll, None)

    def _poll(self):
        if self._off or self._cuda is None:
            return
        if not self._exchanged:
            self._exchanged = True
            if not _be_no_part_of_captures():
                self._stop("CUDA's driver refused cuThreadExchangeStreamCaptureMode")
                return
        rows = []
        for _ in range(len(self._open)):
            entry = number, begin, pair = self._open.popleft()
            if pair[1].query() and not any(pair[1] is event for event in list(self._behind.values())):
                rows.append([number, begin, int(pair[0].elapsed_time(pair[1]) * 1e6)])
                self._free[pair[2]].append(pair)
            else:
                self._open.append(entry)
        outbox, now = self._hook.outbox, time.monotonic_ns()
        if rows:
            outbox.put({"k": "device", "t": now, "rows": rows})
        looks = [[number, *seen] for number, seen in list(self._looks.items()) if self._told.get(number) != seen]
        if looks:
            self._told.update((number, [looked, waited]) for number, looked, waited in looks)
            outbox.put({"k": "sync", "t": now, "rows": looks})


def _capture_mode():
    """The driver's function, from the library that the process has loaded; None where there is none."""
    ctypes = sys.modules.get("ctypes")
    try:
        return ctypes.CDLL("libcuda.so.1").cuThreadExchangeStreamCaptureMode
    except (AttributeError, OSError):
        return None


def _be_no_part_of_captures():
    """Let this thread ask for events while another one captures a stream. Gives whether it may."""
    exchange, ctypes = _capture_mode(), sys.modules.get("ctypes")
    return exchange is not None and exchange(ctypes.byref(ctypes.c_int(RELAXED))) == 0
