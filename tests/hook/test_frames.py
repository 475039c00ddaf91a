"""Reading the stack of another thread in one go."""

from __future__ import annotations

import gc
import sys
import threading
from types import CodeType

from tuimon.hook.frames import rows_of, variables_of


def test_rows_and_variables_are_those_of_the_thread_and_collecting_stays_as_it_was() -> None:
    inside, over = threading.Event(), threading.Event()

    def stand(left: int) -> None:
        if left:
            stand(left - 1)
        else:
            inside.set()
            over.wait(60)

    thread = threading.Thread(target=stand, args=(2,))
    thread.start()
    try:
        assert inside.wait(60) and thread.ident is not None
        code: CodeType = stand.__code__
        for on in (True, False):
            (gc.enable if on else gc.disable)()
            rows = rows_of(thread.ident, 4000)
            assert [row[0] for row in rows].count(code) == 3 and rows[-1][0].co_name == "_bootstrap"
            assert all(type(line) is int and type(offset) is int and type(names) is dict for _, line, offset, names in rows)
            assert [variables["left"] for variables in variables_of(thread.ident, code, 4000)] == [0, 1, 2]
            assert len(rows_of(thread.ident, 2)) == 2
            assert gc.isenabled() is on
    finally:
        gc.enable()
        over.set()
        thread.join()
    assert rows_of(thread.ident, 4000) == [] and variables_of(thread.ident, stand.__code__, 10) == []


def test_a_thread_that_runs_on_is_read_at_any_moment() -> None:
    over = threading.Event()

    def deep(left: int) -> int:
        return deep(left - 1) if left else sum(value for value in range(3))

    def run() -> None:
        while not over.is_set():
            deep(20)

    before = sys.getswitchinterval()
    thread = threading.Thread(target=run)
    sys.setswitchinterval(1e-5)
    thread.start()
    try:
        assert thread.ident is not None
        for _ in range(2000):
            assert all(type(row[0]) is CodeType for row in rows_of(thread.ident, 4000))
            assert all(0 <= variables["left"] <= 20 for variables in variables_of(thread.ident, deep.__code__, 4000))
    finally:
        over.set()
        thread.join()
        sys.setswitchinterval(before)
