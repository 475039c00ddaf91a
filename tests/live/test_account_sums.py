"""The account of a real job adds up to the wall time that the job measures itself; at length: `tests.bench.account_sums`."""

from __future__ import annotations

import pytest

from tests.bench.account_sums import JOB, sums
from tests.support.watched import watch_run

pytestmark = pytest.mark.live
pytest.importorskip("torch")


@pytest.mark.parametrize("kind", ["marked", "optimizer"])
def test_the_account_adds_up_to_what_the_job_has_measured(kind: str) -> None:
    found = sums(watch_run(JOB, "400", kind))
    assert found.source == kind and found.iterations - 1 <= found.steps <= found.iterations
    assert (found.least, found.uneven, found.gaps, found.misplaced) == (0, 0, 0, 0)
    assert found.total == pytest.approx(found.wall, rel=0.01)
    assert found.categories["data wait"] > 0 and found.categories["communication"] > 0 and found.categories["gc"] > 0
