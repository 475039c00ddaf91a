"""The settings of the compiler that change what the numbers mean, as far as they are not the default.

From torch 2.13 on each thread has settings of its own: what the job sets on its main thread is not in force on the hook's, and
cannot be read from there. But Dynamo writes down with each compilation what was in force where it ran. So that is what counts,
once something has been compiled; what other threads see too (the environment, the stance) is read where it is.
"""

import json
import os
import sys
from _thread import allocate_lock, start_new_thread

from .remains import Mortal

# (name on screen, name in the module, what it is by default)
DYNAMO = (
    ("suppress_errors", "suppress_errors", False),
    ("error_on_recompile", "error_on_recompile", False),
    ("fail_on_recompile_limit_hit", "fail_on_recompile_limit_hit", False),
    ("automatic_dynamic_shapes", "automatic_dynamic_shapes", True),
    ("assume_static_by_default", "assume_static_by_default", True),
    ("capture_scalar_outputs", "capture_scalar_outputs", False),
    ("capture_dynamic_output_shape_ops", "capture_dynamic_output_shape_ops", False),
    ("compiled_autograd", "compiled_autograd", False),
)
INDUCTOR = (("fx_graph_cache", "fx_graph_cache", True), ("force_disable_caches", "force_disable_caches", False))
LIMITS = ("recompile_limit", "cache_size_limit")  # the newer name first
NESTED = "nested_graph_breaks"
ASK_EVERY = 5  # facts are looked at once a second
ASK_S = 1.0
DISABLING = ("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE")


class Settings(metaclass=Mortal):
    """Reads the settings; keeps those of the last compilation."""

    def __init__(self):
        self._last = None
        self._dynamo = {}
        self._inductor = {}
        self._threads = Threads()

    def options(self):
        """[[name, value]] of what is not the default, values as text."""
        self._look()
        told = [*_stance(), *self._disabled()]
        for module, table, noted in (("_dynamo", DYNAMO, self._dynamo), ("_inductor", INDUCTOR, self._inductor)):
            for name, attribute, default in table:
                value = _value(f"torch.{module}.config", attribute, noted)
                if type(value) in (bool, int, str) and value != default:
                    told.append([name, str(value)])
        threads = _value("torch._inductor.config", "compile_threads", self._inductor)
        if type(threads) is int and threads != _usual_threads():
            told.append(["compile_threads", str(threads)])
        threads = self._threads.now()
        return told if threads is None else [*told, ["num_threads", str(threads)]]

    def again(self):
        """Have the number of threads asked for anew, the next time that the settings are told. Costs nothing by itself."""
        self._threads.again()

    def recompile_limit(self):
        """The limit of cache entries of one frame; None where that is not known yet."""
        self._look()
        for name in LIMITS:
            value = _value("torch._dynamo.config", name, self._dynamo, sure=True)
            if type(value) is int:
                return value
        return None

    def nested_breaks(self):
        """Whether what was compiled last was compiled with `nested_graph_breaks`."""
        self._look()
        return _value("torch._dynamo.config", NESTED, self._dynamo) is True

    def _disabled(self):
        named = next((name for name in DISABLING if os.environ.get(name) == "1"), None)
        if named is not None:
            return [["dynamo", f"disabled by {named}"]]
        if _value("torch._dynamo.config", "disable", self._dynamo) is True:
            return [["dynamo", "disabled by torch._dynamo.config.disable"]]
        return []

    def _look(self):
        """Take in what the last compilation noted."""
        kept = getattr(sys.modules.get("torch._dynamo.utils"), "_compilation_metrics", None)
        last = kept[-1] if kept else None
        if last is self._last or last is None:
            return
        self._last = last
        self._dynamo = _parsed(getattr(last, "dynamo_config", None)) or self._dynamo
        self._inductor = _parsed(getattr(last, "inductor_config", None)) or self._inductor


class Threads(metaclass=Mortal):
    """How many threads torch computes with; the roof of a CPU goes by it.

    It is a setting of each thread's own, which takes what the job has set last when it asks for the first time, and keeps that.
    So it is a thread of its own that asks, a new one each time, by a call in C.
    """

    def __init__(self):
        self._last = None
        self._left = 0

    def again(self):
        """What is known may be old: a job sets it once torch is there, often in the second in which we have asked."""
        self._left = 0

    def now(self):
        """The number; None where it is not known. It is as old as `ASK_EVERY` calls at most."""
        ask = getattr(sys.modules.get("torch"), "get_num_threads", None)
        if ask is None or self._left:
            self._left = max(0, self._left - 1)
            return self._last
        self._left = ASK_EVERY - 1
        found, over = [], allocate_lock()
        over.acquire()
        try:
            start_new_thread(_ask, (ask, found, over))
        except RuntimeError:  # no thread is to be had
            return self._last
        if over.acquire(timeout=ASK_S) and found:
            self._last = found[0]
        return self._last


def _ask(ask, found, over):
    try:
        found.append(int(ask()))
    except Exception:  # noqa: BLE001 - torch is still being imported
        return
    finally:
        over.release()


def nested_breaks_here():
    """Whether this thread compiles with `nested_graph_breaks` now."""
    return getattr(sys.modules.get("torch._dynamo.config"), NESTED, False) is True


def _parsed(text):
    try:
        found = json.loads(text) if type(text) is str else None
    except ValueError:  # torch writes a sentence there where it fails
        return None
    return found if type(found) is dict else None


def _stance():
    stance = getattr(sys.modules.get("torch._dynamo.eval_frame"), "_stance", None)
    name = getattr(stance, "stance", None)
    told = [["stance", name]] if type(name) is str and name != "default" else []
    if getattr(stance, "skip_guard_eval_unsafe", False) is True:
        told.append(["guards", "off"])
    return told


def _value(module, name, noted, sure=False):
    """A setting: where threads share it as it is now, else as it was at the last compilation. None where it is not known;
    `sure`: also where only this thread's is."""
    config = sys.modules.get(module)
    entries = vars(config).get("_config") if config is not None else None
    entry = entries.get(name) if type(entries) is dict else None
    own = hasattr(getattr(entry, "user_override", None), "set")  # a context variable
    if own and name in noted:
        return noted[name]
    if entry is None or (own and sure):
        return None
    try:
        return getattr(config, name)
    except Exception:  # noqa: BLE001 - the module is still being imported
        return None


def _usual_threads():
    """As many as Inductor takes by itself."""
    return min(32, len(os.sched_getaffinity(0)))
