"""Waiting for work: the thread of a server that sits where its next request will wake it. That is no fault of a step's.

Told by the stack alone, and only for a job that trains nothing: in a training loop an empty queue is a late input.
"""

from __future__ import annotations

from collections.abc import Sequence

from tuimon.model.identity import is_library
from tuimon.model.slow.rule import Base
from tuimon.model.steps.parts import CATEGORIES, StepAccount, StepEvidence

_HELPERS = {
    ("threading.py", "wait"), ("threading.py", "acquire"), ("threading.py", "__enter__"), ("selectors.py", "select"),
    ("connection.py", "_poll"), ("connection.py", "poll"), ("connection.py", "wait"), ("connection.py", "_recv"),
    ("connection.py", "_recv_bytes"), ("connection.py", "recv_bytes"),
}  # fmt: skip
"""(file, function) of the standard library that do the waiting on behalf of one of WAITS."""
WAITS = {
    ("queue.py", "get"): "Queue.get",
    ("queues.py", "get"): "Queue.get",
    ("socket.py", "accept"): "socket.accept",
    ("poll.py", "poll"): "zmq.Poller.poll",
}
"""What a loop that serves calls for its next request, by file and function. (A wait in C leaves no frame and is not known.)"""
LOOPS = {
    ("base_events.py", "_run_once"): "asyncio",
    ("thread.py", "_worker"): "a pool of threads",
    ("socketserver.py", "serve_forever"): "socketserver",
}
"""Loops of the standard library that serve, and wait themselves."""
_ZMQ = ("/zmq/",)
_TRAINING = tuple(CATEGORIES.index(name) for name in ("backward regions", "optimizer"))


def serves(account: StepAccount, evidence: StepEvidence | None, base: Base | None = None) -> bool:
    """Whether neither this step nor the usual one before it, where one is known, has trained anything."""
    trained = any(account.parts[at] or (base is not None and base.usual[at]) for at in _TRAINING)
    engine = evidence is not None and (evidence.backwards > 0 or any(row.role == "engine" for row in evidence.rows))
    return not trained and not engine


def where_idle(stack: Sequence[tuple[str, str]]) -> str:
    """What this stack ((file, function), outermost first) waits for work in: "Queue.get"; empty where it does not."""
    inner = list(stack)
    while inner:
        file, function = inner.pop()
        if not is_library(file):
            return ""
        key = (file.replace("\\", "/").rpartition("/")[2], function)
        if key in LOOPS:
            return LOOPS[key]
        if key in WAITS and (key[0] != "poll.py" or any(part in file for part in _ZMQ)):
            return "" if not inner or _passes_on(inner[-1][0]) else WAITS[key]
        if key not in _HELPERS:
            return ""
    return ""


def _passes_on(file: str) -> bool:
    """Whether the caller of a wait is no server but something that waits for its own helpers: a loader, a pool, an executor."""
    packages = ("/site-packages/", "/dist-packages/")
    if not any(part in file for part in packages):
        return is_library(file)  # the standard library's
    return any(f"{part}torch/" in file for part in packages)
