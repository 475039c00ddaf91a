"""What a window gives way to, with small modules in torch's place: captures of CUDA graphs, other tools, another torch."""

from __future__ import annotations

import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.hook.test_eager import Hook as PlainHook
from tuimon.hook import profilers
from tuimon.hook.window import Window


class Hook(PlainHook):
    """What a window needs of a session."""

    can_skip = True

    def guarded(self, name: str, function: Callable[..., Any], otherwise: Any, *args: Any) -> Any:
        try:
            return function(*args)
        except Exception as error:  # noqa: BLE001 - as the session does
            self.instruments[name] = f"failed: {error!r}"
            return otherwise

    @property
    def told(self) -> list[tuple[str, str]]:
        """(state, why) of what was told of windows."""
        return [(entry["state"], entry["why"]) for entry in self.outbox.queue if type(entry) is dict]


class Control:
    """torch._C._autograd."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.fails = ""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def called(*_: object, **__: object) -> Any:
            if name == "_profiler_enabled":
                return False
            if name == self.fails:
                raise RuntimeError("as asked")
            self.calls.append(name)
            return {"CPU"} if name == "_supported_activities" else types.SimpleNamespace(save=lambda path: None)

        return called


class Experimental:
    """torch._C._profiler._ExperimentalConfig."""

    def __init__(self, **_: bool) -> None:
        """profile_all_threads: bool"""


@pytest.fixture
def control(monkeypatch: pytest.MonkeyPatch) -> Control:
    """A small torch, whose CUDA is in use."""
    made = Control()
    kinds = types.SimpleNamespace(
        ProfilerConfig=lambda *_: None,
        ProfilerState=types.SimpleNamespace(KINETO=1),
        ProfilerActivity=types.SimpleNamespace(CPU="CPU"),
        _ExperimentalConfig=Experimental,
    )

    class CUDAGraph:
        def capture_begin(self) -> str:
            return "begun"

        def capture_end(self) -> str:
            return "ended"

    profiler = types.SimpleNamespace(
        _prepare_profiler=made._prepare_profiler,
        _enable_profiler=made._enable_profiler,
        _is_profiler_enabled=False,
        KinetoStepTracker=types.SimpleNamespace(_step_dict={}),
    )
    graphs = types.SimpleNamespace(CUDAGraph=CUDAGraph, graph=types.new_class("graph"))
    for name, module in {
        "torch._C": types.SimpleNamespace(_autograd=made, _profiler=kinds),
        "torch.autograd.profiler": profiler,
        "torch.cuda": types.SimpleNamespace(_initialized=True),
        "torch.cuda.graphs": graphs,
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "torch.autograd.profiler_legacy", raising=False)
    monkeypatch.setattr(profilers, "_tool", lambda: "")
    return made


@pytest.fixture
def hook(control: Control) -> Iterator[Hook]:
    made = Hook()
    yield made
    assert made.undo.run() == []


@pytest.fixture
def window(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> Window:
    for name in ("BEFORE_S", "QUIET_S", "MOST_QUIET_S"):
        monkeypatch.setattr(f"tuimon.hook.window.{name}", 0.0)
    made = Window(hook)
    made.watch()
    return made


def open_one(window: Window, folder: object) -> None:
    window.command("window", {"window": 1, "steps": 3, "most_s": 5, "dir": str(folder)})
    window.tick()


def end_one(window: Window, folder: object) -> None:
    """Open one in which an optimizer tells the steps, and end its recording."""
    open_one(window, folder)
    window.added(7, "optimizer")
    window._number = 7
    window.command("window_cancel", {"window": 1})
    window.tick()


def test_a_capture_finds_the_window_closed_and_none_opens_in_it(
    hook: Hook, window: Window, control: Control, tmp_path: object
) -> None:
    graph = sys.modules["torch.cuda.graphs"].CUDAGraph()
    open_one(window, tmp_path)
    assert hook.told[-1] == ("open", "") and control.calls[-1] == "_enable_profiler"
    assert graph.capture_begin() == "begun"
    assert control.calls[-1] == "_disable_profiler"
    assert hook.told[-1] == ("cancelled", "the job captures a CUDA graph: what was recorded is thrown away")
    open_one(window, tmp_path)
    assert hook.told[-1] == ("refused", "the job captures a CUDA graph: ask again in a moment")
    assert graph.capture_end() == "ended"
    open_one(window, tmp_path)
    assert hook.told[-1] == ("open", "")


def test_nothing_is_recorded_any_more_when_the_profiler_is_disabled(
    hook: Hook, window: Window, control: Control, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that is in one of its callbacks at that moment would crash."""
    end_one(window, tmp_path)
    assert control.calls[-1] == "_toggle_collection_dynamic" and hook.told[-1][0] == "open"
    for number in range(2):
        window.tick()
        assert control.calls[-1] == "_toggle_collection_dynamic", number
        window._rows([(7, 1, 0, 0, time.monotonic_ns())])
    window.tick()
    assert control.calls[-1] == "_disable_profiler" and hook.told[-1] == ("cancelled", "as asked")


def test_a_step_that_takes_long_is_waited_for_only_so_long(
    hook: Hook, window: Window, control: Control, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_one(window, tmp_path)
    assert control.calls[-1] == "_toggle_collection_dynamic"
    monkeypatch.setattr("tuimon.hook.window.STEP_QUIET_S", 0.0)
    window.tick()
    assert control.calls[-1] == "_disable_profiler" and hook.told[-1] == ("cancelled", "as asked")


def test_a_window_that_the_job_closes_while_it_is_looked_at(hook: Hook, window: Window, tmp_path: object) -> None:
    open_one(window, tmp_path)
    window.command("window_cancel", {"window": 1})
    look = window._is_quiet

    def is_quiet() -> bool:
        sys.modules["torch.autograd.profiler"]._prepare_profiler()
        return look()

    window._is_quiet = is_quiet  # type: ignore[method-assign]
    window.tick()
    assert hook.told[-1] == ("cancelled", "the job starts a profiler of its own: what was recorded is thrown away")
    assert not window.active and hook.instruments.get("profiler windows", "on") == "on"


@pytest.mark.parametrize(("mains", "quiet_s"), [(True, 0.5), (False, 2.0)])
def test_the_end_of_the_hook_waits_for_operators_longer_than_the_end_of_the_job(
    window: Window, tmp_path: object, monkeypatch: pytest.MonkeyPatch, mains: bool, quiet_s: float
) -> None:
    open_one(window, tmp_path)
    waited: list[float] = []
    monkeypatch.setattr("tuimon.hook.window.QUIET_S", 0.5)
    monkeypatch.setattr("tuimon.hook.window.ENDING_S", 2.0)
    monkeypatch.setattr(window, "_close_soon", lambda seconds: (waited.append(seconds), window._close("")))
    thread = threading.Thread(target=window._end)
    if mains:
        window._end()
    else:
        thread.start()
        thread.join()
    assert waited == [quiet_s]


def test_captures_that_cannot_be_watched_leave_no_window(hook: Hook, tmp_path: object) -> None:
    del sys.modules["torch.cuda.graphs"].CUDAGraph.capture_end
    window = Window(hook)
    window.watch()
    open_one(window, tmp_path)
    assert hook.told[-1][0] == "refused" and "captures of CUDA graphs cannot be watched" in hook.told[-1][1]


@pytest.mark.parametrize("gone", ["_is_profiler_enabled", "KinetoStepTracker"])
def test_a_torch_without_what_makes_it_safe_is_refused_by_name(hook: Hook, window: Window, tmp_path: object, gone: str) -> None:
    delattr(sys.modules["torch.autograd.profiler"], gone)
    open_one(window, tmp_path)
    assert hook.told[-1][0] == "refused" and gone in hook.told[-1][1]


@pytest.mark.parametrize("fails", ["_prepare_profiler", "_enable_profiler", "_toggle_collection_dynamic", "_disable_profiler"])
def test_a_torch_that_fails_ends_windows_and_is_told(
    hook: Hook, window: Window, control: Control, tmp_path: object, fails: str
) -> None:
    control.fails = fails
    open_one(window, tmp_path)
    window.command("window_cancel", {"window": 1})
    window.tick()
    assert not window.active and window._opened is None
    window.command("window", {"window": 2, "dir": str(tmp_path)})
    assert hook.told[-1][0] == "refused" and "as asked" in hook.told[-1][1], hook.told


def test_no_window_without_torch(hook: Hook, monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    window = Window(hook)
    monkeypatch.delitem(sys.modules, "torch.autograd.profiler")
    window.watch()
    open_one(window, tmp_path)
    assert hook.told == [("refused", "the job has not imported torch yet: ask again when it has")]


def test_tools_are_seen_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(profilers.TOOLS):
        monkeypatch.delenv(name, raising=False)
    assert profilers._tool() == ""
    monkeypatch.setenv("QUADD_INJECTION_PROXY", "x")
    assert profilers._tool() == "Nsight Systems (QUADD_INJECTION_PROXY)"
    monkeypatch.delenv("QUADD_INJECTION_PROXY")
    monkeypatch.setenv("KINETO_USE_DAEMON", "")
    assert profilers._tool() == ""
    monkeypatch.setenv("KINETO_USE_DAEMON", "1")
    assert profilers._tool() == "dynolog"
