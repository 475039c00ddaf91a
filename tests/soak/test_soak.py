"""The soaks, for a short while; `make soak` takes hours of events and half an hour of a job."""

from __future__ import annotations

from tests.attach.conftest import needs_tracing

from . import job, replay


def test_two_minutes_of_events_are_counted_to_the_last() -> None:
    outcome = replay.soak(2 / 60, say=False)
    assert outcome.rows > 100_000
    assert outcome.wrong == []


@needs_tracing
def test_a_job_and_tuimon_agree() -> None:
    outcome = job.soak(3.0, every=1.0, say=False)
    assert outcome.steps >= 500
    assert outcome.wrong == []
    assert outcome.looks
