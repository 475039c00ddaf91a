"""The report on several ranks: who is late and who waits, in every form, and why it is not known where it is not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.model import ranks
from tests.report.jobs import model_of, reported, training
from tuimon import events as ev
from tuimon.draw.text import cells
from tuimon.model import Model
from tuimon.model.ranks.lateness import Lateness
from tuimon.report import render
from tuimon.report.ranks import Watched


def model(rank: int | None) -> Model:
    """Any job that says that it is this rank of two."""
    events = training()
    events.insert(1, ev.TargetSeen(1, 10, "python train.py", "3.11", "2.13", "run", 0.0, rank=rank, world_size=2))
    return model_of([one for one in events if not (isinstance(one, ev.TargetSeen) and one.rank is None)])


def watched(lateness: Lateness | None) -> list[Watched]:
    return [Watched(f"rank {rank}", rank, 4000 + rank, None, model(rank), rank, lateness) for rank in (0, 1)]


def report_of(lateness: Lateness | None) -> dict[str, Any]:
    found = watched(lateness)
    return reported(found[0].model, ranks=found)


@pytest.fixture(scope="module")
def straggler() -> dict[str, Any]:
    job = ranks.Job(
        2,
        sleeps=lambda rank, step: 100.0 if rank == 1 and step % 10 == 7 else 0.0,
        compiles=lambda rank, step: 1200.0 if rank == 1 and step == 30 else 0.0,
    )
    return report_of(ranks.compared(job, 60))


def test_the_rows_say_who_is_late_and_who_waits(straggler: dict[str, Any]) -> None:
    first, second = straggler["ranks"]
    assert (first["rank"], second["rank"]) == (0, 1)
    assert set(first["lateness"]) == {"n", "median", "p90", "last"} and first["lateness"]["n"] == 60
    assert second["lateness"]["p90"] > 0.09 > first["lateness"]["p90"]
    assert (first["late_in"], second["late_in"], second["slow_compared"]) == (0, 7, 7)
    assert first["waits_for"] == 1 and first["waited"] > 1.7
    assert first["compile_skew"] == {"n": 0, "total": 0.0, "longest": None}
    longest = second["compile_skew"]["longest"]
    assert (longest["step"], longest["waiting"], longest["in"]) == (30, 1, "all_reduce")
    assert longest["compile"] == pytest.approx(1.2) and longest["detail"].startswith("recompile of f")


def test_the_verdict_is_a_sentence_and_a_finding(straggler: dict[str, Any]) -> None:
    kinds = {finding["kind"]: finding["title"] for finding in straggler["findings"]}
    assert kinds["late_rank"].startswith("rank 1 is late in 7 of 7 slow steps by other python")
    assert kinds["compile_skew"].startswith("rank 1 compiled for 1.20 s in its step 30 while 1 other rank waited")
    assert sorted(straggler["ranks_verdict"]) == sorted([kinds["late_rank"], kinds["compile_skew"]])
    assert straggler["aggregation"]["ranks"].startswith("late: ")


@pytest.mark.parametrize("form", ["text", "md"])
def test_both_forms_tell_it(form: str, straggler: dict[str, Any]) -> None:
    written = render(straggler, form)
    joined = " ".join(written.split())
    assert "rank 1 is late in 7 of 7 slow steps by other python" in joined
    assert "rank 0: " in joined and "for rank 1" in joined and "after the first (median" in joined
    if form == "text":
        assert max(cells(line) for line in written.splitlines()) <= 80


def test_a_rank_stays_what_it_was_when_the_process_group_is_gone() -> None:
    one = model(1)
    one.apply([ev.TargetSeen(one.now_ns, 10, "python train.py", "3.11", "2.13", "run", 0.0)])
    assert (one.target.rank, one.target.world_size) == (1, 2)


def test_where_ranks_are_not_compared_the_reason_is_given() -> None:
    report = report_of(None)
    assert [row["lateness"] for row in report["ranks"]] == [None, None] and report["ranks_verdict"] == []
    gaps = {gap["what"]: gap["why"] for gap in report["coverage"]["not_available"]}
    assert gaps["ranks[].lateness"].startswith("no other rank of its job was watched") and "ranks[].compile_skew" in gaps
    lateness = Lateness()
    for key in (0, 1):
        lateness.join(key, f"rank {key}", rank=key)
    gaps = {gap["what"]: gap["why"] for gap in report_of(lateness)["coverage"]["not_available"]}
    assert "no collective of Python code that both called" in gaps["ranks[].lateness"]
    for form in ("text", "md", "json"):
        assert render(report, form)


def test_what_is_met_in_the_backward_is_said_to_be() -> None:
    job = ranks.Job(2, ddp=True, sleeps=lambda rank, step: 100.0 if rank == 1 and step % 10 == 7 else 0.0)
    report = report_of(ranks.compared(job, 60))
    gaps = {gap["what"]: gap["why"] for gap in report["coverage"]["not_available"]}
    assert "DistributedDataParallel" in gaps["ranks[].collectives"]
    assert "in the backward for it" in report["ranks_verdict"][0]


def test_of_many_ranks_those_that_stand_out_have_a_line() -> None:
    job = ranks.Job(40, sleeps=lambda rank, step: 100.0 if rank == 33 and step % 10 == 7 else 0.0)
    lateness = ranks.compared(job, 40)
    one = model(0)
    found = [Watched(f"rank {rank}", rank, 4000 + rank, None, one, rank, lateness) for rank in range(40)]
    lines = [line for line in render(reported(one, ranks=found), "text").splitlines() if "after the first" in line]
    assert 0 < len(lines) <= 8 and any(line.startswith("  rank 33:") for line in lines)
