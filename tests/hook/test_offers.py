"""What is offered is told by name: there, missing, or not loaded yet."""

from __future__ import annotations

import sys
import types

import pytest

from tuimon.hook import offers


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> dict[str, types.ModuleType]:
    """The modules that `offers` looks at, all of them empty."""
    made = {name: types.ModuleType(name) for _, name, _ in offers.WANTED}
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
    return made


def test_nothing_is_missing_where_nothing_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    for _, name, _ in offers.WANTED:
        monkeypatch.delitem(sys.modules, name, raising=False)
    found = offers.gather()
    assert found["missing"] == [] and set(found["torch"].values()) == {None}


def test_each_name_that_is_missing_is_told(modules: dict[str, types.ModuleType]) -> None:
    found = offers.gather()
    assert "torch._dynamo.output_graph.OutputGraph.install_global_unsafe" in found["missing"]
    assert set(found["torch"].values()) == {False}


def test_one_of_several_ways_is_enough(modules: dict[str, types.ModuleType]) -> None:
    evaluator = types.SimpleNamespace(set_code_exec_strategy=len)
    modules["torch._C"]._dynamo = types.SimpleNamespace(eval_frame=evaluator)  # type: ignore[attr-defined]
    assert offers.gather()["torch"]["skip"] is True


def test_a_module_that_is_being_imported_is_not_judged(modules: dict[str, types.ModuleType]) -> None:
    modules["torch._guards"].__spec__ = types.SimpleNamespace(_initializing=True)  # type: ignore[assignment]
    assert offers.gather()["torch"]["compile ids"] is None


def test_a_module_that_raises_when_asked_is_one_without(modules: dict[str, types.ModuleType]) -> None:
    def angry(name: str) -> object:
        raise RuntimeError(name)

    modules["torch._guards"].__getattr__ = angry  # type: ignore[method-assign]
    assert offers.gather()["torch"]["compile ids"] is False
