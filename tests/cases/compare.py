"""The rules of the comparison: a report against the truth, and nothing else.

The truth of a case is its JSON. After an attach in the middle, what the compiler did is compared in full, for Dynamo keeps it;
what ran is compared as "since the attach": something where the truth says that it runs at each step, never more than it says.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .slowness import slow_ranks, slow_steps, waits_in_python

REQUESTED = ("torch.compiler.disable()",)
"""Reasons of breaks by which the user has asked for them: such a boundary is no fault."""
CONTROLS = ("control", "negative")
"""Kinds of cases in which nothing is wrong: no finding."""
WATCHES_ONE_FUNCTION = (3, 12)
"""The first Python in which the calls of one function can be watched without those of all others."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that the report says otherwise than the truth."""

    about: str
    """The report's own name for it: "boundaries.crossings"."""
    text: str
    lacking: bool = False
    """It is not told, or not all of it is there. What is told wrongly is not lacking."""


@dataclass(frozen=True, slots=True)
class Attached:
    """What the job itself knew when tuimon attached."""

    compiled: tuple[tuple[str, str], ...]
    """(compile id, direction) of each compilation that was over."""


@dataclass(slots=True)
class Comparison:
    """What was found."""

    differences: list[Difference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What is right for a reason that a reader should know."""
    excused: bool = False
    """All that differs is lacking, and the report says of each that it is not available."""

    def differs(self, about: str, text: str, *, lacking: bool = False) -> None:
        """Note a difference."""
        self.differences.append(Difference(about, text, lacking))

    def note(self, text: str) -> None:
        """Note a remark, once."""
        if text not in self.notes:
            self.notes.append(text)


def compare(truth: dict[str, Any], report: dict[str, Any], attached: Attached | None = None) -> Comparison:
    """What the report says otherwise than the truth. `attached`: tuimon came in the middle of the run."""
    found = Comparison()
    expected = truth["expected"]
    steps = int(truth.get("steps", 0))
    each_step = None if attached is None else steps
    compare_breaks(found, expected["graph_breaks"], report, each_step)
    compare_recompiles(found, expected["recompiles"], report["recompiles"])
    compare_limit(found, expected["recompile_limit_hit"], report)
    _eager(found, expected, report["frames"], each_step)
    _executions(found, expected, report["regions"], each_step)
    compare_caches(found, expected.get("cache", {}), report["warmup"]["caches"], attached is not None)
    _findings(found, truth, report)
    if attached is None:
        _slow(found, truth, report)
    if attached is not None and not expected.get("multiproc"):
        _marks(found, attached, report)
    if report["coverage"]["dropped"]:
        found.differs("coverage.dropped", f"{report['coverage']['dropped']} samples were dropped")
    for place in _negative({part: report[part] for part in PARTS}):
        found.differs(place, f"{place} is negative")
    found.excused = bool(found.differences) and all(d.lacking and told_why(report, d.about) for d in found.differences)
    return found


def compare_ranks(found: Comparison, truth: dict[str, Any], report: dict[str, Any]) -> None:
    """What the report on several processes says otherwise than the truth of their slow steps."""
    wrong, remarks = slow_ranks(truth, report)
    for text in wrong:
        found.differs("ranks", text)
    if remarks:
        found.note(f"{len(remarks)} more slow by the machine in its ranks")


PARTS = ("frames", "regions", "boundaries", "recompiles", "compiles", "warmup", "steps")


def _place(file: str | None, line: int | None) -> str:
    return f"{os.path.basename(file or '')}:{line}"


def told_why(report: dict[str, Any], name: str) -> str | None:
    """The reason that the report gives for not telling something of this name ("frames.eager_calls"), or one row of it."""
    for row in report["coverage"]["not_available"]:
        if row["what"] == name or row["what"].startswith(f"{name}["):
            return str(row["why"])
    return None


def _named(report: dict[str, Any], boundary: dict[str, Any], field: str) -> str:
    """The name under which the report may say that a field of a boundary is not available: of this one or of all."""
    own = f"boundaries[{boundary['key']}].{field}"
    return own if told_why(report, own) else f"boundaries.{field}"


def _sort(
    rows: list[dict[str, Any]], boundaries: list[dict[str, Any]]
) -> tuple[list[list[dict[str, Any]]], list[dict[str, Any]]]:
    """The boundaries that belong to each row of the truth, and those that belong to none.

    The truth names the line that Dynamo logs or the user's line behind it. A boundary's own place comes first: several
    boundaries in a library can stand for one line of the user.
    """
    at: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        at.setdefault(row["file_line"], []).append(index)
    belong: list[list[dict[str, Any]]] = [[] for _ in rows]
    rest = []
    for boundary in boundaries:
        own = _place(boundary["file"], boundary["line"])
        user = _place(boundary["user_file"], boundary["user_line"])
        indexes = at.get(own) or at.get(user)
        if indexes is None:
            rest.append(boundary)
            continue
        fitting = [index for index in indexes if rows[index]["reason_contains"] in boundary["reason"]]
        belong[(fitting or indexes)[0]].append(boundary)
    return belong, rest


def compare_breaks(found: Comparison, rows: list[dict[str, Any]], report: dict[str, Any], each_step: int | None) -> None:
    belong, rest = _sort(rows, report["boundaries"])
    for row, here in zip(rows, belong, strict=True):
        where = row["file_line"]
        if len(here) != row["sites"]:
            text = f"{where}: {len(here)} boundaries, not {row['sites']}"
            found.differs("boundaries", text, lacking=len(here) < row["sites"])
            continue
        for boundary in here:
            if row["reason_contains"] not in boundary["reason"]:
                text = f"{where}: reason {boundary['reason']!r} lacks {row['reason_contains']!r}"
                # Dynamo keeps less of a break than it logs
                found.differs(_named(report, boundary, "reason"), text, lacking=each_step is not None)
            reads = boundary.get("reads_host")
            if (reads is True) != bool(row.get("forces_host_sync")):
                wanted = "true" if row.get("forces_host_sync") else "false or null"
                found.differs("boundaries.reads_host", f"{where}: reads_host is {reads}, not {wanted}", lacking=reads is None)
            if any(text in row["reason_contains"] for text in REQUESTED) and not boundary["requested"]:
                found.differs("boundaries.requested", f"{where}: the user's request is not shown as one")
        logged = sum(boundary["breaks"] for boundary in here)
        if logged != row.get("log_entries", logged):
            found.differs(
                "boundaries.breaks", f"{where}: {logged} breaks, not {row['log_entries']}", lacking=logged < row["log_entries"]
            )
        if "crossings_total" in row:
            _crossings(found, row, here, report, each_step)
    for boundary in rest:
        found.differs("boundaries", f"a boundary that is not: {_place(boundary['user_file'], boundary['user_line'])}")


def _crossings(
    found: Comparison, row: dict[str, Any], here: list[dict[str, Any]], report: dict[str, Any], each_step: int | None
) -> None:
    where, wanted = row["file_line"], row["crossings_total"]
    unknown = [boundary for boundary in here if boundary["crossings"] is None]
    for boundary in unknown:
        version = str(report["target"]["python"])
        old = tuple(int(part) for part in version.split(".")[:2]) < WATCHES_ONE_FUNCTION
        name = _named(report, boundary, "crossings")
        reason = told_why(report, name)
        if old and boundary["skipped_frame"] and reason:
            found.note(f"crossings null, as Python {'.'.join(version.split('.')[:2])} must")
        else:
            text = f"{where}: crossings not known ({reason or 'no reason is given'}), not {wanted}"
            found.differs(name, text, lacking=True)
    if unknown:
        return
    crossings = sum(boundary["crossings"] for boundary in here)
    if not _fits(crossings, wanted, each_step):
        text = f"{where}: {crossings} crossings, not {wanted}{_since(each_step)}"
        found.differs("boundaries.crossings", text)


def _fits(counted: int, wanted: int, each_step: int | None) -> bool:
    """Whether a count is right. `each_step`: the number of steps where it begins in the middle: what is due at least once a
    step must have been seen."""
    if each_step is None:
        return counted == wanted
    return counted <= wanted and (counted > 0 or wanted < each_step)


def _since(each_step: int | None) -> str:
    return "" if each_step is None else " at most, and some at each step since the attach"


def compare_recompiles(found: Comparison, rows: list[dict[str, Any]], recompiles: list[dict[str, Any]]) -> None:
    happened = [recompile for recompile in recompiles if not recompile["refused"]]
    for row in rows:
        mine = [r for r in happened if r["compile_id"] in row["compile_ids"]]
        if len(mine) != row["count"]:
            text = f"{row['function']}: {len(mine)} recompiles, not {row['count']}"
            found.differs("recompiles", text, lacking=len(mine) < row["count"])
        for recompile in mine:
            name = f"[{recompile['compile_id']}]"
            if recompile["function"] != row["function"]:
                found.differs("recompiles.function", f"{name}: function {recompile['function']}, not {row['function']}")
            if _place(recompile["file"], recompile["line"]) != row["at"]:
                found.differs("recompiles.line", f"{name}: at {recompile['file']}:{recompile['line']}, not {row['at']}")
        texts = [text for recompile in mine for text in _reasons(recompile)]
        if mine and not any(row["reason_contains"] in text for text in texts):
            shown = "; ".join(text[:80] for text in texts[:3])
            found.differs(
                "recompiles.reason", f"{row['function']}: no reason has {row['reason_contains']!r}: {shown}", lacking=not texts
            )
    number = sum(row["count"] for row in rows)
    if len(happened) > number:
        found.differs("recompiles", f"{len(happened)} recompiles in all, not {number}")


def _reasons(recompile: dict[str, Any]) -> Iterator[str]:
    """The texts of a recompile: Dynamo's own, and each failed entry's with the entry before it."""
    if recompile["reason"]:
        yield recompile["reason"]
    for failed in recompile["failed"]:
        yield f"{failed['entry']}: {failed['guard']}"


def compare_limit(found: Comparison, expected: dict[str, Any] | None, report: dict[str, Any]) -> None:
    hit = sorted((frame["function"], frame["refused_compile_id"]) for frame in report["frames"] if frame["limit_hit"])
    wanted = [] if expected is None else [(expected["function"], expected["refused_compile_id"])]
    if hit != wanted:
        found.differs(
            "frames.limit_hit", f"limit hit by {hit or 'no frame'}, not {wanted or 'none'}", lacking=len(hit) < len(wanted)
        )
    if expected is None:
        return
    attempts = [r for r in report["recompiles"] if r["function"] == expected["function"]]
    refused = [r["compile_id"] for r in attempts if r["refused"]]
    if refused != [expected["refused_compile_id"]]:
        text = f"recompiles refused: {refused}, not {expected['refused_compile_id']}"
        found.differs("recompiles.refused", text, lacking=not refused)
    elif len(attempts) != expected.get("logged_attempts", len(attempts)):
        text = f"{len(attempts)} attempts to recompile {expected['function']}, not {expected['logged_attempts']}"
        found.differs("recompiles", text, lacking=len(attempts) < expected["logged_attempts"])


def _eager(found: Comparison, expected: dict[str, Any], frames: list[dict[str, Any]], each_step: int | None) -> None:
    """The share of calls that ran in eager, of the frame that hit the limit or was skipped."""
    if "eager_calls" not in expected:
        return
    limit = expected["recompile_limit_hit"]
    theirs = [f for f in frames if f["fell_back"] and (limit is None or f["function"] == limit["function"])]
    if len(theirs) != 1:
        found.differs("frames", f"{len(theirs)} frames fell back to eager, not 1", lacking=not theirs)
        return
    (frame,) = theirs
    for name, wanted in (("eager_calls", expected["eager_calls"]), ("calls", expected["total_calls"])):
        counted = frame[name]
        if counted is None:
            found.differs(f"frames.{name}", f"{frame['function']}: {name} not known, not {wanted}", lacking=True)
        elif not _fits(counted, wanted, each_step and min(each_step, wanted)):
            found.differs(f"frames.{name}", f"{frame['function']}: {name} is {counted}, not {wanted}{_since(each_step)}")
    if frame["eager_calls"] is not None and frame["calls"]:
        share = frame["eager_calls"] / frame["calls"]
        told = frame.get("eager_share")
        if told is None or abs(told - share) > 0.005:
            found.differs("frames.eager_share", f"{frame['function']}: eager_share is {told}, not {share:.3f}")


def _executions(found: Comparison, expected: dict[str, Any], regions: list[dict[str, Any]], each_step: int | None) -> None:
    executions = expected.get("graph_executions")
    if executions is None or (each_step is not None and expected.get("multiproc")):
        return  # the truth of a launcher's ranks is told of the launcher, in which no graph runs
    forward = [region for region in regions if region["direction"] == "forward"]
    calls: Counter[str] = Counter()
    for region in forward:
        calls[region["compile_id"]] += region["calls"] or 0
    for name in sorted(set(executions) | set(calls)):
        wanted = executions.get(name, 0)
        if name not in calls:
            found.differs("regions", f"graph {name} is not there: {wanted} calls", lacking=True)
        elif name not in executions or not _fits(calls[name], wanted, each_step):
            found.differs("regions.calls", f"graph {name}: {calls[name]} calls, not {wanted}{_since(each_step)}")
    graphs = expected.get("dynamo_graphs")
    if graphs is not None and len(forward) != graphs:
        found.differs("regions", f"{len(forward)} graphs, not {graphs}", lacking=len(forward) < graphs)


def compare_caches(found: Comparison, expected: dict[str, int], caches: dict[str, Any], attached: bool) -> None:
    """Hits and misses of AOTAutograd's cache, where the truth has them."""
    told = caches.get("aot_autograd")
    for name, wanted in expected.items():
        result = name.rpartition("_")[2]
        counted = None if told is None else told.get(result)
        if counted != wanted:
            found.differs("warmup.caches", f"{name} is {counted}, not {wanted}", lacking=attached and (counted or 0) < wanted)


def _findings(found: Comparison, truth: dict[str, Any], report: dict[str, Any]) -> None:
    """No finding where nothing is wrong; one where a person has to look."""
    expected, findings = truth["expected"], report["findings"]
    breaks = expected["graph_breaks"]
    happened = bool(expected["recompiles"] or expected["recompile_limit_hit"])
    requested = all(any(text in row["reason_contains"] for text in REQUESTED) for row in breaks)
    if truth["kind"] in CONTROLS or (breaks and requested and not happened):
        wrong = [finding for finding in findings if not (waits_in_python(truth) and finding["kind"] == "slow_step")]
    elif not breaks and not happened:
        wrong = [finding for finding in findings if not finding["kind"].startswith("slow")]
    else:
        wrong = []
    for finding in wrong:
        found.differs("findings", f"a finding where nothing is wrong: {finding['title']}")
    silent = expected["recompile_limit_hit"] or (breaks and expected.get("dynamo_graphs") == 0)
    if silent and not findings:
        found.differs("findings", "no finding, though calls run in eager that were to be compiled")


def _slow(found: Comparison, truth: dict[str, Any], report: dict[str, Any]) -> None:
    wrong, remarks = slow_steps(truth, report)
    for text in wrong:
        found.differs("slow_steps", text)
    if remarks:
        found.note(f"{len(remarks)} more slow by the machine")


def _marks(found: Comparison, attached: Attached, report: dict[str, Any]) -> None:
    """What happened before the attach is there and marked; what came later is not marked."""
    before = Counter(attached.compiled)
    told = Counter((c["compile_id"], c["direction"]) for c in report["compiles"] if c["before_attach"])
    for which, number in sorted((before - told).items()):
        found.differs("compiles", f"{number} compilation(s) {which} from before the attach are not there", lacking=True)
    for which, number in sorted((told - before).items()):
        found.differs("compiles.before_attach", f"{number} compilation(s) {which} are not from before the attach")
    ids = {compile_id for compile_id, _direction in attached.compiled}
    for recompile in report["recompiles"]:
        if recompile["before_attach"] != (recompile["compile_id"] in ids):
            text = f"[{recompile['compile_id']}]: before_attach is {recompile['before_attach']}"
            found.differs("recompiles.before_attach", text)
    if all(c["before_attach"] for c in report["compiles"]):
        for part, name in (("boundaries", "key"), ("regions", "compile_id"), ("frames", "key")):
            for row in report[part]:
                if not row["before_attach"]:
                    found.differs(f"{part}.before_attach", f"{part}: {row[name]} is not marked as from before the attach")


def _negative(value: Any, place: str = "") -> Iterator[str]:
    """Where a number below zero stands: none of these can be."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _negative(inner, f"{place}.{name}" if place else str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from _negative(inner, place)
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and value < 0:
        yield place
