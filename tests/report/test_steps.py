"""Steps, slow steps and trends in the report: what is there adds up, and all three forms tell it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.model.slow_jobs import DATA, GC, Job
from tests.report.jobs import model_of, reported, training
from tuimon.model import Model
from tuimon.model.steps.parts import CATEGORIES
from tuimon.report import phrases, render

KEYS = {
    "index", "index_certain", "at", "rank", "duration", "usual", "ratio", "cause", "detail", "named", "causes", "evidence",
    "account", "usual_account", "excess", "run_queue_wait", "complete", "sentence",
}  # fmt: skip


def job() -> Job:
    """Every tenth step waits for the loader; one is unexplained."""
    job = Job()
    for _ in range(5):
        job.steps(9)
        job.step((DATA, 150), site=12)
    job.steps(4)
    job.step(idle=80)
    job.steps(4)
    return job


@pytest.fixture
def report() -> dict[str, Any]:
    return reported(job().model)


def test_slow_steps_have_their_keys_and_their_causes(report: dict[str, Any]) -> None:
    slow = report["slow_steps"]
    assert [one["index"] for one in slow] == [9, 19, 29, 39, 49, 54]
    assert [one["cause"] for one in slow] == ["data wait"] * 5 + ["unexplained"]
    assert all(set(one) >= KEYS for one in slow)
    first = slow[0]
    assert first["named"] and not slow[-1]["named"]
    assert first["ratio"] == pytest.approx(8.5) and first["usual"] == pytest.approx(0.02)
    assert first["causes"] == [{"cause": "data wait", "share": 1.0, "detail": "DataLoader at train.py:12, 150.0 ms"}]
    assert first["evidence"] and first["sentence"].startswith("step 9 took 170.0 ms")
    assert first["at"] is not None and first["rank"] is None


def test_accounts_add_up(report: dict[str, Any]) -> None:
    for one in report["slow_steps"]:
        assert set(one["account"]) == set(one["excess"]) == set(one["usual_account"]) == set(CATEGORIES)
        assert sum(one["account"].values()) == pytest.approx(one["duration"], rel=1e-6)
        assert sum(one["excess"].values()) + one["usual"] == pytest.approx(one["duration"], rel=0.01)
        assert min(*one["account"].values(), *one["excess"].values()) >= 0
    steps = report["steps"]
    assert sum(steps["breakdown_mean"].values()) == pytest.approx(0.02, rel=1e-6)
    assert steps["breakdown"] == pytest.approx(steps["breakdown_mean"])  # all steady steps of this job are alike
    assert steps["breakdown"]["forward regions"] == pytest.approx(0.008) and steps["breakdown"]["data wait"] == 0.0
    assert steps["slow"] == 6


def test_the_rules_are_declared(report: dict[str, Any]) -> None:
    assert "8 d" in report["aggregation"]["slow_steps"] and "10 ms" in report["aggregation"]["slow_steps"]
    assert "median" in report["aggregation"]["steps.breakdown"]


def test_a_period_is_a_trend_and_a_finding(report: dict[str, Any]) -> None:
    (periodic,) = report["trends"]["periodic"]
    assert periodic == {"cause": "data wait", "every": 10, "n": 5, "lost": pytest.approx(0.75)}
    assert report["trends"]["slower"] is None and report["trends"]["two_kinds"] is None
    (finding,) = report["findings"]
    assert finding["kind"] == "slow_step" and "every 10 steps" in finding["title"]


def test_a_steady_job_has_an_empty_list_and_one_without_steps_has_none() -> None:
    assert reported(Job().steps(60).model)["slow_steps"] == []
    empty = reported(Model())
    assert empty["slow_steps"] is None and empty["steps"]["breakdown"] is None
    assert {"slow_steps", "steps.breakdown", "steps.source"} <= {gap["what"] for gap in empty["coverage"]["not_available"]}


def test_what_was_dropped_is_the_reason_where_there_is_no_breakdown() -> None:
    report = reported(model_of(training()))
    assert report["steps"]["breakdown"] is None
    whys = {gap["what"]: gap["why"] for gap in report["coverage"]["not_available"]}
    assert "dropped" in whys["steps.breakdown"]


def test_text_and_markdown_tell_the_same(report: dict[str, Any]) -> None:
    text, md = render(report, "text"), render(report, "md")
    assert all(len(line) <= 80 for line in text.splitlines())
    flat = " ".join(text.split())
    for told in (
        "Slow steps",
        "step 9 took 170.0 ms, 8.5 times the usual 20.0 ms: data wait, 100% of the excess",
        "8 d",
        "unexplained",
    ):
        assert told in flat, told
    assert "a steady step, on average: other python" in flat and "every 10 steps" in flat
    assert "## Slow steps" in md and "step 9 took" in md and "?:?" not in text


def test_the_sentence_tells_the_time_where_it_is_known() -> None:
    slow = {"sentence": "step 9 took 170.0 ms, 8.5 times the usual 20.0 ms: gc", "at": None}
    assert phrases.slow_title(slow) == slow["sentence"]
    told = phrases.slow_title({**slow, "at": 1_790_000_000.9})
    assert told == "step 9, 2026-09-21 14:13:20 UTC, took 170.0 ms, 8.5 times the usual 20.0 ms: gc"


def test_more_than_are_listed_are_counted() -> None:
    many = Job()
    for _ in range(30):
        many.steps(9)
        many.step((GC, 150), flags=2 << 8)
    many.steps(2)
    report = reported(many.model)
    assert len(report["slow_steps"]) == 30
    assert "and 10 before these" in render(report, "text") and "and 10 before these" in render(report, "md")
    assert render(reported(Job().steps(60).model), "text").count("none seen") >= 1


def test_a_function_to_mark_by_that_never_came_is_said_to_be_missing() -> None:
    told = job().model
    told.coverage.instruments["marked steps"] = "on: there is no train:stpe in the job yet"
    gaps = reported(told)["coverage"]["not_available"]
    assert {"what": "steps.marked", "why": "there is no train:stpe in the job yet"} in gaps
