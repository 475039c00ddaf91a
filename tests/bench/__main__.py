"""All benches as one Markdown document, on stdout and in bench.md: what `make bench` runs.

    python -m tests.bench [--rounds N] [--out bench.md] [NAME ...]

NAME: step, call, compiling, attach, ingest, screen, peers, start, side (default: all). Each in a process of its own, as what
one loads and leaves behind is none of the next one's; where one fails the document says so and the status is 1.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from tests.bench.command import say

NAMES = ("step", "call", "compiling", "attach", "ingest", "screen", "peers", "start", "side")


def part(name: str, rounds: int | None) -> tuple[str, bool]:
    """(its piece of the document, whether it ran to its end)."""
    module = f"tests.bench.{name}"
    words = [] if rounds is None else ["--rounds", str(rounds)]
    ran = subprocess.run([sys.executable, "-m", module, *words], stdout=subprocess.PIPE, text=True, check=False)
    text = ran.stdout
    if ran.returncode:
        text += f"\n{name} ended with status {ran.returncode}.\n"
    return text, ran.returncode == 0


def main() -> int:
    """Run them, one after the other."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, help="rounds of each (default: its own)")
    parser.add_argument("--out", type=Path, default=Path("bench.md"))
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"no bench is named {unknown[0]}; there are {', '.join(NAMES)}")
    parts, well = [], True
    for name in options.names or NAMES:
        say(f"bench: {name}")
        text, ran = part(name, options.rounds)
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
        parts.append(text)
        well = well and ran
    options.out.write_text("\n".join(parts))
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
