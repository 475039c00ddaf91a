"""Collections, waits, the profiler and collectives are told with where they came from, and what was there is put back.

Without torch: small modules stand for its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.hook.test_eager import Hook as PlainHook
from tuimon.hook import collect, comm, sites, steps, thread_clock, waits, weave


class Hook(PlainHook):
    """What these instruments need of a session."""

    can_skip = True

    def __init__(self) -> None:
        super().__init__()
        self.sites = sites.Sites(self)
        self.thread_clock = thread_clock.ThreadClock(self)
        self.weaving = weave.Weaving(self)
        self.loops = types.SimpleNamespace(anchor=lambda number: None)
        self.skipped: list[types.CodeType] = []

    def skip(self, function: Callable[..., Any]) -> None:
        self.skipped.append(function.__code__)

    @property
    def rows(self) -> list[tuple[int, ...]]:
        return [entry for entry in self.outbox.queue if type(entry) is tuple]

    @property
    def told(self) -> list[dict[str, Any]]:
        """The sites."""
        return [entry for entry in self.outbox.queue if type(entry) is dict and entry["k"] == "site"]

    def number(self, role: str) -> int:
        return int(next(one["number"] for one in self.added if one["role"] == role))


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.here[0] = False
    assert made.undo.run() == []


def module(monkeypatch: pytest.MonkeyPatch, name: str, **content: object) -> types.ModuleType:
    made = types.ModuleType(name)
    vars(made).update(content)
    monkeypatch.setitem(sys.modules, name, made)
    return made


# -------------------------------------------------------------------- sites


def caller(tell: Callable[[], None]) -> None:
    tell()


def test_a_site_is_the_innermost_frame_of_the_user(hook: Hook) -> None:
    def tell() -> None:
        hook.sites.tell("gc", 7, 0, 5_000_000)

    caller(tell)
    (site,) = hook.told
    assert (site["instrument"], site["t"], site["thread"]) == (7, 5_000_000, threading.get_ident())
    assert [function for _, _, function in site["stack"]][-2:] == ["caller", "tell"]
    assert len(site["stack"]) <= sites.TOLD
    assert site["line"] == tell.__code__.co_firstlineno + 1 and site["lasti"] >= 0
    code = next(entry for entry in hook.outbox.queue if type(entry) is dict and entry["k"] == "code")
    assert (code["code"], code["function"]) == (site["code"], "tell")
    names = {entry["code"]: entry["function"] for entry in hook.outbox.queue if type(entry) is dict and entry["k"] == "code"}
    mine = sys._getframe().f_code.co_name
    assert [names[number] for number, _ in site["path"]][-3:] == [mine, "caller", "tell"]
    assert site["path"][-1] == [site["code"], site["lasti"]] and len(site["path"]) <= sites.MOST_PATH


def test_a_site_within_the_standard_library_is_that_of_its_caller(hook: Hook) -> None:
    def body() -> Iterator[None]:
        yield

    with contextlib.ExitStack() as stack:
        stack.callback(hook.sites.tell, "gc", 7, 0, 5_000_000)
        mine = sys._getframe().f_code.co_name
    (site,) = hook.told
    codes = {entry["code"]: entry["function"] for entry in hook.outbox.queue if type(entry) is dict and entry["k"] == "code"}
    assert codes[site["code"]] == mine == codes[site["path"][-1][0]]
    assert site["stack"][-1][0].endswith("contextlib.py")


def test_twenty_sites_a_second_and_the_longest_are_among_them(hook: Hook) -> None:
    for at in range(1000):
        hook.sites.tell("data", 1, 0, 1_000_000 + at)
    assert len(hook.told) == sites.OF_A_ROLE
    hook.sites.tell("data", 1, 0, 900_000_000)
    hook.sites.tell("gc", 2, 0, 1_000_000)
    assert len(hook.told) == sites.OF_A_ROLE + 2
    for role in range(100):
        hook.sites.tell(str(role), 1, 0, 1_000_000)
    assert len(hook.told) == sites.A_SECOND
    hook.sites.tell("data", 1, 1_000_000_000, 1_001_000_000)
    assert len(hook.told) == sites.A_SECOND + 1


# -------------------------------------------------------------------- collections


class Ring:
    """Garbage."""

    def __init__(self) -> None:
        self.me = self


def test_a_long_collection_is_told_with_its_generation_and_place(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "LEAST_NS", 0)
    monkeypatch.setattr(collect, "LONG_NS", 0)
    before = list(gc.callbacks)
    collections = collect.Collections(hook)
    collections.watch()
    collections.watch()
    gc.collect()
    number, thread, flags, begin, end = hook.rows[-1]
    assert (number, thread, flags >> 8 & 0xFF) == (hook.number("gc"), threading.get_ident(), 2)
    assert begin < end and hook.told[-1]["t"] == end
    assert hook.told[-1]["stack"][-1][2] == "test_a_long_collection_is_told_with_its_generation_and_place"
    assert hook.undo.run() == [] and gc.callbacks == before
    told = len(hook.rows)
    gc.collect()
    assert len(hook.rows) == told


def test_short_collections_and_those_of_a_forked_child_are_not_told(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "LEAST_NS", 1 << 60)
    collect.Collections(hook).watch()
    gc.collect()
    assert hook.rows == []
    hook.undo.run()
    monkeypatch.setattr(collect, "LEAST_NS", 0)
    child = Hook()
    child.here[0] = False
    collections = collect.Collections(child)
    before = list(gc.callbacks)
    collections.watch()
    gc.collect()
    assert child.rows == [] and gc.callbacks != before
    for _ in range(2):
        collections.forked()
        assert gc.callbacks == before
    assert child.undo.run() == []


def test_a_callback_behind_ours_misses_no_call_when_ours_goes(hook: Hook) -> None:
    collect.Collections(hook).watch()
    within, go_on = threading.Event(), threading.Event()
    phases: list[str] = []

    def theirs(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            within.set()
            go_on.wait(60)

    def last(phase: str, info: dict[str, int]) -> None:
        phases.append(phase)

    gc.callbacks.extend((theirs, last))
    thread = threading.Thread(target=gc.collect)
    try:
        thread.start()
        assert within.wait(60)
        leaving = threading.Thread(target=hook.undo.run)
        leaving.start()
        leaving.join(0.05)
        go_on.set()
        leaving.join(60)
        thread.join(60)
    finally:
        go_on.set()
        gc.callbacks.remove(theirs)
        gc.callbacks.remove(last)
    assert phases[:2] == ["start", "stop"]


# -------------------------------------------------------------------- the loader, by record_function


def test_a_loaders_wait_and_an_optimizers_step_are_rows_of_their_own(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    class record_function:
        def __init__(self, name: str) -> None:
            self.name = name

        def __enter__(self) -> record_function:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    module(monkeypatch, "torch.autograd.profiler", record_function=record_function)
    monkeypatch.setattr(steps, "LONG_NS", 0)
    hook.thread_clock.watch()
    steps.Steps(hook).watch()
    for name in ("enumerate(DataLoader)#_Single.__next__", "forward", "Optimizer.step#SGD.step"):
        with record_function(name):
            pass
    with pytest.raises(StopIteration), record_function("enumerate(DataLoader)#_Single.__next__"):
        raise StopIteration
    roles = {one["number"]: one["role"] for one in hook.added}
    assert [(roles[row[0]], row[2]) for row in hook.rows] == [("data", 0), ("optimizer", 0), ("cpu", 0), ("data", 1)]
    assert [site["instrument"] for site in hook.told] == [hook.number("data")] * 2


def test_what_is_no_step_passes_record_function_as_it_would(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    class record_function:
        fails = False

        def __init__(self, name: object) -> None:
            if name is not None:
                self.name = name

        def __enter__(self) -> object:
            return len(self.name)  # type: ignore[arg-type]

        def __exit__(self, *_: object) -> None:
            if self.fails:
                raise KeyError("torch's own")

    module(monkeypatch, "torch.autograd.profiler", record_function=record_function)
    steps.Steps(hook).watch()
    for name, error in ((b"Optimizer.step#", None), (5, TypeError), (None, AttributeError), ("", None), ("Optimizer", None)):
        before = record_function(name)
        if error is None:
            with before as entered:
                assert entered == len(name)  # type: ignore[arg-type]
        else:
            with pytest.raises(error) as caught, before:
                pass
            assert caught.value.__context__ is None
    monkeypatch.setattr(record_function, "fails", True)
    with pytest.raises(KeyError), record_function("Optimizer.step#SGD.step"):
        pass
    assert hook.rows == []
    monkeypatch.setattr(record_function, "fails", False)
    held = record_function("other")
    held.__enter__()
    held.name = "Optimizer.step#SGD.step"  # another name at the end: none that had begun
    held.__exit__(None, None, None)
    assert hook.rows == []


def test_an_object_that_has_stepped_often_alone_is_asked_for_seldom(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    class record_function:
        def __init__(self, name: str) -> None:
            self.name = name

        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            pass

    module(monkeypatch, "torch.autograd.profiler", record_function=record_function)
    steps.Steps(hook).watch()

    class Optimizer:
        def wrapper(self) -> None:
            with record_function("Optimizer.step#SGD.step"):
                pass

    one, two = Optimizer(), Optimizer()
    for _ in range(200):
        one.wrapper()
    assert {row[0] for row in hook.rows} == {hook.added[0]["number"]} and len(hook.rows) == 200
    for _ in range(steps.SELDOM):
        two.wrapper()
    assert len({row[0] for row in hook.rows}) == 2 == len(hook.added)
    told = len(hook.rows)
    for _ in range(10):
        one.wrapper()
        two.wrapper()
    first, second = (added["number"] for added in hook.added)
    assert [row[0] for row in hook.rows[told:]] == [first, second] * 10


def test_the_threads_clock_is_read_at_most_once_in_two_milliseconds(hook: Hook) -> None:
    hook.thread_clock.watch()
    before = time.thread_time_ns()
    for at in range(0, 10_000_000, 500_000):
        hook.thread_clock.read(threading.get_ident(), 1_000_000_000 + at)
    assert len(hook.rows) == 5
    assert all(row[0] == hook.number("cpu") and before <= row[4] <= time.thread_time_ns() for row in hook.rows)


# -------------------------------------------------------------------- the engine, the loader's start, the profiler


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[types.ModuleType]:
    def _engine_run_backward(tensors: object, fails: bool = False) -> object:
        if fails:
            raise KeyError("the job's own")
        return tensors

    return [module(monkeypatch, name, _engine_run_backward=_engine_run_backward) for name in waits.ENGINES]


def test_both_names_of_the_engine_are_one_instrument(hook: Hook, engines: list[Any]) -> None:
    original = engines[0]._engine_run_backward
    hook.thread_clock.watch()
    waits.Waits(hook).watch()
    assert engines[0]._engine_run_backward is engines[1]._engine_run_backward is not original
    assert [engine._engine_run_backward(5) for engine in engines] == [5, 5]
    with pytest.raises(KeyError, match="the job's own"):
        engines[0]._engine_run_backward(5, fails=True)
    rows = [row for row in hook.rows if row[0] == hook.number("engine")]
    assert [row[2] for row in rows] == [0, 0, 1]
    assert hook.undo.run() == []
    assert all(engine._engine_run_backward is original for engine in engines)


@pytest.mark.parametrize("sure", [True, False], ids=["woven", "stands in"])
def test_what_stands_for_a_function_has_its_name_and_place(
    hook: Hook, engines: list[Any], monkeypatch: pytest.MonkeyPatch, sure: bool
) -> None:
    """Dynamo goes by these where a compiled function calls it."""
    if not sure:
        monkeypatch.setattr(weave, "woven", lambda *_: None)
    original = engines[0]._engine_run_backward
    waits.Waits(hook).watch()
    ours = engines[0]._engine_run_backward
    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        assert getattr(ours, name) == getattr(original, name)
    assert ours.__code__.co_filename == original.__code__.co_filename
    assert ours.__code__ in hook.skipped
    with pytest.raises(KeyError) as caught:
        ours(1, fails=True)
    frames = [(frame.name, frame.lineno) for frame in caught.traceback]
    first = original.__code__.co_firstlineno - 1  # pytest counts from 0
    assert frames[-1] == ("_engine_run_backward", first + 2)
    assert (frames[-2] == ("_engine_run_backward", first)) is not sure


def test_what_dynamo_guards_is_exchanged_once(hook: Hook, engines: list[Any]) -> None:
    """A compiled function that names it is compiled anew for the first exchange, and must not be for another."""
    waits.Waits(hook).watch()
    ours = engines[0]._engine_run_backward
    for _ in range(3):
        hook.weaving.one()
    assert engines[0]._engine_run_backward is ours


def patched(engine: Any) -> Any:
    """What torch puts in the engine's place while it traces without Dynamo."""
    _orig = engine._engine_run_backward

    def _patched_engine_backward(*args: object) -> object:
        return _orig(*args)

    engine._engine_run_backward = _patched_engine_backward

    def end() -> None:
        engine._engine_run_backward = _orig

    return end


def test_what_stands_in_the_engines_place_while_torch_traces_gives_back_the_original(hook: Hook, engines: list[Any]) -> None:
    original = engines[0]._engine_run_backward
    waits.Waits(hook).watch()
    ends = [patched(engine) for engine in engines]
    assert hook.undo.run() == []
    assert engines[0]._engine_run_backward(3) == 3
    for end in ends:
        end()
    assert all(engine._engine_run_backward is original for engine in engines)


def test_the_engine_is_not_replaced_while_torch_traces(hook: Hook, engines: list[Any]) -> None:
    original = engines[0]._engine_run_backward
    ends = [patched(engine) for engine in engines]
    made = waits.Waits(hook)
    made.watch()
    for end in ends:
        end()
    assert engines[0]._engine_run_backward is original
    made.watch()
    assert engines[0]._engine_run_backward is not original


def test_the_loaders_start_and_the_profiler_are_told_by_name(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    class DataLoader:
        def __iter__(self) -> Iterator[int]:
            return iter((1, 2))

    class profile:
        def step(self) -> None:
            """Two at a time."""

    module(monkeypatch, waits.LOADER, DataLoader=DataLoader)
    module(monkeypatch, "torch.profiler.profiler", profile=profile)
    monkeypatch.setattr(waits, "LONG_NS", 0)
    before = vars(DataLoader)["__iter__"], vars(profile)["step"]
    waits.Waits(hook).watch()
    assert list(DataLoader()) == [1, 2]
    profile().step()
    roles = {one["number"]: one["role"] for one in hook.added}
    assert [roles[row[0]] for row in hook.rows] == ["data", "profiler"]
    assert len(hook.told) == 2
    assert hook.undo.run() == []
    assert (vars(DataLoader)["__iter__"], vars(profile)["step"]) == before


# -------------------------------------------------------------------- communication


def instance_method(function: Callable[..., Any]) -> Any:
    """What pybind makes of a method."""
    make = ctypes.pythonapi.PyInstanceMethod_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.py_object]
    return make(function)


class Distributed:
    """Stands for `torch._C._distributed_c10d`: what is in its classes are pybind's methods."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Work:
            pass

        class ProcessGroup:
            def __init__(self, name: str, counts: bool = True) -> None:
                self.group_name, self._count, self._counts = name, 0, counts

            def _get_sequence_number_for_group(self) -> int:
                if not self._counts:
                    raise RuntimeError("no such thing")
                return self._count

        def allreduce(group: Any, fails: bool = False) -> Work:
            if fails:
                raise ValueError("the job's own")
            group._count += 1
            return Work()

        names = {"allreduce": allreduce, "send": lambda group: Work()}
        for name, function in names.items():
            setattr(ProcessGroup, name, instance_method(function))
        Work.wait = instance_method(lambda work: True)  # type: ignore[attr-defined]
        self.group: Any = ProcessGroup
        self.work: Any = Work
        module(monkeypatch, comm.MODULE, ProcessGroup=ProcessGroup, Work=Work)
        module(monkeypatch, "torch.distributed").__spec__ = types.SimpleNamespace(_initializing=False)  # type: ignore[assignment]


@pytest.fixture
def distributed(monkeypatch: pytest.MonkeyPatch) -> Distributed:
    return Distributed(monkeypatch)


def names_of(hook: Hook) -> list[tuple[str, int]]:
    names = {one["number"]: one["name"] for one in hook.added}
    return [(names[row[0]], row[2]) for row in hook.rows]


class Named(Hook):
    """With the names that were told."""

    def send_added(self, number: int, role: str, compile_id: str | None, *place: Any, **more: Any) -> None:
        self.added.append({"number": number, "role": role, "name": place[0], **more})


@pytest.fixture
def named() -> Iterator[Named]:
    made = Named()
    yield made
    made.here[0] = False
    assert made.undo.run() == []


def test_collectives_and_the_waits_for_them_carry_one_number(named: Named, distributed: Distributed) -> None:
    comm.Communication(named).watch()
    one, other = distributed.group("one"), distributed.group("other")
    first, second = one.allreduce(), one.allreduce()
    second.wait()
    first.wait()
    other.allreduce().wait()
    one.send().wait()
    distributed.work().wait()
    assert [(name, flags >> 8) for name, flags in names_of(named)] == [
        ("allreduce", 1), ("allreduce", 2), ("wait for allreduce", 2), ("wait for allreduce", 1),
        ("allreduce", 1), ("wait for allreduce", 1), ("send", 0), ("wait for send", 0), ("wait", 0),
    ]  # fmt: skip
    assert {one["group"] for one in named.added if one["name"] == "allreduce"} == {"one", "other"}


def test_the_methods_are_the_very_objects_again_and_work(named: Named, distributed: Distributed) -> None:
    before = dict(vars(distributed.group)), dict(vars(distributed.work))
    made = comm.Communication(named)
    made.watch()
    during = vars(distributed.group)["allreduce"]
    assert during is not before[0]["allreduce"] and type(during) is type(before[0]["allreduce"])
    made.watch()
    assert vars(distributed.group)["allreduce"] is during
    assert named.undo.run() == []
    assert (dict(vars(distributed.group)), dict(vars(distributed.work))) == before
    assert distributed.group("g").allreduce().wait() is True
    assert named.rows == []


def test_a_failed_collective_is_the_jobs_own_and_marked(named: Named, distributed: Distributed) -> None:
    comm.Communication(named).watch()
    with pytest.raises(ValueError, match="the job's own"):
        distributed.group("g").allreduce(fails=True)
    assert names_of(named) == [("allreduce", 1)]


def test_a_backend_without_numbers_is_asked_once(named: Named, distributed: Distributed) -> None:
    comm.Communication(named).watch()
    group = distributed.group("g", counts=False)
    asked: list[int] = []
    type(group)._get_sequence_number_for_group = lambda self: asked.append(1) or 1 / 0
    for _ in range(3):
        group.allreduce()
    assert names_of(named) == [("allreduce", 0)] * 3 and len(asked) == 1


def test_works_that_nobody_waits_for_are_forgotten(named: Named, distributed: Distributed) -> None:
    made = comm.Communication(named)
    made.watch()
    group = distributed.group("g")
    group.allreduce()
    assert made._works == {}
    kept = [group.allreduce() for _ in range(comm.MOST_WORKS + 5)]
    assert len(made._works) <= comm.MOST_WORKS and kept
    del group
    kept.clear()
    gc.collect()
    assert made._works == {} and made._groups == {}
