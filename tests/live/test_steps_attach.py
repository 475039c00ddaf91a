"""Joined at a random moment, a job has its steps right from the first whole one on; at length: `tests.bench.attach_steps`."""

from __future__ import annotations

import sys

import pytest

from tests.bench.attach_steps import KINDS, attached

pytestmark = pytest.mark.live
pytest.importorskip("torch")


@pytest.mark.parametrize("kind", ["optimizer", "backward"])
def test_steps_after_an_attach_have_their_index_and_their_cause(kind: str) -> None:
    found = attached(kind, 5.0, sys.executable, seed=1)
    assert found.source == KINDS[kind] and found.before is not None and found.misplaced == []
    assert found.wrong == []
