"""Which tests share a worker of a run with several."""

from __future__ import annotations

import sys

import pytest

from tests.conftest import together


@pytest.mark.parametrize(
    ("test", "scope"),
    [
        ("tests/live/test_where.py::test_x", "tests/live/test_where.py"),
        ("tests/live/test_where.py::test_x[a]", "tests/live/test_where.py"),
        (f"tests/live/test_where.py::test_x[{sys.executable}]", "tests/live/test_where.py"),
        ("tests/live/test_where.py::test_x[/py/v3.12/bin/python]", "/py/v3.12/bin/python"),
        ("tests/live/test_eager_calls.py::test_y[/py/v3.12/bin/python-a b]", "/py/v3.12/bin/python"),
        ("tests/live/test_eager_calls.py::test_y[a-/py/v3.13/bin/python3.13]", "/py/v3.13/bin/python3.13"),
        ("tests/attach/test_lost.py::test_x[/py/v3.12/bin/python]", "tests/attach/test_lost.py"),
    ],
)
def test_a_worker_has_a_file_or_another_python(test: str, scope: str) -> None:
    assert together(test) == scope
