"""Everything that only a real device can show, in one go, in less than five minutes. Prints a table; status 1 where it fails.

    python -m tests.gpu.check [--dry] [-o FILE] [PART ...]

PART: values (beside nvidia-smi), activity (GPM), xid, training (the device's clock, a window, the pool, the uuid), overhead
(default: all, in this order). With --dry the jobs run on the CPU, small: what needs a device is skipped, with its reason.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.gpu.agree import Row, status, table
from tests.gpu.parts import PARTS
from tests.support.command import start


def run(part: str, device: str, limit_s: float) -> list[Row]:
    """The rows of a part, as far as it comes in its time, and one that says where it broke off."""
    words = [sys.executable, "-m", "tests.gpu.parts", part, "--device", device]
    process = start(words)
    try:
        out, err = process.communicate(timeout=limit_s)
        broke = None if process.returncode == 0 else (err.strip().splitlines() or [f"status {process.returncode}"])[-1]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # with the job that it may have started
        out, err = process.communicate()
        broke = f"not over after {limit_s:g} s"
    rows = [Row(*json.loads(line)) for line in out.splitlines() if line.startswith("[")]
    return rows if broke is None else [*rows, Row(part, "the part itself", "failed", broke[-300:])]


def main(arguments: Sequence[str] | None = None) -> int:
    """All parts that are asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.gpu.check", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    rows: list[Row] = []
    began = time.monotonic()
    for part in options.parts or PARTS:
        found = run(part, "cpu" if options.dry else "cuda", PARTS[part][1])
        rows += found
        for line in table(found)[0 if part == (options.parts or [*PARTS])[0] else 2 :]:
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    counts = [sum(row.state == state for row in rows) for state in ("ok", "failed", "skipped")]
    sys.stdout.write(f"\n{counts[0]} ok, {counts[1]} failed, {counts[2]} skipped, in {time.monotonic() - began:.0f} s\n")
    if options.output is not None:
        options.output.write_text("\n".join(table(rows)) + "\n")
    return status(rows)


if __name__ == "__main__":
    sys.exit(main())
