"""The parser of the command line: every command, every option, and what a value must look like."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuimon import __version__
from tuimon.commands import values

if TYPE_CHECKING:
    pass

EPILOG = """\
exit status: `run` and `demo` end with the program's own (128 + n where signal
n killed it); otherwise 0 done, 1 failed, 2 wrong usage, 3 cannot attach.
Data goes to stdout, everything else to stderr.
"""

OUTPUT = "write the report to FILE instead of stdout"

ATTACH = """\
Watch processes that run already: one, several ranks, those of another host.
q (or Ctrl-C) detaches; the jobs run on.

  tuimon attach 12345                             one process
  tuimon attach 12345 12346                       two on one screen
  tuimon attach --all                             every PyTorch job here
  tuimon attach ssh://kim@gpu7/12345              on another host, by ssh
  tuimon attach --via 'kubectl exec -i POD --' 1  in a container
"""

RECORD = """\
Watch without a screen, and keep all of it in a file: for replay, report,
compare and export. Ctrl-C ends it; a job that was attached to runs on.

  tuimon record 12345 -o run.tuimon               a process that runs already
  tuimon record -o run.tuimon -- python train.py  a program, from its first line
  tuimon record --all -o folder                   every job, a file for each

The file is yours alone (mode 0600) and has no line of the program's source in
it, and nothing that it prints, unless --source is given.
"""

EXPORT = """\
Write what a file holds in another form.

  tuimon export run.tuimon --to perfetto -o trace.json.gz   for ui.perfetto.dev
  tuimon export run.tuimon --to csv -o series.csv           one value a row
"""

LAB = """\
The roofline lab: set an intensity and a bandwidth, predict the ceiling, trace
the roof. All of it is hypothetical: nothing runs and nothing is measured.

  tuimon lab                                on the screen
  tuimon lab --walk                         the guided walk, five predictions
  tuimon lab --intensity 8 --bandwidth 80   begin with these; without a
                                            terminal: print the numbers
"""


def make_parser() -> argparse.ArgumentParser:
    """What reads tuimon's arguments."""
    # a command takes the options of tuimon's own level too, but must not set them back where it was not given them
    common = _common()
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
    _add_targets(attach)
    _add_steps(attach)
    _add_slow(attach)
    _add_gpus(attach)
    _add_prometheus(attach)
    _add_far(attach)
    _add_nodes(attach)

    run = commands.add_parser(
        "run", parents=[common], help="start a program and watch it", usage="tuimon run [options] -- COMMAND ..."
    )
    run.add_argument("program", nargs=argparse.REMAINDER, metavar="COMMAND", help="for instance: python train.py --lr 0.1")
    _add_steps(run)
    _add_slow(run)
    _add_gpus(run)
    _add_prometheus(run)
    _add_record(commands)

    listing = commands.add_parser(
        "list", parents=[common], help="the PyTorch processes of this machine, and whether tuimon can attach"
    )
    listing.add_argument("place", nargs="?", metavar="HOST", help="ssh://[user@]host[:port]: those of another machine")
    _add_far(listing)

    doctor = commands.add_parser("doctor", parents=[common], help="what works here, or with one process, and what does not")
    doctor.add_argument("pid", type=values.pid, nargs="?", metavar="PID")

    _add_calibrate(commands, common)

    demo = commands.add_parser("demo", parents=[common], help="start a bundled training program and watch it")
    demo.add_argument("name", nargs="?", metavar="NAME", help="which one (default: train_small_gpt)")
    _add_slow(demo)
    _add_gpus(demo)
    _add_files(commands, common)
    _add_lab(commands, common)
    return parser


def _add_files(commands: argparse._SubParsersAction[argparse.ArgumentParser], common: argparse.ArgumentParser) -> None:
    what = (
        "a recording, a TORCH_TRACE log, a Kineto trace of torch.profiler, a CSV of Nsight Compute; or a folder with one kind "
        "of them, a file for each rank"
    )
    replay = commands.add_parser(
        "replay", parents=[common], help="a file, on the screen", description=f"On the screen: {what}."
    )
    replay.add_argument("file", type=Path, metavar="PATH", help=what)
    playing = replay.add_argument_group("playing a recording")
    playing.add_argument(
        "--speed", type=values.speed, metavar="X", default=1.0, help="so many times as fast as it was, or max (default: 1)"
    )
    playing.add_argument("--at", metavar="WHERE", help="begin there: a step's number, 03:12, +30s, 50%%")
    playing.add_argument("--paused", action="store_true", help="begin with the time standing still")

    report = commands.add_parser("report", parents=[common], help="a file, as a report", description=f"A report on {what}.")
    report.add_argument("file", type=Path, nargs="?", metavar="PATH", help=what)
    report.add_argument("--schema", action="store_true", help="print the JSON Schema that every report in JSON obeys")

    compare = commands.add_parser(
        "compare",
        parents=[common],
        help="two files: what differs, and by what",
        description="Whether two recordings (or two traces, or two logs) did the same work, and if so what differs, with an "
        "interval and the mechanism by name. Exit status 1 where they cannot be compared, with the reason.",
    )
    for name in ("a", "b"):
        compare.add_argument(name, type=Path, nargs="?", metavar=name.upper(), help="a file or a folder, as replay takes it")
    compare.add_argument("--phase", metavar="NAME", help="compare that phase of each alone (tuimon record --phases)")
    compare.add_argument("--seed", type=int, default=20, metavar="N", help="of the bootstrap (default: %(default)s)")
    compare.add_argument("--schema", action="store_true", help="print the JSON Schema that every comparison in JSON obeys")

    export = commands.add_parser(
        "export",
        parents=[_common("the file to write; - is stdout, and one that ends in .gz is packed")],
        help="a file, as a Perfetto trace or as CSV",
        description=EXPORT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    export.add_argument("file", type=Path, metavar="PATH", help="a file or a folder, as replay takes it")
    export.add_argument(
        "--to",
        choices=("perfetto", "csv"),
        required=True,
        help="a trace of Perfetto and Chrome, or a table of values over time",
    )


def _add_record(commands: Any) -> None:
    record = commands.add_parser(
        "record",
        parents=[_common("the recording: a file, or a folder for several processes")],
        help="watch without a screen, and keep it in a file",
        description=RECORD,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="tuimon record [options] PID .. -o FILE\n       tuimon record [options] -o FILE -- COMMAND ..",
    )
    _add_targets(record)
    group = record.add_argument_group("the recording (docs/recording.md); -o names it, and --format asks for a report as well")
    group.add_argument(
        "--max-size",
        type=values.count,
        default=512,
        metavar="MB",
        help="beyond it the oldest are dropped, but for the begin (default: %(default)s for each process)",
    )
    group.add_argument(
        "--source", action="store_true", help="keep lines of the program's source, and what it prints, in it too"
    )
    group.add_argument("--force", action="store_true", help="replace a file that is there")
    group.add_argument(
        "--phases",
        type=values.phases,
        metavar="SPEC",
        default=(),
        help="mark the phases of an experiment: initial=1,steady=200,guard=50 in steps, or 30s in seconds",
    )
    _add_steps(record)
    _add_slow(record)
    _add_gpus(record)
    _add_prometheus(record)
    _add_far(record)
    _add_nodes(record)


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
    calibrate.add_argument("--threads", type=values.count, metavar="N", help="of a CPU (default: 1, and torch's own number)")
    calibrate.add_argument("--python", metavar="PATH", help="one that has torch (default: tuimon's own, or a running job's)")
    calibrate.add_argument("--device", metavar="NAME", help="cpu or cuda:N (default: the CPU and every GPU)")


def _common(output: str = OUTPUT) -> argparse.ArgumentParser:
    """What every command takes; `output`: what -o is there."""
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    _add_common(common, output)
    return common


def _add_common(parser: argparse.ArgumentParser, output: str = OUTPUT) -> None:
    group = parser.add_argument_group("options of every command")
    group.add_argument("--headless", action="store_true", help="no screen, a report at the end (default without a terminal)")
    group.add_argument("--duration", type=values.seconds, metavar="S", help="without a screen: watch for S seconds")
    group.add_argument("--steps", type=values.count, metavar="N", help="without a screen: watch for N steps")
    group.add_argument("--format", choices=("text", "json", "md"), help="of the report (default: text)")
    group.add_argument("-o", "--output", type=Path, metavar="FILE", help=output)
    group.add_argument("--interval", type=values.seconds, metavar="S", help="seconds between two updates")
    group.add_argument("--theme", metavar="NAME", help="colours of the screen")
    group.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")
    group.add_argument("--ceilings", type=Path, metavar="FILE", help="ceilings and machines of your own, for the roofline")
    group.add_argument("--no-color", action="store_true", help="no colours; so does NO_COLOR in the environment")


def _add_targets(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "words", nargs="*", metavar="PID", help="a process, the launcher of several ranks, or ssh://[user@]host[:port]/PID"
    )
    parser.add_argument("--all", action="store_true", help="every PyTorch job here (or below the PIDs given)")
    parser.add_argument(
        "--wait",
        type=values.seconds,
        metavar="S",
        help="how long a busy job may take to let the hook in (default: 30; a screen: no limit)",
    )


def _add_nodes(parser: argparse.ArgumentParser) -> None:
    many = parser.add_argument_group("many nodes (docs/many-nodes.md)")
    many.add_argument(
        "--nodes", metavar="A,B,..", help="with --all, the jobs of these hosts: by ssh, or by --via CMD with {} for the name"
    )
    many.add_argument(
        "--fold",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="count steps on the jobs' own hosts and send what came of them, not every call (default: above 16 jobs)",
    )


def _add_prometheus(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--prometheus",
        type=values.prom,
        metavar="FILE.prom",
        help="without a screen: keep the latest of everything in this file, for a node exporter's textfile folder (written "
        "every --interval, default 15 s)",
    )


def _add_steps(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("steps")
    group.add_argument(
        "--step",
        type=values.function,
        metavar="MODULE:FUNCTION",
        help="a step begins with each call of it, e.g. train:train_step (default: found out; tuimon.step() in code marks too)",
    )
    group.add_argument("--no-stacks", action="store_true", help="never look at the job's stack (TUIMON_STACKS=0 does the same)")


def _add_slow(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("slow steps")
    group.add_argument(
        "--slow-over",
        type=values.milliseconds,
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
