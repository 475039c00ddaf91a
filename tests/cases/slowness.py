"""What the truth says of slow steps, compared with what the report says."""

from __future__ import annotations

from typing import Any

CAUSES = {"slow-gc": "gc", "slow-data": "data wait", "slow-profiler": "profiler"}
"""Kind of a case -> cause of its slow steps but the first one, in which it compiles."""
OUTSIDE = "run-queue wait"
"""The machine's doing: such a step can come anywhere, and is slow indeed."""


def slow_steps(truth: dict[str, Any], report: dict[str, Any]) -> tuple[list[str], list[str]]:
    """(differences, remarks). A truth that lists none says nothing of them.

    The steps of several processes are made by children of the one that was started: see `slow_ranks`.
    """
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


MISSED = (1, 2)
"""Of a rank that is attached to when its first step is over: that step, and the next where it is not known when that began."""
WAITING = "communication"


def slow_ranks(truth: dict[str, Any], report: dict[str, Any]) -> tuple[list[str], list[str]]:
    """(differences, remarks) of several processes that were attached to when each had made its first step.

    Each slow step of the truth is one of each rank's. Of a straggler's job all but one rank wait in it, and the one that does
    not is named as late; where the truth lists compilations, it may compile.
    """
    wrong, remarks = [], []
    steps, ranks = int(truth["steps"]), report["ranks"] or []
    late: dict[int, set[Any]] = {}
    for row in ranks:
        missed = steps - (row["step"] or {"n": 0})["n"]
        if missed not in MISSED:
            wrong.append(f"{row['label']}: {steps - missed} of {steps} steps are told")
            continue
        told = {step["index"] + missed: step for step in row["slow_steps"] or []}
        for index in truth["expected"].get("slow_steps") or []:
            if index < missed:
                continue
            step = told.pop(index, None)
            if step is None:
                wrong.append(f"{row['label']}: step {index} was slow and is not told")
            elif WAITING not in [cause["cause"] for cause in step["causes"]]:
                late.setdefault(index, set()).add(row["rank"])
                if not step["named"]:
                    wrong.append(f"{row['label']}: step {index} is slow by {step['cause']!r}: {step['detail']}")
        for index, step in told.items():
            text = f"{row['label']}: step {index} ({step['cause']}, {step['duration'] * 1e3:.0f} ms) is told as slow"
            (remarks if OUTSIDE in [cause["cause"] for cause in step["causes"]] else wrong).append(text)
    named = [finding["title"] for finding in report["findings"] if finding["kind"] in ("late_rank", "compile_skew")]
    for index, numbers in late.items():
        if len(numbers) != 1 or not any(title.startswith(f"rank {number} ") for number in numbers for title in named):
            wrong.append(f"step {index}: of ranks {sorted(map(str, numbers))} it is not said that the others wait for them")
    if not late and any(index >= max(MISSED) for index in truth["expected"].get("slow_steps") or ()):
        wrong.append("in no slow step a rank is late")
    return wrong, remarks
