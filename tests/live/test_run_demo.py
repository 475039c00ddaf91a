"""The bundled demonstrations: each fault is found at its line, the clean one has none, and watching changes no result."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import ROOT, environment, tuimon
from tuimon.commands.demo import STEPS

pytestmark = pytest.mark.live
pytest.importorskip("torch")

SOURCE = ROOT / "demos" / "train_small_gpt.py"


def line_of(text: str) -> int:
    """The number of the only line of the demo that contains a text."""
    (number,) = [number for number, line in enumerate(SOURCE.read_text().splitlines(), 1) if text in line]
    return number


def place(entry: dict[str, object], file: str = "file", line: str = "line") -> tuple[str, object]:
    return os.path.basename(str(entry[file])), entry[line]


def test_the_three_faults_are_named_at_their_lines() -> None:
    # with compile workers, as a user has them
    ran = tuimon("demo", "--steps", "20", "--format", "json", TORCHINDUCTOR_COMPILE_THREADS="2")
    assert ran.status == 0, ran.err
    report = ran.report
    logger, item = line_of("requests.info("), line_of("longest.item()")
    boundaries = {place(b, "user_file", "user_line"): b for b in report["boundaries"]}
    assert set(boundaries) == {(SOURCE.name, logger), (SOURCE.name, item)}
    assert boundaries[SOURCE.name, logger]["crossings"] == 20
    assert boundaries[SOURCE.name, logger]["per_step"] == 1
    assert boundaries[SOURCE.name, item]["per_step"] == 64
    forward = line_of("def forward(self, tokens")
    assert [place(r) for r in report["recompiles"]] == [(SOURCE.name, forward), (SOURCE.name, logger)]
    assert all("expected 8, actual 5" in r["reason"] for r in report["recompiles"])
    assert {r["step"] for r in report["recompiles"]} == {14}
    assert report["steps"]["n"] == 20 and STEPS > 20
    assert report["coverage"]["dropped"] == 0


def test_without_faults_there_is_nothing_to_say() -> None:
    ran = tuimon("demo", "clean", "--steps", "20", "--format", "json")
    assert ran.status == 0, ran.err
    report = ran.report
    assert report["boundaries"] == [] and report["recompiles"] == [] and report["findings"] == []
    assert report["steps"]["n"] == 20
    assert [region["calls"] for region in report["regions"]] == [20, 20]


@pytest.mark.parametrize(("flag", "gone"), [("--no-logger", "requests.info("), ("--no-item", "longest.item()")])
def test_each_fault_can_be_switched_off(flag: str, gone: str) -> None:
    program = (sys.executable, str(SOURCE), "--steps", "3", "--backend", "eager", flag)
    ran = tuimon("run", "--headless", "--format", "json", "--", *program)
    assert ran.status == 0, ran.err
    lines = {boundary["user_line"] for boundary in ran.report["boundaries"]}
    assert len(lines) == 1 and line_of(gone) not in lines


def test_watching_changes_no_loss(tmp_path: Path) -> None:
    watched, alone = tmp_path / "watched", tmp_path / "alone"
    program = (sys.executable, str(SOURCE), "--steps", "20", "--losses")
    assert tuimon("run", "--headless", "--", *program, str(watched)).status == 0
    subprocess.run([*program, str(alone)], check=True, env=environment(), capture_output=True, timeout=600)
    assert watched.read_text() == alone.read_text()
    assert len(alone.read_text().splitlines()) == 20


def test_without_a_compiler_it_still_runs_and_says_so() -> None:
    program = [sys.executable, str(SOURCE), "--steps", "1"]
    ran = subprocess.run(
        program, capture_output=True, text=True, timeout=600, env=environment(CXX="/no/such/compiler"), check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "no C++ compiler" in ran.stderr and "aot_eager" in ran.stderr
