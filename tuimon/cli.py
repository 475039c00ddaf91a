"""The command line: reads the arguments and starts the command that is meant. What a command needs is imported then."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tuimon import __version__
from tuimon.commands.options import FAILED, USAGE, Far, Options, say

EPILOG = """\
exit status: `run` and `demo` end with the program's own (128 + n where signal
n killed it); otherwise 0 done, 1 failed, 2 wrong usage, 3 cannot attach.
Data goes to stdout, everything else to stderr.
"""

MOST_MS = 86_400_000

ATTACH = """\
Watch processes that run already: one, several ranks, those of another host.
q (or Ctrl-C) detaches; the jobs run on.

  tuimon attach 12345                             one process
  tuimon attach 12345 12346                       two on one screen
  tuimon attach --all                             every PyTorch job here
  tuimon attach ssh://kim@gpu7/12345              on another host, by ssh
  tuimon attach --via 'kubectl exec -i POD --' 1  in a container
"""


LAB = """\
The roofline lab: set an intensity and a bandwidth, predict the ceiling, trace
the roof. All of it is hypothetical: nothing runs and nothing is measured.

  tuimon lab                                on the screen
  tuimon lab --walk                         the guided walk, five predictions
  tuimon lab --intensity 8 --bandwidth 80   begin with these; without a
                                            terminal: print the numbers
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run tuimon with the arguments (those of the process where none are given); gives the exit status."""
    _open_streams()
    given = sys.argv[1:] if argv is None else list(argv)
    if given == ["relay"]:  # the far end of `attach ssh://..`: a protocol on stdin and stdout, not for people
        from tuimon.relay import far

        return far.main()
    words, command = _split(given)
    args = _parser().parse_args(words)
    try:
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
    """The words before the first `--`, and those behind it: the program of `run`, whose options are none of ours."""
    at = words.index("--") if "--" in words else 0
    if "run" in words[:at]:
        return words[:at], words[at + 1 :]
    return words, None


def _dispatch(args: argparse.Namespace, command: list[str] | None) -> int:
    options = _options(args)
    why_not = _why_no_ceilings(options.ceilings)
    if why_not is not None:  # said before anything is started or touched
        say(why_not)
        return USAGE
    if args.command is None and options.screen:
        from tuimon.commands import pick

        return pick.run(options)
    if args.command is None or args.command == "list":
        from tuimon.commands import listing

        return listing.run(options, _far(args), hints=args.command is None)
    if args.command == "doctor":
        from tuimon.commands import doctor

        return doctor.run(args.pid, options)
    if options.output is not None and not options.output.parent.is_dir():  # now, not when there is a report to lose
        say(f"there is no directory {options.output.parent} to write the report into")
        return USAGE
    if options.output is not None and options.output.is_dir():
        say(f"{options.output} is a directory; name a file for the report")
        return USAGE
    if args.command == "calibrate":
        from tuimon.commands import calibrate

        return calibrate.run(options, show=args.show, python=args.python, threads=args.threads, device=args.device)
    if args.command == "report":
        from tuimon.commands import replay

        return replay.run(args.file, options, screen=False)
    if options.screen:
        from tuimon.app import why_no_screen

        why_not = why_no_screen()
        if why_not is not None:  # said before anything is started or touched
            say(why_not)
            return FAILED
    if args.command == "replay":
        from tuimon.commands import replay

        return replay.run(args.file, options, screen=options.screen)
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

    return demo.run(args.name, options)


def _why_no_ceilings(path: Path | None) -> str | None:
    """Why the file of --ceilings cannot be used; None where it can be, or none was given."""
    if path is None:
        return None
    from tuimon.roofline.ceilings import CeilingError, load_ceilings
    from tuimon.roofline.machines import machines

    try:
        load_ceilings(path)
        machines(path)
    except CeilingError as error:
        return f"--ceilings {error}"
    return None


def _far(args: argparse.Namespace) -> Far:
    nodes = tuple(node for node in (getattr(args, "nodes", None) or "").split(",") if node)
    fold, send = getattr(args, "fold", None), getattr(args, "send", False)
    return Far(getattr(args, "place", None), getattr(args, "via", None), send=send, nodes=nodes, fold=fold)


def _options(args: argparse.Namespace) -> Options:
    # a report that is asked for by its form goes to stdout, where a screen cannot be at the same time
    asked_for_report = args.format is not None and args.output is None
    return Options(
        headless=args.headless or asked_for_report,
        duration=args.duration,
        steps=args.steps,
        format=args.format or "text",
        output=args.output,
        interval=args.interval,
        theme=args.theme,
        ascii=args.ascii,
        ceilings=args.ceilings,
        no_color=args.no_color or bool(os.environ.get("NO_COLOR")),
        step=getattr(args, "step", None),
        slow_over_ms=getattr(args, "slow_over", None),
        stacks=not (getattr(args, "no_stacks", False) or os.environ.get("TUIMON_STACKS") == "0"),
        pcie=getattr(args, "pcie", False),
    )


def _parser() -> argparse.ArgumentParser:
    # a command takes the options of tuimon's own level too, but must not set them back where it was not given them
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    _add_common(common)
    parser = argparse.ArgumentParser(
        prog="tuimon",
        description="A live monitor in the terminal for a PyTorch process that is already running.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tuimon {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    _add_common(parser)

    attach = commands.add_parser(
        "attach",
        parents=[common],
        help="watch processes that run already: one, several ranks, another host's",
        description=ATTACH,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    attach.add_argument(
        "words", nargs="*", metavar="PID", help="a process, the launcher of several ranks, or ssh://[user@]host[:port]/PID"
    )
    attach.add_argument("--all", action="store_true", help="every PyTorch job here (or below the PIDs given)")
    attach.add_argument(
        "--wait",
        type=_seconds,
        metavar="S",
        help="how long a busy job may take to let the hook in (default: 30; a screen: no limit)",
    )
    _add_steps(attach)
    _add_slow(attach)
    _add_gpus(attach)
    _add_far(attach)
    many = attach.add_argument_group("many nodes (docs/many-nodes.md)")
    many.add_argument(
        "--nodes", metavar="A,B,..", help="with --all, the jobs of these hosts: by ssh, or by --via CMD with {} for the name"
    )
    many.add_argument(
        "--fold",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="count steps on the jobs' own hosts and send what came of them, not every call (default: above 16 jobs)",
    )

    run = commands.add_parser(
        "run", parents=[common], help="start a program and watch it", usage="tuimon run [options] -- COMMAND ..."
    )
    run.add_argument("program", nargs=argparse.REMAINDER, metavar="COMMAND", help="for instance: python train.py --lr 0.1")
    _add_steps(run)
    _add_slow(run)
    _add_gpus(run)

    listing = commands.add_parser(
        "list", parents=[common], help="the PyTorch processes of this machine, and whether tuimon can attach"
    )
    listing.add_argument("place", nargs="?", metavar="HOST", help="ssh://[user@]host[:port]: those of another machine")
    _add_far(listing)

    doctor = commands.add_parser("doctor", parents=[common], help="what works here, or with one process, and what does not")
    doctor.add_argument("pid", type=_pid, nargs="?", metavar="PID")

    _add_calibrate(commands, common)

    demo = commands.add_parser("demo", parents=[common], help="start a bundled training program and watch it")
    demo.add_argument("name", nargs="?", metavar="NAME", help="which one (default: train_small_gpt)")
    _add_slow(demo)
    _add_gpus(demo)
    _add_files(commands, common)
    _add_lab(commands, common)
    return parser


def _add_files(commands: argparse._SubParsersAction[argparse.ArgumentParser], common: argparse.ArgumentParser) -> None:
    what = "a Kineto trace of torch.profiler (.json, .json.gz), or a CSV of Nsight Compute"
    for name, how in (("replay", "on the screen, its roofline in front"), ("report", "as a report")):
        shown = f"Show {what}, {how}."
        command = commands.add_parser(name, parents=[common], help=f"a profiler's trace, {how}", description=shown)
        command.add_argument("file", type=Path, metavar="FILE", help=what)


def _add_lab(commands: Any, common: argparse.ArgumentParser) -> None:
    lab = commands.add_parser(
        "lab",
        parents=[common],
        help="the roofline lab: predict a ceiling, trace the roof",
        description=LAB,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    lab.add_argument("--intensity", metavar="I", help="operations for each byte (FLOP/byte)")
    lab.add_argument("--bandwidth", metavar="B", help="GB/s, or with a prefix: 3.35T")
    lab.add_argument("--peak", metavar="P", help="GFLOP/s, or with a prefix: 989T (default: 1000)")
    lab.add_argument("--walk", nargs="?", const="", metavar="FILE", help="begin with the guided walk; FILE: one of your own")


def _add_calibrate(commands: Any, common: argparse.ArgumentParser) -> None:
    calibrate = commands.add_parser(
        "calibrate",
        parents=[common],
        help="measure this machine's ceilings, for the roofline",
        description="Measure what this machine's processor and GPUs can do at most, in a process of its own, and keep it: the "
        "roofline uses it from then on. Takes 15 s on a CPU. On a busy machine it refuses rather than keep a wrong figure.",
    )
    calibrate.add_argument("--show", action="store_true", help="measure nothing: what is kept")
    calibrate.add_argument("--threads", type=_count, metavar="N", help="of a CPU (default: 1, and what torch takes by itself)")
    calibrate.add_argument("--python", metavar="PATH", help="one that has torch (default: tuimon's own, or a running job's)")
    calibrate.add_argument("--device", metavar="NAME", help="cpu or cuda:N (default: the CPU and every GPU)")


def _add_common(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("options of every command")
    group.add_argument("--headless", action="store_true", help="no screen, a report at the end (default without a terminal)")
    group.add_argument("--duration", type=_seconds, metavar="S", help="without a screen: watch for S seconds")
    group.add_argument("--steps", type=_count, metavar="N", help="without a screen: watch for N steps")
    group.add_argument("--format", choices=("text", "json", "md"), help="of the report (default: text)")
    group.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the report to FILE instead of stdout")
    group.add_argument("--interval", type=_seconds, metavar="S", help="seconds between two updates")
    group.add_argument("--theme", metavar="NAME", help="colours of the screen")
    group.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")
    group.add_argument("--ceilings", type=Path, metavar="FILE", help="ceilings and machines of your own, for the roofline")
    group.add_argument("--no-color", action="store_true", help="no colours; so does NO_COLOR in the environment")


def _add_steps(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("steps")
    group.add_argument(
        "--step",
        type=_function,
        metavar="MODULE:FUNCTION",
        help="a step begins with each call of it, e.g. train:train_step (default: found out; tuimon.step() in code marks too)",
    )
    group.add_argument("--no-stacks", action="store_true", help="never look at the job's stack (TUIMON_STACKS=0 does the same)")


def _add_slow(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("slow steps")
    group.add_argument(
        "--slow-over",
        type=_milliseconds,
        metavar="MS",
        help="a slow step takes at least MS milliseconds longer than the usual one (default: 10; the whole rule: ? on screen)",
    )


def _add_gpus(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("GPUs (docs/gpu.md)")
    group.add_argument(
        "--pcie",
        action="store_true",
        help="read PCIe traffic also where the driver takes 20 ms for each reading (Hopper and newer tell it without)",
    )


def _add_far(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("other hosts and containers")
    group.add_argument("--via", metavar="CMD", help="a command that runs tuimon over there, e.g. 'kubectl exec -i POD --'")
    group.add_argument(
        "--send", action="store_true", help="where there is no tuimon over there, send it along (kept in memory, or removed)"
    )


def _pid(text: str) -> int:
    try:
        pid = int(text)
    except ValueError:
        pid = 0
    if pid <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no process id; `tuimon list` shows them")
    return pid


def _function(text: str) -> str:
    module, _, path = text.partition(":")
    if not all(name.isidentifier() for name in (*module.split("."), *path.split("."))):
        raise argparse.ArgumentTypeError(f"{text!r} is no MODULE:FUNCTION, such as train:train_step or train:Trainer.step")
    return text


def _milliseconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= MOST_MS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of milliseconds from 0 to {MOST_MS} (a day)")
    return value


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def _count(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return value
