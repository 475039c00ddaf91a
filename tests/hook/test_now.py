"""What compiles, told from the stacks of threads: played by functions under the names of torch's modules."""

from __future__ import annotations

import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tuimon.hook.now import Found, Now, compiling

CONVERT = """
def _compile(code, compile_id, go):
    locals = globals = {}
    closure = ()
    start_time_ns = WALL
    trace_frame(go)
def trace_frame(go):
    go()
"""
BACKWARD = """
def get_or_compile(go, saved_compile_context):
    inner(go)
def inner(go):
    go()
"""
INDUCTOR = """
def _compile_fx_inner(go):
    start = WALL
    inner(go)
def inner(go):
    go()
"""
WAIT = """
def wait(go):
    go()
"""


def module(name: str, text: str, **more: Any) -> dict[str, Any]:
    """The names of a module that has this text."""
    names: dict[str, Any] = {"__name__": name, **more}
    exec(compile(text, f"/site-packages/{name.replace('.', '/')}.py", "exec"), names)
    return names


def the_job(x: int) -> int:
    """What is compiled."""
    return x + 1


WALL_S = 1_700_000_000.25
DYNAMO = module("torch._dynamo.convert_frame", CONVERT, WALL=int(WALL_S * 1e9))
AUTOGRAD = module("torch._functorch._aot_autograd.runtime_wrappers", BACKWARD)
FX = module("torch._inductor.compile_fx", INDUCTOR, WALL=WALL_S)
KERNELS = module("torch._inductor.async_compile", WAIT)
STRANGER = module("my.compiler", CONVERT + WAIT, WALL=1)


class Id:
    """A compile id as Dynamo makes it."""

    def __str__(self) -> str:
        return "3/1"


def forward(go: Callable[[], Any]) -> None:
    """As Dynamo compiles a frame, by now in Inductor."""
    DYNAMO["_compile"](the_job.__code__, Id(), lambda: KERNELS["wait"](go))


def backward(go: Callable[[], Any]) -> None:
    """As autograd has a backward compiled."""
    context = types.SimpleNamespace(compile_id=Id())
    AUTOGRAD["get_or_compile"](lambda: FX["_compile_fx_inner"](go), context)


@contextmanager
def held(work: Callable[[Callable[[], Any]], Any]) -> Iterator[int]:
    """A thread that is in this work until the block is over; its ident."""
    inside, over = threading.Event(), threading.Event()

    def go() -> None:
        inside.set()
        over.wait(60)

    thread = threading.Thread(target=work, args=(go,), name="worker")
    thread.start()
    try:
        assert inside.wait(60) and thread.ident is not None
        yield thread.ident
    finally:
        over.set()
        thread.join(60)


def seen(work: Callable[[Callable[[], Any]], Any]) -> Found | None:
    """What the stack of a thread in this work tells."""
    with held(work) as ident:
        found: Found | None = compiling(ident)
        return found


def test_a_forward_is_named_with_its_phase_and_its_begin() -> None:
    found = seen(forward)
    assert found is not None
    assert (found.compile_id, found.direction, found.phase) == ("3/1", "forward", "building kernels")
    assert found.code is the_job.__code__ and found.since == pytest.approx(WALL_S)
    assert [row[2] for row in found.user if row[0] == __file__][-1] == "forward"


def test_a_backward_is_named_by_the_context_that_autograd_keeps() -> None:
    found = seen(backward)
    assert found is not None
    assert (found.compile_id, found.direction, found.phase) == ("3/1", "backward", "optimising the graph")
    assert found.code is None and found.since == pytest.approx(WALL_S)


def test_the_innermost_of_two_is_told() -> None:
    found = seen(lambda go: forward(lambda: backward(go)))
    assert found is not None and found.direction == "backward"


def test_functions_of_the_same_names_elsewhere_are_no_compilation() -> None:
    assert seen(lambda go: STRANGER["wait"](go)) is None
    assert seen(lambda go: STRANGER["_compile"](the_job.__code__, Id(), go)) is None
    assert seen(lambda go: KERNELS["wait"](go)) is None  # a worker that builds a kernel for another thread
    assert seen(lambda go: go()) is None


class Hook:
    """What it sees of the session."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.outbox = types.SimpleNamespace(put=self.messages.append, name_of=lambda ident: f"thread {ident}")
        self.codes = types.SimpleNamespace(number=lambda code: 7)

    def guarded(self, name: str, function: Callable[..., Any], otherwise: Any, *args: Any) -> Any:
        """Here nothing is held back."""
        return function(*args)


def test_it_is_told_once_and_again_when_the_phase_is_another() -> None:
    hook = Hook()
    now = Now(hook, set())
    with held(forward) as ident:
        now.look()
        now.look()
        (message,) = hook.messages
        assert (message["k"], message["compile_id"], message["code"]) == ("compiling", "3/1", 7)
        assert (message["function"], message["direction"], message["phase"]) == ("the_job", "forward", "building kernels")
        assert message["since_wall"] == pytest.approx(WALL_S) and message["thread"] == f"thread {ident}"
        now.open[ident] = ("3/1", "forward", "generating code")
        now.look()
        assert [message["phase"] for message in hook.messages] == ["building kernels"] * 2
    now.look()
    assert now.open == {} and len(hook.messages) == 2


def test_a_backwards_frame_is_named_by_its_cache_entry() -> None:
    hook = Hook()
    with held(backward):
        Now(hook, set()).look({"3/1": the_job.__code__})
    (message,) = hook.messages
    assert (message["function"], message["code"], message["direction"]) == ("the_job", 7, "backward")


def test_a_thread_of_which_the_log_tells_is_left_to_it() -> None:
    hook = Hook()
    heard: set[int] = set()
    now = Now(hook, heard)
    with held(forward) as ident:
        now.look()
        heard.add(ident)
        now.tick()
        assert now.open == {}
    assert len(hook.messages) == 1


def test_no_look_where_nothing_was_under_way() -> None:
    now = Now(Hook(), set())
    now.look()
    looks: list[float] = []
    now._look = lambda codes, heard: looks.append(time.monotonic())  # type: ignore[attr-defined]
    now.tick()
    assert looks == []


def test_of_a_thread_that_the_log_told_of_meanwhile_the_begin_is_told_nevertheless() -> None:
    hook = Hook()
    heard: set[int] = set()
    with held(forward) as ident:
        heard.add(ident)
        Now(hook, heard).look()
    assert len(hook.messages) == 1


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="from 3.13 on the variables are read where they are")
def test_a_frame_that_a_tracer_stands_in_keeps_its_variables() -> None:
    """The interpreter takes a frame's variables from the dict that the tracer was shown, once the tracer is over."""
    inside, over = threading.Event(), threading.Event()
    failed: list[str] = []

    def tracer(frame: types.FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_name != "_compile":
            return None
        if frame.f_lineno == frame.f_code.co_firstlineno + 4:  # where it calls trace_frame
            inside.set()
            over.wait(60)
        return tracer

    def work() -> None:
        sys.settrace(tracer)
        try:
            DYNAMO["_compile"](the_job.__code__, Id(), lambda: None)
        except UnboundLocalError as error:
            failed.append(str(error))
        finally:
            sys.settrace(None)

    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(60) and thread.ident is not None
    compiling(thread.ident)
    over.set()
    thread.join(60)
    assert failed == []
