"""The published schemas: they are in the package, they refuse what is wrong, and every report and comparison obeys them."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.report.compared import Run, compared
from tests.report.jobs import model_of, reported, training
from tests.report.obeys import obeying, wrong
from tests.sources.recorded_streams import STREAMS, stream
from tuimon.model import Model
from tuimon.report import SCHEMA, render
from tuimon.report.compare.build import SCHEMA as COMPARE
from tuimon.report.schema import compare_schema, schema


def test_they_are_files_of_the_package_and_name_what_they_are_of() -> None:
    assert schema()["properties"]["schema"]["const"] == SCHEMA
    assert compare_schema()["properties"]["schema"]["const"] == COMPARE


def test_the_report_is_what_the_contract_says() -> None:
    """Every key of the contract is required, so that none can go without this file being changed."""
    from tests.report.test_build import KEYS, TOP

    assert set(schema()["required"]) >= TOP
    for section, keys in KEYS.items():
        told = schema()["properties"][section]
        for one in (told.get("anyOf") or [told]) if isinstance(told, dict) else []:
            inner = one.get("items", one)
            assert keys <= set(inner.get("required", keys)), section


@pytest.mark.parametrize(
    "spoil",
    [
        lambda report: report.pop("steps"),
        lambda report: report.update(schema="tuimon.report/2"),
        lambda report: report["regions"][0].update(calls="many"),
        lambda report: report["regions"][0].update(calls=-1),
        lambda report: report["regions"][0].update(unheard_of=1),
        lambda report: report["steps"].update(source="guessed"),
        lambda report: (
            report["steps"]["breakdown_mean"].update({"waiting for Godot": 1.0})
            if report["steps"]["breakdown_mean"]
            else report.pop("trends")
        ),
        lambda report: report["coverage"]["not_available"].append({"what": "x", "why": ""}),
        lambda report: report["boundaries"][0].update(sync="perhaps"),
        lambda report: report["findings"][0].pop("next_step"),
    ],
)
def test_a_report_that_is_none_is_refused(spoil: Any) -> None:
    report = copy.deepcopy(reported(model_of(training())))
    spoil(report)
    assert wrong(report)


def test_more_at_the_top_of_a_device_and_of_the_host_is_allowed() -> None:
    report = copy.deepcopy(reported(model_of(training())))
    report["more"] = report["gpu"][0]["more"] = report["host"]["more"] = 1
    assert not wrong(report)


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_the_report_of_every_recorded_stream_obeys(path: Path) -> None:
    model = Model()
    model.apply(stream(path))
    report = reported(model)
    assert not wrong(json.loads(render(report, "json")))
    for form in ("text", "md"):
        assert render(report, form).endswith("\n")


def test_a_comparison_that_is_none_is_refused() -> None:
    found = copy.deepcopy(compared(Run(boundary_us=900), Run(seed=2)))
    found["comparable"] = False  # with mechanisms, and without a reason
    assert wrong(found)


def test_every_comparison_of_two_recorded_streams_obeys() -> None:
    models = []
    for path in STREAMS[:4]:
        models.append(Model())
        models[-1].apply(stream(path))
    for one in models:
        for other in models:
            compared(one, other)


def test_obeying_says_what_is_wrong_and_where() -> None:
    report = copy.deepcopy(reported(model_of(training())))
    report["steps"]["n"] = -1
    with pytest.raises(AssertionError, match=r"\$\.steps\.n"):
        obeying(report)
