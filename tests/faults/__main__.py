"""Everything that can go wrong at a tuimon or a job, tried; a Markdown table of it.

    python -m tests.faults [--full] [--seed N] [WORD ..]

`--full` takes as many tries as the promises are made on (over an hour); without it each fault is tried a few times (some
minutes). WORDs: only faults whose names hold one of them. Progress goes to stderr. The status is 1 where a try has failed.
"""

from __future__ import annotations

import argparse
import sys

from .listing import FAULTS
from .table import HEAD, attempt


def main(words: list[str] | None = None) -> int:
    """Try them; gives the status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="as many tries as the promises are made on")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("words", nargs="*", metavar="WORD", help="only faults whose names hold one of these")
    options = parser.parse_args(words)
    results = []
    print(HEAD, flush=True)  # noqa: T201
    for fault in FAULTS:
        if options.words and not any(word in fault.name for word in options.words):
            continue
        result = attempt(fault, fault.full if options.full else fault.short, options.seed)
        results.append(result)
        print(result.line, flush=True)  # noqa: T201
        sys.stderr.write(f"{result.seconds:.0f} s: {fault.name}\n")
        for wrong in result.wrong[:20]:
            sys.stderr.write(f"    {wrong}\n")
    return 1 if any(result.wrong for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
