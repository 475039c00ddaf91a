"""Numbers of code objects: by identity, told once and first, and nothing kept alive."""

from __future__ import annotations

import gc
import threading
import weakref
from types import CodeType, SimpleNamespace
from typing import Any

import pytest

from tuimon.hook import codes
from tuimon.hook.codes import Codes


class Queue:
    """The part of an outbox that is used."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def put(self, message: dict[str, Any]) -> None:
        self.sent.append(message)


def a_code(source: str = "def f(x): return x") -> CodeType:
    scope: dict[str, Any] = {}
    exec(compile(source, "a.py", "exec"), scope)
    code: CodeType = scope["f"].__code__
    return code


def make() -> tuple[Codes, Queue]:
    queue = Queue()
    return Codes(SimpleNamespace(outbox=queue)), queue


def test_equal_code_objects_are_two_and_each_is_told_once() -> None:
    known, queue = make()
    one, other = a_code(), a_code()
    assert one == other and hash(one) == hash(other)
    numbers = [known.number(one), known.number(other), known.number(one), known.number(other)]
    assert numbers[:2] == numbers[2:] and numbers[0] != numbers[1]
    assert [m["code"] for m in queue.sent] == numbers[:2]
    told = {k: queue.sent[0][k] for k in ("k", "function", "file", "line")}
    assert told == {
        "k": "code",
        "function": "f",
        "file": "a.py",
        "line": 1,
    }
    assert queue.sent[0]["qualname"] == "f" and queue.sent[0]["t"] > 0


def test_nothing_is_kept_and_an_address_used_again_is_another_number() -> None:
    known, queue = make()
    seen: set[int] = set()
    addresses: set[int] = set()
    for _ in range(200):
        code = a_code()
        addresses.add(id(code))
        seen.add(known.number(code))
        gone = weakref.ref(code)
        del code
        gc.collect(0)
        assert gone() is None
    assert len(addresses) < 200, "no address was used again: the test shows nothing"
    assert len(seen) == 200 == len(queue.sent) and not known._known


def test_the_table_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codes, "MOST", 5)
    known, _ = make()
    held = [a_code() for _ in range(20)]
    numbers = [known.number(code) for code in held]
    assert len(set(numbers)) == 20 and len(known._known) == 5
    assert [known.number(code) for code in held[-5:]] == numbers[-5:]
    assert known.number(held[0]) not in numbers  # forgotten: told again, never mistaken


def test_threads_agree_on_the_number_and_every_number_in_use_was_told() -> None:
    known, queue = make()
    held = [a_code() for _ in range(200)]
    found: list[list[int]] = []
    start = threading.Barrier(4)

    def work() -> None:
        start.wait()
        found.append([known.number(code) for code in held])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(numbers == found[0] for numbers in found)
    assert set(found[0]) <= {m["code"] for m in queue.sent}
