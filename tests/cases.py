"""Runs programs whose breaks, crossings and recompiles are known under `tuimon run` and compares: `make cases`.

    TUIMON_CASES=FOLDER python -m tests.cases [ID ...]

FOLDER holds pairs NN_name.py and NN_name.json; the JSON's "expected" is the truth. Each program is run once, headless, with
`--format json`. Without ids, those run that this version is held to.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

HELD_TO = ("03", "08", "20", "21", "57", "59", "61")
LIMIT_S = 300


def folder() -> Path | None:
    """The folder with the cases, None where TUIMON_CASES is not set."""
    named = os.environ.get("TUIMON_CASES")
    return Path(named) if named else None


def find(cases: Path, number: str) -> Path:
    """The program of a case. Raises FileNotFoundError if there is none."""
    for script in cases.glob(f"{number}_*.py"):
        return script
    raise FileNotFoundError(f"no case {number} in {cases}")


def report_of(script: Path) -> dict[str, Any]:
    """What tuimon reports of one run of the program. Raises RuntimeError if the run fails."""
    command = [sys.executable, "-m", "tuimon", "run", "--headless", "--format", "json", "--", sys.executable, str(script)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=environment, check=False)
    if ran.returncode != 0:
        raise RuntimeError(f"{script.name}: status {ran.returncode}\n{ran.stderr[-3000:]}")
    report: dict[str, Any] = json.loads(ran.stdout)
    return report


def differences(expected: dict[str, Any], report: dict[str, Any]) -> list[str]:
    """What the report says otherwise than the truth; empty if it says the same."""
    return [
        *_breaks(expected["graph_breaks"], report["boundaries"]),
        *_recompiles(expected["recompiles"], report["recompiles"]),
        *_limit(expected["recompile_limit_hit"], report["frames"]),
        *_executions(expected.get("graph_executions"), report["regions"]),
        *([] if not report["coverage"]["dropped"] else [f"{report['coverage']['dropped']} samples were dropped"]),
    ]


def _place(file: str | None, line: int | None) -> str:
    return f"{os.path.basename(file or '')}:{line}"


def _places(boundary: dict[str, Any]) -> set[str]:
    """The line that Dynamo logs, and the user's line behind it: the truth names one of them."""
    return {_place(boundary["file"], boundary["line"]), _place(boundary["user_file"], boundary["user_line"])}


def _breaks(expected: list[dict[str, Any]], boundaries: list[dict[str, Any]]) -> list[str]:
    found = []
    places = {wanted["file_line"] for wanted in expected}
    for wanted in expected:
        here = [b for b in boundaries if wanted["file_line"] in _places(b)]
        if len(here) != wanted["sites"]:
            found.append(f"{wanted['file_line']}: {len(here)} boundaries, not {wanted['sites']}")
            continue
        counts = [b["crossings"] for b in here]
        crossings = None if None in counts else sum(counts)
        if crossings != wanted.get("crossings_total", crossings):
            told = "crossings not known" if crossings is None else f"{crossings} crossings"
            found.append(f"{wanted['file_line']}: {told}, not {wanted['crossings_total']}")
        if not all(wanted["reason_contains"] in b["reason"] for b in here):
            found.append(f"{wanted['file_line']}: reason {here[0]['reason']!r}, not {wanted['reason_contains']!r}")
    found += [
        f"a boundary that is not: {_place(b['user_file'], b['user_line'])}" for b in boundaries if not places & _places(b)
    ]
    return found


def _recompiles(expected: list[dict[str, Any]], recompiles: list[dict[str, Any]]) -> list[str]:
    happened = [recompile for recompile in recompiles if not recompile["refused"]]
    found = []
    for wanted in expected:
        mine = [r for r in happened if r["compile_id"] in wanted["compile_ids"]]
        if len(mine) != wanted["count"]:
            found.append(f"{wanted['function']}: {len(mine)} recompiles, not {wanted['count']}")
        for recompile in mine:
            if recompile["function"] != wanted["function"]:
                found.append(f"[{recompile['compile_id']}]: function {recompile['function']}, not {wanted['function']}")
            if wanted["reason_contains"] not in recompile["reason"]:
                found.append(f"[{recompile['compile_id']}]: {recompile['reason']!r} lacks {wanted['reason_contains']!r}")
            if _place(recompile["file"], recompile["line"]) != wanted["at"]:
                found.append(f"[{recompile['compile_id']}]: at {recompile['file']}:{recompile['line']}, not {wanted['at']}")
    expected_number = sum(wanted["count"] for wanted in expected)
    if len(happened) != expected_number:
        found.append(f"{len(happened)} recompiles in all, not {expected_number}")
    return found


def _limit(expected: dict[str, Any] | None, frames: list[dict[str, Any]]) -> list[str]:
    hit = {frame["function"]: frame["refused_compile_id"] for frame in frames if frame["limit_hit"]}
    wanted = {} if expected is None else {expected["function"]: expected["refused_compile_id"]}
    return [] if hit == wanted else [f"limit hit by {hit or 'no frame'}, not {wanted or 'none'}"]


def _executions(expected: dict[str, int] | None, regions: list[dict[str, Any]]) -> list[str]:
    if expected is None:
        return []
    calls: Counter[str] = Counter()
    for region in regions:
        if region["direction"] == "forward":
            calls[region["compile_id"]] += region["calls"]
    return [] if dict(calls) == expected else [f"calls of regions {dict(calls)}, not {expected}"]


def main(numbers: list[str]) -> int:
    """Run the cases, print a line for each; 0 if all say the truth."""
    cases = folder()
    if cases is None:
        sys.stderr.write("TUIMON_CASES is not set: it names the folder with the case programs; nothing was run\n")
        return 0
    wrong = 0
    for number in numbers or HELD_TO:
        script = find(cases, number)
        began = time.monotonic()
        expected = json.loads(script.with_suffix(".json").read_text(encoding="utf-8"))["expected"]
        try:
            found = differences(expected, report_of(script))
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            found = [str(error)]
        wrong += bool(found)
        sys.stdout.write(f"{'differs' if found else 'same   '}  {script.stem}  {time.monotonic() - began:.1f} s\n")
        for difference in found:
            sys.stdout.write(f"           {difference}\n")
        sys.stdout.flush()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
