"""The report as text, for a terminal or a ticket: 80 columns, most important first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tuimon.draw.text import cells, clean, cut, pad, wrap
from tuimon.report import machine, phases, phrases, roofline, spans
from tuimon.report.ranks import named

WIDTH = 80
MOST = 20
"""So many boundaries, recompiles and regions are listed; the JSON form has them all."""


def text(report: dict[str, Any]) -> str:
    """`report` (from `build`) as lines of at most 80 cells."""
    limits = {frame["key"]: frame for frame in report["frames"]}
    lines = _wrapped(f"tuimon report: {clean(report['target']['command']) or 'unknown command'}", "")
    for line in phrases.target_lines(report["target"]):
        lines += _wrapped(line)
    lines += _wrapped(f"rule: {report['aggregation']['rule']}")
    heading, word, rows = named(report["ranks"] or [])
    lines += _section(
        f"{heading} (the rest of this report is about the first one)", _ranks(word, rows, report["ranks_verdict"] or [])
    )
    lines += _section("Look at first", _findings(report["findings"]))
    lines += _section("Steps", _steps(report))
    lines += _section("Phases", _each(phases.phase_lines(report["phases"])))
    lines += _section("Slow steps", _slow(report))
    lines += _section("Graph breaks and the boundaries they leave, most costly first", _boundaries(report))
    lines += _section("Recompiles", _recompiles(report, limits))
    lines += _section("Frames that fell back to eager", _fallen(report["frames"]))
    regions = "Regions" if phrases.not_in_file(report, "regions.calls") else "Regions, most time first"
    lines += _section(regions, _regions(report["regions"], report["target"]["how"] == "file"))
    lines += _section("Roofline", _roofline(report["roofline"]))
    lines += _section("Waits, cache lookups and gaps between regions", _each(spans.lines(report["spans"])))
    lines += _section("Compile time", _compile(report))
    lines += _section("Machine", _machine(report))
    lines += _section("Recording", _each(phases.recording_lines(report["recording"])))
    watching = phrases.watching_line(report["coverage"])
    lines += _section("Watching", _wrapped(watching) if watching else [])
    lines += _section("Not known", _gaps(report["coverage"]["not_available"]))
    return "\n".join(lines) + "\n"


def _section(title: str, lines: list[str]) -> list[str]:
    return ["", title, *lines] if lines else []


def _wrapped(line: str, indent: str = "  ", hang: str = "") -> list[str]:
    """A line in as many lines as it takes; those after the first are set in by `hang` more."""
    first, *rest = wrap(line, WIDTH - len(indent) - len(hang))
    return [indent + first, *(indent + hang + piece for piece in rest)]


def _each(told: Iterable[str]) -> list[str]:
    return [piece for line in told for piece in _wrapped(line, "  ", "  ")]


def _nothing(report: dict[str, Any], what: str, seen: str) -> list[str]:
    """Nothing was seen; or this kind of file does not tell it, which is something else."""
    return _wrapped(phrases.not_in_file(report, what) or seen, "  ", "  ")


def _facts(facts: Iterable[str], indent: str) -> list[str]:
    return _wrapped("; ".join(facts), indent)


def _rest(number: int) -> list[str]:
    return [f"  and {number - MOST} more: --format json has them all"] if number > MOST else []


def _ranks(word: str, rows: list[dict[str, Any]], verdicts: list[str]) -> list[str]:
    if not rows:
        return []
    table = [[word, *phrases.RANK_TITLES[1:]], *(phrases.rank_cells(row) for row in rows)]
    sizes = [max(cells(row[at]) for row in table) for at in range(len(phrases.RANK_TITLES))]
    lines = []
    for row in table:
        texts = [pad(cell, size, right=at >= 2) for at, (cell, size) in enumerate(zip(row, sizes, strict=False))]
        lines.append(cut("  " + " ".join([*texts, *row[len(sizes) :]]).rstrip(), WIDTH, "~"))
    for line in phrases.rank_lines(rows, verdicts):
        lines += _wrapped(line, "  ", "  ")
    for why in phrases.rank_whys(rows):
        lines += _wrapped(why, "  ", "  ")
    return lines


def _findings(findings: list[dict[str, Any]]) -> list[str]:
    lines = []
    for number, finding in enumerate(findings, 1):
        lines += _wrapped(f"{number}. {phrases.finding_title(finding)}", "  ", "   ")
        for evidence in finding["evidence"]:
            lines += _wrapped(f"- {clean(evidence)}", "     ", "  ")
        lines += _wrapped(f"next: {clean(finding['next_step'])}", "     ", "  ")
    return lines or ["  nothing: no boundary, recompile or fall-back that stands out"]


def _steps(report: dict[str, Any]) -> list[str]:
    steps = report["steps"]
    missing = phrases.not_in_file(report, "steps.source")
    first = f"steps: {missing}" if missing else phrases.step_line(steps)
    lines = [first, phrases.how_line(steps), phrases.breakdown_line(steps), phrases.compiling_line(report)]
    return [piece for line in [*lines, *phrases.trend_lines(report["trends"])] if line for piece in _wrapped(line, "  ", "  ")]


def _slow(report: dict[str, Any]) -> list[str]:
    slow = report["slow_steps"]
    if slow is None:
        return []  # the section on steps says that there are none
    if not slow:
        return [f"  {phrases.none_slow(report['steps'])}"]
    lines = _wrapped(report["aggregation"]["slow_steps"], "  ", "  ")
    for one in slow[-MOST:]:
        lines += _wrapped(phrases.slow_title(one), "  ", "  ")
        for evidence in phrases.slow_evidence(one):
            lines += _wrapped(f"- {evidence}", "    ", "  ")
    return lines + ([f"  and {len(slow) - MOST} before these: --format json has them all"] if len(slow) > MOST else [])


def _boundaries(report: dict[str, Any]) -> list[str]:
    boundaries, lines = report["boundaries"], []
    for boundary in boundaries[:MOST]:
        lines += _wrapped(phrases.boundary_title(boundary), "  ", "  ")
        lines += _facts(phrases.boundary_facts(boundary), "    ")
    return [*lines, *_rest(len(boundaries))] or _nothing(report, "boundaries", "no graph break seen")


def _recompiles(report: dict[str, Any], limits: dict[str, dict[str, Any]]) -> list[str]:
    recompiles, lines = report["recompiles"], []
    for recompile in recompiles[:MOST]:
        lines += _wrapped(phrases.recompile_title(recompile, limits), "  ", "  ")
        facts = phrases.recompile_facts(recompile)
        if facts:
            lines += _facts(facts, "    ")
        for line in phrases.reading_lines(recompile):
            lines += _wrapped(line, "    ", "  ")
        for guard in phrases.guard_lines(recompile):
            lines += _wrapped(guard if guard.startswith("and ") else f"failed {guard}", "    ", "  ")
    return [*lines, *_rest(len(recompiles))] or _nothing(report, "recompiles", "none seen")


def _fallen(frames: list[dict[str, Any]]) -> list[str]:
    lines = []
    for frame in frames:
        if frame["fell_back"]:
            lines += _wrapped(phrases.fallen(frame), "  ", "  ")
    return lines


def _regions(regions: list[dict[str, Any]], of_file: bool) -> list[str]:
    lines = []
    for region in regions[:MOST]:
        lines += _wrapped(phrases.region_title(region), "  ", "  ")
        lines += _facts(phrases.region_facts(region), "    ")
    nothing = "no compiled graph in this file" if of_file else "no compiled graph has been called while tuimon watched"
    return [*lines, *_rest(len(regions))] or [f"  {nothing}"]


def _roofline(found: dict[str, Any]) -> list[str]:
    lines = [piece for line in roofline.lines_before(found) for piece in _wrapped(line, "  ", "  ")]
    points = found["points"][: roofline.MOST_POINTS]
    if points or found["process"]:
        table = [list(roofline.TITLES), *(roofline.cells(point) for point in points)]
        table += [roofline.cells(found["process"])] if found["process"] else []
        sizes = [max(cells(row[at]) for row in table) for at in range(len(roofline.TITLES) - 1)]
        for row in table:
            texts = [pad(cell, size, right=at < 5) for at, (cell, size) in enumerate(zip(row, sizes, strict=False))]
            lines.append(cut("  " + " ".join([*texts, row[-1]]).rstrip(), WIDTH, "~"))
        lines += _rest(len(found["points"]))
    for line in roofline.lines_behind(found):
        lines += _wrapped(line, "  ", "  ")
    return lines


def _compile(report: dict[str, Any]) -> list[str]:
    warmup, compilations = report["warmup"], len(report["compiles"])
    if not compilations:
        return _nothing(report, "compiles", "no compilation seen")
    warm = phrases.warm_line(warmup, report["steps"])
    total = phrases.compile_time(warmup["compile_s"])
    lines = _wrapped(f"{phrases.many(compilations, 'compilation')}, {total}", "  ", "  ")
    lines += _wrapped(f"caches: {phrases.cache_line(report)}", "  ", "  ")
    return lines + (_wrapped(warm, "  ", "  ") if warm else [])


def _machine(report: dict[str, Any]) -> list[str]:
    lines = []
    for head, facts in [machine.host(report["host"]), *(machine.gpu(gpu) for gpu in report["gpu"] or ())]:
        lines += _wrapped(head, "  ", "  ")
        for fact in facts:
            lines += _wrapped(fact, "    ", "  ")
    return lines


def _gaps(gaps: list[dict[str, str]]) -> list[str]:
    lines = []
    for line in phrases.gap_lines(gaps):
        lines += _wrapped(line, "  ", "  ")
    return lines
