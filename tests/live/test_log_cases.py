"""Two of the case programs, read from their TORCH_TRACE logs; `python -m tests.cases --log` does so with all of them."""

from __future__ import annotations

import sys

import pytest

from tests.cases import case as cases
from tests.cases.log import compare_log, report_of_log

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(cases.folder() is None, reason="TUIMON_CASES does not name a folder with case programs"),
]
pytest.importorskip("torch")


@pytest.mark.parametrize("number", ["04", "33"])
def test_the_log_says_what_is_known(number: str) -> None:
    folder = cases.folder()
    assert folder is not None
    chosen = cases.find(folder, number)
    report = report_of_log(chosen.script, sys.executable)
    assert report is not None
    assert compare_log(chosen.truth, report).differences == []
