"""The hook is freed without the garbage collector, and only when nobody is in it."""

from __future__ import annotations

import gc
import os
import socket
import sys
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from tuimon.attach.inject import delivery
from tuimon.hook.bundle import bundle


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    """As for what has lived for long in a big job: the collector does not come by."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def attached(keep: Callable[[Any], Any] = lambda session: None) -> tuple[dict[str, weakref.ref[Any]], Any]:
    """Load the hook, put it in, take it out, free it. Gives its classes by name, and what `keep` of the session gives."""
    boot: dict[str, Any] = {"__name__": "_tuimon_boot"}
    exec(compile(delivery.boot_source(), "<tuimon>", "exec"), boot)
    boot["load"](bundle().items())
    ours, theirs = socket.socketpair()
    with ours, theirs:
        held = [sys.modules["_tuimon_hook.session"].Session(ours, {"pid": os.getpid()}, {})]
        held[0].install()
        held[0].leave("test")
        kept = keep(held[0])
        found = {}
        for name in [name for name in sys.modules if name.startswith("_tuimon_hook.")]:
            for value in vars(sys.modules[name]).values():
                if isinstance(value, type) and value.__module__.startswith("_tuimon_hook"):
                    found[value.__name__] = weakref.ref(value)
        value = None
        held += boot["unload"]()
        boot["free"](held)
    boot.clear()
    return found, kept


def test_all_of_it_goes_at_once() -> None:
    classes, _ = attached()
    assert {"Session", "CompileLog", "Lost", "Mortal"} <= set(classes)
    # the type of the classes is an ordinary class, and stays for the collector, emptied
    assert [name for name, one in classes.items() if one() is not None] == ["Mortal"]


def test_memory_does_not_grow() -> None:
    for _ in range(3):
        attached()
    before = sys.getallocatedblocks()
    for _ in range(10):
        attached()
    # the hook is some three thousand blocks; what stays is the type of its classes
    assert (sys.getallocatedblocks() - before) / 10 < 100


def test_nothing_is_touched_while_somebody_knows_a_part_of_it() -> None:
    classes, guarded = attached(lambda session: session.guarded)
    assert not [name for name, one in classes.items() if one() is None]
    assert guarded("x", lambda: 5, None) == 5  # works as ever: a thread of the job may be in it
    session = weakref.ref(guarded.__self__)
    del guarded
    gc.collect()
    assert session() is None
    assert not [name for name, one in classes.items() if one() is not None]


def test_what_a_thread_of_the_job_has_found_meanwhile_can_be_asked_for_its_class() -> None:
    """A job that goes through `gc.get_objects` may have one of ours in hand just when all is being taken apart."""
    boot: dict[str, Any] = {"__name__": "_tuimon_boot"}
    exec(compile(delivery.boot_source(), "<tuimon>", "exec"), boot)
    boot["load"](bundle().items())
    modules = [vars(sys.modules[name]) for name in list(sys.modules) if name.startswith("_tuimon_hook.")]
    mortal = sys.modules["_tuimon_hook.remains"].Mortal
    classes = [weakref.ref(value) for names in modules for value in names.values() if type(value) is mortal]
    del modules, mortal
    found: list[type] = []

    def look(frame: FrameType, event: str, argument: object) -> None:
        if not found and argument is delattr:  # that is behind the counting: all of it goes
            found.extend(one for one in (known() for known in classes) if one is not None)

    roots = boot["unload"]()
    sys.setprofile(look)
    try:
        boot["free"](roots)
    finally:
        sys.setprofile(None)
    assert len(found) == len(classes) > 30 and roots == []
    assert {(one.__module__.partition(".")[0], bool(one.__qualname__)) for one in found} == {("_tuimon_hook", True)}
    found.clear()
    assert [known() for known in classes if known() is not None] == []


def test_every_class_of_the_hook_can_be_given_up() -> None:
    boot: dict[str, Any] = {"__name__": "_tuimon_boot"}
    exec(compile(delivery.boot_source(), "<tuimon>", "exec"), boot)
    boot["load"](bundle().items())
    mortal = sys.modules["_tuimon_hook.remains"].Mortal
    ordinary = [
        value.__name__
        for name in list(sys.modules)
        if name.startswith("_tuimon_hook.")
        for value in vars(sys.modules[name]).values()
        if isinstance(value, type) and value.__module__.startswith("_tuimon_hook") and type(value) is not mortal
    ]
    boot["free"](boot["unload"]())
    assert set(ordinary) == {"Mortal"}
