"""The short demos: each shows the one thing that it is made for, at its line, and the healthy one nothing.

python -m tests.live.test_short_demos     all five, with Inductor where they use it; prints what each took
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.command import ROOT, tuimon

pytestmark = pytest.mark.live

DEMOS = ROOT / "demos"
Report = dict[str, Any]


def fault(name: str) -> tuple[str, int]:
    """File and number of the line of a demo that says FAULT."""
    path = DEMOS / f"{name}.py"
    (line,) = (number for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if "# FAULT" in line)
    return path.name, line


def graph_break(report: Report) -> None:
    """One boundary, the loop's."""
    (boundary,) = report["boundaries"]
    assert (os.path.basename(boundary["user_file"]), boundary["user_line"]) == fault("graph_break")
    assert boundary["per_step"] > 40 and boundary["reads_host"] and not report["recompiles"]


def recompiles(report: Report) -> None:
    """Eight entries and no more: the list's length each time."""
    assert len(report["recompiles"]) == 8 and not report["boundaries"]
    assert all("self.kept" in one["reason"] for one in report["recompiles"])
    (finding,) = (one for one in report["findings"] if "past its limit of 8 entries" in one["title"])
    assert "Remembering.forward" in finding["title"]


def slow_step(report: Report) -> None:
    """Each fifteenth step waits for data."""
    waited = [one["index"] for one in report["slow_steps"] if one["cause"] == "data wait"]
    assert set(waited) >= {14, 29, 44}
    file, line = fault("slow_step")
    assert file == "slow_step.py" and line and not report["boundaries"] and not report["recompiles"]
    assert any("slow by data wait, every 15 steps" in one["title"] for one in report["findings"])


def roofline(report: Report) -> None:
    """Five regions: three at 1/12, all three in one at 3/16, and the matrix product far to the right."""
    found = {one["name"].split()[0]: one["intensity"] for one in report["roofline"]["points"] if one["kind"] == "region"}
    assert found["multiply"] == found["add"] == found["subtract"] == pytest.approx(1 / 12)
    assert found["fused"] == pytest.approx(3 / 16) and found["product"] == pytest.approx(2 * 256**3 / (3 * 256**2 * 4))


def clean(report: Report) -> None:
    """Nothing."""
    assert not report["boundaries"] and not report["recompiles"] and not report["findings"]


SHORT: dict[str, tuple[Callable[[Report], None], int]] = {
    "graph_break": (graph_break, 40),
    "recompiles": (recompiles, 100),
    "slow_step": (slow_step, 100),
    "roofline": (roofline, 20),
    "clean": (clean, 60),
}
"""Demo -> what its report has to say, and after how many steps."""


def run(name: str) -> Report:
    """The report on a demo, which ends by itself."""
    ran = tuimon("demo", name, "--steps", str(SHORT[name][1]), "--format", "json")
    assert ran.status == 0, ran.err
    assert f"{name}: " in ran.err and "in the monitor" in ran.err  # it says what to press; stdout is the report's
    return ran.report


@pytest.mark.parametrize("name", ["graph_break", "slow_step"])
def test_the_one_thing_is_found(name: str) -> None:
    pytest.importorskip("torch")
    SHORT[name][0](run(name))


def test_each_is_short_and_says_what_to_press() -> None:
    for name in SHORT:
        text = (DEMOS / f"{name}.py").read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 85
        told = text[text.index("WHAT_TO_PRESS = ") :].partition('\n"""\n')[0]
        assert all(len(line) <= 125 for line in told.splitlines()) and "q leaves" in told


def main() -> int:
    """All of them."""
    for name, (check, _) in SHORT.items():
        began = time.monotonic()
        check(run(name))
        sys.stdout.write(f"{name}: found in {time.monotonic() - began:.1f} s\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
