"""The report keeps its contract: every key is there, numbers mean what they say, unknown is null with a reason."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.report.jobs import FILE, model_of, reported, training
from tuimon import events as ev
from tuimon.model import Model
from tuimon.report import render
from tuimon.report.compiler import parts
from tuimon.roofline.ceilings import load_ceilings

POPULATION = {"n", "median", "p10", "p90", "total"}
KEYS: dict[str, set[str]] = {
    "target": {
        "pid", "command", "python", "torch", "devices", "rank", "world_size", "how", "attached_at", "steps_before_attach",
    },
    "coverage": {"samples", "dropped", "windows", "hook_s", "not_available"},
    "warmup": {"compile_s", "caches", "memory"},
    "frames": {
        "key", "function", "file", "line", "display", "entries", "limit", "limit_hit", "refused_compile_id", "calls",
        "compiled_calls", "eager_calls", "fell_back", "why",
    },
    "regions": {
        "compile_id", "generation", "direction", "frame", "backend", "ops", "calls", "initial", "steady", "after_guard_change",
        "device", "flop", "bytes", "before_attach",
    },
    "boundaries": {
        "key", "frame", "function", "file", "line", "user_file", "user_line", "reason", "kind", "gb_id", "requested", "breaks",
        "crossings", "per_step", "host", "device_gap", "share_of_step", "sync", "accepted", "before_attach",
    },
    "recompiles": {
        "frame", "function", "file", "line", "compile_id", "generation", "step", "reason", "failed", "compile_s", "cache",
        "refused", "before_attach",
    },
    "compiles": {
        "compile_id", "generation", "direction", "function", "why", "at", "step", "thread", "compile_s", "cache",
    },
    "steps": {"source", "n", "median", "p10", "p90", "breakdown"},
    "gpu": {"utilization", "memory", "power", "clocks", "throttle"},
    "host": {"cpu", "rss", "run_queue_wait", "page_faults", "io"},
    "roofline": {"ceiling", "rule", "points", "flop_known_for"},
    "findings": {"kind", "title", "where", "cost", "evidence", "next_step"},
}  # fmt: skip
TOP = {*KEYS, "schema", "aggregation", "slow_steps", "ranks"}


@pytest.fixture
def report() -> dict[str, Any]:
    return reported(model_of(training()))


def test_every_key_of_the_contract_is_there(report: dict[str, Any]) -> None:
    assert set(report) >= TOP
    for section, keys in KEYS.items():
        found = report[section]
        for entry in found if isinstance(found, list) else [found]:
            assert keys <= set(entry), section
    for kind in ("initial", "steady", "after_guard_change"):
        assert set(report["regions"][0][kind]) == POPULATION
    assert set(report["boundaries"][0]["host"]) == POPULATION
    assert set(report["warmup"]["compile_s"]) == {"total", "dynamo", "aot", "inductor", "triton", "other"}
    assert set(report["recompiles"][0]["compile_s"]) == {"total", "dynamo", "aot", "inductor", "triton"}
    assert all(report[section] for section in ("frames", "regions", "boundaries", "recompiles", "compiles", "gpu", "findings"))


def test_an_empty_model_has_every_key_and_claims_nothing() -> None:
    report = reported(Model())
    assert set(report) >= TOP
    assert report["steps"]["median"] is None and report["gpu"] is None and report["findings"] == []
    assert report["warmup"]["compile_s"]["total"] is None
    assert report["roofline"]["flop_known_for"] is None
    for form in ("text", "json", "md"):
        assert render(report, form).endswith("\n")


def test_what_is_null_has_a_reason(report: dict[str, Any]) -> None:
    whats = {gap["what"] for gap in report["coverage"]["not_available"]}
    assert all(gap["why"] for gap in report["coverage"]["not_available"])
    assert whats >= {
        "ranks", "target.rank", "steps.breakdown", "regions.device", "regions.flop", "regions.bytes",
        "boundaries.device_gap", "boundaries.sync", "frames[0:0].calls", "frames[0:0].eager_calls", "warmup.autotune_s",
        "roofline.ceiling",
        "gpu[0].power", "backward",
    }  # fmt: skip


def test_the_boundary_has_its_crossings_and_its_cost(report: dict[str, Any]) -> None:
    (boundary,) = report["boundaries"]
    assert (boundary["user_file"], boundary["user_line"]) == (FILE, 41)
    assert (boundary["crossings"], boundary["per_step"], boundary["breaks"]) == (20, 1.0, 1)
    assert boundary["host"]["median"] == pytest.approx(1e-3)
    assert boundary["share_of_step"] == pytest.approx(0.1)
    assert boundary["sync"] == "not looked at"


def test_a_refused_attempt_is_no_recompile_and_hits_the_limit(report: dict[str, Any]) -> None:
    assert [(r["compile_id"], r["refused"]) for r in report["recompiles"]] == [("0/1", False), ("0/2", True)]
    frame = next(frame for frame in report["frames"] if frame["refused_compile_id"])
    assert (frame["entries"], frame["limit"], frame["limit_hit"], frame["fell_back"]) == (2, 2, True, "limit")
    assert frame["why"]


def test_crossings_that_cannot_be_counted_are_null() -> None:
    events = training()
    events.append(
        ev.GraphBroke(10**12, "7/0", 0, "r", "k", None, "whole", FILE, 90, skipped_frame=True, stack=((FILE, 90, "whole"),))
    )
    report = reported(model_of(events))
    boundary = next(b for b in report["boundaries"] if b["line"] == 90)
    assert boundary["crossings"] is None and boundary["per_step"] is None and boundary["share_of_step"] is None
    assert any(boundary["key"] in gap["what"] for gap in report["coverage"]["not_available"])


def test_compile_time_is_divided_into_disjoint_parts(report: dict[str, Any]) -> None:
    recompile = report["recompiles"][0]["compile_s"]
    assert recompile == pytest.approx({"total": 0.9, "dynamo": 0.18, "aot": 0.27, "inductor": 0.27, "triton": 0.18})
    first = report["compiles"][0]["compile_s"]
    assert first["total"] == pytest.approx(sum(value for name, value in first.items() if name != "total"))


def test_a_part_that_torch_does_not_give_is_null() -> None:
    compilation = model_of(training()).compilations[0]
    compilation.inductor_s = compilation.triton_s = None
    assert parts(compilation) == pytest.approx(
        {"total": 2.0, "dynamo": 0.4, "aot": 1.6, "inductor": None, "triton": None, "other": 0.0}
    )


def test_times_are_unix_times(report: dict[str, Any]) -> None:
    assert report["target"]["attached_at"] == 1_700_000_000.0
    # attached at 1 ms, the first compilation began at 3 s
    assert report["compiles"][0]["at"] == pytest.approx(1_700_000_002.999)
    assert report["compiles"][0]["thread"] == "main"


def test_the_chosen_ceiling_is_in_the_report() -> None:
    ceiling = load_ceilings()[0]
    found = reported(model_of(training()), ceiling=ceiling)["roofline"]["ceiling"]
    assert found == {
        "name": ceiling.name,
        "peak": ceiling.peak_flops,
        "bandwidth": ceiling.bandwidth_bytes_s,
        "boundary": ceiling.boundary,
        "how": ceiling.how,
    }


def test_json_is_one_strict_object(report: dict[str, Any]) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    assert json.loads(render(report, "json"), parse_constant=refuse) == report
