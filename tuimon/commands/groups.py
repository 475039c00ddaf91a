"""Groups of options that several commands share."""

from __future__ import annotations

import argparse
from pathlib import Path

from tuimon.commands import values
from tuimon.commands.overview import COMMON, OUTPUT
from tuimon.config import BY_NAME


def add_common(parser: argparse.ArgumentParser, output: str = OUTPUT, *, inner: bool = False) -> None:
    """What every command takes; `output`: what -o is there. `inner`: of a command, which must not set back what stood before
    it on the command line."""
    unset = argparse.SUPPRESS if inner else None
    group = parser.add_argument_group(COMMON, argument_default=unset)
    group.add_argument("--headless", action="store_true", help="no screen, a report at the end (default without a terminal)")
    group.add_argument("--duration", type=values.seconds, metavar="S", help="without a screen: watch for S seconds")
    group.add_argument("--steps", type=values.count, metavar="N", help="without a screen: watch for N steps")
    group.add_argument("--format", choices=("text", "json", "md"), help="of the report (default: text)")
    group.add_argument("-o", "--output", type=Path, metavar="FILE", help=output)
    group.add_argument("--interval", type=values.seconds, metavar="S", help=BY_NAME["interval"].help)
    group.add_argument("--theme", metavar="NAME", help=BY_NAME["theme"].help)
    group.add_argument("--background", choices=BY_NAME["background"].choices, help=BY_NAME["background"].help)
    group.add_argument("--color", choices=BY_NAME["color"].choices, help=BY_NAME["color"].help)
    group.add_argument("--no-color", action="store_const", dest="color", const="none", help="the same as --color none")
    _on_or_off(group, "--ascii", BY_NAME["ascii"].help)
    _on_or_off(group, "--mouse", "the mouse on the screen, or not (default: not over SSH)")
    _on_or_off(group, "--clipboard", f"{BY_NAME['clipboard'].help}, or not")
    group.add_argument("--ceilings", type=Path, metavar="FILE", help=BY_NAME["ceilings"].help)


def _on_or_off(group: argparse._ArgumentGroup, flag: str, meaning: str) -> None:
    group.add_argument(flag, action=argparse.BooleanOptionalAction, help=meaning, default=group.argument_default)


def add_targets(parser: argparse.ArgumentParser) -> None:
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


def add_nodes(parser: argparse.ArgumentParser) -> None:
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


def add_prometheus(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--prometheus",
        type=values.prom,
        metavar="FILE.prom",
        help="without a screen: keep the latest of everything in this file, for a node exporter's textfile folder (written "
        "every --interval, default 15 s)",
    )


def add_steps(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("steps")
    group.add_argument(
        "--step",
        type=values.function,
        metavar="MODULE:FUNCTION",
        help="a step begins with each call of it, e.g. train:train_step (default: found out; tuimon.step() in code marks too)",
    )
    group.add_argument(
        "--stacks",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="look at the job's stack where nothing else tells what it does, or never",
    )


def add_slow(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("slow steps")
    group.add_argument(
        "--slow-over",
        type=values.milliseconds,
        metavar="MS",
        help="a slow step takes at least MS milliseconds longer than the usual one (default: 10; the whole rule: ? on screen)",
    )


def add_gpus(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("GPUs (docs/gpu.md)")
    group.add_argument(
        "--pcie",
        action="store_true",
        help="read PCIe traffic also where the driver takes 20 ms for each reading (Hopper and newer tell it without)",
    )


def add_far(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("other hosts and containers")
    group.add_argument("--via", metavar="CMD", help="a command that runs tuimon over there, e.g. 'kubectl exec -i POD --'")
    group.add_argument(
        "--send", action="store_true", help="where there is no tuimon over there, send it along (kept in memory, or removed)"
    )
