"""Attach to every kind of program under every Python of this machine, by every form, and say what came of it.

    python -m tests.attach.matrix [--attaches N] [--python PATH ...] [--targets NAME ...] [--forms NAME ...]
                                  [--minutes M] [--json FILE]

PATH is a Python, or `chroot:ROOT:PATH` for one in another root; without any, all that are found are taken (PATH, /usr/bin,
pyenv, conda, and those that TUIMON_PYTHONS names). Each target checks its own results; it has to live, to get on, and to keep
nothing of ours. An attach has to work, or to be refused by the right name where a form alone cannot work: "main-busy" by
`pending` and `remote_exec` where the main thread never comes back to Python; "main-busy" or "no-thread" by `thread` where no
thread sleeps; "gil-held" where native code holds the GIL nearly all the time. The ladder has to work everywhere else. Cells
are taken breadth first; with --json a run goes on where the last one stopped. The status is 1 where a cell failed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .matrix_cells import FORMS, KINDS, Kind, Result, Settings, forms_for, kinds_for, milliseconds, try_cell
from .matrix_pythons import Interpreter, discover
from .matrix_target import Wrong, start


def say(text: str) -> None:
    """A line of progress, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def breadth_first(pythons: list[Interpreter], targets: list[str]) -> Iterator[tuple[Interpreter, Kind]]:
    """Each Python with a kind of its own in every round, so that a run cut short has seen a bit of everything."""
    kinds = [kinds_for(python, targets) for python in pythons]
    for turn in range(max(map(len, kinds), default=0)):
        for number, python in enumerate(pythons):
            own = kinds[number]
            if turn < len(own):
                # the first kind that each of them is asked for differs
                yield python, own[(turn + 3 * number) % len(own)]


def key(result: dict[str, Any]) -> tuple[str, str, str]:
    """By what a cell is known in the file."""
    return result["executable"], result["target"], result["form"]


def load(path: Path | None) -> list[dict[str, Any]]:
    """The cells that an earlier run has done."""
    if path is None or not path.exists():
        return []
    return list(json.loads(path.read_text())["cells"])


def save(path: Path | None, cells: list[dict[str, Any]]) -> None:
    """Write them all; the file is never half written."""
    if path is None:
        return
    new = path.with_suffix(".new")
    new.write_text(json.dumps({"schema": "tuimon.attach-matrix/1", "cells": cells}))
    os.replace(new, path)


def line(cell: dict[str, Any]) -> str:
    """One cell as a row."""
    refused = ", ".join(f"{count} x {code}" for code, count in cell["refused"].items())
    how = ", ".join(f"{name} {count}" for name, count in cell["mechanisms"].items())
    success = f"{cell['attached']}/{cell['tried']}" + (f" ({refused})" if refused else "")
    return (
        f"{cell['python']:<26} {cell['target']:<17} {cell['form']:<12} {success:<24} {milliseconds(cell['acks']):<22} "
        f"{milliseconds(cell['stops']):<22} {cell['verdict']}" + (f"  [{how}]" if how else "")
    )


def table(cells: list[dict[str, Any]]) -> None:
    """All cells, and what they come to."""
    say("")
    say(
        f"{'Python':<26} {'target':<17} {'form':<12} {'attached/tried':<24} {'answer after, ms':<22} {'a stop, ms':<22} verdict"
    )
    say(f"{'':<26} {'':<17} {'':<12} {'':<24} {'median / p99 / most':<22} {'median / p99 / most':<22}")
    for cell in sorted(cells, key=lambda cell: (cell["python"], cell["executable"], cell["target"], FORMS.index(cell["form"]))):
        say(line(cell))
    say("")
    quick = {kind.name for kind in KINDS if not kind.long}
    acks = [value for cell in cells if cell["target"] in quick for value in cell["acks"]]
    stops = [value for cell in cells for value in cell["stops"]]
    attached, tried = sum(cell["attached"] for cell in cells), sum(cell["tried"] for cell in cells)
    refused = sum(sum(cell["refused"].values()) for cell in cells)
    failed = [cell for cell in cells if cell["wrong"]]
    say(f"{len(cells)} cells, {tried} attaches: {attached} attached, {refused} refused; {len(failed)} cells failed")
    say(f"to the hook's answer (but for long native calls): median / p99 / most {milliseconds(acks)} ms")
    say(f"one stop of one thread:                           median / p99 / most {milliseconds(stops)} ms, {len(stops)} stops")


def run(options: argparse.Namespace) -> int:
    """Do the cells that are not done yet; gives the status."""
    settings = Settings(options.attaches, options.cell_seconds, options.native_seconds)
    pythons = discover(options.python)
    say(f"{len(pythons)} Pythons: " + "; ".join(f"{python.label} ({python.executable})" for python in pythons))
    deadline = time.monotonic() + 60.0 * options.minutes if options.minutes else float("inf")
    cells = load(options.json)
    done = {key(cell) for cell in cells if not cell["wrong"] and cell["asked"] >= settings.attaches}
    if options.again:
        done = set()
    left_out = 0
    for python, kind in breadth_first(pythons, options.targets):
        forms = [form for form in forms_for(python, options.forms) if (python.executable, kind.name, form) not in done]
        if not forms:
            continue
        if time.monotonic() > deadline:
            left_out += len(forms)
            continue
        for result in try_kind(python, kind, forms, settings, deadline):
            cells = [cell for cell in cells if key(cell) != key(result.as_json())] + [result.as_json()]
            save(options.json, cells)
    table(cells)
    if left_out:
        say(f"not tried for want of time: {left_out} cells")
    return int(any(cell["wrong"] for cell in cells))


def try_kind(python: Interpreter, kind: Kind, forms: list[str], settings: Settings, deadline: float) -> Iterator[Result]:
    """One target, the forms one after the other; a new target after one that failed."""
    todo = list(forms)
    while todo:
        argument = str(settings.native_s) if kind.long else kind.argument
        try:
            with start(python, kind.program, kind.mode, argument, settings.nice) as target:
                while todo:
                    form = todo.pop(0)
                    result = try_cell(
                        python,
                        kind,
                        form,
                        target,
                        settings,
                        lambda text, form=form: say(f"    {python.label}, {kind.name}, {form}: {text}"),
                    )
                    say(f"{time.strftime('%H:%M:%S')} {line(result.as_json())}")
                    yield result
                    if time.monotonic() > deadline:
                        return
                    if result.wrong or result.left:
                        break
        except Wrong as wrong:
            form = todo.pop(0) if todo else forms[-1]
            result = Result(python.label, python.executable, kind.name, form, settings.attaches, wrong=f"no target: {wrong}")
            say(line(result.as_json()))
            yield result


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.attach.matrix", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--attaches", type=int, default=200, help="in each cell (default 200)")
    parser.add_argument("--python", nargs="+", default=[], metavar="PATH", help="these Pythons only")
    parser.add_argument("--targets", nargs="+", default=[], choices=[kind.name for kind in KINDS], metavar="NAME")
    parser.add_argument("--forms", nargs="+", default=list(FORMS), choices=FORMS, metavar="NAME")
    parser.add_argument("--minutes", type=float, default=0.0, help="begin no further cell after so many minutes")
    parser.add_argument("--cell-seconds", type=float, default=240.0, help="end a cell after so many seconds (default 240)")
    parser.add_argument("--native-seconds", type=float, default=20.0, help="how long a long native call takes (default 20)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the cells there, and go on where FILE stops")
    parser.add_argument("--again", action="store_true", help="also the cells that FILE has already")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(run(arguments()))
