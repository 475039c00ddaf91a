"""Where the steps of real torch programs are, in whatever way they come about; `tests.bench.step_programs` runs them too."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.live.step_programs import END, PRELUDE, PROGRAMS, differences
from tests.support.hooked import DYNAMO, run

pytestmark = pytest.mark.live
pytest.importorskip("torch")


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_step_is_told_where_it_is(tmp_path: Path, name: str) -> None:
    program = PROGRAMS[name]
    how = "run" if program.from_begin else "injected"
    outcome = run(PRELUDE + program.text + END, tmp_path, after=DYNAMO, how=how)
    assert differences(program, outcome, heads=sys.version_info >= (3, 12)) == []
