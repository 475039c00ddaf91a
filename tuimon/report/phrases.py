"""The phrases that the text and the Markdown report share: one fact each, cleaned of what a terminal would act on."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from typing import Any

from tuimon.draw.format import count, duration, per_step, percent, size, spread
from tuimon.draw.text import clean
from tuimon.model.identity import plain_function
from tuimon.model.reading import guard_of
from tuimon.model.slow.rule import LEAST

Facts = dict[str, Any]

WHEN = "%Y-%m-%d %H:%M:%S UTC"
MOST_GUARDS = 3
"""So many guards of one recompile are told; the JSON form has them all."""
MOST_NAMES = 4
"""So many things that are not known for one reason are named; the JSON form has them all."""


HOWS = {"run": "started by tuimon", "injected": "attached while it ran", "file": "from a file"}
NOT_IN_FILE = "not in this file"


def not_in_file(report: Facts, what: str) -> str:
    """Why a part of the report is not known, where that is for the kind of file that it was made of; else empty."""
    rows = (row for row in report["coverage"]["not_available"] if row["what"] == what)
    return next((clean(row["why"]) for row in rows if row["why"].startswith(NOT_IN_FILE)), "")


def place(file: str | None, line: int | str | None) -> str:
    """`model.py:41`."""
    return clean(f"{os.path.basename(file or '') or '?'}:{line or '?'}")


def many(number: int | None, one: str, more: str | None = None) -> str:
    """`1 step`, `60 steps`, `- steps`."""
    return f"{count(number)} {one if number == 1 else more or one + 's'}"


def population(found: Facts) -> str:
    """`312 us [290-355 us] (n 57)`, or `none`."""
    if found["n"] is None:
        return NOT_IN_FILE
    if not found["n"]:
        return "none"
    if found["n"] == 1:
        return f"{duration(found['median'])} (n 1)"
    return f"{duration(found['median'])} {spread(found['p10'], found['p90'])} (n {count(found['n'])})"


def target_lines(target: Facts) -> list[str]:
    """Who was watched, and what became of it."""
    facts = [
        f"pid {target['pid']}" if target["pid"] is not None else None,
        f"Python {target['python']}" if target["python"] else None,
        f"torch {target['torch']}" if target["torch"] else "" if target["how"] == "file" else "torch not imported",
        ", ".join(target["devices"]) or None,
        HOWS.get(target["how"], target["how"]) or None,
    ]
    lines = [", ".join(clean(fact) for fact in facts if fact)]
    if target["steps_before_attach"]:
        lines.append(f"{many(target['steps_before_attach'], 'step')} before the attach")
    ended = target["ended"]
    lines.append(clean(ended["detail"]) if ended else "still running when this was written")
    return lines


def step_line(steps: Facts) -> str:
    """`60 steps (from the optimizer): 12.1 ms [11-14 ms]; 57 without a compilation in them`."""
    if steps["source"] is None:
        return "no step seen while tuimon watched"
    source = {"optimizer": "from the optimizer", "marked": "marked by the job", "inferred": "inferred"}[steps["source"]]
    times = ""
    if steps["median"] is not None:
        times = f": {duration(steps['median'])} {spread(steps['p10'], steps['p90'])}"
    slow = f", {count(steps['slow'])} slow" if steps["slow"] else ""
    known = steps["without_compilation"] is not None
    plain = f"; {count(steps['without_compilation'])} without a compilation in them" if known else ""
    return f"{many(steps['n'], 'step')} ({source}){times}{plain}{slow}"


def how_line(steps: Facts) -> str:
    """In what way steps are told apart, where there is more to say of it than their source; empty where there is not."""
    return clean(f"steps are told by: {steps['how']}") if steps["how"] else ""


def compiling_line(report: Facts) -> str:
    """That a trace has compilations in it which its steps do not tell apart; empty where it has none."""
    rows = (row["why"] for row in report["coverage"]["not_available"] if row["what"] == "steps.compile")
    return next((clean(why) for why in rows), "")


def breakdown_line(steps: Facts) -> str:
    """`a steady step: forward regions 8.1 ms (61%), other python 2.0 ms (15%), ..`; empty where it is not known.

    Where it is not told in which steps there was a compilation, none is called steady.
    """
    parts = steps["breakdown_mean"]
    total = sum(parts.values()) if parts else 0.0
    if not parts or total <= 0:
        return ""
    ordered = sorted((one for one in parts.items() if one[1] >= 0.001 * total), key=lambda one: -one[1])
    which = "a step" if steps["without_compilation"] is None else "a steady step"
    return f"{which}, on average: " + ", ".join(
        f"{name} {duration(value)} ({percent(value / total)})" for name, value in ordered
    )


def none_slow(steps: Facts) -> str:
    """What there is to say where no step was found slow."""
    return f"none seen: of fewer than {LEAST} steps none is judged" if steps["n"] < LEAST else "none seen"


def slow_title(slow: Facts) -> str:
    """The sentence for a ticket, with the time at which the step began: its number is counted from the attach."""
    told = clean(slow["sentence"])
    at = slow["at"]
    return told if at is None else told.replace(" took ", f", {datetime.fromtimestamp(at, timezone.utc):{WHEN}}, took ", 1)


def slow_evidence(slow: Facts) -> list[str]:
    """The numbers behind it, and where each was read."""
    return [clean(line) for line in slow["evidence"]]


def trend_lines(trends: Facts) -> list[str]:
    """A sentence for each thing that changes slowly or comes again and again."""
    lines = []
    slower, kinds = trends["slower"], trends["two_kinds"]
    if slower is not None:
        lines.append(
            f"steps have become {percent(slower['by'])} slower ({duration(slower['before'])} to {duration(slower['now'])} over "
            f"{many(slower['steps'], 'step')}); {slower['grew']} grew most, by {duration(slower['grew_by'])}"
        )
    eager = trends.get("more_eager")
    if eager is not None:
        lines.append(f"more and more calls run in eager: {percent(eager['before'])} at first, {percent(eager['now'])} now")
    for one in trends["periodic"]:
        lines.append(f"{one['cause']}: a slow step every {one['every']} steps, {one['n']} so far, {duration(one['lost'])} lost")
    if kinds is not None:
        lines.append(
            f"steps are of two kinds: {percent(1 - kinds['share'])} take {duration(kinds['fast'])}, {percent(kinds['share'])} "
            f"take {duration(kinds['slow'])} (median)"
        )
    return lines


def finding_title(finding: Facts) -> str:
    """`model.py:41  the boundary in forward takes 12% of a step (cost so far 3.2 s)`."""
    where, _, line = finding["where"].rpartition(":")
    cost = "" if finding["cost"] is None else f" (cost so far {duration(finding['cost'])})"
    at = f"{place(where, line)}  " if where else ""
    return f"{at}{clean(finding['title'])}{cost}"


def boundary_title(boundary: Facts) -> str:
    """`model.py:41  Tensor.item()`."""
    asked = " (asked for)" if boundary["requested"] else ""
    return (
        f"{place(boundary['user_file'], boundary['user_line'])}  {clean(boundary['kind'] or boundary['reason'] or '?')}{asked}"
    )


def boundary_facts(boundary: Facts) -> list[str]:
    """What the boundary costs, and what is known of it."""
    facts = [f"in {clean(boundary['function'] or '?')}"]
    if boundary["skipped_frame"]:
        facts.append("the whole function runs in eager: Dynamo cannot resume behind this line")
        if boundary["also"]:
            facts.append(f"because of: {clean(boundary['also'])}")
    if boundary["crossings"] is None:
        facts.append("crossings not known" if boundary["host"]["n"] is not None else f"crossings {NOT_IN_FILE}")
    else:
        step = "" if boundary["per_step"] is None else f" ({per_step(boundary['per_step'])} a step)"
        facts.append(f"{many(boundary['crossings'], 'crossing')}{step}")
        if not boundary["skipped_frame"]:
            facts.append(
                f"host {population(boundary['host'])}, total {duration(boundary['host']['total'])}"
                if boundary["host"]["n"]
                else "host time not known"
            )
    if boundary["share_of_step"] is not None:
        facts.append(f"{percent(boundary['share_of_step'])} of a step")
    if boundary["reads_host"]:
        facts.append("reads a value on the host")
    facts.append(f"sync: {boundary['sync']}")
    if boundary["breaks"] > 1:
        facts.append(f"decided in {boundary['breaks']} compilations")
    if boundary["before_attach"]:
        facts.append("from before the attach")
    if boundary["accepted"] is not None:
        facts.append(f"accepted: {clean(boundary['accepted'])}")
    return facts


def recompile_title(recompile: Facts, limits: dict[str, Facts]) -> str:
    """`forward [0/1]  model.py:12, 2 of 8 entries used`."""
    frame = limits.get(recompile["frame"])
    used = ""
    if frame is not None and frame["limit"] is not None:
        used = f", {recompile['entry'] or frame['entries']} of {frame['limit']} entries used"
    refused = "REFUSED by the recompile limit: " if recompile["refused"] else ""
    name = f"{shown(recompile)} [{clean(recompile['compile_id'])}]"
    return f"{refused}{name}  {place(recompile['file'], recompile['line'])}{used}"


def recompile_facts(recompile: Facts) -> list[str]:
    """What it cost and when it was."""
    facts = []
    if not recompile["refused"]:
        facts.append(f"cost {compile_time(recompile['compile_s'])}")
    if recompile["step"] is not None:
        facts.append(f"in step {recompile['step']}")
    if recompile["before_attach"]:
        facts.append("from before the attach")
    return facts


def reading_lines(recompile: Facts) -> list[str]:
    """What changed, in a person's words, and what usually helps. Nothing where the guard's own text is all there is."""
    if recompile["kind"] == "unknown":
        return []
    return [clean(line) for line in (recompile["changed"], recompile["advice"]) if line]


def guard_lines(recompile: Facts) -> list[str]:
    """Why each cache entry did not fit: `0/0: tensor 'x' size mismatch ..`. Entries with one guard share a line, and only the
    newest few are told: those behind them failed in the same way, at an older value."""
    by_guard: dict[str, list[str]] = {}
    for failed in recompile["failed"]:
        by_guard.setdefault(guard_of(failed["guard"]), []).append(failed["entry"])
    lines = [clean(f"{', '.join(filter(None, entries))}: {guard}".lstrip(": ")) for guard, entries in by_guard.items()]
    more = len(lines) - MOST_GUARDS
    return lines if more <= 0 else [*lines[:MOST_GUARDS], f"and {many(more, 'older entry', 'older entries')}"]


def gap_lines(gaps: list[Facts]) -> list[str]:
    """What is not known, each reason once: `frames[0:0].calls, frames[0:1].calls: their calls pass no timer`."""
    by_why: dict[str, list[str]] = {}
    for gap in gaps:
        by_why.setdefault(clean(gap["why"]), []).append(clean(gap["what"]))
    lines = []
    for why, whats in by_why.items():
        # what is said of all frames need not be said of each
        whole = {what for what in whats if "[" not in what}
        whats = [what for what in whats if "[" not in what or _of_all(what) not in whole]
        more = f" and {len(whats) - MOST_NAMES} more" if len(whats) > MOST_NAMES else ""
        lines.append(f"{', '.join(whats[:MOST_NAMES])}{more}: {why}")
    return lines


def _of_all(what: str) -> str:
    """`frames.calls` of `frames[0:1].calls`."""
    return f"{what.partition('[')[0]}{what.rpartition(']')[2]}"


def compile_time(seconds: Facts) -> str:
    """`4.58 s (dynamo 0.29 s, inductor 0.57 s, ..)`."""
    parts = [f"{name} {duration(value)}" for name, value in seconds.items() if name != "total" and value]
    return duration(seconds["total"]) + (f" ({', '.join(parts)})" if parts else "")


def fallen(frame: Facts) -> str:
    """`encode  model.py:9: 20 of 60 calls (33%) ran in eager; 0/8 was refused: ..`."""
    share = ""
    if frame["eager_share"] is not None:
        share = (
            f"{count(frame['eager_calls'])} of {many(frame['calls'], 'call')} ({percent(frame['eager_share'])}) ran in eager; "
        )
    elif frame["eager_calls"] is not None:
        share = f"{many(frame['eager_calls'], 'call')} ran in eager; "
    return f"{shown(frame)}  {place(frame['file'], frame['line'])}: {share}{clean(frame['why'])}"


def warm_line(warmup: Facts, steps: Facts) -> str:
    """`warm-up over after 14 steps; memory 512 MB at first, 900 MB then, 910 MB now`; empty where there is nothing to say."""
    told = []
    if warmup["over"]:
        told.append(f"warm-up over after {many(warmup['steps'], 'step')}")
    elif warmup["over"] is not None and steps["source"] is not None:
        told.append("warm-up not over")
    memory = warmup["memory"]
    if memory is not None:
        then = "" if memory["rss_over"] is None else f", {size(memory['rss_over'])} when the warm-up was over"
        told.append(f"resident memory {size(memory['rss_first'])} at first{then}, {size(memory['rss_last'])} at last")
    return "; ".join(told)


def region_title(region: Facts) -> str:
    """`forward model.py:12 [0/0] forward, inductor`."""
    again = f" after reset {region['generation']}" if region["generation"] else ""
    backend = f", {clean(region['backend'])}" if region["backend"] else ""
    name = f"{shown(region)} {place(region['file'], region['line'])}" if region["file"] else shown(region)
    return f"{name} [{clean(region['compile_id'])}{again}] {region['direction']}{backend}"


def region_facts(region: Facts) -> list[str]:
    """The three populations, never mixed."""
    if region["calls"] is None:
        return [f"calls {NOT_IN_FILE}", *([f"{count(region['ops'])} operations"] if region["ops"] is not None else [])]
    facts = [many(region["calls"], "call"), f"initial {population(region['initial'])}"]
    facts.append(f"steady {population(region['steady'])}")
    if region["after_guard_change"]["n"]:
        facts.append(f"after guard change {population(region['after_guard_change'])}")
    if region["share_of_step"] is not None:
        facts.append(f"{percent(region['share_of_step'])} of a step")
    return facts


def shown(named: Facts) -> str:
    """What to call a frame: the user's name for it if there is one; a resume function by the function that it goes on with."""
    if named.get("display"):
        return clean(named["display"])
    plain = plain_function(named["function"])
    return clean(plain if plain == named["function"] else f"{plain} from line {named['line']} on")


def cache_line(report: Facts) -> str:
    """`fx_graph 3 hits, 5 misses; aot_autograd ..`, or a sentence that says that none was asked."""
    caches = report["warmup"]["caches"]
    told = []
    for name, counts in caches.items():
        words = [f"{counts[result]} {result}" for result in ("hit", "miss", "bypass") if counts and counts[result]]
        if words:
            told.append(f"{name} {', '.join(words)}")
    if not told and all(counts is None for counts in caches.values()):
        return not_in_file(report, "warmup.caches") or "not known for what was compiled before the attach"
    return "; ".join(told) or "no artifact cache was asked"


def watching_line(coverage: Facts) -> str:
    """What watching cost the job, and whether all of it was seen; empty where nobody watched."""
    if coverage["samples"] is None:
        return ""
    return (
        f"{many(coverage['samples'], 'sample')}, {coverage['dropped']} dropped; "
        f"the hook took {duration(coverage['hook_s'])} of the job's time"
    )


RANK_TITLES = ("rank", "state", "pid", "steps", "median", "[p10-p90]", "compile", "breaks", "recompiles")


def rank_cells(row: Facts) -> list[str]:
    """What stands under RANK_TITLES for one of several processes, and, behind that, its host where it is another one."""
    steps = row["step"] or {"n": None, "median": None, "p10": None, "p90": None}
    name = str(row["rank"]) if row["rank"] is not None else row["label"]
    found = [name, row["state"], str(row["pid"] or "-"), count(steps["n"]), duration(steps["median"])]
    found += [spread(steps["p10"], steps["p90"]), duration(row["compile_s"]), count(row["breaks"]), count(row["recompiles"])]
    return [clean(cell) for cell in [*found, *([row["host"]] if row["host"] else [])]]


def rank_lines(rows: list[Facts], verdicts: list[str]) -> list[str]:
    """Who is late and who waits: the verdicts, then a line for each rank of a few, and of many for those that stand out."""
    lines = [clean(verdict) for verdict in verdicts]
    told = [row for row in rows if row["lateness"] is not None]
    if len(told) > MOST_RANKS:
        told = sorted(told, key=lambda row: (-row["late_in"], -row["lateness"]["median"]))[:MOST_RANKS]
    for row in told:
        late, skew = row["lateness"], row["compile_skew"]
        facts = [f"{duration(late['median'])} after the first (median; p90 {duration(late['p90'])})"]
        if row["slow_compared"]:
            facts.append(f"late in {count(row['late_in'])} of {many(row['slow_compared'], 'slow step')}")
        if row["waits_for"] is not None:
            facts.append(f"waited {duration(row['waited'])} for rank {row['waits_for']}")
        if skew["n"]:
            facts.append(f"compiled {duration(skew['total'])} longer than those who waited for it")
        lines.append(clean(f"{_rank_name(row)}: {', '.join(facts)}"))
    return lines


MOST_RANKS = 8
"""Of so many ranks each has a line on its lateness; of more, those that stand out."""


def _rank_name(row: Facts) -> str:
    return f"rank {row['rank']}" if row["rank"] is not None else str(row["label"])


def rank_whys(rows: list[Facts]) -> list[str]:
    """A sentence for each process that is not attached (any more): what came in between."""
    fine = ("attached", "detached", "read")
    return [clean(f"{row['label']}: {row['why']}") for row in rows if row["state"] not in fine and row["why"]]
