"""The pictures of the documents are what the monitor shows of the kept recording."""

from __future__ import annotations

import os
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tools import pictures

SCREEN = "overview-100x30"


def test_a_document_gets_its_screens_and_nothing_else_changes() -> None:
    document = f"before\n\n<!-- screen: {SCREEN} -->\nold\n<!-- end of screen -->\n\nafter\n"
    made = pictures.with_screens(document, {f"{SCREEN}.txt": " a\n b\n"})
    assert made == f"before\n\n<!-- screen: {SCREEN} -->\n```\n a\n b\n```\n<!-- end of screen -->\n\nafter\n"
    assert pictures.with_screens(made, {f"{SCREEN}.txt": " a\n b\n"}) == made
    with pytest.raises(KeyError):
        pictures.with_screens(document, {})


def test_what_is_of_a_machine_is_found() -> None:
    assert pictures.private("at /home/ann/train.py:3") == ["/home/ann"]
    assert pictures.private(f" {os.uname().nodename} ") == [os.uname().nodename]
    assert pictures.private("/demo/train_small_gpt.py:99, /packages/torch") == []


def test_the_screen_of_the_readme_is_as_it_is_kept(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "")  # set anew in there, and put back behind it
    assert pictures.main(["--check", SCREEN]) == 0, capsys.readouterr().out + "python -m tools.pictures makes them anew"


def test_all_pictures_are_kept_and_no_document_asks_for_another() -> None:
    kept = {path.name for path in pictures.PICTURES.iterdir()}
    assert kept == {f"{name}.{kind}" for name in pictures.SHOTS for kind in ("svg", "txt")}
    for path in pictures.DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        assert set(re.findall(r"<!-- screen: ([a-z0-9-]+) -->", text)) <= set(pictures.SHOTS), path
        for linked in re.findall(r"pictures/([a-z0-9-]+\.svg)", text):
            assert linked in kept, path


def test_pictures_are_small_and_of_no_machine() -> None:
    for path in Path(pictures.PICTURES).iterdir():
        text = path.read_text(encoding="utf-8")
        assert not pictures.private(text), path
        if path.suffix == ".svg":
            ElementTree.fromstring(text)
            assert len(text) < 32_000, path
