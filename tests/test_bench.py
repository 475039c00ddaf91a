"""The benches run: their shortest forms, what they print, and that a busy machine gets no verdict. No figure is asserted."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench import call, ingest, instructions, jobs, noise, side, step, streams, table
from tuimon import events as ev

ROOT = Path(__file__).resolve().parents[1]
LONG = "TUIMON_BENCHES"


def test_the_middle_of_values() -> None:
    assert noise.middle([3.0]) == (3.0, 3.0, 3.0)
    assert noise.middle([float(n) for n in range(10, 0, -1)]) == (5.5, 3.0, 8.0)
    assert noise.spread([1.008, 1.02, 1.02, 1.02, 1.028]) == "1.020 [1.020-1.020]"
    with pytest.raises(ValueError, match="no values"):
        noise.middle([])


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which nobody waits or is put aside."""
    monkeypatch.setattr(noise, "waited_s", lambda: 0.0)
    monkeypatch.setattr(noise, "put_aside", lambda pid: 0)


@pytest.mark.usefixtures("quiet")
def test_a_quiet_machine_is_judged() -> None:
    assert noise.Gate([os.getpid()]).verdict([1.001, 0.999, 1.0, 1.002, 1.0]) == ""


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(
    ("same", "why"),
    [
        ([1.0] * 4, "4 rounds where 5 are the least"),
        ([1.0], "1 round where 5 are the least"),
        ([], "0 rounds where 5 are the least"),
        ([1.007] * 5, "nothing against nothing differs by 0.7%"),
        ([0.993] * 5, "nothing against nothing differs by 0.7%"),
        ([0.98, 0.99, 1.0, 1.01, 1.02, 1.0, 0.97, 1.03], "nothing against nothing spreads over"),
    ],
)
def test_what_differs_from_itself_is_not_judged(same: list[float], why: str) -> None:
    assert why in noise.Gate([]).verdict(same)


@pytest.mark.usefixtures("quiet")
def test_a_job_that_is_put_aside_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    told = iter([(0, 1.0), (60, 11.0)])
    now = [next(told)]
    monkeypatch.setattr(noise, "put_aside", lambda pid: now[0][0])
    monkeypatch.setattr(noise, "ran_s", lambda pid: now[0][1])
    gate = noise.Gate([1])
    now[0] = next(told)
    assert gate.verdict([1.0] * 5) == "a job was put aside 6 times in each second that it ran"


@pytest.mark.usefixtures("quiet")
def test_waiting_for_a_processor_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = noise.Gate([])
    monkeypatch.setattr(noise, "waited_s", lambda: 1e6)
    assert "somebody waited for a processor" in gate.verdict([1.0] * 5)


@pytest.mark.usefixtures("quiet")
def test_a_kernel_that_tells_no_pressure_is_judged_by_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "waited_s", lambda: None)
    assert noise.Gate([]).verdict([1.0] * 5) == ""


def test_of_a_process_that_has_ended_nothing_is_told() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert (noise.put_aside(process.pid), noise.ran_s(process.pid)) == (0, 0.0)
    assert noise.ran_s(os.getpid()) > 0


ROWS = [
    table.row("kept", [1.0, 1.01, 1.02], "x", most=1.02),
    table.row("broken", [1.5], "x", most=1.02),
    table.row("enough", [250_000.0], "rows/s", least=200_000),
    table.row("not wanted", [0.0123], "s"),
    table.row("a | b", [], "x", note="not installed: pip install 'tuimon[bench]'"),
]


def test_a_table_says_what_is_kept() -> None:
    lines = table.markdown(ROWS, "a machine", "").splitlines()
    assert lines[2] == "| kept | 1.010 | 1.000 to 1.020 | x | 3 | ≤ 1.020 | yes |  |"
    assert lines[3] == "| broken | 1.500 | 1.500 to 1.500 | x | 1 | ≤ 1.020 | **no** |  |"
    assert lines[4] == "| enough | 250,000 | 250,000 to 250,000 | rows/s | 1 | ≥ 200,000 | yes |  |"
    assert lines[5] == "| not wanted | 0.0123 | 0.0123 to 0.0123 | s | 1 |  |  |  |"
    assert lines[6] == "| a \\| b |  |  | x | 0 |  |  | not installed: pip install 'tuimon[bench]' |"
    assert lines[7:] == ["", "a machine"]


def test_a_table_of_a_busy_machine_has_no_verdict() -> None:
    text = table.markdown(ROWS, "a machine", "nothing against nothing differs by 0.7%")
    assert "yes" not in text and "**no**" not in text
    assert text.count("| not judged |") == 3
    assert text.endswith("\nNot judged: nothing against nothing differs by 0.7%.\n")


def test_streams_are_what_they_are_named() -> None:
    for name, events, _ in ingest.kinds(True):
        rows = [row for event in events if isinstance(event, ev.Samples) for row in event.rows]
        known = {event.instrument for event in events if isinstance(event, ev.InstrumentAdded)}
        assert {row[0] for row in rows} <= known, name
        assert all(begin <= end for _, _, _, begin, end in rows), name
        assert [row[4] for row in rows] == sorted(row[4] for row in rows), name
    assert len({row[0] for row in _rows(streams.ended(200, 100, "optimizer", 10_000))}) == 10_001


def _rows(events: list[ev.Event]) -> list[tuple[int, int, int, int, int]]:
    return [row for event in events if isinstance(event, ev.Samples) for row in event.rows]


def ran(name: str, *more: str) -> str:
    """What a bench prints in its shortest form."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.bench.{name}", "--rounds", "1", *more],
        cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def is_a_table(text: str) -> None:
    """One round is never judged."""
    assert text.startswith("## ") and "\n|---|" in text
    assert "\nNot judged: 1 round where 5 are the least" in text
    assert "| yes |" not in text and "**no**" not in text


@pytest.mark.live
@pytest.mark.parametrize("name", ["call", "start"])
def test_a_bench_runs(name: str) -> None:
    is_a_table(ran(name))


@pytest.mark.live
@pytest.mark.skipif(LONG not in os.environ, reason=f"takes a minute; {LONG}=1 runs it")
@pytest.mark.parametrize("name", ["attach", "compiling", "peers", "step", "side"])
def test_a_long_bench_runs(name: str) -> None:
    is_a_table(ran(name))


def test_all_in_one_document(tmp_path: Path) -> None:
    out = tmp_path / "bench.md"
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench", "--rounds", "1", "--out", str(out), "ingest"],
        cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    is_a_table(out.read_text())
    assert done.stdout.strip() == out.read_text().strip()


@pytest.fixture(scope="module")
def arms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[jobs.Arm]]:
    """A job alone, another alone, and one that is attached to."""
    before = os.environ.get("BACKEND")
    os.environ["BACKEND"] = "aot_eager"  # no compiler, and no seconds of it
    running: list[jobs.Arm] = []
    try:
        running, missing = jobs.started(("nothing", "nothing#2", "attach"), tmp_path_factory.mktemp("bench"), 500.0, 4)
        assert not missing
        yield running
    finally:
        jobs.end(running)
        if before is None:
            del os.environ["BACKEND"]
        else:
            os.environ["BACKEND"] = before


@pytest.mark.live
def test_step_and_side_by_side(arms: list[jobs.Arm]) -> None:
    section = side._measured(arms, {"traceml": jobs.MISSING}, 1, 10)
    text = table.document([section])
    is_a_table(text)
    assert "LOSSES DIFFER" not in text and "Losses of all arms: equal to the bit in 1 block of 10 steps." in text
    assert "tuimon (attach)" in text and jobs.MISSING in text
    section = step.measured(arms[0], 1, (0.5,), (2, 4))
    is_a_table(table.document([section]))
    assert len(section.rows) == 2 * 4 and not arms[0].hooked()


def test_one_costs_less_where_they_are_apart() -> None:
    assert side.won([[1.01] * 5, [1.02] * 5], [[1.2] * 5, [1.1] * 5]) == ": tuimon costs less"
    assert side.won([[1.01] * 5, [1.2] * 5], [[1.1] * 5]).startswith(": tuimon does not cost less")
    assert side.won([], [[1.1] * 5]) == side.won([[1.1] * 5], []) == ""


def test_a_cell_of_the_table_is_a_ratio_within_its_round() -> None:
    cell = step.Cell(1.0, 2, 0, 10)
    for wall in (1000.0, 2000.0):
        cell.without.append(({"wall": wall, "thread": wall}, {"wall": wall, "thread": wall * 1.01}))
        cell.under.append({"wall": wall * 1.02, "thread": wall})
    assert cell.ratios("wall") == pytest.approx([1.02, 1.02]) and cell.same("thread") == pytest.approx([1.01, 1.01])
    added = cell.rows()[-1]
    assert (added.unit, added.n) == ("us", 2) and added.median == pytest.approx(30.0)


@pytest.mark.live
def test_the_monitor_sees_what_the_job_counts(arms: list[jobs.Arm]) -> None:
    """After the other test, as it ends the jobs."""
    jobs.end(arms)
    told = arms[-1].seen()
    seen, made = re.fullmatch(r"([\d,]+) of ([\d,]+), dropped 0", told).groups()  # type: ignore[union-attr]
    assert seen == made and arms[0].seen() == ""


def test_peers_that_are_not_there_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(jobs, "tool", lambda name: None)
    for name in ("traceml", "pyspy", "pyspy-stop"):
        with pytest.raises(jobs.NotHere, match=r"pip install 'tuimon\[bench\]'"):
            jobs.Arm(name, tmp_path, 1000.0, 4)


def test_instructions_need_tools(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(instructions.NotHere, match="apt-get install valgrind"):
        instructions.library(tmp_path)


def test_instructions_of_dumps(tmp_path: Path) -> None:
    (tmp_path / "out.2-01").write_text("desc: Trigger: Client Request: all in 10\nsummary: 500\n")
    (tmp_path / "out.10-01").write_text("desc: Trigger: Client Request: without engine 10\nsummary: 450\n")
    (tmp_path / "out.2-02").write_text("desc: Trigger: Client Request: all in 10\nsummary: 7\n")
    (tmp_path / "out-01").write_text("desc: Trigger: Program termination\nsummary: 9\n")
    assert instructions._stretches(tmp_path) == [("all in", 50.0), ("without engine", 45.0)]


def test_instructions_are_judged_where_nothing_is_itself() -> None:
    well = instructions._section({"nothing": [1000.0], "nothing#2": [1001.0], "tuimon": [1020.0]}, {}, {})
    assert well.gate == "" and any("x 1.0200" in row.note for row in well.rows)
    apart = instructions._section({"nothing": [1000.0], "nothing#2": [1003.0]}, {}, {})
    assert apart.gate == "nothing against nothing differs by 0.30%"
    assert instructions._section({"nothing": [1000.0]}, {}, {}).gate == "nothing was not measured twice"


def test_timed_calls_are_timed() -> None:
    for name, (timed, bare, clear) in call.timed_calls().items():
        assert timed(3) == bare(3) == 3, name
        clear()
