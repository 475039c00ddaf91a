"""The demos of a repeatable experiment: switches that change one thing alone, and the protocol with its phases marked."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import ROOT, environment, tuimon

pytestmark = pytest.mark.live
pytest.importorskip("torch")

GPT, PROTOCOL = ROOT / "demos" / "train_small_gpt.py", ROOT / "demos" / "guard_protocol.py"


def test_where_the_faults_are_changes_no_loss(tmp_path: Path) -> None:
    losses = {}
    for words in ((), ("--logger", "out", "--item", "hoisted")):
        path = tmp_path / "losses"
        program = [sys.executable, str(GPT), "--steps", "3", "--backend", "eager", "--losses", str(path), *words]
        subprocess.run(program, check=True, env=environment(), capture_output=True, timeout=600)
        losses[words] = path.read_text()
    assert len(losses[()].splitlines()) == 3
    assert len(set(losses.values())) == 1


def test_the_protocol_prints_each_population_and_its_phases_are_marked(tmp_path: Path) -> None:
    words = [sys.executable, str(PROTOCOL), "--repetitions", "2", "--steady", "20", "--changed", "6", "--backend", "eager"]
    plan = subprocess.run([*words, "--plan"], check=True, env=environment(), capture_output=True, text=True, timeout=600)
    assert plan.stdout == "initial=1,steady=20,guard=6,initial 2=1,steady 2=20,guard 2=6\n"
    path = tmp_path / "run.tuimon"
    ran = tuimon("record", "-o", str(path), "--phases", plan.stdout.strip(), "--", *words)
    assert ran.status == 0, ran.err
    assert re.search(r"^rule: +median \[p10-p90\]", ran.out, re.M)
    populations = re.findall(r"^  (\w.*?) +n=(\d+) ", ran.out, re.M)
    once = [("initial", "1"), ("steady", "20"), ("first after the change", "1"), ("after the change", "5")]
    assert populations == once * 2
    report = tuimon("report", str(path), "--format", "json").report
    assert report["steps"]["source"] == "marked" and report["steps"]["n"] == 54
    found = [(one["name"], one["n"], one["recompiles"]) for one in report["phases"]]
    assert found[:3] == [("initial", 1, 0), ("steady", 20, 0), ("guard", 6, 2)]
    assert found[3:] == [("initial 2", 1, 0), ("steady 2", 20, 0), ("guard 2", 6, 2)]
