"""`tuimon list`, and `tuimon` alone: the PyTorch processes of this machine."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict

from tuimon.attach.process import Target, find_targets
from tuimon.commands.options import Options, deliver
from tuimon.draw.format import age
from tuimon.draw.text import clean, cut, wrap

SCHEMA = "tuimon.list/1"
WIDTH = 100

HINTS = """\
tuimon attach PID              watch one of these
tuimon run -- python train.py  start a program and watch it
tuimon demo                    see what it looks like
"""


def run(options: Options, *, hints: bool = False) -> int:
    """Deliver the list in `options.format`. Looks from outside only: no process is stopped or touched."""
    targets = find_targets()
    if options.format == "json":
        entries = [asdict(target) for target in targets]
        text = json.dumps({"schema": SCHEMA, "targets": entries}, indent=1, ensure_ascii=False) + "\n"
    else:
        text = "".join(f"{line}\n" for line in table(targets))
        if hints:
            text += f"\n{HINTS}"
    return deliver(text, options.output)


def table(targets: Sequence[Target]) -> list[str]:
    """The list as lines; what stands in the way of attaching comes below it, a sentence for each process."""
    if not targets:
        return ["no PyTorch process here that this user may see"]
    lines = [f"{'PID':>8}  {'RANK':>4}  {'USER':<10}  {'AGE':>8}  {'TORCH':<5}  {'ATTACH':<6}  COMMAND"]
    for target in targets:
        torch = {True: "yes", False: "no", None: "?"}[target.has_torch]
        rank = "-" if target.rank is None else str(target.rank)
        start = (
            f"{target.pid:>8}  {rank:>4}  {cut(clean(target.user or '?'), 10, '~'):<10}  {age(target.age):>8}  {torch:<5}  "
            f"{'yes' if target.attachable else 'no':<6}  "
        )
        kind = "" if target.kind == "job" else f"({target.kind}) "
        lines.append(start + cut(kind + clean(shlex.join(target.command)), WIDTH - len(start), "~"))
    for target in targets:
        if target.why is not None:
            first, *rest = wrap(f"{target.pid}: {clean(target.why)}", WIDTH - 4)
            lines += [f"  {first}", *(f"    {piece}" for piece in rest)]
    return lines
