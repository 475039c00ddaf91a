"""`python -m tests.fuzz [--seconds N] [--out FOLDER] [TARGET ..]`: each target in turn, and a table of what it came to.

For inputs that are guided by coverage: `pip install atheris` (CPython 3.11 to 3.13); without it they are made at random. What
is found lies in FOLDER/found with its traceback; once it is mended it goes to tests/fuzz/found, where it is tried in each run
of the tests.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).parents[2]


def main() -> int:
    """Gives 1 where something was found, or a target has ended by itself."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=float, default=120.0, help="of each target")
    parser.add_argument("--out", type=Path, help="for the corpus, the logs and what is found; kept from run to run")
    given = parser.parse_args()
    unknown = sorted(set(given.targets) - TARGETS.keys())
    if unknown:
        parser.error(f"there is no target {', '.join(unknown)}")
    folder: Path = given.out or Path(tempfile.mkdtemp(prefix="tuimon-fuzz-"))
    guided = find_spec("atheris") is not None
    _say(f"{'guided by coverage' if guided else 'at random (pip install atheris: guided by coverage)'}; in {folder}\n")
    _say("| target | what | runs | edges | found |\n| --- | --- | ---: | ---: | --- |")
    found = runs = ended = 0
    for name in given.targets or TARGETS:
        told = _one(name, given.seconds, folder)
        found, runs, ended = found + len(told["found"]), runs + told["runs"], ended + ("trouble" in told)
        said = ", ".join(told["found"]) or ("nothing" if "trouble" not in told else f"it ended: see {name}.log")
        _say(f"| {name} | {TARGETS[name].what} | {told['runs']:,} | {told['edges'] or '-'} | {said} |")
    _say(f"\n{runs:,} runs, {found} found{f', {ended} ended too early' if ended else ''}")
    return 1 if found or ended else 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _one(name: str, seconds: float, folder: Path) -> dict[str, object]:
    command = [sys.executable, "-m", "tests.fuzz.worker", name, str(seconds), str(folder)]
    try:
        ran = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=seconds + 300, check=False)
    except subprocess.TimeoutExpired:  # made at random, an input is waited for as long as it takes
        return {"runs": 0, "edges": 0, "found": [], "trouble": "it hangs"}
    try:
        return json.loads(ran.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return {"runs": 0, "edges": 0, "found": [], "trouble": f"status {ran.returncode}"}


if __name__ == "__main__":
    sys.exit(main())
