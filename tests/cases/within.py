"""Runs a case program unchanged, holds it at chosen steps and writes what Dynamo and the tensors were: inside its process.

    python within.py '{"folder": .., "holds": [..], "wait": .., "pace": .., "witness": true|false}' PROGRAM

A step is over when the program sleeps for PACE seconds; step 0 is its sleep of WAIT. At a hold the process writes
`reached-STEP-PID` into the folder and sleeps until there is a file `go-STEP`. The witness `witness-NAME.json` is written at the
end of the program, and of each process that it forks. The standard library only, and the job's torch; Python 3.10.
"""

import ctypes
import hashlib
import json
import multiprocessing
import multiprocessing.util
import os
import re
import sys
import threading
import time
import types
from pathlib import Path

LIMIT_S = 600.0
MANY = 1000
"""A longer list is not looked through for tensors at each step."""
TIMES = re.compile(r"_(s|ms|us|ns)$|time|duration|latency")
OF_THE_STACK = "stack_trace"
"""Left out: torch cuts a fixed number of frames off the stack that it notes with a compilation, and the timer of a resume
function is one frame more on it."""
CHANGING = re.compile(r"0x[0-9a-f]+|\b\d{7,}\b|[0-9a-f]{8}_[0-9a-f]{4}_[0-9a-f]{4}_[0-9a-f]{4}_[0-9a-f]{12}")


def steady(text):
    """A text without the addresses, ids and uuids that differ from process to process."""
    return CHANGING.sub("#", text)


def plain(value):
    """A value as JSON that does not change from process to process."""
    if isinstance(value, dict):
        return {steady(str(key)): plain(inner) for key, inner in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(steady(str(inner)) for inner in value)
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if value is None or isinstance(value, (bool, int)):
        return value
    return steady(str(value))


def tensors(torch, value, depth=3):
    """The tensors in a value, in a fixed order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, torch.nn.Module):
        yield from value.parameters()
        yield from value.buffers()
    elif isinstance(value, torch.optim.Optimizer):
        yield from tensors(torch, [value.param_groups, list(value.state.values())], 4)
    elif depth and type(value) is dict:
        for inner in value.values():
            yield from tensors(torch, inner, depth - 1)
    elif depth and type(value) in (list, tuple) and len(value) <= MANY:
        for inner in value:
            yield from tensors(torch, inner, depth - 1)


def digest(torch, names):
    """sha1 of every tensor that these names lead to, gradients with them, and of the state of the random numbers."""
    sums = {"rng": hashlib.sha1(bytes(torch.get_rng_state().tolist())).hexdigest()}
    for name in sorted(names):
        whole = None
        for tensor in tensors(torch, names[name]):
            whole = whole or hashlib.sha1()
            for part in (tensor, tensor.grad if tensor.is_leaf else None):
                if part is not None:
                    flat = part.detach().cpu().contiguous()
                    whole.update(f"{part.dtype} {tuple(part.shape)}".encode())
                    whole.update(ctypes.string_at(flat.data_ptr(), flat.numel() * flat.element_size()) if flat.numel() else b"")
        if whole is not None:
            sums[name] = whole.hexdigest()
    return sums


def of_metrics(metrics):
    """The fields of a compilation's metrics that are no times and no stack."""
    left_out = {name for name, value in vars(metrics).items() if TIMES.search(name) or type(value) is float}
    return {name: value for name, value in vars(metrics).items() if name not in left_out | {OF_THE_STACK}}


class Within:
    """The process, seen from inside."""

    def __init__(self, folder, holds, wait, pace, witness):
        self.folder, self.holds = Path(folder), set(holds)
        self.wait, self.pace, self.wanted = wait, pace, witness
        self.step = -1
        self.steps = []
        self.sleep = time.sleep

    def slept(self, seconds):
        """Stands for `time.sleep`: counts the steps, holds at those chosen."""
        begins = seconds == self.wait and self.step < 0
        if not begins and seconds != self.pace:
            return self.sleep(seconds)
        self.step += 1 if self.step >= 0 or begins else 2
        if self.wanted and self.step > 0 and "torch" in sys.modules:  # before the first step nothing is seeded
            self.steps.append(digest(sys.modules["torch"], sys._getframe(1).f_locals))
        if self.step in self.holds:
            self.hold()
        return self.sleep(seconds)

    def hold(self):
        """Say what has been compiled, and wait for the word to go on."""
        utils = sys.modules.get("torch._dynamo.utils")
        metrics = utils.get_compilation_metrics() if utils is not None else []
        compiled = [(str(m.compile_id), "backward" if m.is_forward is False else "forward") for m in metrics]
        name = f"reached-{self.step}-{os.getpid()}"
        (self.folder / f".{name}").write_text(json.dumps(compiled))
        (self.folder / f".{name}").rename(self.folder / name)
        deadline = time.monotonic() + LIMIT_S
        while not (self.folder / f"go-{self.step}").exists() and time.monotonic() < deadline:
            self.sleep(0.01)

    def write(self):
        """Write what Dynamo counted and what the tensors are."""
        torch = sys.modules.get("torch")
        told = {"steps": self.steps}
        if torch is not None:
            told["end"] = digest(torch, sys.modules["__main__"].__dict__)
            told["global state"] = {
                "threads": torch.get_num_threads(),
                "dtype": str(torch.get_default_dtype()),
                "grad": torch.is_grad_enabled(),
                "deterministic": torch.are_deterministic_algorithms_enabled(),
            }
        utils = sys.modules.get("torch._dynamo.utils")
        if utils is not None:
            told["counters"] = plain(utils.counters)
            told["metrics"] = [plain(of_metrics(metrics)) for metrics in utils.get_compilation_metrics()]
            told["guard failures"] = sorted([code.co_name, plain(why)] for code, why in utils.guard_failures.items())
            told["breaks"] = [steady(str(broke.reason)) for broke in utils.graph_break_reasons]
        told["process"] = left(torch)
        name = f"witness-{multiprocessing.current_process().name}"
        (self.folder / f"{name}.json").write_text(json.dumps(told))

    def forked(self, _self):
        """In a child of `multiprocessing`: it too is to write at its end."""
        self.step = max(self.step, 0)
        self.steps = []
        if self.wanted:
            multiprocessing.util.Finalize(None, self.write, exitpriority=100)


def left(torch):
    """What a tool could leave behind in a process."""
    import gc
    import logging

    monitoring = getattr(sys, "monitoring", None)
    return {
        "threads": sorted(re.sub(r"\d+", "#", thread.name) for thread in threading.enumerate()),
        "gc callbacks": len(gc.callbacks),
        "trace handlers": len(logging.getLogger("torch.__trace").handlers),
        "profile": sys.getprofile() is not None,
        "trace": sys.gettrace() is not None,
        "monitoring": [monitoring.get_tool(tool) for tool in range(6)] if monitoring else [],
        "meta path": [str(type(finder)) for finder in sys.meta_path if not isinstance(finder, type)],
        "modules": sorted(name for name in sys.modules if "tuimon" in name),
    }


def main():
    """Run the program as if it had been started by itself."""
    within = Within(**json.loads(sys.argv[1]))
    program = os.path.abspath(sys.argv[2])
    sys.argv[:] = sys.argv[2:]
    sys.path[0] = os.path.dirname(program)
    multiprocessing.util.register_after_fork(within, within.forked)
    time.sleep = within.slept
    code = compile(Path(program).read_bytes(), program, "exec")
    module = types.ModuleType("__main__")
    module.__file__ = program
    sys.modules["__main__"] = module
    try:
        exec(code, module.__dict__)
    finally:
        if within.wanted:
            within.write()


if __name__ == "__main__":
    main()
