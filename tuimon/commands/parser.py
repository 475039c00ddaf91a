"""The parser of the command line: every command, every option, and what a value must look like."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tuimon import __version__
from tuimon.commands import groups, overview, values

RECORDING = "the recording: a file, or a folder for several processes"
EXPORTED = "the file to write; - is stdout, and one that ends in .gz is packed"

WHAT = """\
a recording, a TORCH_TRACE log, a Kineto trace of torch.profiler, a CSV of
Nsight Compute; or a folder with one kind of them, a file for each rank"""

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


COMPARE = """\
Whether two recordings (or two traces, or two logs) did the same work, and if
so what differs, with an interval and the mechanism by name. Exit status 1
where they cannot be compared, with the reason.
"""

CALIBRATE = """\
Measure what this machine's processor and GPUs can do at most, in a process of
its own, and keep it: the roofline uses it from then on. Takes 15 s on a CPU.
On a busy machine it refuses rather than keep a wrong figure.
"""

COMPLETION = """\
Print what makes a shell complete tuimon's commands, options and files by tab.
Where it goes (DIR stands for ~/.local/share/bash-completion/completions):

  tuimon completion bash > DIR/tuimon
  tuimon completion zsh > _tuimon          into a folder that $fpath names
  tuimon completion fish > ~/.config/fish/completions/tuimon.fish
"""

Commands = Any
"""What `add_subparsers` gives; its type has no public name."""


def make_parser() -> argparse.ArgumentParser:
    """What reads tuimon's arguments."""
    parser = overview.TopParser(prog="tuimon", usage="tuimon [COMMAND] [options]", description=overview.ABOUT)
    parser.add_argument("--version", action="version", version=f"tuimon {__version__}")
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", title="commands", prog="tuimon", parser_class=overview.CommandParser
    )
    groups.add_common(parser)
    _add_watching(commands)
    _add_record(commands)
    _add_demo(commands)
    _add_lab(commands)
    _add_files(commands)
    _add_looking(commands)
    _add_calibrate(commands)
    _add_about_itself(commands)
    outputs = {"record": RECORDING, "export": EXPORTED}
    for name, command in commands.choices.items():  # last, so that each command's help begins with its own options
        groups.add_common(command, outputs.get(name, overview.OUTPUT), inner=True)
    return parser


def _add(commands: Commands, name: str, words: str, meaning: str, description: str = "") -> argparse.ArgumentParser:
    """A command; `words`: what stands behind it, `meaning`: in a line of `tuimon --help`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=meaning,
        description=description or f"{meaning[:1].upper()}{meaning[1:]}.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage=" ".join(filter(None, ("tuimon", name, "[options]", words))),
    )
    return parser


def _add_watching(commands: Commands) -> None:
    attach = _add(commands, "attach", "PID ..", "watch processes that run already: one, ranks, another host's", ATTACH)
    groups.add_targets(attach)
    groups.add_steps(attach)
    groups.add_slow(attach)
    groups.add_gpus(attach)
    groups.add_prometheus(attach)
    groups.add_far(attach)
    groups.add_nodes(attach)

    run = _add(commands, "run", "-- COMMAND ..", "start a program and watch it")
    run.add_argument("program", nargs=argparse.REMAINDER, metavar="COMMAND", help="for instance: python train.py --lr 0.1")
    groups.add_steps(run)
    groups.add_slow(run)
    groups.add_gpus(run)
    groups.add_prometheus(run)


def _add_record(commands: Commands) -> None:
    record = _add(commands, "record", "PID .. -o FILE", "watch without a screen, and keep it in a file", RECORD)
    record.usage = "tuimon record [options] PID .. -o FILE\n       tuimon record [options] -o FILE -- COMMAND .."
    groups.add_targets(record)
    group = record.add_argument_group("the recording (docs/recording.md); --format asks for a report as well")
    group.add_argument(
        "--max-size",
        type=values.count,
        metavar="MB",
        help="beyond it the oldest are dropped, but for the begin (default: 512 for each process)",
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
    groups.add_steps(record)
    groups.add_slow(record)
    groups.add_gpus(record)
    groups.add_prometheus(record)
    groups.add_far(record)
    groups.add_nodes(record)


def _add_demo(commands: Commands) -> None:
    demo = _add(commands, "demo", "[NAME]", "start a bundled training program and watch it")
    demo.add_argument("name", nargs="?", metavar="NAME", help="which one (default: train_small_gpt)")
    demo.add_argument("--list", action="store_true", dest="list_demos", help="which there are, and what each shows")
    demo.add_argument(
        "--tour", action="store_true", help="walk through the screens on a recording, three minutes; needs no torch"
    )
    groups.add_slow(demo)
    groups.add_gpus(demo)


def _add_lab(commands: Commands) -> None:
    lab = _add(commands, "lab", "", "the roofline lab: predict a ceiling, trace the roof", LAB)
    lab.add_argument("--intensity", metavar="I", help="operations for each byte (FLOP/byte)")
    lab.add_argument("--bandwidth", metavar="B", help="GB/s, or with a prefix: 3.35T")
    lab.add_argument("--peak", metavar="P", help="GFLOP/s, or with a prefix: 989T (default: 1000)")
    lab.add_argument("--walk", nargs="?", const="", metavar="FILE", help="begin with the guided walk; FILE: one of your own")


def _add_files(commands: Commands) -> None:
    replay = _add(commands, "replay", "PATH", "a file, on the screen", f"Show on the screen what a file holds:\n{WHAT}.")
    replay.add_argument("file", type=Path, metavar="PATH", help="a file, or a folder with a file for each rank")
    playing = replay.add_argument_group("playing a recording")
    playing.add_argument(
        "--speed", type=values.speed, metavar="X", default=1.0, help="so many times as fast as it was, or max (default: 1)"
    )
    playing.add_argument("--at", metavar="WHERE", help="begin there: a step's number, 03:12, +30s, 50%%")
    playing.add_argument("--paused", action="store_true", help="begin with the time standing still")

    report = _add(commands, "report", "PATH", "a file, as a report", f"Report on what a file holds:\n{WHAT}.")
    report.add_argument("file", type=Path, nargs="?", metavar="PATH", help="a file, or a folder with a file for each rank")
    report.add_argument("--schema", action="store_true", help="print the JSON Schema that every report in JSON obeys")

    compare = _add(commands, "compare", "A B", "two files: what differs, and by what", COMPARE)
    for name in ("a", "b"):
        compare.add_argument(name, type=Path, nargs="?", metavar=name.upper(), help="a file or a folder, as replay takes it")
    compare.add_argument("--phase", metavar="NAME", help="compare that phase of each alone (tuimon record --phases)")
    compare.add_argument("--seed", type=int, default=20, metavar="N", help="of the bootstrap (default: %(default)s)")
    compare.add_argument("--schema", action="store_true", help="print the JSON Schema that every comparison in JSON obeys")

    export = _add(commands, "export", "PATH --to FORM -o FILE", "a file, as a Perfetto trace or as CSV", EXPORT)
    export.add_argument("file", type=Path, metavar="PATH", help="a file or a folder, as replay takes it")
    export.add_argument(
        "--to",
        choices=("perfetto", "csv"),
        required=True,
        help="a trace of Perfetto and Chrome, or a table of values over time",
    )


def _add_looking(commands: Commands) -> None:
    listing = _add(commands, "list", "[HOST]", "the PyTorch processes here, and whether tuimon can attach")
    listing.add_argument("place", nargs="?", metavar="HOST", help="ssh://[user@]host[:port]: those of another machine")
    listing.add_argument("--pids", action="store_true", help="only the numbers of those that can be attached to, one a line")
    groups.add_far(listing)

    doctor = _add(commands, "doctor", "[PID]", "what works here, or with one process, and what does not")
    doctor.add_argument("pid", type=values.pid, nargs="?", metavar="PID", help="of this process, in place of the machine")


def _add_calibrate(commands: Commands) -> None:
    calibrate = _add(commands, "calibrate", "", "measure this machine's ceilings, for the roofline", CALIBRATE)
    calibrate.add_argument("--show", action="store_true", help="measure nothing: what is kept")
    calibrate.add_argument("--threads", type=values.count, metavar="N", help="of a CPU (default: 1, and torch's own number)")
    calibrate.add_argument("--python", metavar="PATH", help="one that has torch (default: tuimon's own, or a running job's)")
    calibrate.add_argument("--device", metavar="NAME", help="cpu or cuda:N (default: the CPU and every GPU)")


def _add_about_itself(commands: Commands) -> None:
    themes = _add(commands, "themes", "[--check FILE]", "the colours there are, and whether a file of yours is one")
    themes.add_argument("--check", type=Path, metavar="FILE", help="say whether it can be used as a theme, and if not why")

    completion = _add(commands, "completion", "SHELL", "what your shell needs to complete commands by tab", COMPLETION)
    completion.add_argument("shell", choices=values.SHELLS, metavar="SHELL", help=", ".join(values.SHELLS))

    helping = _add(commands, "help", "[WORD]", "on a command, on the options of all, on the settings", overview.HELP)
    helping.add_argument("about", nargs="?", metavar="WORD", help="a command, or `options`, or `settings`")
