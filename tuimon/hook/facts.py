"""Facts about the job that can be read without touching it: versions, devices, rank, limits."""

import os
import sys


def gather(settings):
    """A dict of facts. Nothing is imported or initialised for it: CUDA is asked only where the job has initialised it.

    `settings`: a `Settings`, kept from one time to the next.
    """
    torch = sys.modules.get("torch")
    version = getattr(getattr(torch, "version", None), "__version__", None) or getattr(torch, "__version__", None)
    return {
        "pid": os.getpid(),
        "python": ".".join(str(part) for part in sys.version_info[:3]),
        "torch": None if version is None else str(version),
        "devices": _devices(torch),
        "rank": _distributed("get_rank", "RANK"),
        "world_size": _distributed("get_world_size", "WORLD_SIZE"),
        "recompile_limit": settings.recompile_limit(),
        "options": settings.options(),
    }


def compile_id():
    """Dynamo's id of the compilation that runs on this thread, as text; None outside of one."""
    context = getattr(sys.modules.get("torch._guards"), "CompileContext", None)
    current = context.current_compile_id() if context is not None else None
    return None if current is None else str(current)


def frame_evaluator():
    """Dynamo's C module for frame evaluation, which is part of torch itself; None while the job has not imported torch."""
    return getattr(getattr(sys.modules.get("torch._C"), "_dynamo", None), "eval_frame", None)


def code_skipper():
    """A function that makes Dynamo leave a code object alone, None while torch is not there.

    Up to torch 2.9 or so it is a C function, later a few lines of Python around one; both are there before Dynamo is loaded.
    """
    evaluator = frame_evaluator()
    skip = getattr(evaluator, "skip_code", None)
    if skip is not None:
        return skip
    strategies = _strategies(evaluator)
    if strategies is None:
        return getattr(sys.modules.get("torch._dynamo.eval_frame"), "skip_code", None)
    set_strategy, strategy, action = strategies
    leave = strategy(action.SKIP, action.DEFAULT)
    return lambda code: set_strategy(code, leave)


def hide_from_dynamo(code):
    """(what makes Dynamo leave alone this code and all that it calls, what undoes that); None where torch has no such thing.

    There is no asking what was set before. For a function of torch's own that was nothing, or Dynamo's note that it is not to
    be looked at, which the next look makes again.
    """
    strategies = _strategies(frame_evaluator())
    if strategies is None:
        return None
    set_strategy, strategy, action = strategies
    hidden, shown = strategy(action.SKIP, action.SKIP), strategy(action.DEFAULT, action.DEFAULT)
    return lambda: set_strategy(code, hidden), lambda: set_strategy(code, shown)


def _strategies(evaluator):
    names = ("set_code_exec_strategy", "_FrameExecStrategy", "_FrameAction")
    found = [getattr(evaluator, name, None) for name in names]
    return None if None in found else found


def _devices(torch):
    cuda = getattr(torch, "cuda", None)
    try:
        if cuda is not None and cuda.is_initialized():
            return [cuda.get_device_name(index) for index in range(cuda.device_count())]
    except Exception:  # noqa: BLE001 - a driver's complaint is no reason to fail
        return []
    return ["cpu"] if torch is not None and hasattr(torch, "Tensor") else []


def _distributed(function, variable):
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return int(getattr(distributed, function)())
        return int(os.environ[variable]) if variable in os.environ else None
    except Exception:  # noqa: BLE001 - half initialised, or no number
        return None
