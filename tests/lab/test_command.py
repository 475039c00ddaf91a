"""`tuimon lab` without a screen: the numbers on stdout, refusals on stderr."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tuimon import cli


def test_it_prints_the_formula_and_the_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lab", "--intensity", "8", "--bandwidth", "80"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("hypothetical: nothing runs and nothing is measured\n")
    assert "min(1,000 GFLOP/s, 8 FLOP/byte x 80 GB/s) = 640 GFLOP/s: bandwidth is the limit" in out
    assert "12.5 FLOP/byte" in out and "no achieved rate" in out


@pytest.mark.parametrize(("intensity", "ceiling"), [(8, 640e9), (16, 1000e9)])
def test_as_json(intensity: int, ceiling: float, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lab", "--intensity", str(intensity), "--bandwidth", "80", "--format", "json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["schema"], facts["how"], facts["ceiling"], facts["ridge"]) == ("tuimon.lab/1", "declared", ceiling, 12.5)
    assert facts["trace"][-1] == {"intensity": float(intensity), "roof": ceiling}


def test_into_a_file_as_markdown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "lab.md"
    words = ["lab", "--intensity", "1/12", "--bandwidth", "3.35T", "--peak", "989T", "--format", "md", "-o", str(file)]
    assert cli.main(words) == 0
    assert capsys.readouterr().out == ""
    assert "| 0.0833333 FLOP/byte | 279.2 GFLOP/s | bandwidth is the limit |" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "tuimon lab --intensity 8 --bandwidth 80"),
        (["--intensity", "8"], "tuimon lab --intensity 8 --bandwidth 80"),
        (["--walk"], "tuimon lab --intensity 8 --bandwidth 80"),
        (["--intensity", "0", "--bandwidth", "80"], "0 is no intensity"),
        (["--intensity", "8", "--bandwidth", "-80"], "-80 is no bandwidth"),
        (["--intensity", "nan", "--bandwidth", "80"], "nan is no intensity"),
        (["--intensity", "8", "--bandwidth", "80", "--peak", "1e400"], "1e400 is beyond what makes sense for a peak"),
        (["--intensity", "", "--bandwidth", "80"], "no intensity was typed"),
    ],
)
def test_wrong_usage(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lab", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and said in captured.err


def test_a_walk_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lab", "--walk", "/no/such/walk.toml"]) == 1
    assert "/no/such/walk.toml cannot be opened" in capsys.readouterr().err
