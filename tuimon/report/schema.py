"""The published JSON Schemas (draft 2020-12) of what tuimon writes: files of the package, for other programs to use."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any


def schema() -> dict[str, Any]:
    """Of a report, "tuimon.report/1"."""
    return _read("report.schema.json")


def compare_schema() -> dict[str, Any]:
    """Of a comparison, "tuimon.compare/1"."""
    return _read("compare.schema.json")


def _read(name: str) -> dict[str, Any]:
    text = resources.files("tuimon.report").joinpath(name).read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found
