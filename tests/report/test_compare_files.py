"""Files that others wrote, beside each other: the loader of ResNet-50 with no worker and with four."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.report.obeys import obeying
from tests.support.command import tuimon
from tuimon.commands.compare import read
from tuimon.report.compare.build import compare
from tuimon.report.compare.render import render

FILES = Path(os.environ.get("TUIMON_FILES", Path(__file__).parents[2].parent / "shared" / "files"))
RESNET = FILES / "kineto" / "tb_plugin" / "samples"
TRACE = "worker0.pt.trace.json.gz"


def resnet(workers: int) -> Path:
    path = RESNET / f"resnet50_num_workers_{workers}" / TRACE
    if not path.exists():
        pytest.skip(f"{path} is not here (TUIMON_FILES names the folder)")
    return path


def test_of_no_worker_and_four_the_wait_for_data_is_named() -> None:
    ran = tuimon("compare", str(resnet(0)), str(resnet(4)), "--format", "json")
    assert ran.status == 0, ran.err
    found = obeying(json.loads(ran.out))
    first = found["mechanisms"][0]
    assert found["comparable"] and first["kind"] == "data wait" and "data wait" in found["verdict"]
    assert found["recompiles"] == {"a": None, "b": None}  # no trace tells of them
    low, high = first["interval"]
    assert low <= first["seconds_per_step"] <= high < 0
    checks = {row["what"]: row for row in found["checks"]}
    assert checks["shapes"]["verdict"] == "same" and checks["shapes"]["a"] == "batch size 32"
    assert checks["steps"]["why"] is not None  # six steps: a rough interval, and that is said


def test_the_forms_for_people_say_it_too() -> None:
    a, b = (read(resnet(workers)).model for workers in (0, 4))
    found = obeying(compare(a, b, names=("a", "b"), kinds=("kineto", "kineto")))
    for form in ("text", "md"):
        written = render(found, form)
        assert "data wait: " in written and "Is it the same work?" in written
        assert form == "md" or max(len(line) for line in written.splitlines()) <= 80


def test_a_trace_and_a_log_are_no_pair() -> None:
    log = FILES / "tlparse" / "tests" / "inputs" / "simple.log"
    if not log.exists():
        pytest.skip(f"{log} is not here")
    ran = tuimon("compare", str(resnet(0)), str(log), "--format", "json")
    assert ran.status == 1 and not ran.report["comparable"]
    assert "A is a Kineto trace and B a TORCH_TRACE log" in ran.err


def test_what_cannot_be_read_is_a_sentence(tmp_path: Path) -> None:
    empty = tmp_path / "empty.json"
    empty.write_text("")
    ran = tuimon("compare", str(empty), str(tmp_path / "none"))
    assert ran.status == 1 and str(empty) in ran.err and "Traceback" not in ran.err
