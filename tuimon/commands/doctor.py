"""`tuimon doctor [PID]`: what works here, or with one process, and what does not; each with the next step."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict

from tuimon.commands.options import CANNOT_ATTACH, DONE, FAILED, Options, deliver
from tuimon.doctor import Check, ceilings, gpu, machine, process, settings, terminal
from tuimon.doctor.checks import note
from tuimon.draw.text import ascii_only, clean, wrap
from tuimon.report.markup import plain
from tuimon.report.render import to_json

SCHEMA = "tuimon.doctor/1"
WIDTH = 100
NARROWEST = 60
WORD = {"ok": "ok", "note": "note", "problem": "PROBLEM"}
COLOUR = {"ok": "32", "note": "33", "problem": "1;31"}
DECIDING = frozenset({("machine", "system"), ("attaching", "Yama"), ("attaching", "socket"), ("attaching", "self-test")})
"""The checks without which nothing can be attached to here."""


def run(pid: int | None, options: Options) -> int:
    """Look, and deliver it in `options.format`. Gives 0; 3 where that process cannot be attached to, 1 where no process can."""
    if pid is not None:
        found, works = process.checks(pid)
        status = DONE if works else CANNOT_ATTACH
    else:
        gpus = gpu.checks()
        names = [check.what for check in gpus if check.state == "ok" and check.name.startswith("GPU ")]
        found = [*machine.checks(), *gpus, *ceilings.checks(names, options.ceilings)]
        from tuimon.app.tty.background import depth

        why_none = options.config.values["color"].where if options.config is not None and options.no_color else ""
        found += terminal.checks(ask=options.screen, colours=depth(), without=why_none)
        if options.config is not None:
            found += [*settings.checks(options.config, theme=_theme_here(options)), *_themes(options.theme)]
        bad = {(check.part, check.name) for check in found if check.state == "problem"}
        status = FAILED if bad & DECIDING else DONE
    colour = options.format == "text" and options.output is None and sys.stdout.isatty() and not options.no_color
    if options.format == "json":
        report: dict[str, object] = {
            "schema": SCHEMA,
            "pid": pid,
            "status": status,
            "checks": [asdict(check) for check in found],
        }
        if pid is None and options.config is not None:
            report["settings"] = settings.as_json(options.config)
        text = to_json(report)
    elif options.format == "md":
        text = "".join(f"{line}\n" for line in markdown(found))
    else:
        to_terminal = options.output is None and sys.stdout.isatty()
        width = max(NARROWEST, shutil.get_terminal_size((WIDTH, 24)).columns) if to_terminal else WIDTH
        text = "".join(f"{line}\n" for line in lines(found, width, colour=colour))
        if options.ascii:
            text = "\n".join(map(ascii_only, text.split("\n")))
    return deliver(text, options.output, coloured=colour) or status


def _theme_here(options: Options) -> str:
    """The theme that a screen would begin with; the terminal is asked for its ground where there is one."""
    from tuimon.app.look.themes import DEFAULT, MONO, load_themes
    from tuimon.app.tty.background import depth, fitting_theme, ground

    if options.no_color:
        return MONO
    found = fitting_theme(options.theme, options.background, depth(), ground if options.screen else lambda: "unknown")
    return found if found in load_themes().themes else DEFAULT


def _themes(wanted: str | None) -> list[Check]:
    """What is wrong with themes: files that are none, a name that is none's."""
    from tuimon.app.look.themes import load_themes

    found = load_themes()
    wrong = list(found.problems)
    if wanted is not None and wanted not in found.themes:
        wrong.append(f"there is no theme {wanted!r}; there are {', '.join(found.themes)}")
    return [note("settings", "themes", problem, "tuimon themes") for problem in wrong]


def lines(checks: Sequence[Check], width: int = WIDTH, *, colour: bool = False) -> list[str]:
    """The findings as lines of at most `width` cells, under a heading for each part; last, what is wrong in one line."""
    names = max((len(check.name) for check in checks), default=0)
    margin = 2 + 9 + names + 2
    found: list[str] = []
    part = ""
    for check in checks:
        if check.part != part:
            part = check.part
            found += [""] * bool(found) + [part]
        word = f"{WORD[check.state]:<9}"
        shown = f"\x1b[{COLOUR[check.state]}m{word}\x1b[0m" if colour else word
        first, *rest = wrap(clean(check.what), width - margin) or [""]
        found.append(f"  {shown}{clean(check.name):<{names}}  {first}".rstrip())
        found += [" " * margin + line for line in rest]
        if check.next_step:
            steps = wrap(clean(check.next_step), width - margin - 3)
            found += [" " * margin + ("   " if at else "-> ") + line for at, line in enumerate(steps)]
    return [*found, "", summary(checks)]


def summary(checks: Sequence[Check]) -> str:
    """How many things are wrong, and which."""
    wrong = [check.name for check in checks if check.state == "problem"]
    if not wrong:
        return "nothing is wrong"
    return f"{len(wrong)} problem{'s' if len(wrong) > 1 else ''}: {', '.join(wrong)}"


def markdown(checks: Sequence[Check]) -> list[str]:
    """The findings as lists, to be pasted into a ticket."""
    found = ["# tuimon doctor"]
    part = ""
    for check in checks:
        if check.part != part:
            part = check.part
            found += ["", f"## {part}", ""]
        step = "; next: `{}`".format(clean(check.next_step).replace("`", "'")) if check.next_step else ""
        found.append(f"- **{WORD[check.state]}** {plain(check.name)}: {plain(check.what)}{step}")
    return [*found, "", summary(checks)]
