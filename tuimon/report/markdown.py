"""The report as Markdown, to be pasted into a ticket."""

from __future__ import annotations

from typing import Any

from tuimon.report import machine, phases, phrases, roofline, spans
from tuimon.report.environment import environment_lines
from tuimon.report.markup import plain, table_row
from tuimon.report.ranks import named

MOST = 20


def markdown(report: dict[str, Any]) -> str:
    """`report` (from `build`) as Markdown. What comes from the job is in it as text, never as markup."""
    limits = {frame["key"]: frame for frame in report["frames"]}
    lines = [f"# tuimon report: {plain(report['target']['command']) or 'unknown command'}", ""]
    lines += [f"- {plain(line)}" for line in phrases.target_lines(report["target"])]
    lines += [f"- rule: {plain(report['aggregation']['rule'])}", f"- {plain(_steps(report))}"]
    told = [phrases.how_line(report["steps"]), phrases.breakdown_line(report["steps"]), phrases.compiling_line(report)]
    told += phrases.trend_lines(report["trends"])
    lines += [f"- {plain(line)}" for line in told if line]
    lines += _ranks(report["ranks"] or [], report["ranks_verdict"] or [])
    lines += ["", "## Look at first", "", *_findings(report["findings"])]
    lines += _bullets("Phases", phases.phase_lines(report["phases"]))
    if report["slow_steps"] is not None:
        lines += ["", "## Slow steps", "", *_slow(report)]
    lines += ["", "## Graph breaks and the boundaries they leave", "", *_boundaries(report)]
    lines += ["", "## Recompiles", "", *_recompiles(report, limits)]
    fallen = [f"- {plain(phrases.fallen(f))}" for f in report["frames"] if f["fell_back"]]
    if fallen:
        lines += ["", "## Frames that fell back to eager", "", *fallen]
    lines += ["", "## Regions", "", *_regions(report["regions"], report["target"]["how"] == "file")]
    lines += ["", "## Roofline", "", *_roofline(report["roofline"])]
    lines += _bullets("Waits, cache lookups and gaps between regions", spans.lines(report["spans"]))
    lines += ["", "## Compile time, machine, watching", ""]
    missing = phrases.not_in_file(report, "compiles")
    lines.append(f"- compile time: {plain(missing or phrases.compile_time(report['warmup']['compile_s']))}")
    lines += [] if missing else [f"- caches: {plain(phrases.cache_line(report))}"]
    warm = phrases.warm_line(report["warmup"], report["steps"])
    lines += [f"- {plain(warm)}"] if warm else []
    for head, facts in [machine.host(report["host"]), *(machine.gpu(gpu) for gpu in report["gpu"] or ())]:
        lines += [f"- {plain(head)}", *(f"  - {plain(fact)}" for fact in facts)]
    watching = phrases.watching_line(report["coverage"])
    lines += [f"- {plain(watching)}"] if watching else []
    lines += _bullets("Recording", phases.recording_lines(report["recording"]))
    lines += _bullets("Environment", environment_lines(report))
    lines += _bullets("How numbers were made", [f"{what}: {rule}" for what, rule in report["aggregation"].items()])
    lines += ["", "## Not known", ""]
    lines += [f"- {plain(line)}" for line in phrases.gap_lines(report["coverage"]["not_available"])]
    return "\n".join(lines) + "\n"


def _bullets(title: str, told: list[str]) -> list[str]:
    return ["", f"## {title}", "", *(f"- {plain(line)}" for line in told)] if told else []


def _table(titles: tuple[str, ...], rows: list[str], number: int) -> list[str]:
    head = [table_row(*titles), f"|{' --- |' * len(titles)}"]
    return head + rows + ([f"\nand {number - MOST} more: the JSON form has them all"] if number > MOST else [])


def _ranks(rows: list[dict[str, Any]], verdicts: list[str]) -> list[str]:
    if not rows:
        return []
    hosts = any(row["host"] for row in rows)
    heading, word, rows = named(rows)
    titles = (word, *phrases.RANK_TITLES[1:], *(["host"] if hosts else []))
    table = [[*phrases.rank_cells(row), "-"][: len(titles)] for row in rows]
    lines = ["", f"## {heading}", "", "The rest of this report is about the first one.", ""]
    lines += [table_row(*titles), f"|{' --- |' * len(titles)}", *(table_row(*row) for row in table)]
    whys = [*phrases.rank_lines(rows, verdicts), *phrases.rank_whys(rows)]
    return lines + (["", *(f"- {plain(why)}" for why in whys)] if whys else [])


def _findings(findings: list[dict[str, Any]]) -> list[str]:
    lines = []
    for number, finding in enumerate(findings, 1):
        lines.append(f"{number}. {plain(phrases.finding_title(finding))}")
        lines += [f"   - {plain(evidence)}" for evidence in finding["evidence"]]
        lines.append(f"   - next: {plain(finding['next_step'])}")
    return lines or ["nothing: no boundary, recompile or fall-back that stands out"]


def _slow(report: dict[str, Any]) -> list[str]:
    slow = report["slow_steps"]
    if not slow:
        return [phrases.none_slow(report["steps"])]
    lines = [plain(report["aggregation"]["slow_steps"]), ""]
    for one in slow[-MOST:]:
        lines.append(f"- {plain(phrases.slow_title(one))}")
        lines += [f"  - {plain(evidence)}" for evidence in phrases.slow_evidence(one)]
    return lines + ([f"\nand {len(slow) - MOST} before these: the JSON form has them all"] if len(slow) > MOST else [])


def _nothing(report: dict[str, Any], what: str, seen: str) -> list[str]:
    """Nothing was seen; or this kind of file does not tell it, which is something else."""
    return [plain(phrases.not_in_file(report, what) or seen)]


def _boundaries(report: dict[str, Any]) -> list[str]:
    boundaries = report["boundaries"]
    if not boundaries:
        return _nothing(report, "boundaries", "no graph break seen")
    rows = [table_row(phrases.boundary_title(b), "; ".join(phrases.boundary_facts(b))) for b in boundaries[:MOST]]
    return _table(("boundary", "what is known"), rows, len(boundaries))


def _recompiles(report: dict[str, Any], limits: dict[str, dict[str, Any]]) -> list[str]:
    recompiles = report["recompiles"]
    if not recompiles:
        return _nothing(report, "recompiles", "none seen")
    rows = [
        table_row(
            phrases.recompile_title(r, limits),
            ". What usually helps: ".join(phrases.reading_lines(r)) or "-",
            "; ".join(phrases.guard_lines(r)),
            "; ".join(phrases.recompile_facts(r)),
        )
        for r in recompiles[:MOST]
    ]
    return _table(("frame", "what changed", "guard that failed", "cost"), rows, len(recompiles))


def _steps(report: dict[str, Any]) -> str:
    missing = phrases.not_in_file(report, "steps.source")
    return f"steps: {missing}" if missing else phrases.step_line(report["steps"])


def _regions(regions: list[dict[str, Any]], of_file: bool) -> list[str]:
    if not regions:
        return ["no compiled graph in this file" if of_file else "no compiled graph has been called while tuimon watched"]
    rows = [
        table_row(
            phrases.region_title(r),
            phrases.NOT_IN_FILE if r["calls"] is None else r["calls"],
            phrases.population(r["initial"]),
            phrases.population(r["steady"]),
            phrases.population(r["after_guard_change"]),
        )
        for r in regions[:MOST]
    ]
    return _table(("region", "calls", "initial", "steady", "after guard change"), rows, len(regions))


def _roofline(found: dict[str, Any]) -> list[str]:
    lines = [f"- {plain(line)}" for line in roofline.lines_before(found)]
    points = found["points"][: roofline.MOST_POINTS]
    if points or found["process"]:
        rows = [table_row(*roofline.cells(point)) for point in points]
        rows += [table_row(*roofline.cells(found["process"]))] if found["process"] else []
        lines += ["", *_table(roofline.TITLES, rows, len(found["points"])), ""]
    return lines + [f"- {plain(line)}" for line in roofline.lines_behind(found)]
