"""The report's roofline: the contract's keys, what is known of each region, and the words for a person."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.report.jobs import reported
from tests.roofline.jobs import HOST, added, calls, graph, model_of, product, row
from tuimon import events as ev
from tuimon.model import Model
from tuimon.report import render
from tuimon.roofline.inforce import Known
from tuimon.roofline.points import RULE

POINT = {"name", "kind", "intensity", "rate", "time_share", "how", "bound", "of_roof"}


def job() -> Model:
    """A region at half the peak, one twice as fast as that, and one with an operator that has no formula."""
    odd = graph("2/0", [row("mylib.foobar", [(3,)], [(3,)])], [(3,)], [(3,)])
    return model_of(
        product(), graph("1/0", product().rows, [(1000, 1000)] * 2, [(1000, 1000)]), odd,
        added(1), added(2, "1/0"), added(3, "2/0"),
        calls(1, 40, 11), calls(2, 10, 11, 2.0), calls(3, 10, 11, 3.0),
    )  # fmt: skip


@pytest.fixture
def report() -> dict[str, Any]:
    return reported(job(), known=HOST)


def gaps(report: dict[str, Any]) -> dict[str, str]:
    return {gap["what"]: gap["why"] for gap in report["coverage"]["not_available"]}


def test_the_roofline_keeps_its_contract(report: dict[str, Any]) -> None:
    found = report["roofline"]
    assert found["rule"] == RULE
    assert set(found["ceiling"]) == {"name", "peak", "bandwidth", "boundary", "how"}
    assert found["ceiling"] in found["ceilings"]
    assert all(set(point) >= POINT for point in found["points"])
    assert [point["rate"] for point in found["points"]] == pytest.approx([50e9, 200e9, None])
    assert found["flop_known_for"] == pytest.approx(5 / 6)
    assert found["unknown"] == [{"operator": "mylib.foobar", "share": pytest.approx(1 / 6)}]
    assert found["process"]["rate"] == pytest.approx(40e9 / 0.5)
    assert json.loads(render(report, "json")) == report


def test_each_region_has_its_operations_and_bytes_or_a_reason(report: dict[str, Any]) -> None:
    regions = {region["compile_id"]: region for region in report["regions"]}
    assert regions["0/0"]["flop"] == {"value": 2e9, "how": "formula", "bound": "exact", "boundary": None}
    # at least so many cross: each is read and written once
    assert regions["0/0"]["bytes"] == {"value": 12e6, "how": "compulsory", "bound": "lower", "boundary": "LLC"}
    assert regions["2/0"]["flop"] is None
    assert "mylib.foobar" in gaps(report)["regions[0:2/0:forward].flop"]
    assert regions["2/0"]["bytes"]["value"] == 24


def test_a_region_that_was_called_once_has_its_operations_too() -> None:
    report = reported(model_of(product(), added(1), calls(1, 40, 1)), known=HOST)
    assert report["regions"][0]["flop"]["value"] == 2e9
    assert report["roofline"]["flop_known_for"] is None
    assert "roofline.flop_known_for" in gaps(report)


def test_without_graphs_the_reason_is_told_once() -> None:
    report = reported(model_of(added(1), added(2, "1/0"), calls(1, 40, 3), calls(2, 40, 3, 2.0)))
    assert {"regions.flop", "regions.bytes"} <= set(gaps(report))
    assert report["roofline"]["flop_known_for"] == 0.0
    assert report["roofline"]["ceiling"] is None
    assert not any("in this version" in why for why in gaps(report).values())


def test_ceilings_of_no_machine_of_this_job_are_not_told() -> None:
    packaged = Known(ceilings=HOST.ceilings)
    found = reported(job(), known=packaged)["roofline"]
    assert (found["ceiling"], found["ceilings"]) == (None, [])
    assert any("tuimon calibrate" in note for note in found["notes"])


@pytest.mark.parametrize("form", ["text", "md"])
def test_in_words_it_has_the_rule_the_table_and_what_is_not_known(report: dict[str, Any], form: str) -> None:
    words = " ".join(render(report, form).replace("\\", "").replace("`", "").split())
    assert RULE in words
    assert "operations known for 83.3% of the compiled time" in words
    assert "f [1/0] forward OVER" in words
    assert "OVER: f [1/0] forward: " in words
    assert "no formula for: mylib.foobar (16.7% of the time)" in words
    assert "all regions" in words
    assert "Test CPU" in words


def test_the_text_is_never_wider_than_a_terminal(report: dict[str, Any]) -> None:
    assert max(map(len, render(report, "text").split("\n"))) <= 80


def test_a_window_tells_what_it_cost() -> None:
    closed = ev.WindowChanged(5, 1, "closed", steps=5, job_s=0.284, slower=1.7)
    report = reported(model_of(closed))
    assert report["coverage"]["windows"] == 1
    assert report["roofline"]["windows"] == [{"state": "closed", "why": "", "steps": 5, "job_s": 0.284, "slower": 1.7}]
    assert "a window of 5 steps: the job stood still for 284 ms, its steps 1.70 times as long" in " ".join(
        render(report, "text").split()
    )
