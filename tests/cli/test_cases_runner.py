"""The comparison behind `make cases` finds what differs, and only that."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.cases import differences


def boundary(file: str, line: int, crossings: int, reason: str) -> dict[str, Any]:
    """A boundary in library code that the user's line reached."""
    user = {"user_file": f"/x/{file}", "user_line": line}
    return {**user, "file": "/lib/torch/y.py", "line": 79, "crossings": crossings, "reason": reason}


EXPECTED: dict[str, Any] = {
    "graph_breaks": [{"file_line": "a.py:3", "sites": 1, "crossings_total": 5, "reason_contains": "item"}],
    "recompiles": [
        {"function": "f", "count": 1, "compile_ids": ["0/1"], "reason_contains": "size", "at": "a.py:1"},
    ],
    "recompile_limit_hit": {"function": "f", "refused_compile_id": "0/8"},
    "graph_executions": {"0/0": 5},
}
REPORT: dict[str, Any] = {
    "boundaries": [boundary("a.py", 3, 5, "Tensor.item()")],
    "recompiles": [
        {"function": "f", "file": "/x/a.py", "line": 1, "compile_id": "0/1", "reason": "size mismatch", "refused": False},
        {"function": "f", "file": "/x/a.py", "line": 1, "compile_id": "0/8", "reason": "size mismatch", "refused": True},
    ],
    "frames": [{"function": "f", "limit_hit": True, "refused_compile_id": "0/8"}],
    "regions": [
        {"compile_id": "0/0", "direction": "forward", "calls": 5},
        {"compile_id": "0/0", "direction": "backward", "calls": 4},
    ],
    "coverage": {"dropped": 0},
}


def test_the_same_is_the_same() -> None:
    assert differences(EXPECTED, REPORT) == []


@pytest.mark.parametrize(
    ("section", "change"),
    [
        ("boundaries", lambda b: b[0].update(crossings=4)),
        ("boundaries", lambda b: b[0].update(crossings=None)),
        ("boundaries", lambda b: b[0].update(reason="other")),
        ("boundaries", lambda b: b.clear()),
        ("boundaries", lambda b: b.append(boundary("a.py", 9, 1, ""))),
        ("recompiles", lambda r: r[0].update(refused=True)),
        ("recompiles", lambda r: r[0].update(line=2)),
        ("recompiles", lambda r: r.append(dict(r[0], compile_id="0/2"))),
        ("frames", lambda f: f[0].update(limit_hit=False)),
        ("regions", lambda r: r[0].update(calls=6)),
        ("coverage", lambda c: c.update(dropped=1)),
    ],
)
def test_whatever_differs_is_found(section: str, change: Any) -> None:
    report = copy.deepcopy(REPORT)
    change(report[section])
    assert differences(EXPECTED, report)
