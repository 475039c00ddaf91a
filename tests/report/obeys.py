"""Every report and every comparison that a test makes obeys the schema that the package publishes."""

from __future__ import annotations

from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from tuimon.report.schema import compare_schema, schema


@cache
def _validator(which: str) -> Draft202012Validator:
    found = schema() if which == "report" else compare_schema()
    Draft202012Validator.check_schema(found)
    return Draft202012Validator(found)


def wrong(made: dict[str, Any]) -> list[str]:
    """What is wrong in a report or a comparison, with its place; empty where nothing is."""
    which = "compare" if str(made.get("schema", "")).startswith("tuimon.compare/") else "report"
    return [f"{error.json_path}: {error.message[:300]}" for error in _validator(which).iter_errors(made)]


def obeying(made: dict[str, Any]) -> dict[str, Any]:
    """It, where it obeys its schema. Raises AssertionError with what is wrong."""
    found = wrong(made)
    assert not found, found[:10]
    return made
