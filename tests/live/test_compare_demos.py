"""Pairs of real runs of the demo: the boundary that went is named, and a pair of other batch sizes is refused.

python -m tests.live.test_compare_demos     all of it with Inductor, the logger's pair too (about two minutes)
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import ROOT, tuimon

DEMO = ROOT / "demos" / "train_small_gpt.py"
QUICK = ("--backend", "aot_eager", "--steps", "45")
WHOLE = ("--steps", "150")

PAIRS = {
    "item": (("--logger", "off", "--item", "loop"), ("--logger", "off", "--item", "hoisted"), "longest.item()"),
    "logger": (("--item", "off", "--logger", "hot"), ("--item", "off", "--logger", "out"), "requests.info("),
}
"""What differs -> both sets of switches, and what stands on the line that is out of the compiled code in the second."""


def record(folder: Path, name: str, *switches: str) -> Path:
    """A recording of the demo with these switches. Its losses lie beside it."""
    path = folder / f"{name}.tuimon"
    losses = folder / f"{name}.losses"
    program = [sys.executable, str(DEMO), "--no-ragged", "--losses", str(losses), *switches]
    ran = tuimon("record", "-o", str(path), "--", *program)
    assert ran.status == 0, ran.err
    return path


def line_of(text: str) -> int:
    """The line of the demo that has this text and says FAULT."""
    lines = DEMO.read_text(encoding="utf-8").splitlines()
    (found,) = (number for number, line in enumerate(lines, 1) if text in line and "FAULT" in line)
    return found


def named(a: Path, b: Path, text: str) -> dict[str, Any]:
    """The comparison of a pair, in which the boundary at the line with this text went, for a host time that is told."""
    losses = [path.with_suffix(".losses").read_text(encoding="ascii") for path in (a, b)]
    assert losses[0] == losses[1]  # to the bit: they are the same training
    ran = tuimon("compare", str(a), str(b), "--format", "json")
    assert ran.status == 0, ran.err
    found = ran.report
    (gone,) = (row for row in found["mechanisms"] if row["kind"] == "boundary gone")
    assert gone["where"] == f"{DEMO}:{line_of(text)}"
    low, high = gone["interval"]
    assert low <= gone["seconds_per_step"] <= high < 0
    assert "is gone" in gone["sentence"] and "less per step" in gone["sentence"]
    assert not any(row["kind"] == "boundary new" for row in found["mechanisms"])
    checks = {row["what"]: row["verdict"] for row in found["checks"]}
    assert checks["shapes"] == checks["dtype"] == checks["operations per step"] == "same"
    return found


def refused(a: Path, b: Path) -> str:
    """Why a pair is none."""
    ran = tuimon("compare", str(a), str(b), "--format", "json")
    assert ran.status == 1 and not ran.report["comparable"] and ran.report["mechanisms"] == []
    return str(ran.report["verdict"])


def test_an_item_that_is_hoisted_is_named_and_another_batch_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    first, second, text = PAIRS["item"]
    a, b = record(tmp_path, "a", *QUICK, *first), record(tmp_path, "b", *QUICK, *second)
    found = named(a, b, text)
    (row,) = (row for row in found["boundaries"] if row["line"] == line_of(text))
    assert row["in"] == "a" and row["per_step"]["a"] == 64 and row["reads_host"]  # 12 + 4 + 16 pieces in each of 2 blocks
    other = record(tmp_path, "c", *QUICK, *second, "--batch", "16")
    assert "the batch size is 8 in A and 16 in B" in refused(b, other)


def main() -> int:
    """Both pairs with Inductor, and the refusal; prints what `compare` says."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, (first, second, text) in PAIRS.items():
            a, b = record(folder, f"{what}-a", *WHOLE, *first), record(folder, f"{what}-b", *WHOLE, *second)
            named(a, b, text)
            sys.stdout.write(tuimon("compare", str(a), str(b)).out + "\n")
        other = record(folder, "other", *WHOLE, *PAIRS["item"][1], "--batch", "16")
        sys.stdout.write(f"{refused(folder / 'item-b.tuimon', other)}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
