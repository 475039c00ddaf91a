"""Where the job's loops turn, without torch: which loops a place is in, and the passages of their heads."""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.hook.test_eager import Hook, needs_monitoring
from tuimon.hook import monitoring, timers, wire
from tuimon.hook.eager import Eager
from tuimon.hook.loops import Loops, is_timed, loops_of

HEADS = sys.version_info >= (3, 12)


class Session(Hook):
    """What loops need of a session besides."""

    can_skip = True

    def __init__(self) -> None:
        super().__init__()
        self.eager = Eager(self)

    def take(self) -> None:
        """Have the messages that wait to be made made, as the sender does."""
        for entry in [entry for entry in self.outbox.queue if callable(entry)]:
            self.outbox.queue.remove(entry)
            entry()

    def messages(self, kind: str) -> list[dict[str, Any]]:
        return [entry for entry in self.outbox.queue if type(entry) is dict and entry["k"] == kind]


@pytest.fixture
def hook() -> Iterator[Session]:
    made = Session()
    yield made
    made.here[0] = False
    assert made.undo.run() == []
    if HEADS:
        assert [sys.monitoring.get_tool(tool) for tool in monitoring.TOOLS] == [None, None]


def on_a_thread(job: Callable[[], None]) -> int:
    """Run it where there is nothing else on the stack; gives the thread's ident."""
    thread = threading.Thread(target=job)
    thread.start()
    thread.join(30)
    assert thread.ident is not None
    return thread.ident


def compiled(text: str) -> types.CodeType:
    """The code of the function that the text defines."""
    module = compile(text, "<job>", "exec")
    return next(one for one in module.co_consts if isinstance(one, types.CodeType))


def offset_of(code: types.CodeType, line: int) -> int:
    return next(begin for begin, _, found in code.co_lines() if found == line)


NESTED = """\
def f(n, items):
    a = 0
    while a < n:
        for item in items:
            if item:
                continue
            call(item)
        a += 1
        call(a)
    for item in items: call(item)
    call(0)
"""


def test_a_place_is_in_the_loops_that_are_around_it() -> None:
    code = compiled(NESTED)
    found = loops_of(code)

    def around(line: int) -> int:
        return sum(head <= offset_of(code, line) <= jump for head, jump in found)

    assert len(found) == 3
    assert [around(line) for line in (2, 7, 9, 10, 11)][:3] == [0, 2, 1] and around(11) == 0
    assert found == sorted(found, key=lambda loop: (loop[0], -loop[1]))


def test_waiting_for_another_generator_is_no_loop() -> None:
    assert loops_of(compiled("def f(g):\n    yield from g\n")) == []
    assert loops_of(compiled("async def f(g):\n    await g\n")) == []


def test_where_a_handler_goes_on_is_no_loop() -> None:
    text = "def f(n):\n    try:\n        n()\n    except E:\n        pass\n    with n:\n        n()\n"
    code = compiled(text + "    for _ in n:\n        n()\n    n()\n")
    (loop,) = loops_of(code)
    assert loop[0] <= offset_of(code, 9) <= loop[1] < offset_of(code, 10)


def test_a_loop_of_many_instructions_is_found_like_any() -> None:
    (loop,) = loops_of(compiled("def f(n):\n    for i in range(n):\n" + "        n = n + i * 2\n" * 300))
    assert loop[1] - loop[0] > 600


def test_where_a_call_stands_is_told_with_its_loops(hook: Session) -> None:
    loops = Loops(hook)

    def job() -> None:
        for _ in range(2):
            for i in range(6):
                if i == 2:
                    step(loops)

    def step(loops: Loops) -> None:
        loops.anchor(7)
        hook.take()

    ident = on_a_thread(job)
    told = hook.messages("loops")[0]
    assert (told["anchor"], told["thread"]) == (7, ident)
    names = {message["code"]: message["function"] for message in hook.messages("code")}
    assert [names[code] for code, _ in told["site"]][-2:] == ["job", "step"]
    assert [names[code] for _, code, _, _ in told["heads"]][-2:] == ["job", "job"]
    if not HEADS:
        assert [row[0] for row in told["heads"]] == [0, 0]
        assert hook.samples == [] and "3.12 has" in hook.instruments["loop heads"]
        return
    outer, inner = (row[0] for row in told["heads"][-2:])
    assert [added["role"] for added in hook.added][-2:] == ["loop", "loop"]
    # inner: three passages and the end of the first round, then six and the end; outer: the second round and the end
    assert (hook.samples.count(inner), hook.samples.count(outer)) == (4 + 7, 2)
    assert len(hook.messages("loops")) == 1, "the second time there is nothing new"


def test_code_that_others_name_before_the_note_is_made_is_told_before_it(hook: Session) -> None:
    loops = Loops(hook)

    def job() -> None:
        for _ in range(2):
            loops.anchor(7)
            hook.codes.number(sys._getframe(0).f_code)
            hook.outbox.queue.append((7, 1, 0, 10, 20))

    on_a_thread(job)
    sent = bytearray()
    hook.outbox._sock = types.SimpleNamespace(send=lambda data, flags: (sent.extend(data), len(data))[1])
    hook.outbox.flush()
    order: list[str] = []
    known: set[int] = set()
    for kind, body in wire.Decoder().feed(bytes(sent)):
        message = wire.read_json(body) if kind == wire.JSON_FRAME else {"k": "row"}
        order.append(message["k"])
        if message["k"] == "code":
            known.add(message["code"])
        if message["k"] == "loops":
            assert {code for code, _ in message["site"]} | {row[1] for row in message["heads"]} <= known
            assert any(row[1] for row in message["heads"])
    assert order.index("loops") < order.index("row") and order.count("loops") == 1


@needs_monitoring
def test_a_head_that_is_passed_too_often_is_let_go(hook: Session) -> None:
    loops = Loops(hook)

    def job(n: int = 3 * monitoring.BUDGET) -> None:
        for i in range(n):
            if i == 0:
                loops.anchor(7)
                hook.take()

    on_a_thread(job)
    ((number, *_),) = hook.messages("loops")[0]["heads"]
    assert hook.samples.count(number) == monitoring.BUDGET
    loops.second()
    assert [row[0] for row in hook.messages("loops")[-1]["heads"]] == [0]
    assert len(hook.messages("loops")) == 2
    before = len(hook.samples)
    on_a_thread(job)
    assert len(hook.samples) == before, "and stays so"


@needs_monitoring
def test_marks_and_iterators_share_the_tool(hook: Session) -> None:
    watching = hook.eager.monitoring()
    assert watching.why_not() is None

    def items(n: int) -> Iterator[int]:
        yield from range(n)

    def marked() -> None:
        pass

    watching.waits(items.__code__, 3)
    watching.mark(marked.__code__, 4)
    watching.calls(marked.__code__, 5)  # Dynamo is not there: no call of a frame
    assert list(items(4)) == [0, 1, 2, 3]
    marked()
    rows = [entry for entry in hook.outbox.queue if type(entry) is tuple]
    assert [row[0] for row in rows][:5] == [3, 3, 3, 3, 3], "four items and the end"
    assert all(begin <= end for number, _, _, begin, end in rows if number == 3)
    assert [row[3] == row[4] for row in rows if row[0] == 4] == [True]
    forgetful = (one for one in items(2) if one > 5)
    assert list(forgetful) == [] and watching.number_of_waits(items.__code__) == 3


def test_a_timed_call_is_known_from_outside(hook: Session) -> None:
    loops = Loops(hook)
    inside, go_on = threading.Event(), threading.Event()

    def region() -> None:
        inside.set()
        assert go_on.wait(30)

    timed: Callable[[], None] = timers.call_timer(region, 9, hook.outbox)
    assert is_timed(timed.__code__) and not is_timed(region.__code__)

    def job() -> None:
        for _ in range(1):
            timed()

    loops.added(9, "forward", True)
    assert loops.wanted
    thread = threading.Thread(target=job)
    thread.start()
    try:
        assert inside.wait(30) and thread.ident is not None
        loops.look(thread.ident)
    finally:
        go_on.set()
        thread.join()
    (told,) = hook.messages("loops")
    names = {message["code"]: message["function"] for message in hook.messages("code")}
    assert told["anchor"] == 9 and names[told["site"][-1][0]] == "job" and len(told["heads"]) == 1
    assert hook.samples.count(told["heads"][0][0]) == int(HEADS), "the head at the loop's end"
