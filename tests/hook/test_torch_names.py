"""What is taken from torch by private names: looked for in the torch of this machine, and in sources of other versions.

`TUIMON_TORCH_SOURCES` names unpacked wheels (folders with `torch` in them, joined by ":"); their Python files and the stubs of
their C modules are read, not run.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
import types
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tuimon.hook import torch_names
from tuimon.hook.now import PHASES
from tuimon.hook.torch_names import NAMES, TorchNames

EXPECTED = {"2.9": {"torch._dynamo.utils.CompilationMetrics.inductor_fx_local_cache_hit_count"}}
"""What older versions are known to lack."""


class Hook:
    """What the self-test sees of the session."""

    def __init__(self) -> None:
        self.gaps: dict[str, str] = {}

    def guarded(self, name: str, function: Callable[..., Any], otherwise: Any, *args: Any) -> Any:
        """Here nothing is held back."""
        return function(*args)

    def send_gap(self, what: str, why: str) -> None:
        """Keep it."""
        self.gaps[what] = why


def test_what_is_not_loaded_is_no_gap_and_is_looked_for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in {row[2] for row in NAMES}:
        monkeypatch.delitem(sys.modules, name, raising=False)
    hook = Hook()
    names = TorchNames(hook)
    names.look()
    assert hook.gaps == {}
    monkeypatch.setitem(sys.modules, "torch._dynamo.output_graph", types.ModuleType("torch._dynamo.output_graph"))
    names.look()
    assert list(hook.gaps) == ["regions"]
    assert "not available in torch" in hook.gaps["regions"]
    assert "torch._dynamo.output_graph.OutputGraph.install_global_unsafe" in hook.gaps["regions"]
    hook.gaps.clear()
    names.look()
    assert hook.gaps == {}


def test_a_function_with_other_variables_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def _compile(code: object, frame: object) -> None:
        """Dynamo's, as it might be some day."""

    module = types.ModuleType(torch_names.CONVERT)
    module._compile = _compile  # type: ignore[attr-defined]
    module.input_codes = ()  # type: ignore[attr-defined]
    for name in {row[2] for row in NAMES}:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, torch_names.CONVERT, module)
    hook = Hook()
    TorchNames(hook).look()
    assert set(hook.gaps) == {"frames.code", "compiling.since"}


# ------------------------------------------------------------------------------------------------- sources


def trees() -> Iterator[tuple[str, Path]]:
    """(version, folder of torch) for the torch of this machine and for those that were named."""
    found = importlib.util.find_spec("torch")
    for place in (found.submodule_search_locations or ()) if found is not None else ():
        yield "installed", Path(place)
    for place in filter(None, os.environ.get("TUIMON_TORCH_SOURCES", "").split(":")):
        yield Path(place).name.lstrip("t"), Path(place) / "torch"


@cache
def parsed(file: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(file.read_text(encoding="utf-8"))


def in_source(root: Path, row: tuple[Any, ...]) -> bool | None:
    """Whether a row's name is in the sources; None where its file is not among them."""
    _, _, module, names, variables, _ = row
    found = []
    for name in names:
        parts = name.split(".")
        folder = root.joinpath(*module.split(".")[1:])
        if module == "torch._C":  # the stubs of the C module lie where its name says
            folder, parts = root / "_C" / parts[0] / parts[1], parts[2:]
        files = [folder.with_suffix(".pyi"), folder.with_suffix(".py"), folder / "__init__.py"]
        file = next((one for one in files if one.is_file()), None)
        if file is not None:
            found.append(_defined(parsed(file).body, parts, variables))
    return any(found) if found else None


def _defined(body: list[ast.stmt], parts: list[str], variables: tuple[str, ...]) -> bool:
    for node in body:
        targets: list[ast.expr] = []
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == parts[0]:
            if len(parts) > 1:
                return _defined(node.body, parts[1:], variables)
            return set(variables) <= _variables(node)
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        if any(isinstance(target, ast.Name) and target.id == parts[0] for target in targets):
            return True
    return False


def _variables(node: ast.AST) -> set[str]:
    return {
        one.arg if isinstance(one, ast.arg) else one.id
        for one in ast.walk(node)
        if isinstance(one, ast.arg) or (isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))
    }


TREES = list(trees())


@pytest.mark.parametrize(("version", "root"), TREES, ids=[version for version, _ in TREES])
def test_the_names_are_in_torchs_sources(version: str, root: Path) -> None:
    missing = {f"{row[2]}.{row[3][0]}" for row in NAMES if in_source(root, row) is False}
    expected = next((names for prefix, names in EXPECTED.items() if version.startswith(prefix + ".")), set())
    assert missing == expected
    assert any(in_source(root, row) for row in NAMES)


@pytest.mark.parametrize(("version", "root"), TREES, ids=[version for version, _ in TREES])
def test_the_phases_of_a_compilation_are_in_torchs_sources(version: str, root: Path) -> None:
    """Of each phase in words there is at least one function by which it is known."""
    known: dict[str, list[bool]] = {}
    for module, function, words in PHASES:
        file = root.joinpath(*module.split(".")).with_suffix(".py")
        if file.is_file():
            names = {node.name for node in ast.walk(parsed(file)) if isinstance(node, ast.FunctionDef)}
            known.setdefault(words, []).append(function in names)
    assert known and all(any(found) for found in known.values()), known
