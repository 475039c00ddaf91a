"""`tuimon lab`: the roofline lab on a screen; without one, the formula and the numbers of one question."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tuimon.commands.options import DONE, FAILED, USAGE, Options, deliver, say
from tuimon.lab import state
from tuimon.lab.numbers import BANDWIDTH, INTENSITY, PEAK, NumberError, parse, write
from tuimon.lab.state import Lab
from tuimon.lab.walk import WalkError, load_walk

SCHEMA = "tuimon.lab/1"

HYPOTHETICAL = "hypothetical: nothing runs and nothing is measured"


def run(args: argparse.Namespace, options: Options) -> int:
    """Show the lab, or print the numbers. Gives the exit status: 2 where there is neither a terminal nor a question."""
    try:
        intensity, bandwidth, peak = (
            parse(text, quantity) if text is not None else None
            for text, quantity in ((args.intensity, INTENSITY), (args.bandwidth, BANDWIDTH), (args.peak, PEAK))
        )
    except NumberError as error:
        say(str(error))
        return USAGE
    lab = Lab(intensity, bandwidth, peak if peak is not None else state.DEFAULT_PEAK)
    walk = Path(args.walk) if args.walk else None
    if args.walk is not None:
        try:
            load_walk(walk)  # said before there is a screen
        except WalkError as error:
            say(str(error))
            return FAILED
    if options.screen and options.output is None:
        from tuimon.app.lab.app import run as show

        return show(
            lab,
            theme=options.theme,
            ascii=options.ascii,
            no_color=options.no_color,
            mouse=options.mouse,
            background=options.background,
            clipboard=options.clipboard,
            problems=options.problems,
            walk=walk,
            walking=args.walk is not None,
        )
    if not lab.set:
        say("without a screen, say what is asked: tuimon lab --intensity 8 --bandwidth 80 [--peak 1000]")
        return USAGE
    if options.format == "json":
        from tuimon.report.render import to_json

        return deliver(to_json(facts(lab)), options.output)
    return deliver("".join(f"{line}\n" for line in lines(lab, options.format == "md")), options.output) or DONE


def facts(lab: Lab) -> dict[str, Any]:
    """The question, its ceiling and the trace as plain values: FLOP/byte, bytes/s, FLOP/s."""
    assert lab.intensity is not None
    return {
        "schema": SCHEMA,
        "how": "declared",
        "note": HYPOTHETICAL,
        "intensity": lab.intensity,
        "bandwidth": lab.bandwidth,
        "peak": lab.peak,
        "ridge": state.ridge(lab),
        "ceiling": state.ceiling(lab),
        "limit": state.limit(lab, lab.intensity),
        "formula": state.formula(lab),
        "trace": [{"intensity": intensity, "roof": roof} for intensity, roof in state.track(lab)],
    }


def lines(lab: Lab, markdown: bool = False) -> list[str]:
    """The same for people."""
    intensity, bandwidth, ridge = lab.intensity, lab.bandwidth, state.ridge(lab)
    assert intensity is not None and bandwidth is not None and ridge is not None
    told = [
        ("intensity I", write(intensity, INTENSITY, 6)),
        ("bandwidth B", write(bandwidth, BANDWIDTH, 6)),
        ("peak", write(lab.peak, PEAK, 6)),
        ("ridge peak / B", write(ridge, INTENSITY, 6)),
        ("ceiling", f"{state.formula(lab)}: {state.limit(lab, intensity)}"),
    ]
    trace = [(write(at, INTENSITY, 6), write(roof, PEAK), state.limit(lab, at)) for at, roof in state.track(lab)]
    closing = "A ceiling is the most that is possible, no achieved rate; a higher one is no time saved."
    if markdown:
        return [
            "# tuimon lab",
            "",
            f"**{HYPOTHETICAL}**",
            "",
            *(f"- {name}: {value}" for name, value in told),
            "",
            "| I | roof | limit |",
            "| --- | --- | --- |",
            *(f"| {' | '.join(row)} |" for row in trace),
            "",
            closing,
        ]
    return [
        HYPOTHETICAL,
        "",
        *(f"{name:<16}{value}" for name, value in told),
        "",
        "the trace of the roof",
        *(f"  {at:>20}  {roof:>16}  {limit}" for at, roof, limit in trace),
        "",
        closing,
    ]
