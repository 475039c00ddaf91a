"""Settings of the compiler: what is not the default, from where it can be known."""

from __future__ import annotations

import contextvars
import json
import sys
import threading
import types
from typing import Any

import pytest

from tuimon.hook.settings import ASK_EVERY, Settings


class Config(types.ModuleType):
    """A config module of torch's: of 2.13 and later, where each thread has its own values, or of before."""

    def __init__(self, own: bool, **values: Any) -> None:
        super().__init__("config")
        made = contextvars.ContextVar("override") if own else None
        self._values = values
        self._config = {name: types.SimpleNamespace(user_override=made) for name in values}

    def __getattr__(self, name: str) -> Any:
        try:
            return vars(self)["_values"][name]
        except KeyError:
            raise AttributeError(name) from None


@pytest.fixture(autouse=True)
def torch_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of torch is loaded, and the environment says nothing."""
    for name in [name for name in sys.modules if name == "torch" or name.startswith("torch.")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE"):
        monkeypatch.delenv(name, raising=False)


def dynamo(monkeypatch: pytest.MonkeyPatch, own: bool, **values: Any) -> None:
    """Load a config of Dynamo's."""
    monkeypatch.setitem(sys.modules, "torch._dynamo.config", Config(own, **values))


def compiled(monkeypatch: pytest.MonkeyPatch, **values: Any) -> None:
    """A compilation noted these settings of Dynamo's."""
    utils = types.ModuleType("torch._dynamo.utils")
    utils._compilation_metrics = [types.SimpleNamespace(dynamo_config=json.dumps(values))]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", utils)


def test_without_torch_there_is_nothing_to_tell() -> None:
    assert Settings().options() == [] and Settings().recompile_limit() is None


def test_what_all_threads_share_is_read_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    dynamo(monkeypatch, False, suppress_errors=True, recompile_limit=4, disable=False)
    compiled(monkeypatch, suppress_errors=False, recompile_limit=8)
    assert Settings().options() == [["suppress_errors", "True"]] and Settings().recompile_limit() == 4


def test_what_each_thread_has_of_its_own_is_taken_from_the_last_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    dynamo(monkeypatch, True, suppress_errors=False, recompile_limit=8, error_on_recompile=False)
    settings = Settings()
    assert settings.recompile_limit() is None  # this thread's would be the default
    compiled(monkeypatch, suppress_errors=True, recompile_limit=3)
    assert settings.options() == [["suppress_errors", "True"]] and settings.recompile_limit() == 3
    compiled(monkeypatch, recompile_limit=5)
    assert settings.options() == [] and settings.recompile_limit() == 5


@pytest.mark.parametrize("text", [None, "", "not JSON", "[1]", 7])
def test_notes_that_cannot_be_read_say_nothing(text: object, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled(monkeypatch)
    sys.modules["torch._dynamo.utils"]._compilation_metrics[0].dynamo_config = text
    dynamo(monkeypatch, True, recompile_limit=8)
    assert Settings().recompile_limit() is None and Settings().options() == []


@pytest.mark.parametrize("name", ["TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE"])
def test_who_has_disabled_dynamo_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1")
    assert Settings().options() == [["dynamo", f"disabled by {name}"]]


def test_dynamo_disabled_by_its_config(monkeypatch: pytest.MonkeyPatch) -> None:
    dynamo(monkeypatch, False, disable=True)
    assert Settings().options() == [["dynamo", "disabled by torch._dynamo.config.disable"]]


def test_the_stance_and_guards_that_are_not_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = types.ModuleType("torch._dynamo.eval_frame")
    frames._stance = types.SimpleNamespace(stance="force_eager", skip_guard_eval_unsafe=True)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch._dynamo.eval_frame", frames)
    assert Settings().options() == [["stance", "force_eager"], ["guards", "off"]]


def test_the_number_of_threads_is_asked_for_on_a_thread_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch's is a setting of each thread, taken over from the last `set_num_threads` when a thread asks first."""
    own, last = threading.local(), [4]

    def get_num_threads() -> int:
        own.value = getattr(own, "value", last[0])
        return int(own.value)

    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(get_num_threads=get_num_threads))
    settings = Settings()
    assert settings.options() == [["num_threads", "4"]]
    last[0] = 1
    assert [settings.options() for _ in range(ASK_EVERY)][-1] == [["num_threads", "1"]]
    assert not hasattr(own, "value")
    last[0] = 2
    assert settings.options() == [["num_threads", "1"]]
    settings.again()
    assert settings.options() == [["num_threads", "2"]]


def test_a_torch_that_cannot_tell_its_threads_yet_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(get_num_threads=lambda: None))
    assert Settings().options() == []
