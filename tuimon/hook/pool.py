"""The job's pool of device memory: what torch's caching allocator holds and what of it is in use, told about once a second.

Read on the hook's own thread, and only once the job has initialised CUDA. torch's own allocator answers out of its books, by
one call into C++ that asks nothing of the driver: no synchronise, no context, nothing that a capture could mind. The allocators
that are not torch's own would ask the driver, or raise, so they are not read.

The call takes the allocator's lock while it holds the GIL. A thread that is in `cudaMalloc` has that lock, so the answer can be
late, and Python stands for so long. Hence the rest after each reading, by how long it took, and the end after a few slow ones.
"""

import sys
import time

from .remains import Mortal

INSTRUMENT = "memory pool"
SLOW_NS = 5_000_000
MOST_SLOW = 3  # so many slow readings in a row end it
REST = 1000  # after t in the allocator there is no reading for REST times t: at most a thousandth of the time is spent in it
UNUSED_ROUNDS = 30  # a device on which nothing is reserved is asked again only every so many rounds


class Pool(metaclass=Mortal):
    """Tells of each device that the job has memory on, as soon as something has changed."""

    def __init__(self, hook, now=time.monotonic_ns):
        self._hook = hook
        self._now = now
        self._off = False
        self._stats = None  # torch's function, once CUDA is there
        self._devices = 0
        self._named = {}  # device -> (uuid, PCI bus id)
        self._told = {}  # device -> the figures that were sent last
        self._unused = {}  # device -> rounds for which it is left alone
        self._slow = 0
        self._rest_until = 0

    def second(self):
        """On the hook's thread, about once a second. Cheap while there is no CUDA."""
        if self._off:
            return
        if self._stats is None and not self._take():
            return
        if self._now() < self._rest_until:
            return
        took = 0
        for device in range(self._devices):
            if self._unused.get(device, 0) > 0:
                self._unused[device] -= 1
            else:
                took += self._read(device)
                if self._off:
                    return
        self._rest_until = self._now() + REST * took

    def _take(self):
        cuda = sys.modules.get("torch.cuda")
        if getattr(cuda, "_initialized", False) is not True:  # what `is_initialized()` gives, without a call
            return False
        torch_c = sys.modules.get("torch._C")
        names = ("_cuda_memoryStats", "_cuda_getDeviceCount", "_cuda_getAllocatorBackend")
        missing = [name for name in names if not hasattr(torch_c, name)]
        if missing:
            return self._stop(f"this torch has no torch._C.{missing[0]}")
        backend = str(torch_c._cuda_getAllocatorBackend())
        if backend != "native":
            return self._stop(f"the job allocates by {backend}, which would ask the driver; only torch's own allocator is read")
        self._devices = int(torch_c._cuda_getDeviceCount())
        self._stats = torch_c._cuda_memoryStats
        self._hook.instrument(INSTRUMENT, "on")
        return True

    def _stop(self, why):
        self._off = True
        self._stats = None
        self._hook.instrument(INSTRUMENT, why)
        return False

    def _read(self, device):
        """One device; gives the ns that it took in torch."""
        begin = self._now()
        stats = self._stats(device)
        took = self._now() - begin
        self._slow = self._slow + 1 if took > SLOW_NS else 0
        figures = _figures(stats)
        lacking = [name for name in ("allocated", "reserved") if figures[name] is None]
        if lacking:
            self._stop(f"this torch's allocator does not tell {lacking[0]}_bytes")
            return took
        if figures["reserved"] or device in self._told:
            if figures != self._told.get(device):
                self._told[device] = figures
                self._tell(device, figures)
        else:
            self._unused[device] = UNUSED_ROUNDS - 1
        if self._slow >= MOST_SLOW:
            self._stop(
                f"reading it took more than {SLOW_NS // 1_000_000} ms {MOST_SLOW} times in a row; the job shall not wait for it"
            )
        return took

    def _tell(self, device, figures):
        if device not in self._named:
            self._named[device] = _names(device)
        uuid, bus = self._named[device]
        message = {"k": "pool", "t": time.monotonic_ns(), "device": device, "uuid": uuid, "pci": bus, "backend": "native"}
        message.update(figures)
        self._hook.outbox.put(message)


def _figures(stats):
    """The few of torch's figures that are told; what this torch does not have is None. Bytes, and two counts."""

    def of(name, which="current"):
        value = ((stats.get(name) or {}).get("all") or {}).get(which)
        return None if value is None else int(value)

    return {
        "allocated": of("allocated_bytes"),
        "reserved": of("reserved_bytes"),
        "active": of("active_bytes"),
        "inactive_split": of("inactive_split_bytes"),
        "peak": of("allocated_bytes", "peak"),
        "retries": stats.get("num_alloc_retries"),
        "ooms": stats.get("num_ooms"),
    }


def _names(device):
    """(uuid, PCI bus id) as NVML writes them; None for what torch does not tell.

    `facts` has asked torch for the same properties before, and torch keeps them: nothing is asked of the driver here.
    """
    try:
        properties = sys.modules["torch.cuda"].get_device_properties(device)
    except Exception:  # noqa: BLE001 - a driver's complaint is no reason to fail
        return None, None
    uuid = getattr(properties, "uuid", None)
    if uuid is not None:
        uuid = str(uuid)
        uuid = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
    place = [getattr(properties, f"pci_{name}_id", None) for name in ("domain", "bus", "device")]
    return uuid, None if None in place else "{:08X}:{:02X}:{:02X}.0".format(*place)
