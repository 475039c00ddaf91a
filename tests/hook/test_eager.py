"""Watching calls that run in eager, without torch: what is put in stays silent where it should, and goes out whole."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tuimon.hook import eager, lookups, monitoring
from tuimon.hook.codes import Codes
from tuimon.hook.outbox import Outbox
from tuimon.hook.undo import Undo

needs_monitoring = pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with CPython 3.12")


class Hook:
    """What the instruments need of a session."""

    def __init__(self) -> None:
        self.here = [True]
        self.outbox = Outbox(None)
        self.undo = Undo()
        self.codes = Codes(self)
        self.instruments: dict[str, str] = {}
        self.gaps: list[tuple[str, str]] = []
        self.added: list[dict[str, Any]] = []
        self._number = 0

    def guarded(self, name: str, function: Callable[..., Any], otherwise: Any, *args: Any) -> Any:
        return function(*args)

    def instrument(self, name: str, state: str) -> None:
        self.instruments[name] = state

    def skip(self, function: Callable[..., Any]) -> None:
        pass

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def send_added(self, number: int, role: str, compile_id: str | None, *_: Any, **more: Any) -> None:
        self.added.append({"number": number, "role": role, "compile_id": compile_id, **more})

    def send_gap(self, what: str, why: str) -> None:
        self.gaps.append((what, why))

    @property
    def samples(self) -> list[int]:
        """The numbers of the samples in the queue."""
        return [entry[0] for entry in self.outbox.queue if type(entry) is tuple]


class Evaluator:
    """Dynamo's place for a hook, as its C module has it."""

    def __init__(self) -> None:
        self.hook: Callable[[bool], bool] | None = None

    def set_guard_complete_hook(self, hook: Callable[[bool], bool] | None) -> Callable[[bool], bool] | None:
        before, self.hook = self.hook, hook
        return before

    def call(self, function: Callable[..., Any], hit: bool, *args: Any) -> bool:
        """A lookup with that result, and then the frame."""
        found = bool(self.hook(hit)) if self.hook is not None else hit
        function(*args)
        return found


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.here[0] = False
    made.undo.run()
    assert sys.getprofile() is None


@pytest.fixture
def evaluator(monkeypatch: pytest.MonkeyPatch) -> Evaluator:
    made = Evaluator()
    monkeypatch.setattr(lookups, "frame_evaluator", lambda: made)
    return made


def job(x: int) -> int:
    return other(x) + 1


def other(x: int) -> int:
    return x


# -------------------------------------------------------------------- lookups


@pytest.fixture
def watched(hook: Hook, evaluator: Evaluator) -> lookups.Lookups:
    made = lookups.Lookups(hook, lambda: hook.send_gap("replaced", ""))
    assert made.why_not() is None
    made.calls(job.__code__, 7)
    return made


def test_a_miss_that_runs_the_function_itself_is_a_call_in_eager(hook: Hook, evaluator: Evaluator, watched: object) -> None:
    assert evaluator.call(job, False, 1) is False
    assert evaluator.call(job, True, 1) is True
    assert hook.samples == [7]
    assert sys.getprofile() is None


def test_a_miss_that_leads_to_anything_else_is_none(hook: Hook, evaluator: Evaluator, watched: object) -> None:
    evaluator.call(lambda: job(1), False)  # as where Dynamo compiles: its own function runs first
    assert hook.samples == []
    assert sys.getprofile() is None


def test_where_a_profiler_is_on_nothing_is_guessed(hook: Hook, evaluator: Evaluator, watched: lookups.Lookups) -> None:
    def profiler(*_: object) -> None:
        pass

    sys.setprofile(profiler)
    try:
        evaluator.call(job, False, 1)
        kept = sys.getprofile()
    finally:
        sys.setprofile(None)
    assert kept is profiler
    assert (hook.samples, list(watched.unseen)) == ([], [True])


def test_a_profiler_that_leaves_no_object_is_known_by_what_it_has_for_new_threads(
    hook: Hook, evaluator: Evaluator, watched: lookups.Lookups
) -> None:
    threading.setprofile(lambda *_: None)
    try:
        evaluator.call(job, False, 1)
    finally:
        threading.setprofile(None)  # type: ignore[arg-type]
    assert (hook.samples, list(watched.unseen)) == ([], [True])


def test_a_hook_that_was_there_stays_alone(hook: Hook, evaluator: Evaluator) -> None:
    def never(hit: bool) -> bool:
        return False

    evaluator.hook = never
    assert "a hook of its own" in str(lookups.Lookups(hook, lambda: None).why_not())
    assert evaluator.hook is never
    assert hook.undo.run() == []
    assert evaluator.hook is never


def test_where_the_job_forbids_profile_functions_nothing_is_put_in() -> None:
    code = f"""
import sys
sys.path[:0] = {sys.path!r}
from tests.hook import test_eager as t
def audit(event, _):
    if event == "sys.setprofile":
        raise RuntimeError("not here")
sys.addaudithook(audit)
evaluator = t.Evaluator()
t.lookups.frame_evaluator = lambda: evaluator
print(t.lookups.Lookups(t.Hook(), lambda: None).why_not(), evaluator.hook)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "the job allows no profile functions None\n"


def test_the_hook_is_no_python_in_which_a_signal_could_be_raised(hook: Hook, evaluator: Evaluator, watched: object) -> None:
    """What it raises ends the process. A function in Python would raise what a signal's handler does, at its first line."""
    ours = evaluator.hook
    assert isinstance(ours, types.BuiltinFunctionType)
    called: list[str] = []
    sys.settrace(lambda frame, *_: called.append(frame.f_code.co_name))
    try:
        assert [ours(True), ours(False)] == [True, False]
    finally:
        sys.settrace(None)
        sys.setprofile(None)
    assert called == []


def test_a_hook_that_came_after_stays_and_is_told_of(hook: Hook, evaluator: Evaluator, watched: object) -> None:
    def theirs(hit: bool) -> bool:
        return hit

    evaluator.hook = theirs
    assert hook.undo.run() == ["the hook of Dynamo's lookups"]
    assert evaluator.hook is theirs
    assert hook.gaps == [("replaced", "")]


def test_after_the_end_a_miss_touches_nothing(hook: Hook, evaluator: Evaluator, watched: object) -> None:
    ours = evaluator.hook
    hook.here[0] = False
    assert hook.undo.run() == []
    assert evaluator.hook is None
    assert ours is not None and ours(False) is False
    assert sys.getprofile() is None and hook.samples == []


def test_a_full_queue_drops_and_counts(hook: Hook, evaluator: Evaluator) -> None:
    hook.outbox.limit = 2
    made = lookups.Lookups(hook, lambda: None)
    assert made.why_not() is None
    made.calls(job.__code__, 7)
    for _ in range(5):
        evaluator.call(job, False, 1)
    assert (len(hook.samples), hook.outbox.dropped[0]) == (2, 3)


# -------------------------------------------------------------------- monitoring


def two_of_the_same() -> tuple[types.FunctionType, types.FunctionType]:
    """Two functions whose code objects are equal and not the same."""
    made = []
    for _ in range(2):
        scope: dict[str, Any] = {}
        exec(compile("def f(n):\n    for i in range(n):\n        len('')\n", "same", "exec"), scope)
        made.append(scope["f"])
    assert made[0].__code__ == made[1].__code__ and made[0].__code__ is not made[1].__code__
    return made[0], made[1]


def call_of_len(code: types.CodeType) -> int:
    found = eager._instruction_at(code, code.co_firstlineno + 2)
    assert found[0] is code and isinstance(found[1], int)
    return found[1]


@needs_monitoring
def test_calls_and_passages_are_told_by_identity_and_nothing_stays(hook: Hook) -> None:
    watched = monitoring.Monitoring(hook, [True])
    assert watched.why_not() is None
    one, two = two_of_the_same()
    watched.calls(one.__code__, 1)
    watched.passes(one.__code__, call_of_len(one.__code__), 2)
    for _ in range(3):
        one(4)
        two(4)
    assert hook.samples == [1, 2, 2, 2, 2] * 3
    tool = next(tool for tool in monitoring.TOOLS if sys.monitoring.get_tool(tool) == monitoring.NAME)
    assert hook.undo.run() == []
    assert sys.monitoring.get_tool(tool) is None
    one(4)
    assert len(hook.samples) == 15


@needs_monitoring
def test_an_instruction_that_is_asked_for_later_is_told_too(hook: Hook) -> None:
    watched = monitoring.Monitoring(hook, [True])
    assert watched.why_not() is None
    one, _ = two_of_the_same()
    watched.passes(one.__code__, 0, 1)  # nothing runs there
    one(3)
    watched.passes(one.__code__, call_of_len(one.__code__), 2)
    one(3)
    assert hook.samples.count(2) == 3


@needs_monitoring
def test_a_code_object_that_goes_takes_its_entry_with_it(hook: Hook) -> None:
    watched = monitoring.Monitoring(hook, [True])
    assert watched.why_not() is None
    one, _ = two_of_the_same()
    watched.calls(one.__code__, 1)
    del one, _
    gc.collect()
    assert watched._watched == {}
    assert hook.undo.run() == []


@needs_monitoring
def test_without_a_free_place_it_says_so(hook: Hook) -> None:
    for tool in monitoring.TOOLS:
        sys.monitoring.use_tool_id(tool, f"tool {tool}")
    try:
        why = monitoring.Monitoring(hook, [True]).why_not()
    finally:
        for tool in monitoring.TOOLS:
            sys.monitoring.free_tool_id(tool)
    assert why is not None and "tool 4 and tool 3" in why


# -------------------------------------------------------------------- both


@pytest.mark.parametrize(
    ("before", "now", "again"),
    [
        ("0/3", "0/4", False),
        ("0/3", "0/3", True),
        ("0/8", "0/2", True),
        ("0/8", "1/9", True),
        (None, "0/1", True),
        ("0/1", None, False),
        ("x", "y", True),
    ],
)
def test_ids_that_begin_again_are_a_new_frame(before: str | None, now: str | None, again: bool) -> None:
    assert eager._begins_again(before, now) is again


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="has sys.monitoring")
def test_a_python_that_cannot_watch_one_function_says_so_once(hook: Hook, evaluator: Evaluator) -> None:
    made = eager.Eager(hook)
    for number in range(3):
        made.skipped(job.__code__, f"0/{number}", job.__code__, 4)
    assert [what for what, _ in hook.gaps] == ["frames.eager_calls", "boundaries.crossings"]
    assert all("3.12 has" in why for _, why in hook.gaps)
    assert hook.added == []


def test_a_refused_frame_is_told_once_and_again_after_a_reset(hook: Hook, evaluator: Evaluator) -> None:
    made = eager.Eager(hook)
    for compile_id in ("0/8", "0/9", "0/8", "0/8"):
        made.refused(job.__code__, compile_id, "recompile_limit")
    assert [(m["role"], m["why"], m["compile_id"], m["code"]) for m in hook.added] == [
        ("eager", "limit", "0/8", 1),
        ("eager", "limit", "0/8", 1),
        ("eager", "limit", "0/8", 1),
    ]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="positions of instructions came with CPython 3.11")
def test_the_instruction_on_a_line_is_the_with_or_the_last_call() -> None:
    scope: dict[str, Any] = {}
    lines = ("with lock():", "    y = float(x.item())", "if x:", "    return y", "return lambda: x.sum()")
    source = "def f(lock, x):\n" + "".join(f"    {line}\n" for line in lines)
    exec(compile(source, "lines", "exec"), scope)
    code = scope["f"].__code__
    import dis

    names = {each.offset: each.opname for each in dis.get_instructions(code)}
    assert names[eager._instruction_at(code, 2)[1]].startswith(("BEFORE_WITH", "LOAD_SPECIAL"))
    assert names[eager._instruction_at(code, 3)[1]].startswith("CALL")
    assert names[eager._instruction_at(code, 4)[1]].startswith("POP_JUMP")
    assert eager._instruction_at(code, 6)[0].co_name == "<lambda>"
    assert eager._instruction_at(code, 60) == (None, None)
