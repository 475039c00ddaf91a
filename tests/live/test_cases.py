"""The quick ones of the case programs; `make cases`, `cases-attach` and `cases-neutral` run all of them."""

from __future__ import annotations

import sys

import pytest

from tests.cases import case as cases
from tests.cases import jobs
from tests.cases.compare import compare

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(cases.folder() is None, reason="TUIMON_CASES does not name a folder with case programs"),
]
pytest.importorskip("torch")


def case(number: str) -> cases.Case:
    folder = cases.folder()
    assert folder is not None
    return cases.find(folder, number)


@pytest.mark.parametrize("number", ["09", "15", "21"])
def test_the_report_says_what_is_known(number: str) -> None:
    chosen = case(number)
    assert compare(chosen.truth, jobs.report_of_run(chosen.script, sys.executable)).differences == []


@pytest.mark.parametrize("number", ["08"])
def test_what_happened_before_the_attach_is_there(number: str) -> None:
    chosen = case(number)
    attached, report = jobs.report_of_attach(chosen.script, sys.executable, chosen.steps // 2)
    assert compare(chosen.truth, report, attached).differences == []
