"""`tuimon list`: the PyTorch processes of this machine or of another, each below the launcher that started it."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict

from tuimon.attach.find.command_lines import is_script_of_a_shell
from tuimon.attach.find.process import Target, find_targets
from tuimon.attach.refusal import Refused
from tuimon.commands.options import CANNOT_ATTACH, USAGE, Far, Options, deliver, say
from tuimon.draw.format import age
from tuimon.draw.text import cells, clean, cut, pad, wrap
from tuimon.report.render import to_json

SCHEMA = "tuimon.list/1"
WIDTH = 100
"""Cells, where the list does not go to a terminal."""
NARROWEST = 60
MOST_DEPTH = 3

NOTHING = """\
No PyTorch process here that this user may see. The list shows Python programs that have loaded torch, in containers too, with
their launchers (torchrun, mpirun, srun); loader and compile workers are left out. Look at another host with
`tuimon list ssh://HOST`, in a container with `tuimon list --via 'docker exec -i NAME'`; start a program under it with
`tuimon run -- python train.py`, or see what it looks like with `tuimon demo`.
"""
HINTS = """\
tuimon attach PID              watch one of these
tuimon run -- python train.py  start a program and watch it
tuimon demo --tour             a walk through the screens
"""


def run(options: Options, far: Far | None = None, *, hints: bool = False, pids: bool = False) -> int:
    """Deliver the list in `options.format`. Looks from outside only: no process is stopped or touched.

    `pids`: only the numbers of those that can be attached to, launchers of such ones too, for a shell's completion.
    """
    where = "" if far is None else _option(far)
    try:
        targets = find_targets() if not where or far is None else _of_another_host(far, quiet=pids)
    except Refused as refusal:
        say(f"{clean(refusal.sentence)} [{refusal.code}]")
        return CANNOT_ATTACH
    except ValueError as error:
        say(str(error))
        return USAGE
    if pids:
        text = "".join(f"{target.pid}\n" for target in targets if attach_word(target) != "no")
    elif options.format == "json":
        entries = [asdict(target) for target in targets]
        text = to_json({"schema": SCHEMA, "targets": entries})
    else:
        to_terminal = options.output is None and sys.stdout.isatty()
        width = max(NARROWEST, shutil.get_terminal_size((WIDTH, 24)).columns) if to_terminal else WIDTH
        lines = table(targets, width)
        if not hints:
            lines += next_step(targets, where)
        text = "".join(f"{line}\n" for line in lines)
        if hints:
            text += f"\n{HINTS}"
    return deliver(text, options.output)


def _option(far: Far) -> str:
    """How to name that place in a command; empty for this machine."""
    if far.via is not None:
        return f"--via {shlex.quote(far.via)} "
    return f"{far.place.rstrip('/')}/" if far.place else ""


def _of_another_host(far: Far, *, quiet: bool = False) -> list[Target]:
    """The list that the tuimon over there makes. Raises Refused; ValueError where the place makes no sense.

    What it waits for is told on stderr, unless `quiet`.
    """
    from tuimon.commands.attach import Narration, agree
    from tuimon.relay import near, place

    if far.via is not None:
        return near.find_targets(place.via(far.via), agree(far), None if quiet else Narration())
    if "://" not in (far.place or ""):
        raise ValueError(f"{far.place!r} is no host: tuimon list ssh://[user@]host[:port]")
    there, pid = place.parse(far.place or "")
    if pid is not None:
        raise ValueError(f"`tuimon list` takes a host, not one of its processes: leave /{pid} out")
    return near.find_targets(there, agree(far), None if quiet else Narration())


def table(targets: Sequence[Target], width: int = WIDTH) -> list[str]:
    """The list as lines of at most `width` cells; a launcher's ranks are indented below it.

    Below the table stands what keeps tuimon from attaching, a sentence for each process or for each group of the same kind.
    """
    if not targets:
        return wrap(NOTHING.replace("\n", " ").strip(), width)
    rows = [_row(target, depth) for target, depth in zip(targets, depths(targets), strict=True)]
    columns = ["PID", "RANK", "USER", "GPU", "AGE", "PYTHON", "ATTACH"]
    right = (True, True, False, False, True, False, False)
    limits = (12, 9, 10, 11, 8, 6, 6)
    # what nobody has is not shown: no ranks on a machine with a single job, no GPU column without a GPU
    shown = [at for at, name in enumerate(columns) if name not in ("RANK", "GPU") or any(row[at] != "-" for row in rows)]
    sizes = {at: min(limits[at], max([len(columns[at]), *(cells(row[at]) for row in rows)])) for at in shown}
    lines = []
    for row in [[*columns, "JOB / COMMAND"], *rows]:
        start = "".join(pad(cut(row[at], sizes[at], "~"), sizes[at], right[at]) + "  " for at in shown)
        lines.append((start + cut(row[-1], max(0, width - cells(start)), "~")).rstrip())
    return lines + _reasons(targets, width)


def depths(targets: Sequence[Target]) -> list[int]:
    """How deep each stands below a launcher or job on the list; 0 for one that stands alone."""
    parents = {target.pid: target.parent for target in targets}
    found = []
    for target in targets:
        depth, above = 0, target.parent
        while above in parents and depth < MOST_DEPTH:
            depth, above = depth + 1, parents[above] if above is not None else None
        found.append(depth)
    return found


def _row(target: Target, depth: int) -> list[str]:
    return [
        str(target.pid),
        rank(target),
        clean(target.user or "?"),
        gpu(target.gpus),
        age(target.age),
        clean(target.python or "?"),
        attach_word(target),
        "  " * depth + title(target),
    ]


def rank(target: Target) -> str:
    """`3/8`: rank and world size; `3` without the latter."""
    if target.rank is None:
        return "-"
    return f"{target.rank}/{target.world_size}" if target.world_size is not None else str(target.rank)


def gpu(devices: Sequence[int] | None) -> str:
    """`0`, `0,2`, `0-7`; `-` for none, `?` for not to be seen."""
    if devices is None:
        return "?"
    if len(devices) > 2 and list(devices) == list(range(devices[0], devices[-1] + 1)):
        return f"{devices[0]}-{devices[-1]}"
    return ",".join(map(str, devices)) or "-"


def attach_word(target: Target) -> str:
    """Whether attaching to it works: "yes"; "all" for a launcher, which stands for all of its jobs; "no"."""
    if target.attachable:
        return "yes"
    return "all" if target.code == "launcher" else "no"


def title(target: Target) -> str:
    """What it is and does, in a line without control characters: marks, the job's name, the command."""
    marks: list[str] = [] if target.kind == "job" else [target.kind]
    if target.kind != "launcher" and target.has_torch is False:
        marks.append("torch not loaded yet" if target.rank is not None else "no torch")
    if target.kind != "launcher" and target.has_torch is None:
        marks.append("torch?")
    if target.container is not None:
        marks.append("in a container" if target.container == "yes" else f"in {clean(target.container)}")
    name = f"{clean(target.job)}: " if target.job and target.parent is None else ""
    return "".join(f"({mark}) " for mark in marks) + name + clean(command(target))


def command(target: Target) -> str:
    """The command, with the interpreter as a word: which Python it is stands in a column of its own."""
    words = list(target.command)
    if words and words[0].rpartition("/")[2].startswith(("python", "pypy")):
        words[0] = "python"
        if len(words) > 1 and words[1].startswith("/") and words[1].rpartition("/")[0].endswith("/bin"):
            words = [words[1].rpartition("/")[2], *words[2:]]  # a script with an interpreter line: torchrun
    return shlex.join(words)


def _reasons(targets: Sequence[Target], width: int) -> list[str]:
    """The sentences; the same one is said once for all processes to which it applies."""
    groups: dict[str, list[Target]] = {}
    for target in targets:
        if target.why is not None and target.kind != "launcher":
            groups.setdefault(target.why.replace(str(target.pid), "PID"), []).append(target)
    lines = []
    for group in groups.values():
        text = f"{group[0].pid}: {clean(group[0].why or '')}"
        if len(group) > 1:
            pids = ", ".join(str(one.pid) for one in group[1:6]) + (", .." if len(group) > 6 else "")
            text += f" (the same for {len(group) - 1} more: {pids})"
        first, *rest = wrap(text, width - 4)
        lines += [f"  {first}", *(f"    {piece}" for piece in rest)]
    return ["", *lines] if lines else []


def next_step(targets: Sequence[Target], where: str = "") -> list[str]:
    """What to type now; nothing where there is nothing to attach to. `where` stands before the pid (`ssh://host/`)."""
    launchers = [
        target
        for target in targets
        # a shell's script may have started jobs that have nothing to do with each other
        if target.code == "launcher" and not is_script_of_a_shell(target.command)
        if any(one.parent == target.pid for one in targets)
    ]
    able = [target for target in targets if target.attachable]
    if not able:
        return []
    pid = (launchers or able)[0].pid
    what = "all of its jobs on one screen" if launchers else "watch it"
    alone = f"tuimon attach {where}{pid}"
    lines = ["", f"{alone}   {what}"]
    if len(able) > 1:
        everybody = f"tuimon attach {where.rstrip('/ ')} --all" if where else "tuimon attach --all"
        lines.append(f"{everybody:<{len(alone)}}   every job above to which tuimon can attach")
    return lines
