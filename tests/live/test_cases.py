"""The quick ones of the case programs; `make cases` runs all that this version is held to."""

from __future__ import annotations

import json

import pytest

from tests import cases

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(cases.folder() is None, reason="TUIMON_CASES does not name a folder with case programs"),
]
pytest.importorskip("torch")


@pytest.mark.parametrize("number", ["03", "08", "21", "59", "61"])
def test_the_report_says_what_is_known(number: str) -> None:
    folder = cases.folder()
    assert folder is not None
    script = cases.find(folder, number)
    expected = json.loads(script.with_suffix(".json").read_text(encoding="utf-8"))["expected"]
    assert cases.differences(expected, cases.report_of(script)) == []
