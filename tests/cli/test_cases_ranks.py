"""The comparison of several processes' slow steps with their truth: it holds what it says, and lets nothing pass."""

from __future__ import annotations

from typing import Any

from tests.cases.slowness import slow_ranks

TRUTH: dict[str, Any] = {"steps": 40, "kind": "slow-straggler", "expected": {"multiproc": True, "slow_steps": [0, 7, 17]}}


def slow(index: int, cause: str, *, named: bool = True) -> dict[str, Any]:
    return {"index": index, "cause": cause, "causes": [{"cause": cause}], "detail": "", "named": named, "duration": 0.1}


def report(first: list[dict[str, Any]], second: list[dict[str, Any]], missed: tuple[int, int] = (1, 2)) -> dict[str, Any]:
    rows = [
        {"label": str(pid), "rank": rank, "step": {"n": 40 - skip}, "slow_steps": steps}
        for pid, rank, skip, steps in ((70, 0, missed[0], first), (71, 1, missed[1], second))
    ]
    finding = {"kind": "late_rank", "title": "rank 1 is late in 2 of 2 slow steps"}
    return {"ranks": rows, "findings": [finding]}


WAITS = [slow(6, "communication"), slow(16, "communication")]
SLEEPS = [slow(5, "other python"), slow(15, "other python")]


def test_each_rank_counts_from_its_own_attach() -> None:
    assert slow_ranks(TRUTH, report(WAITS, SLEEPS)) == ([], [])


def test_what_differs_is_told() -> None:
    assert slow_ranks(TRUTH, report(WAITS[:1], SLEEPS))[0] == ["70: step 17 was slow and is not told"]
    assert slow_ranks(TRUTH, report(WAITS, SLEEPS, (1, 5)))[0][0] == "71: 35 of 40 steps are told"
    (extra,), _ = slow_ranks(TRUTH, report([*WAITS, slow(20, "gc")], SLEEPS))
    assert "step 21 (gc" in extra
    assert slow_ranks(TRUTH, report([*WAITS, slow(20, "run-queue wait")], SLEEPS)) == (
        [],
        ["70: step 21 (run-queue wait, 100 ms) is told as slow"],
    )
    assert "unexplained" in slow_ranks(TRUTH, report(WAITS, [slow(5, "unexplained", named=False), SLEEPS[1]]))[0][0]


def test_the_late_rank_has_to_be_named_and_to_be_one() -> None:
    both = [slow(6, "other python"), slow(16, "communication")]
    assert any("['0', '1']" in text for text in slow_ranks(TRUTH, report(both, SLEEPS))[0])
    unnamed = report(WAITS, SLEEPS)
    unnamed["findings"] = []
    assert len(slow_ranks(TRUTH, unnamed)[0]) == 2
    assert slow_ranks(TRUTH, report(WAITS, [slow(5, "communication"), slow(15, "communication")]))[0] == [
        "in no slow step a rank is late"
    ]
