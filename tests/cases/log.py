"""A case read from its TORCH_TRACE log: against the truth, and against what tuimon says of it live.

A log tells what was compiled, not what ran: of the truth's numbers of calls and crossings it has none, and says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.cases import compare as rules
from tests.cases import jobs
from tests.cases.compare import Comparison
from tests.support.command import TUIMON

RAN = ("boundaries.crossings",)
"""What the truth tells of a run, and no log does."""


def report_of_log(script: Path, python: str) -> dict[str, Any] | None:
    """Run the program by itself under TORCH_TRACE; what tuimon reports of the folder, None where it wrote no log.

    Raises `jobs.Failed`.
    """
    with jobs.scratch() as folder:
        logs = folder / "logs"
        logs.mkdir()
        jobs.finish([python, str(script)], {**jobs.surroundings(folder), "TORCH_TRACE": str(logs)})
        if not any(logs.iterdir()):
            return None
        out = folder / "report.json"
        jobs.finish([*TUIMON, "report", str(logs), "--format", "json", "-o", str(out)], jobs.surroundings(folder))
        return jobs.read(out)


def compare_log(truth: dict[str, Any], report: dict[str, Any]) -> Comparison:
    """What the report of a log says otherwise than the truth, as far as a log can tell."""
    found = Comparison()
    expected = truth["expected"]
    rules.compare_breaks(found, expected["graph_breaks"], report, None)
    rules.compare_recompiles(found, expected["recompiles"], report["recompiles"])
    rules.compare_limit(found, expected["recompile_limit_hit"], report)
    rules.compare_caches(found, expected.get("cache", {}), report["warmup"]["caches"], attached=False)
    found.notes.clear()  # they are on what ran
    found.differences = [one for one in found.differences if one.about not in RAN and "].crossings" not in one.about]
    for part, name in (("regions", "calls"), ("boundaries", "crossings"), ("frames", "calls")):
        for row in report[part]:
            if row[name] is not None:
                found.differs(f"{part}.{name}", f"{part}: {name} is {row[name]}, though no log tells it")
        if report[part] and not str(rules.told_why(report, f"{part}.{name}")).startswith("not in this file"):
            found.differs(f"{part}.{name}", f"{part}.{name} is not said to be missing in this file")
    return found


def compare_live(found: Comparison, log: dict[str, Any], live: dict[str, Any]) -> None:
    """What the report of a log says otherwise than that of a run that tuimon watched."""
    for what, told in (("compiles", _compiles), ("graph breaks", _breaks), ("recompiles", _recompiles), ("frames", _frames)):
        here, there = Counter(told(log)), Counter(told(live))
        for one, number in sorted((here - there).items()):
            found.differs(what, f"{what}: {number} in the log alone: {one}")
        for one, number in sorted((there - here).items()):
            found.differs(what, f"{what}: {number} live alone: {one}", lacking=True)


def _compiles(report: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for row in report["compiles"]:
        yield str(row["generation"]), row["compile_id"], row["direction"], row["function"], row["why"], str(row["restarts"])


def _breaks(report: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for row in report["boundaries"]:
        yield f"{row['file']}:{row['line']}", f"{row['user_file']}:{row['user_line']}", row["kind"], str(row["breaks"])


def _recompiles(report: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for row in report["recompiles"]:
        failed = (f"{one['entry']}: {one['guard']}" for one in row["failed"])
        yield row["compile_id"], str(row["refused"]), row["reason"], *failed


def _frames(report: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for row in report["frames"]:
        yield row["key"], row["function"], str(row["limit"]), str(row["fell_back"]), *row["entry_ids"]
