"""The job's own profilers: whether one is there, and a way to be asked before one starts.

Kineto is one for the whole process. To open a window of ours while the job has prepared a profiler of its own, be it only in
its warm-up, ends the job with a segmentation fault; two that are open at once lose one's events. So a window opens only where
all of this is known to be absent, and gives way to whatever comes.

All that Python starts there passes three names of two modules: `torch.profiler` with and without a schedule, the older
`torch.autograd.profiler`, the NVTX and ITT ranges. What stands in for those names is called only where the job profiles. The
same holds for the capture of a CUDA graph, which must not see the device being waited for.
"""

import os
import sys
import time
from _thread import allocate_lock, get_ident

from .remains import Mortal
from .waits import look_like

CALLS = (
    "_prepare_profiler", "_enable_profiler", "_toggle_collection_dynamic", "_disable_profiler", "_profiler_enabled",
    "_clear_callbacks",
)  # fmt: skip
STARTS = (
    ("torch.autograd.profiler", "_prepare_profiler"),
    ("torch.autograd.profiler", "_enable_profiler"),
    ("torch.autograd.profiler_legacy", "_enable_profiler_legacy"),
)
INSTRUMENT = "profiler windows"
PATIENT_S = 10.0  # a start of the job's waits at most so long for a window that is being opened or closed
# another tool has the device's events, or may ask Kineto for them at any time
TOOLS = {
    "KINETO_USE_DAEMON": "dynolog",
    "KINETO_CONFIG": "a Kineto configuration",
    "CUDA_INJECTION64_PATH": "a tool from NVIDIA (CUDA_INJECTION64_PATH)",
    "NVTX_INJECTION64_PATH": "a tool from NVIDIA (NVTX_INJECTION64_PATH)",
    "ROCP_TOOL_LIB": "rocprof",
    "HSA_TOOLS_LIB": "rocprof",
    "ROCPROFILER_REGISTER_FORCE_LOAD": "rocprofiler",
}
PREFIXES = {"NSYS_": "Nsight Systems", "QUADD_": "Nsight Systems", "NV_COMPUTE_PROFILER": "Nsight Compute"}
LIBRARIES = ("libToolsInjection", "libcuda-injection", "librocprof")


class Profilers(metaclass=Mortal):
    """Watches for the job's own profilers. `give_way(why)` is called with the lock held, on the thread that is to start one."""

    def __init__(self, hook, give_way):
        self._hook = hook
        self._give_way = give_way
        self._lock = allocate_lock()
        self._owner = None
        self._done = set()
        self._since = None  # when the job was seen to profile
        self._capturing = 0

    # ---------------------------------------------------------------- putting in

    def watch(self):
        """Stand in for what can be stood in for now; cheap once all is."""
        if not self._hook.can_skip or not self._hook.here[0]:
            return
        for name, attribute in STARTS:
            module = sys.modules.get(name)
            if module is not None and (name, attribute) not in self._done and attribute in vars(module):
                self._done.add((name, attribute))
                self._put(module, attribute, self._profiles, None)
        cuda = sys.modules.get("torch.cuda")
        graph = getattr(sys.modules.get("torch.cuda.graphs"), "CUDAGraph", None)
        if getattr(cuda, "_initialized", False) is True and graph is not None and "cuda" not in self._done:
            self._done.add("cuda")
            if {"capture_begin", "capture_end"} <= vars(graph).keys():
                self._put(graph, "capture_begin", self._captures, None)
                self._put(graph, "capture_end", None, self._captured)
                self._done.add("captures")

    def _put(self, owner, attribute, before, after):
        original = vars(owner)[attribute]
        ours = _stand_in(original, self._hook.here, self._hook.guarded, before, after)
        if hasattr(original, "__code__"):
            look_like(ours, original, 4)
        self._hook.skip(ours)
        setattr(owner, attribute, ours)
        self._hook.undo.attribute(owner, attribute, ours, original)

    # ---------------------------------------------------------------- on the job's threads

    def _profiles(self):
        self._since = time.monotonic()  # before the lock: who opens a window looks at it with the lock held
        self._yielding("the job starts a profiler of its own")

    def _captures(self):
        self._capturing += 1
        self._yielding("the job captures a CUDA graph")

    def _captured(self):
        self._capturing = max(0, self._capturing - 1)

    def _yielding(self, why):
        if self.take(PATIENT_S):
            try:
                self._give_way(why)
            finally:
                self.release()

    # ---------------------------------------------------------------- for whoever opens and closes

    def take(self, seconds):
        """Have the profiler to oneself, against the job's starts; False where that was not to be had in time."""
        if self._owner == get_ident() or not self._lock.acquire(timeout=seconds):
            return False  # a signal's handler, within what it has interrupted
        self._owner = get_ident()
        return True

    def release(self):
        """Let go again."""
        self._owner = None
        self._lock.release()

    def refusal(self):
        """Why no window may be open now: a sentence with the next step; "" where one may. Everything is looked at afresh."""
        module = sys.modules.get("torch.autograd.profiler")
        control = getattr(sys.modules.get("torch._C"), "_autograd", None)
        if module is None or control is None:
            return "the job has not imported torch yet: ask again when it has"
        missing = self._missing(module, control)
        if missing:
            return f"this torch has no {missing}, without which a window is not safe: use the job's own torch.profiler"
        if self._since is not None:
            ago = time.monotonic() - self._since
            return f"the job profiles itself ({ago:.0f} s ago): read the trace that it writes, with `tuimon replay FILE`"
        tracker = module.KinetoStepTracker._step_dict
        if module._is_profiler_enabled or control._profiler_enabled():
            return "the job's own profiler is recording: read the trace that it writes, with `tuimon replay FILE`"
        if "ProfilerStep" in tracker:  # from the making of a torch.profiler.profile until its `with` ends, warm-up and all
            return "the job has a torch.profiler.profile of its own: read the trace that it writes, with `tuimon replay FILE`"
        monitor = sys.modules.get("torch.profiler._cupti_monitor")
        if getattr(monitor, "get_monitor", _nothing)() is not None:
            return "the job runs torch's CUPTI monitor: read what that writes"
        tool = _tool()
        if tool:
            return f"{tool} is set up in the job, and two profilers must not meet: read its result, or start the job without it"
        return self._refusal_of_cuda()

    def _refusal_of_cuda(self):
        cuda = sys.modules.get("torch.cuda")
        if getattr(cuda, "_initialized", False) is not True:
            return ""
        if "captures" not in self._done:
            return "the captures of CUDA graphs cannot be watched in this torch: use the job's own torch.profiler"
        if self._capturing or _a_stream_is_captured():
            return "the job captures a CUDA graph: ask again in a moment"
        return ""

    def _missing(self, module, control):
        for name in CALLS:
            if not callable(getattr(control, name, None)):
                return f"torch._C._autograd.{name}"
        for name, attribute in STARTS[:2]:
            if (name, attribute) not in self._done:
                return f"{name}.{attribute}"
        if type(getattr(module, "_is_profiler_enabled", None)) is not bool:
            return "torch.autograd.profiler._is_profiler_enabled"
        if not isinstance(getattr(getattr(module, "KinetoStepTracker", None), "_step_dict", None), dict):
            return "torch.autograd.profiler.KinetoStepTracker._step_dict"
        kinds = getattr(sys.modules.get("torch._C"), "_profiler", None)
        for name in ("ProfilerConfig", "ProfilerState", "ProfilerActivity", "_ExperimentalConfig"):
            if not hasattr(kinds, name):
                return f"torch._C._profiler.{name}"
        if "profile_all_threads" not in (kinds._ExperimentalConfig.__init__.__doc__ or ""):
            return "profile_all_threads"
        return ""


def _stand_in(fn, here, guarded, before, after):
    def stand_in(*args, **kwargs):
        if before is not None and here[0]:
            guarded(INSTRUMENT, before, None)
        try:
            return fn(*args, **kwargs)
        finally:
            if after is not None and here[0]:
                guarded(INSTRUMENT, after, None)

    return stand_in


def _tool():
    """The name of another tool that profiles this process; "" where none is seen."""
    for name in list(os.environ):
        found = TOOLS.get(name) if os.environ.get(name) else None
        for prefix, tool in PREFIXES.items():
            if name.startswith(prefix):
                found = f"{tool} ({name})"
        if found:
            return found
    try:
        with open("/proc/self/maps", errors="replace") as file:
            for line in file:
                library = line.rstrip().rpartition("/")[2]
                if library.startswith(LIBRARIES):
                    return f"a tool ({library})"
    except OSError:
        pass
    return ""


def _a_stream_is_captured():
    """Whether torch's own stream for captures is in one, begun before we came. True too where that cannot be asked for."""
    made = vars(sys.modules["torch.cuda.graphs"].graph).get("default_capture_stream")
    if made is None:
        return False
    ctypes = sys.modules.get("ctypes")
    try:
        status = ctypes.c_int(0)
        answer = ctypes.CDLL("libcuda.so.1").cuStreamIsCapturing(ctypes.c_void_p(made.cuda_stream), ctypes.byref(status))
    except (AttributeError, OSError):
        return True
    return answer != 0 or status.value != 0


def _nothing():
    return None
