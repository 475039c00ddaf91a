"""Calls of a graph with dynamic sizes have an instrument for each set of sizes, and lose nothing where they are odd."""

from __future__ import annotations

import threading
import types
from typing import Any

import pytest

from tuimon.hook import timers
from tuimon.hook.outbox import Outbox
from tuimon.hook.sizes import MOST, Sizes, symbols_of


class Hook:
    """What is needed of a session."""

    def __init__(self) -> None:
        self.outbox = Outbox(None)
        self.told: list[tuple[Any, ...]] = []
        self._last = 100

    def next_number(self) -> int:
        self._last += 1
        return self._last

    def send_variant(self, *told: Any) -> None:
        self.told.append(told)

    @property
    def numbers(self) -> list[int]:
        return [row[0] for row in self.outbox.queue]


def timed(hook: Hook, *symbols: tuple[int, str]) -> Any:
    sizes = Sizes(hook, 7, symbols)
    sizes.about = ("0/1", "__compiled_fn_1", "f", "a.py", 3)
    return timers.sized_timer(lambda *args: args, 7, hook.outbox, sizes)


def test_each_set_of_sizes_has_its_instrument_and_is_told_once() -> None:
    hook = Hook()
    one, two = timed(hook, (1, "s7")), timed(hook, (0, "s3"), (2, "s5"))
    assert one("x", 20) == ("x", 20)
    one("x", 21), one("x", 20), two(4, "x", 5), two(4, "x", 6)
    assert hook.numbers == [101, 102, 101, 103, 104]
    about = ("0/1", "__compiled_fn_1", "f", "a.py", 3)
    assert hook.told[0] == (101, 7, [("s7", 20)], about)
    assert hook.told[3] == (104, 7, [("s3", 4), ("s5", 6)], about)


def test_too_many_sizes_and_odd_calls_stay_under_the_graphs_own_number() -> None:
    hook = Hook()
    region = timed(hook, (0, "s1"))
    for size in range(2, 2 + MOST + 5):
        region(size)
    assert hook.numbers[-5:] == [7] * 5 and len(hook.told) == MOST
    hook.outbox.queue.clear()
    assert region() == () and region([1]) == ([1],) and region(1.5) == (1.5,)
    assert hook.numbers == [7] * 3


def test_it_times_drops_and_falls_silent_as_any_timer() -> None:
    hook = Hook()
    here = hook.outbox.room

    def fails(*_: object) -> None:
        raise KeyError("the job's own")

    failing = timers.sized_timer(fails, 7, hook.outbox, Sizes(hook, 7, [(0, "s1")]))
    with pytest.raises(KeyError):
        failing(5)
    number, thread, flags, begin, end = hook.outbox.queue.pop()
    assert (number, thread, flags) == (7, threading.get_ident(), timers.RAISED) and begin <= end
    here[0] = 1
    region = timed(hook, (0, "s1"))
    region(3), region(3)
    assert hook.numbers == [101] and hook.outbox.dropped == [1]
    here[0] = False
    with pytest.raises(KeyError):
        failing(5)
    assert hook.numbers == [101]


def test_symbols_are_the_sizes_among_a_graphs_placeholders(monkeypatch: pytest.MonkeyPatch) -> None:
    class SymInt:
        def __str__(self) -> str:
            return "s77"

    monkeypatch.setitem(__import__("sys").modules, "torch", types.SimpleNamespace(SymInt=SymInt))
    nodes = [types.SimpleNamespace(op="placeholder", meta={"example_value": value}) for value in ("a tensor", SymInt(), 3)] + [
        types.SimpleNamespace(op="call_function", meta={"example_value": SymInt()})
    ]
    graph = types.SimpleNamespace(graph=types.SimpleNamespace(nodes=nodes))
    assert symbols_of(graph) == [(1, "s77")]
    assert symbols_of(None) == [] and Sizes.taken_by(Hook(), 1, types.SimpleNamespace(graph=None)) is None
