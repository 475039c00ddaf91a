"""Attach to a compiled training run again and again, and say what it cost the job: `tests.attach.cycles`, in short.

python -m tests.bench.attach_cycles [--cycles N] [--backend aot_eager]
"""

from __future__ import annotations

import sys

from tests.attach import cycles

if __name__ == "__main__":
    sys.exit(cycles.run(cycles.arguments(["--cycles", "50", *sys.argv[1:]])))
