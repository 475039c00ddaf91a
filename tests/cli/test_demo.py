"""Finding the demos, and saying what is missing."""

from __future__ import annotations

import importlib.util

import pytest

from tuimon.commands import demo
from tuimon.commands.options import FAILED, USAGE, Options


def test_the_demos_of_this_checkout_are_found_and_say_what_they_are() -> None:
    folder = demo.folder()
    assert folder is not None
    known = demo.available(folder)
    assert {"train_small_gpt", "clean"} <= set(known)
    assert all(demo.about(path) for path in known.values())


def test_an_unknown_demo_is_wrong_usage_and_names_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.run("nope", Options()) == USAGE
    assert "train_small_gpt" in capsys.readouterr().err


def test_without_torch_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert demo.run(None, Options()) == FAILED
    assert "pip install 'tuimon[torch]'" in capsys.readouterr().err


def test_an_installed_package_brings_its_own_demos(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    import pathlib

    assert isinstance(tmp_path, pathlib.Path)
    shipped = tmp_path / "tuimon" / "_shipped" / "demos"
    shipped.mkdir(parents=True)
    (shipped / "train_small_gpt.py").write_text('"""x"""')
    monkeypatch.setattr("tuimon.__file__", str(tmp_path / "tuimon" / "__init__.py"))
    assert demo.folder() == shipped


def test_the_list_has_all_of_them_the_short_ones_first_and_needs_no_torch(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert demo.run(None, Options(), list_them=True) == 0
    lines = capsys.readouterr().out.splitlines()
    named = [line.split()[0] for line in lines if line.startswith("  ") and not line.startswith("   ")]
    folder = demo.folder()
    assert folder is not None and set(named) == set(demo.available(folder))
    assert tuple(named[: len(demo.SHORT)]) == demo.SHORT
    assert all(len(line) <= 80 for line in lines), lines
