"""Operations by formula against counts by hand and torch's own: python -m tests.roofline.operations

Every line is a call of an operator. "hand" walks through its definition with a tally (by_hand.py), "ours" is the formula's
answer, "torch" that of torch.utils.flop_counter's registry, asked in a process of its own. Ends with 1 if ours is not the
hand's. "unknown" in both columns is as it should be: there the sizes do not tell.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.roofline.operation_cases import Case, is_shape
from tests.roofline.operation_cases_more import CASES
from tuimon.roofline.counts.operations import Operations, known_operators

CHILD = """
import json, sys
import torch
from torch.utils.flop_counter import flop_registry
types = {"f32": torch.float32, "bf16": torch.bfloat16, "i8": torch.int8, "i32": torch.int32, "i64": torch.int64,
         "f8e4m3fn": torch.float8_e4m3fn}
def value(a):
    if isinstance(a, dict):
        return torch.empty(a["sizes"], dtype=types[a["dtype"]], device="meta")
    return [value(x) for x in a] if isinstance(a, list) else a
asked = json.load(sys.stdin)
counts = []
for operator, arguments in asked["calls"]:
    packet = getattr(torch.ops.aten, operator, None)
    formula = flop_registry.get(packet)
    if formula is None:
        counts.append(None)
        continue
    arguments = [value(a) for a in arguments]
    out = None
    if "conv" in operator:
        try:
            out = packet(*arguments)
        except Exception:
            counts.append(None)
            continue
    try:
        counts.append(formula(*arguments, out_val=out))
    except Exception as error:
        counts.append(f"{type(error).__name__}: {error}"[:60])
misplaced = []
for operator, places in asked["places"].items():
    space, _, name = operator.rpartition(".")
    packets = [getattr(getattr(torch.ops, space or "aten"), n, None) for n in (name, name + "_")]
    schemas = [getattr(p, o)._schema for p in packets if p is not None for o in p.overloads()]
    for key, place in places.items():
        names = sorted({s.arguments[place].name for s in schemas if len(s.arguments) > place})
        if key not in names:
            misplaced.append((operator, key, place, names))
from torch.utils._dtype_abbrs import dtype_abbrs
dtypes = [(short, dtype.itemsize, str(dtype)) for dtype, short in dtype_abbrs.items()]
json.dump({"torch": torch.__version__, "counts": counts, "misplaced": misplaced, "dtypes": dtypes}, sys.stdout)
"""
"""Runs where torch is; the process that tests tuimon need not have it."""


@dataclass
class Torchs:
    """What torch says."""

    torch: str
    """Its version."""
    counts: list[int | str | None]
    """Of each case by the registry's formula, None where it has none, the error where it fails."""
    misplaced: list[list[Any]]
    """[operator, argument, place, what stands there] for every argument that is not where `PLACES` has it."""
    dtypes: list[tuple[str, int, str]]
    """(name in graphs, bytes, name in Python)."""


def torchs(cases: Sequence[Case], places: Mapping[str, Mapping[str, int]], python: str = sys.executable) -> Torchs:
    """Ask torch in a process of its own. Raises CalledProcessError where there is none."""

    def plain(a: Any) -> Any:
        if is_shape(a):
            return {"dtype": a[0], "sizes": a[1]}
        return [plain(x) for x in a] if isinstance(a, (list, tuple)) else a

    asked = {"calls": [(c.operator, plain(list(c.arguments))) for c in cases], "places": places}
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [python, "-c", CHILD]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=True, env=environment)
    return Torchs(**json.loads(done.stdout))


def shown(counted: Operations | None) -> str:
    return "unknown" if counted is None else f"{counted.matrix:,} + {counted.vector:,}"


def main() -> int:
    said = torchs(CASES, {})
    out = sys.stdout
    out.write(f"{len(known_operators())} operators have a formula; matrix + vector operations; torch {said.torch}\n\n")
    out.write(f"{'operator':48} {'hand':>16} {'ours':>16} {'torch':>8}\n")
    wrong = []
    for case, count in zip(CASES, said.counts, strict=True):
        hand, ours = case.by_hand(), case.ours()
        equal = count is not None and ours is not None and ours.vector == 0 and ours.matrix == count
        if hand != ours:
            wrong.append(case.title)
        told = "-" if count is None else f"{count:,}" if isinstance(count, int) else "error"
        reason = "" if equal else case.why + (f" ({count})" if isinstance(count, str) else "")
        mark = "  WRONG" if hand != ours else ""
        out.write(f"{case.title:48} {shown(hand):>16} {shown(ours):>16} {told:>8}  {reason}{mark}\n")
    known = [c for c in CASES if c.hand is not None]
    out.write(
        f"\n{len(known)} with a count by hand, {len(CASES) - len(known)} that must be unknown; wrong: {wrong or 'none'}\n"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
