"""The command line: reads the arguments and starts the command that is meant. What a command needs is imported then."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tuimon.commands.options import FAILED, USAGE, Far, Options, Record, deliver, say
from tuimon.commands.overview import refuse
from tuimon.commands.parser import make_parser
from tuimon.commands.places import why_no_file, why_no_folder
from tuimon.config import SETTINGS, resolve

SELDOM = 20_000, 20, 50
"""So often Python looks for garbage in cycles: loading makes hundreds of thousands of objects and no garbage, and to look
through them again and again is a tenth of the time until the first picture."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run tuimon with the arguments (those of the process where none are given); gives the exit status."""
    gc.set_threshold(*SELDOM)
    _open_streams()
    given = sys.argv[1:] if argv is None else list(argv)
    if given == ["relay"]:  # the far end of `attach ssh://..`: a protocol on stdin and stdout, not for people
        from tuimon.relay import far

        return far.main()
    words, command = _split(given)
    try:
        parser = make_parser()
        args, unknown = parser.parse_known_args(words)
        if unknown:
            refuse(parser, args.command, unknown)
        return _dispatch(args, command)
    except KeyboardInterrupt:
        say("interrupted")
        return FAILED


def _open_streams() -> None:
    """Whoever started us may have closed a standard stream; a file that takes its number would then be written into."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number: this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def _split(words: list[str]) -> tuple[list[str], list[str] | None]:
    """The words before the first `--`, and those behind it: the program of `run` or `record`, with its own options."""
    at = words.index("--") if "--" in words else 0
    if {"run", "record"} & set(words[:at]):
        return words[:at], words[at + 1 :]
    return words, None


def _dispatch(args: argparse.Namespace, command: list[str] | None) -> int:
    if args.command in ("help", "completion"):  # about tuimon itself: no setting matters
        return _about_itself(args)
    options = _options(args)
    why_not = _why_no_ceilings(options.ceilings)
    if why_not is not None and args.ceilings is not None:  # said before anything is started or touched
        say(f"--ceilings {why_not}")
        return USAGE
    if options.config is not None and why_not is not None:  # a setting that is of no use is a message
        options = replace(options, ceilings=None, config=options.config.without("ceilings", f"cannot be used: {why_not}"))
    for problem in options.problems if args.command != "doctor" else ():  # doctor has them among its own
        say(problem)
    if options.output is not None and (why_not := why_no_file(options.output)) is not None:  # now: there is no report to lose
        say(why_not)
        return USAGE
    if args.command is None and options.screen and _why_no_screen() is None:
        from tuimon.commands import pick

        return pick.run(options)
    if args.command is None or args.command == "list":
        from tuimon.commands import listing

        return listing.run(options, _far(args), hints=args.command is None, pids=getattr(args, "pids", False))
    if args.command == "doctor":
        from tuimon.commands import doctor

        return doctor.run(args.pid, options)
    if args.command == "themes":
        from tuimon.commands import themes

        return themes.run(options, args.check)
    if args.command == "calibrate":
        from tuimon.commands import calibrate

        return calibrate.run(options, show=args.show, python=args.python, threads=args.threads, device=args.device)
    if args.command in ("report", "compare", "export"):
        return _from_files(args, options)
    if options.prometheus is not None and (why_not := _why_no_prometheus(options)) is not None:
        say(why_not)
        return USAGE
    if args.command == "record":
        return _record(args, options, command)
    if options.screen and (why_not := _why_no_screen()) is not None:  # said before anything is started or touched
        say(why_not)
        return FAILED
    if args.command == "replay":
        from tuimon.commands import replay

        return replay.run(args.file, options, screen=options.screen, speed=args.speed, at=args.at, paused=args.paused)
    if args.command == "lab":
        from tuimon.commands import lab

        return lab.run(args, options)
    if args.command == "run":
        program = [*args.program, *(["--", *command] if args.program else command)] if command is not None else args.program
        if not program:
            say("run what? For instance: tuimon run -- python train.py")
            return USAGE
        from tuimon.commands import run

        return run.run(program, options)
    if args.command == "attach":
        from tuimon.commands import attach

        return attach.run(args.words, options, _far(args), everybody=args.all, patience=args.wait)
    from tuimon.commands import demo

    return demo.run(args.name, options, list_them=args.list_demos, tour=args.tour)


def _about_itself(args: argparse.Namespace) -> int:
    if args.command == "help":
        from tuimon.commands import overview

        return overview.run(make_parser(), args.about)
    from tuimon.commands import completion

    return completion.run(make_parser(), args.shell)


def _from_files(args: argparse.Namespace, options: Options) -> int:
    """The commands that only read files."""
    if getattr(args, "schema", False):
        import json

        from tuimon.report.schema import compare_schema, schema

        told = compare_schema() if args.command == "compare" else schema()
        return deliver(json.dumps(told, indent=2, ensure_ascii=False) + "\n", options.output)
    if args.command == "compare":
        if args.b is None:
            say("compare what? For instance: tuimon compare before.tuimon after.tuimon")
            return USAGE
        from tuimon.commands import compare

        return compare.run(args.a, args.b, options, phase=args.phase, seed=args.seed)
    if args.command == "export":
        if args.output is None:
            say("export into what? -o FILE names it; -o - is stdout")
            return USAGE
        from tuimon.commands import export

        return export.run(args.file, args.to, args.output)
    if args.file is None:
        say("report on what? For instance: tuimon report run.tuimon")
        return USAGE
    from tuimon.commands import replay

    return replay.run(args.file, options, screen=False)


def _record(args: argparse.Namespace, options: Options, command: list[str] | None) -> int:
    if args.output is None:
        say("record into what? -o FILE names it")
        return USAGE
    if command is not None and (args.words or args.all):
        say("a program behind `--`, or processes that run already: one of the two")
        return USAGE
    if command is not None and not command:
        say("record what? For instance: tuimon record -o run.tuimon -- python train.py")
        return USAGE
    from tuimon.commands import record

    return record.run(args.words, command, options, _far(args), everybody=args.all, patience=args.wait)


def _why_no_screen() -> str | None:
    """Why there can be no screen though stdin and stdout are a terminal: it is drawn on stderr. None where there can be."""
    from tuimon.app import why_no_screen

    return why_no_screen()


def _why_no_prometheus(options: Options) -> str | None:
    """Why the file of --prometheus cannot be kept; None where it can be."""
    path = options.prometheus
    assert path is not None
    if options.screen:
        return "--prometheus is for watching without a screen: add --headless"
    why_not = why_no_folder(path.parent)
    return None if why_not is None else f"--prometheus: {why_not}"


def _why_no_ceilings(path: Path | None) -> str | None:
    """Why that file of ceilings cannot be used; None where it can be, or none was given."""
    if path is None:
        return None
    from tuimon.roofline.ceilings import CeilingError, load_ceilings
    from tuimon.roofline.machines import machines

    try:
        load_ceilings(path)
        machines(path)
    except CeilingError as error:
        return str(error)
    return None


def _far(args: argparse.Namespace) -> Far:
    nodes = tuple(node for node in (getattr(args, "nodes", None) or "").split(",") if node)
    fold, send = getattr(args, "fold", None), getattr(args, "send", False)
    return Far(getattr(args, "place", None), getattr(args, "via", None), send=send, nodes=nodes, fold=fold)


def _options(args: argparse.Namespace) -> Options:
    # a report that is asked for by its form goes to stdout, where a screen cannot be at the same time
    asked_for_report = args.format is not None and args.output is None
    recorded = args.command == "record"
    config = resolve(_flags(args))
    return Options(
        headless=args.headless or asked_for_report or recorded,
        duration=args.duration,
        steps=args.steps,
        format=args.format or "text",
        output=None if args.command in ("record", "export") else args.output,  # that is no report
        interval=config["interval"],
        theme=config["theme"],
        ascii=config["ascii"],
        ceilings=config["ceilings"],
        no_color=config["color"] == "none",
        background=config["background"],
        mouse={"on": True, "off": False}.get(config["mouse"]),
        clipboard=config["clipboard"],
        step=getattr(args, "step", None),
        slow_over_ms=config["slow_over"],
        stacks=config["stacks"],
        pcie=getattr(args, "pcie", False),
        record=Record(args.output, config["max_size"] << 20, args.source, args.force) if recorded and args.output else None,
        phases=getattr(args, "phases", ()),
        prometheus=getattr(args, "prometheus", None),
        reported=not recorded or args.format is not None,
        config=config,
    )


def _flags(args: argparse.Namespace) -> dict[str, object]:
    """What the command line gives of the settings."""
    given: dict[str, object] = {setting.name: getattr(args, setting.name, None) for setting in SETTINGS}
    if given["mouse"] is not None:
        given["mouse"] = "on" if given["mouse"] else "off"
    return given
