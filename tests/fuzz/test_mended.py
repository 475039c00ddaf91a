"""What the fuzzer, and reading for it, have found: said once in words, for the bytes in `found/` mean what they mean today."""

from __future__ import annotations

import csv
import io
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.fuzz.of_machine import FILES
from tests.sources.test_trace_file import OP
from tuimon import events as ev
from tuimon import toml
from tuimon.accepted import AcceptedError, Entry, project_of, save
from tuimon.app.look.themes import ThemeError, load_themes, parse_theme
from tuimon.attach.find.belongings import gpus
from tuimon.commands.attach import _understand
from tuimon.commands.calibrate import _chosen
from tuimon.commands.phases import phases
from tuimon.config import resolve
from tuimon.hook import wire
from tuimon.lab.walk import WalkError, parse_walk
from tuimon.marks import Marks
from tuimon.model import Model
from tuimon.playback.position import place
from tuimon.relay.attachment import Attachment
from tuimon.relay.far import Far
from tuimon.report import build, render
from tuimon.report.markup import plain
from tuimon.report.series import harmless
from tuimon.sources.graph_text import _product
from tuimon.sources.kineto import read
from tuimon.sources.nvml.links import _rate
from tuimon.sources.nvml.readers import Absent, number
from tuimon.sources.recording import format as layout
from tuimon.sources.trace_records import id_of

HUGE = "0x" + "f" * 4200
"""Python makes a number of it, and no text of that number."""


def test_toml_has_no_whole_numbers_of_hundreds_of_digits(tmp_path: Path) -> None:
    for text in (f"x = {HUGE}", f"x = [{{a = {HUGE}}}]", "x = " + "9" * 700, "x = " + "9" * 5000):
        with pytest.raises(toml.NotToml, match="hundreds of digits"):
            toml.parse(text)
    assert toml.parse("x = 0x7fffffffffffffff\ny = -9223372036854775808") == {"x": 2**63 - 1, "y": -(2**63)}
    assert str(toml.parse("x = " + "9" * 600)["x"]) == "9" * 600
    with pytest.raises(WalkError):
        parse_walk(f'title = "x"\n[[stop]]\nsay = "s"\nintensity = {HUGE}\n'.encode(), "f")
    with pytest.raises(ThemeError):
        parse_theme(f'name = "a"\nbase = "dark"\ntitle = {HUGE}\n', load_themes(user=tmp_path).themes)
    path = tmp_path / "config.toml"
    path.write_text(f"interval = {HUGE}\n")
    (problem,) = resolve({}, {}, path).problems
    assert "hundreds of digits" in problem


def test_a_file_of_tables_in_tables_cannot_be_added_to(tmp_path: Path) -> None:
    path = tmp_path / "accepted.toml"
    path.write_text(".".join("a" * 3000) + " = 1\n")
    with pytest.raises(AcceptedError, match="levels"):
        save(path, Entry("a.py", "f", "k", "s", "n"))
    assert toml.parse("[" + ".".join("a" * 40) + "]")


@pytest.mark.parametrize("base", ["[]", "{}", "1", "''"])
def test_a_base_of_a_theme_is_a_name(base: str, tmp_path: Path) -> None:
    with pytest.raises(ThemeError, match="is none of"):
        parse_theme(f'name = "a"\nbase = {base}\n', load_themes(user=tmp_path).themes)


@pytest.mark.parametrize(
    "file", ["/" + "x" * 300, "/tmp/" + "y/" * 3000, "/a\0b", "/\ud800", "/dev/null/x", "/proc/1/root/x.py"]
)
def test_a_job_may_say_that_its_files_are_anywhere(file: str) -> None:
    assert project_of(file) is None
    model = Model()
    model.apply([ev.GraphBroke(5, "0/0", 0, "r", "r", "GB1", "f", file, 3)])
    assert not [one for one in Marks().news(model) if isinstance(one, ev.BoundaryAccepted)]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look into any folder")
def test_a_locked_folder_holds_no_project(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0)
    assert project_of(tmp_path / "locked" / "train.py") is None


@pytest.mark.parametrize("word", ["²", "9" * 5000, "0,²", "-1", "GPU-1"])
def test_the_visible_gpus_are_what_the_job_wrote_there(word: str) -> None:
    assert gpus([], FILES["maps"].replace("/dev/nvidia0", ""), {"CUDA_VISIBLE_DEVICES": word}) is None


@pytest.mark.parametrize("text", ["9" * 400 + "h", "+" + "9" * 400 + "s", "-" + "9" * 400 + "h", "9" * 400 + "%"])
def test_a_place_of_400_digits_is_none(text: str) -> None:
    assert isinstance(place(text, at_s=1.0, of_s=None, began_s=None), str)


@pytest.mark.parametrize("wall_s", [float("nan"), float("inf"), -1.0, 1e300])
def test_a_recording_that_began_at_no_time_has_a_damaged_head(wall_s: float) -> None:
    assert layout.file_head(layout.FileHead(b"s" * 16, 1, wall_s, 5, ev.SCHEMA, False).pack()) is None


@pytest.mark.parametrize("word", ["漢" * 60 + "_", "é" * 200 + "\\", "漢'" * 50 + "#"])
def test_a_long_word_takes_markdown_no_time(word: str) -> None:
    began = time.process_time()
    assert plain(word).startswith("`")
    assert time.process_time() - began < 5  # it took years


def test_a_gap_of_any_name_is_in_the_report() -> None:
    model = Model()
    model.apply([ev.NotAvailable(5, what, "why") for what in ("x[", "x]", "][", "[")])
    for form in ("text", "md", "json"):
        assert "x[" in render(build(model), form)


def test_half_of_a_pair_is_in_no_table() -> None:
    out = io.StringIO()
    csv.writer(out).writerow([harmless("a\ud800b")])
    assert out.getvalue().encode() == b"a?b\r\n"


@pytest.mark.parametrize(
    "request_",
    [{"pid": "1"}, {"patience": float("inf")}, {"patience": "x"}, {"patience": -1}, {"over": 0.5}, {"options": []}],
    ids=json.dumps,
)
def test_a_request_that_makes_no_sense_is_refused_by_name(request_: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"wanted|null"):  # which the far end says in a sentence
        Attachment(1, None, {"pid": 1, "options": {}, **request_})  # type: ignore[arg-type]


def test_a_trace_that_counts_from_a_time_of_400_digits_is_read(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 10**400, "traceEvents": [OP]}))
    assert read(path).seen.rows


def test_a_compile_id_of_any_length_is_none() -> None:
    assert id_of({"frame_id": {"x": "y" * 100}, "frame_compile_id": 1}) is None
    assert id_of({"frame_id": 3, "frame_compile_id": 1}) == "3/1"


def test_a_digit_that_is_no_number_counts_as_a_name() -> None:
    assert _product(("²", "3")) == "3*(²)"


@pytest.mark.parametrize(
    "call",
    [
        lambda: phases("a=²"),
        lambda: phases("a=" + "9" * 5000),
        lambda: _understand(["9" * 5000], {}, everybody=False),  # type: ignore[arg-type]
    ],
)
def test_words_on_the_command_line(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError) as caught:
        call()
    assert "invalid literal" not in str(caught.value) and "integer string conversion" not in str(caught.value)
    assert isinstance(_chosen("cuda:²", [], "no GPU"), str)


def test_a_driver_may_say_anything() -> None:
    for value in (float("inf"), float("nan"), 2**64 - 1, -1):
        with pytest.raises(Absent):
            number(value)
    assert isinstance(_rate(2**63, 0.1), Absent) and _rate(1000, 1.0) == 1_024_000


def test_the_far_end_says_what_it_did_not_understand() -> None:
    for request in ({"hook": 1}, {"choose": 1, "pids": 5}, {"attach": 1, "pid": "x"}, {"detach": "x"}):
        end = Far.__new__(Far)
        end._attachments, end._out = {1: mock.Mock()}, mock.Mock()
        with pytest.raises(wire.WireError):
            end._hear(request)
