"""What the truth says of slow steps, compared with what the report says."""

from __future__ import annotations

from typing import Any

CAUSES = {"slow-gc": "gc", "slow-data": "data wait", "slow-profiler": "profiler"}
"""Kind of a case -> cause of its slow steps but the first one, in which it compiles."""
OUTSIDE = "run-queue wait"
"""The machine's doing: such a step can come anywhere, and is slow indeed."""


def slow_steps(truth: dict[str, Any], report: dict[str, Any]) -> tuple[list[str], list[str]]:
    """(differences, remarks). A truth that lists none says nothing of them; one of several processes is not compared."""
    expected = truth["expected"]
    wanted = expected.get("slow_steps")
    if not wanted or expected.get("multiproc"):
        return [], []
    told = {step["index"]: step for step in report.get("slow_steps") or []}
    wrong, remarks = [], []
    missing = [index for index in wanted if index not in told]
    if missing:
        wrong.append(f"steps {missing} were slow and are not told")
    for index, step in told.items():
        if index not in wanted:
            text = f"step {index} ({step['cause']}, {step['duration'] * 1e3:.0f} ms) is told as slow"
            (remarks if step["cause"] == OUTSIDE else wrong).append(text)
        elif not _right(truth, index, step):
            wrong.append(f"step {index} is said to be slow by {step['cause']!r}: {step['detail']}")
    return wrong, remarks


def waits_in_python(truth: dict[str, Any]) -> bool:
    """Whether the program is slow at times and compiles nothing: a finding that says so is right."""
    expected = truth["expected"]
    return not expected.get("dynamo_graphs") and any(index > 0 for index in expected.get("slow_steps") or ())


def _right(truth: dict[str, Any], index: int, step: dict[str, Any]) -> bool:
    causes = [cause["cause"] for cause in step["causes"]]
    if waits_in_python(truth):
        return "compile" not in causes
    return (CAUSES.get(truth["kind"], "compile") if index else "compile") in causes
