"""The comparison behind `make cases` finds what differs, and only that."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.cases.compare import Attached, compare
from tests.cases.neutral import spans, unlike
from tests.cases.slowness import slow_steps

Change = Callable[[dict[str, Any]], object]


def boundary(file: str, line: int, crossings: int | None, reason: str, **more: Any) -> dict[str, Any]:
    """A boundary in library code that the user's line reached."""
    places = {"user_file": f"/x/{file}", "user_line": line, "file": "/lib/torch/y.py", "line": 79}
    told = {"crossings": crossings, "reason": reason, "reads_host": "item" in reason, "requested": False, "breaks": 2}
    return {"key": f"0@{line}", **places, **told, "skipped_frame": False, "before_attach": False, **more}


def recompile(compile_id: str, failed: list[tuple[str, str]], refused: bool = False) -> dict[str, Any]:
    """A recompile of `f`."""
    told = [{"entry": entry, "guard": guard} for entry, guard in failed]
    place = {"function": "f", "file": "/x/a.py", "line": 1}
    return {
        **place,
        "compile_id": compile_id,
        "reason": failed[0][1],
        "failed": told,
        "refused": refused,
        "before_attach": False,
    }


TRUTH: dict[str, Any] = {
    "kind": "break",
    "steps": 5,
    "expected": {
        "graph_breaks": [
            {
                "file_line": "a.py:3",
                "sites": 1,
                "crossings_total": 5,
                "reason_contains": "item",
                "forces_host_sync": True,
                "log_entries": 2,
            },
        ],
        "recompiles": [
            {"function": "f", "count": 2, "compile_ids": ["0/1", "0/2"], "reason_contains": "0/1: len(x) == 1", "at": "a.py:1"},
        ],
        "recompile_limit_hit": {"function": "f", "refused_compile_id": "0/8", "logged_attempts": 3},
        "dynamo_graphs": 1,
        "graph_executions": {"0/0": 5},
        "eager_calls": 2,
        "total_calls": 7,
        "cache": {"autograd_cache_miss": 1},
    },
}
REPORT: dict[str, Any] = {
    "target": {"python": "3.12.1"},
    "boundaries": [boundary("a.py", 3, 5, "Tensor.item()")],
    "recompiles": [
        recompile("0/1", [("0/0", "not x")]),
        recompile("0/2", [("0/1", "len(x) == 1"), ("0/0", "not x")]),
        recompile("0/8", [("0/2", "len(x) == 2")], refused=True),
    ],
    "frames": [
        {
            "key": "0",
            "function": "f",
            "limit_hit": True,
            "refused_compile_id": "0/8",
            "fell_back": "limit",
            "eager_calls": 2,
            "calls": 7,
            "eager_share": 2 / 7,
            "before_attach": False,
        }
    ],
    "regions": [
        {"compile_id": "0/0", "direction": "forward", "calls": 5, "before_attach": False},
        {"compile_id": "0/0", "direction": "backward", "calls": 4, "before_attach": False},
    ],
    "compiles": [{"compile_id": "0/0", "direction": "forward", "before_attach": False}],
    "warmup": {"caches": {"aot_autograd": {"hit": 0, "miss": 1}}},
    "steps": {"n": 5},
    "findings": [{"kind": "limit", "title": "f is at its limit"}],
    "coverage": {"dropped": 0, "not_available": []},
}


def texts(truth: dict[str, Any], report: dict[str, Any], attached: Attached | None = None) -> list[str]:
    return [difference.text for difference in compare(truth, report, attached).differences]


def test_the_same_is_the_same() -> None:
    assert texts(TRUTH, REPORT) == []


CHANGES: list[Change] = [
    lambda r: r["boundaries"][0].update(crossings=4),
    lambda r: r["boundaries"][0].update(crossings=None),
    lambda r: r["boundaries"][0].update(reason="other"),
    lambda r: r["boundaries"][0].update(reads_host=None),
    lambda r: r["boundaries"][0].update(breaks=1),
    lambda r: r["boundaries"].clear(),
    lambda r: r["boundaries"].append(boundary("a.py", 9, 1, "")),
    lambda r: r["recompiles"][0].update(refused=True),
    lambda r: r["recompiles"][0].update(line=2),
    lambda r: r["recompiles"][0].update(function="g"),
    lambda r: r["recompiles"][1].update(failed=[]),
    lambda r: r["recompiles"].append(recompile("0/3", [("0/2", "y")])),
    lambda r: r["recompiles"].pop(),
    lambda r: r["frames"][0].update(limit_hit=False),
    lambda r: r["frames"][0].update(refused_compile_id="0/7"),
    lambda r: r["frames"][0].update(eager_calls=None),
    lambda r: r["frames"][0].update(calls=5),
    lambda r: r["frames"][0].update(eager_share=1.0),
    lambda r: r["regions"][0].update(calls=6),
    lambda r: r["regions"].append(dict(r["regions"][0], calls=0)),
    lambda r: r["regions"].append(dict(r["regions"][0], compile_id="1/0")),
    lambda r: r["warmup"]["caches"].update(aot_autograd={"hit": 1, "miss": 0}),
    lambda r: r["findings"].clear(),
    lambda r: r["coverage"].update(dropped=1),
    lambda r: r["steps"].update(median=-1.0),
]


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_differs_is_found(change: Change) -> None:
    report = copy.deepcopy(REPORT)
    change(report)
    assert texts(TRUTH, report)


def test_a_boundary_is_where_dynamo_logs_it_before_it_is_where_the_user_called() -> None:
    """Two boundaries with one user's line: the library's own place tells them apart."""
    truth, report = copy.deepcopy(TRUTH), copy.deepcopy(REPORT)
    library = {"file_line": "y.py:80", "sites": 1, "reason_contains": "graph_break()", "log_entries": 2}
    truth["expected"]["graph_breaks"].append(library)
    report["boundaries"].append({**boundary("a.py", 3, 5, "graph_break()"), "line": 80})
    assert texts(truth, report) == []


def test_a_skipped_frame_is_not_counted_before_python_3_12_and_the_reason_is_told() -> None:
    report = copy.deepcopy(REPORT)
    report["boundaries"][0].update(skipped_frame=True, crossings=None)
    report["coverage"]["not_available"] = [{"what": "boundaries[0@3].crossings", "why": "Python 3.11 has no way"}]
    assert texts(TRUTH, report)
    report["target"]["python"] = "3.11.7"
    found = compare(TRUTH, report)
    assert found.differences == [] and found.notes == ["crossings null, as Python 3.11 must"]
    report["coverage"]["not_available"] = []
    assert texts(TRUTH, report)


@pytest.mark.parametrize("kind", ["control", "negative", "break"])
def test_where_nothing_is_wrong_there_is_no_finding(kind: str) -> None:
    clean = {**TRUTH["expected"], "graph_breaks": [], "recompiles": [], "recompile_limit_hit": None}
    clean.pop("eager_calls")
    truth = {"kind": kind, "steps": 5, "expected": clean}
    report = {**REPORT, "boundaries": [], "recompiles": [], "frames": [], "findings": []}
    assert texts(truth, report) == []
    assert texts(truth, {**report, "findings": [{"kind": "recompile", "title": "x"}]})
    assert bool(texts(truth, {**report, "findings": [{"kind": "slow step", "title": "x"}]})) == (kind != "break")


def in_the_middle() -> dict[str, Any]:
    """The report of an attach after all the compiling."""
    report = copy.deepcopy(REPORT)
    for part in ("boundaries", "recompiles", "frames", "regions", "compiles"):
        for row in report[part]:
            row["before_attach"] = True
    report["boundaries"][0]["crossings"] = 2
    report["regions"][0]["calls"] = 2
    report["frames"][0].update(eager_calls=1, calls=3, eager_share=1 / 3)
    return report


BEFORE = Attached((("0/0", "forward"),))


def test_after_an_attach_in_the_middle_the_rest_is_counted() -> None:
    report = in_the_middle()
    before = Attached((*BEFORE.compiled, ("0/1", "forward"), ("0/2", "forward"), ("0/8", "forward")))
    for compile_id in ("0/1", "0/2", "0/8"):
        report["compiles"].append({"compile_id": compile_id, "direction": "forward", "before_attach": True})
    assert texts(TRUTH, report, before) == []
    changes: list[Change] = [
        lambda r: r["boundaries"][0].update(crossings=0),
        lambda r: r["boundaries"][0].update(crossings=6),
        lambda r: r["boundaries"][0].update(before_attach=False),
        lambda r: r["recompiles"][0].update(before_attach=False),
        lambda r: r["regions"][0].update(calls=6),
        lambda r: r["compiles"].pop(),
        lambda r: r["compiles"].append(dict(r["compiles"][0], compile_id="5/0")),
    ]
    for change in changes:
        other = copy.deepcopy(report)
        change(other)
        assert texts(TRUTH, other, before)


def test_what_is_lacking_is_excused_where_the_report_says_so() -> None:
    report = in_the_middle()
    report["frames"][0]["eager_calls"] = None
    assert not compare(TRUTH, report).excused
    report = {**copy.deepcopy(REPORT), "boundaries": []}
    report["coverage"]["not_available"] = [{"what": "boundaries.host", "why": "another thing"}]
    assert not compare(TRUTH, report).excused
    report["coverage"]["not_available"] = [{"what": "boundaries", "why": "Dynamo keeps no record"}]
    assert compare(TRUTH, report).excused


def test_unlike_names_the_place() -> None:
    assert list(unlike({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]})) == []
    assert list(unlike({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]})) == ["a[1]/b: 3, without tuimon 2"]
    assert list(unlike({"a": 1}, {})) == ["a is only there without tuimon"]


@pytest.mark.parametrize("steps", [4, 14, 120])
def test_tuimon_attaches_twice_while_the_program_runs(steps: int) -> None:
    holds = [step for span in spans(steps) for step in span]
    assert holds == sorted(set(holds)) and holds[-1] < steps


def _slow(index: int, cause: str, duration: float = 0.1) -> dict[str, Any]:
    return {"index": index, "cause": cause, "duration": duration, "detail": "", "causes": [{"cause": cause}]}


@pytest.mark.parametrize(
    ("kind", "told", "differences", "remarks"),
    [
        ("slow-gc", [_slow(0, "compile"), _slow(7, "gc")], 0, 0),
        ("slow-gc", [_slow(0, "compile"), _slow(7, "compile")], 1, 0),
        ("slow-gc", [_slow(7, "gc")], 1, 0),
        ("slow-gc", [_slow(0, "compile"), _slow(7, "gc"), _slow(9, "gc")], 1, 0),
        ("slow-gc", [_slow(0, "compile"), _slow(7, "gc"), _slow(9, "run-queue wait")], 0, 1),
        ("recompile-shape", [_slow(0, "compile"), _slow(7, "compile")], 0, 0),
    ],
)
def test_slow_steps_are_the_right_ones_for_the_right_cause(
    kind: str, told: list[dict[str, Any]], differences: int, remarks: int
) -> None:
    truth = {"kind": kind, "expected": {"slow_steps": [0, 7], "dynamo_graphs": 1}}
    wrong, said = slow_steps(truth, {"slow_steps": told})
    assert (len(wrong), len(said)) == (differences, remarks)
