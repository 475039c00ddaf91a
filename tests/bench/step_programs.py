"""The programs of `tests.live.step_programs` on any Python: where their steps are told, against what they say themselves.

    python -m tests.bench.step_programs [--python PATH] [WORD ...]

WORD: only programs in whose name it is. Status 1 if one of them differs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.live.step_programs import END, PRELUDE, PROGRAMS, differences
from tests.support.hooked import DYNAMO, run


def main() -> int:
    """Run them, one after the other."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.step_programs", description=__doc__)
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--python", default=sys.executable, metavar="PATH", help="the Python that runs the programs")
    options = parser.parse_args()
    ask = "import sys; print(hasattr(sys, 'monitoring'))"
    heads = subprocess.run([options.python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip() == "True"
    differ = 0
    for name, program in PROGRAMS.items():
        if options.words and not any(word in name for word in options.words):
            continue
        how = "run" if program.from_begin else "injected"
        with tempfile.TemporaryDirectory() as folder:
            try:
                outcome = run(PRELUDE + program.text + END, Path(folder), after=DYNAMO, how=how, python=options.python)
            except AssertionError as error:
                found, told = [f"failed: {str(error)[-500:]}"], ""
            else:
                found = differences(program, outcome, heads=heads)
                steps = outcome.model.steps
                told = f"{steps.n} of {len(outcome.values['middles'])} steps; {steps.how or steps.why_not}"
        differ += bool(found)
        sys.stdout.write(f"{'differs' if found else 'right':8} {name}: {told}\n")
        sys.stdout.writelines(f"    {line}\n" for line in found)
        sys.stdout.flush()
    sys.stdout.write(f"{differ} differ\n")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
