"""What the commands of the benches have in common: their arguments, and how what they found is printed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from tests.bench import table

Measure = Callable[[int], table.Section]


def say(text: str) -> None:
    """A line on stderr on how far it is; stdout is for the table."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def main(name: str, doc: str | None, measure: Measure, rounds: int = 10) -> int:
    """Parse, measure, print; 0, as a figure is no failure."""
    parser = argparse.ArgumentParser(
        prog=f"python -m tests.bench.{name}", description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=rounds, help=f"rounds, A B A B in each (default {rounds})")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds: one at least")
    sys.stdout.write(table.document([measure(options.rounds)]))
    return 0
