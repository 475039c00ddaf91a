"""Runs the cases and prints a table; status 1 if one of them differs."""

from __future__ import annotations

import argparse
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.cases import case as cases
from tests.cases import jobs, log, neutral
from tests.cases.case import Case
from tests.cases.compare import compare, compare_ranks

SHOWN = 12
"""Lines of differences for each case."""


@dataclass(slots=True)
class Row:
    """One case in the table."""

    result: str
    lines: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0


def of_run(case: Case, options: argparse.Namespace) -> Row:
    """The whole program under `tuimon run`; one of several processes is attached to as well, when each has made a step."""
    report = jobs.report_of_run(case.script, options.python)
    _keep(options, f"{case.number}.run.json", report)
    found = compare(case.truth, report)
    if case.truth["expected"].get("multiproc"):
        report = jobs.report_of_ranks(case.script, options.python)
        _keep(options, f"{case.number}.ranks.json", report)
        compare_ranks(found, case.truth, report)
    return Row("differs" if found.differences else "same", [d.text for d in found.differences], found.notes)


def of_attach(case: Case, options: argparse.Namespace) -> Row:
    """tuimon comes when half of the steps are over."""
    attached, report = jobs.report_of_attach(case.script, options.python, case.steps // 2)
    _keep(options, f"{case.number}.attach.json", report)
    found = compare(case.truth, report, attached)
    result = "said" if found.excused else "differs" if found.differences else "same"
    return Row(result, [d.text for d in found.differences], found.notes)


def of_log(case: Case, options: argparse.Namespace) -> Row:
    """By itself under TORCH_TRACE, and then under `tuimon run`: the log against the truth and against the live report."""
    report = log.report_of_log(case.script, options.python)
    if report is None:
        expected = case.truth["expected"]
        empty = not expected["dynamo_graphs"] and not expected["graph_breaks"]
        return Row("same" if empty else "differs", [] if empty else ["it wrote no log"], ["compiles nothing: no log"] * empty)
    _keep(options, f"{case.number}.log.json", report)
    found = log.compare_log(case.truth, report)
    live = jobs.report_of_run(case.script, options.python)
    _keep(options, f"{case.number}.run.json", live)
    if not case.truth["expected"].get("multiproc"):
        log.compare_live(found, report, live)
    return Row("differs" if found.differences else "same", [d.text for d in found.differences], found.notes)


def of_neutral(case: Case, options: argparse.Namespace) -> Row:
    """Without tuimon, with two attaches, and under `tuimon run`."""
    lines = neutral.watch(case.script, options.python, case.steps).differences()
    return Row("differs" if lines else "same", lines)


def _keep(options: argparse.Namespace, name: str, report: object) -> None:
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
        (options.keep / name).write_text(json.dumps(report, indent=1))


def _row(case: Case, options: argparse.Namespace) -> Row:
    began = time.monotonic()
    try:
        row: Row = options.way(case, options)
    except jobs.Failed as error:
        row = Row("differs", [f"failed: {line}" for line in str(error).strip().splitlines()])
    except (KeyError, TypeError, ValueError, OSError) as error:
        row = Row("differs", [f"cannot be compared: {error!r}"])
    row.seconds = time.monotonic() - began
    return row


def main(words: list[str]) -> int:
    """Run what is asked for."""
    options = _parser().parse_args(words)
    folder = cases.folder()
    if folder is None:
        sys.stderr.write("TUIMON_CASES is not set: it names the folder with the case programs; nothing was run\n")
        return 0
    chosen = [cases.find(folder, number) for number in options.ids] or cases.every(folder)
    counts = {"same": 0, "said": 0, "differs": 0}
    width = max(len(case.script.stem) for case in chosen)
    with ThreadPoolExecutor(options.jobs) as pool:
        for case, row in zip(chosen, pool.map(lambda case: _row(case, options), chosen), strict=True):
            counts[row.result] += 1
            notes = "; ".join(row.notes)
            sys.stdout.write(f"{case.script.stem:{width}}  {row.result:7}  {row.seconds:6.1f} s  {notes}".rstrip() + "\n")
            for line in row.lines[:SHOWN]:
                sys.stdout.write(f"    {line}\n")
            if len(row.lines) > SHOWN:
                sys.stdout.write(f"    .. and {len(row.lines) - SHOWN} more\n")
            sys.stdout.flush()
    sys.stdout.write(f"{counts['same']} of {len(chosen)} are the same")
    if counts["said"]:
        sys.stdout.write(f"; {counts['said']} lack something, and the report says what")
    if counts["differs"]:
        sys.stdout.write(f"; {counts['differs']} differ")
    sys.stdout.write("\n")
    return 1 if counts["differs"] or counts["said"] * 8 > len(chosen) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.cases", description=__doc__)
    parser.add_argument("ids", nargs="*", metavar="ID", help="cases to run (default: all in TUIMON_CASES)")
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--attach", dest="way", action="store_const", const=of_attach, help="attach in the middle of the run")
    ways.add_argument("--log", dest="way", action="store_const", const=of_log, help="read from its TORCH_TRACE log")
    ways.add_argument("--neutral", dest="way", action="store_const", const=of_neutral, help="compare with a run without tuimon")
    parser.add_argument("--python", default=sys.executable, metavar="PATH", help="the Python that runs the programs")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="cases at the same time (default: 1)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the reports there")
    parser.set_defaults(way=of_run)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
