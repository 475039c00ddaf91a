"""One step: its account beside the usual one, the evidence, the rule with its numbers, where in the job, its neighbours."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from statistics import median

from tuimon.app.details.page import fact, heading, prose
from tuimon.app.details.paged import Source, linked
from tuimon.app.details.source import Excerpt, excerpt_lines, read_here
from tuimon.app.details.step_rows import READ_FROM, leads_to, site
from tuimon.app.panels.frame import bar
from tuimon.app.panels.timeline import beside, key_of, known_step, marks_row, select, slow_step, timeline
from tuimon.app.scene import PanelView, Scene
from tuimon.draw import format as fmt
from tuimon.draw.table import heads
from tuimon.draw.text import Line, cells, clean, cut, pad
from tuimon.model import Model
from tuimon.model.about import About
from tuimon.model.slow import naming
from tuimon.model.slow.naming import sentence
from tuimon.model.slow.rule import LEAST, WINDOW
from tuimon.model.slow.spots import Spots
from tuimon.model.steps.parts import CATEGORIES, SlowStep, StepAccount, StepEvidence

MOST_ROWS = 8
MOST_PLACES = 3
AROUND = 2
"""Lines of the excerpt before and after the one in question."""
SIDE = 30
"""Cells of the neighbours on each side."""
BAR_CELLS = 20

NAMING = (
    f"A cause is named where it explains at least {naming.NAMED:.0%} of the excess, or two together {naming.TOGETHER:.0%}; "
    "otherwise the step is unexplained, with what was seen. Waiting for a core comes off first: it makes all else longer."
)


@dataclass(frozen=True, slots=True)
class Opened:
    """A step as it was when its page was opened: what falls out of the model meanwhile stays on the page."""

    model: Model
    account: StepAccount
    slow: SlowStep | None
    evidence: StepEvidence | None
    usual_ns: int | None
    usual: tuple[int, ...]
    places: tuple[tuple[str, int, str], ...] = ()
    """(file, line, what was there), what matters most first."""
    excerpt: Excerpt = field(default_factory=Excerpt)
    """Around the first of them."""

    @property
    def index(self) -> int:
        """The step's number."""
        return self.account.index

    @property
    def sentence(self) -> str:
        """The step in one sentence, for a ticket."""
        if self.slow is not None:
            return clean(sentence(self.slow))
        usual = f"; the median step takes {fmt.duration(self.usual_ns / 1e9)}" if self.usual_ns is not None else ""
        return f"step {self.index} took {fmt.duration(self.account.took_ns / 1e9)}{usual}: not among the slow ones"


def opened(scene: Scene, index: int, model: Model | None = None) -> Opened | None:
    """The step of this number, of the scene's model or of another one; None where it is no longer known."""
    model = model or scene.model
    slow, account = slow_step(model, index), known_step(model, index)
    if account is None:
        return None
    evidence = model.steps.evidence(index)
    usual_ns, usual = (slow.usual_ns, slow.usual) if slow is not None else _usual(model, index)
    places = _places(model, account, slow, evidence)
    excerpt = Excerpt()
    if places:
        file, line, _ = places[0]
        read = read_here(scene, file, line)
        excerpt = replace(read, lines=tuple(one for one in read.lines if abs(one[0] - line) <= AROUND))
    return Opened(model, account, slow, evidence, usual_ns, usual, tuple(places), excerpt)


def title(step: Opened) -> str:
    """The page's name."""
    if step.slow is None:
        return f"step {step.index}"
    return f"step {step.index}: {' and '.join(dict.fromkeys(one.cause for one in step.slow.causes))}"


def _usual(model: Model, index: int) -> tuple[int | None, tuple[int, ...]]:
    """What a step that was not slow stands beside: the medians of the latest usual ones before it."""
    slow = {one.account.index for one in model.steps.slow}
    plain = [one for one in model.steps.accounts if not one.compiled and one.complete and one.index not in slow]
    before = [one for one in plain if one.index < index][-WINDOW:]
    base = before if len(before) >= LEAST else [one for one in plain if one.index != index][:WINDOW]
    if not base:
        return None, ()
    parts = tuple(int(median(one.parts[at] for one in base)) for at in range(len(CATEGORIES)))
    return int(median(one.took_ns for one in base)), parts


# ------------------------------------------------------------------------------------------------- the page


def lines(scene: Scene, step: Opened, width: int) -> list[Line]:
    """The page."""
    scene = replace(scene, model=step.model)
    out: list[Line] = prose(step.sentence, width, "strong" if step.slow is not None else "text", indent=1)
    out += _standing(scene, step, width)
    out += _account(scene, step, width)
    if step.slow is not None:
        out += _evidence(scene, step, step.slow, width)
    out += _where(scene, step, width)
    out += _longest(scene, step, width)
    out += _neighbours(scene, step, width)
    return out + _rule(step, width)


def _standing(scene: Scene, step: Opened, width: int) -> list[Line]:
    """Whether the step still is what the model knows by this number."""
    model, index = step.model, step.index
    accounts = model.steps.accounts
    if not accounts or model.steps.n <= index:
        return prose("steps have been counted anew since: this is one of the former count", width, "warn", indent=1)
    if index < accounts[0].index:
        kept = "its account was kept with the slow ones" if step.slow is not None else "this page has kept its account"
        told = f"it has fallen out of the ring of the last {len(accounts)} steps; {kept}"
        return prose(told, width, "note", indent=1)
    now = known_step(model, index)
    if now is None or key_of(now) != key_of(step.account):
        return prose("steps have been counted anew since: this is one of the former count", width, "warn", indent=1)
    return prose(f"still in the ring of the last {len(accounts)} steps; y copies the sentence", width, "note", indent=1)


def _account(scene: Scene, step: Opened, width: int) -> list[Line]:
    """Category, this step, usual, excess and its share as a small bar."""
    account = step.account
    excess = account.took_ns - step.usual_ns if step.usual_ns is not None else None
    room = min(BAR_CELLS, width - 63)
    out = heading("its account beside the usual one")
    titles = f"  {'category':<18}{'this step':>10}{'usual':>10}{'excess':>10}   of the excess"
    out.append(heads(cut(titles, width, scene.glyphs.ellipsis)))
    quiet = []
    for at, name in enumerate(CATEGORIES):
        took, usual = account.parts[at], step.usual[at] if step.usual else None
        if not took and not usual:
            quiet.append(name)
            continue
        over = took - usual if usual is not None else None
        share = over / excess if over is not None and excess is not None and excess > 0 and step.slow is not None else None
        blamed = step.slow is not None and any(one.cause == name for one in step.slow.causes)
        line: Line = [
            (f"  {name:<18}", "strong" if blamed else "label"),
            (f"{fmt.duration(took / 1e9):>10}", "number"),
            (f"{_ns(usual):>10}", "number"),
            (f"{_signed(over):>10}", "strong" if blamed else "number"),
        ]
        if share is not None and share >= 0.005:
            line.append((f"  {min(share, 9.99):>4.0%} ", "strong" if blamed else "number"))
            if room > 3:
                line.append((bar(share, room, scene.glyphs), "spark" if blamed else "spark-dim"))
        out.append(line)
    out.append(
        [
            (f"  {'the whole step':<18}", "label"),
            (f"{fmt.duration(account.took_ns / 1e9):>10}", "strong"),
            (f"{_ns(step.usual_ns):>10}", "number"),
            (f"{_signed(excess):>10}", "number"),
        ]
    )
    if account.waited_ns:
        waited = fmt.duration(account.waited_ns / 1e9)
        out += prose(
            f"within these, {waited} ready to run while no core was free (/proc/PID/task/TID/schedstat)", width, "warn"
        )
    if quiet:
        out += prose(f"nothing of: {', '.join(quiet)}", width, "note")
    compared = step.slow.compared if step.slow is not None else 0
    usual_of = f"the {compared} steady steps before it" if compared else "steady steps"
    remark = f"usual: the median of {usual_of}, of each line by itself, so they need not add up"
    if not step.usual:
        remark = "usual: not known, there are no steady steps to compare with"
    out += prose(remark, width, "note")
    if not account.complete:
        out += prose("samples of this step were dropped: its account may lack something", width, "warn")
    if not account.index_certain:
        out += prose("where the loop turned is not certain: the number may be off by one", width, "warn")
    return out


def _ns(value: int | None) -> str:
    return fmt.UNKNOWN if value is None else fmt.duration(value / 1e9)


def _signed(value: int | None) -> str:
    if value is None:
        return fmt.UNKNOWN
    return f"+{fmt.duration(value / 1e9)}" if value > 0 else fmt.duration(value / 1e9)


def _evidence(scene: Scene, step: Opened, slow: SlowStep, width: int) -> list[Line]:
    out = heading("evidence, and where it was read")
    told = list(dict.fromkeys(line for one in slow.causes for line in one.evidence))
    for line in told:
        out += _bullet(scene, line, width)
    looks = len(step.evidence.looks) if step.evidence is not None else 0
    if looks:
        times = "once" if looks == 1 else f"{looks} times"
        out += _bullet(
            scene, f"its thread's stack was looked at {times} (every 20 ms at most, only while nothing is timed)", width
        )
    elif any(one.cause in (naming.OTHER, naming.UNEXPLAINED) for one in slow.causes):
        off = step.model.coverage.not_available.get("stacks") or step.model.coverage.instruments.get("stacks", "")
        why = f": {off}" if off and off != "on" else " (every 20 ms at most while nothing is timed; --no-stacks turns it off)"
        out += _bullet(scene, f"its thread's stack was not looked at{why}", width)
    if not told and not looks:
        out += prose("none beyond the account itself", width, "note")
    return out


def _bullet(scene: Scene, text: str, width: int) -> list[Line]:
    parts = prose(text, width, "text", indent=4)
    return [[(f"  {scene.glyphs.bullet} ", "text"), *parts[0][1:]], *parts[1:]]


# ------------------------------------------------------------------------------------------------- where in the job


def _places(
    model: Model, account: StepAccount, slow: SlowStep | None, evidence: StepEvidence | None
) -> list[tuple[str, int, str]]:
    """(file, line, what was there) in the job's source: for the causes first, the longest first."""
    if evidence is None:
        return []
    causes = [one.cause for one in slow.causes] if slow is not None else []
    seen: list[tuple[bool, int, str, int, str]] = []
    for row in evidence.rows:
        at = site(model, row)
        if at is not None:
            category = CATEGORIES[row.category] if 0 <= row.category < len(CATEGORIES) else naming.OTHER
            seen.append((category in causes, row.own_ns, *at, f"{category}, {fmt.duration(row.own_ns / 1e9)}"))
    spot = Spots(model, evidence, model.slowness.text_of).most(account.begin_ns, account.end_ns)
    if spot is not None and spot.where:
        file, _, number = spot.where.rpartition(":")
        blamed = not causes or any(one in (naming.OTHER, "data wait", naming.UNEXPLAINED) for one in causes)
        seen.append((blamed, spot.ns, file, int(number), f"its thread was seen there in {spot.count} of {spot.of} looks"))
    if any(blamed for blamed, *_ in seen):
        seen = [one for one in seen if one[0]]
    seen.sort(key=lambda one: -one[1])
    found: dict[tuple[str, int], str] = {}
    for _, _, file, line, what in seen:
        found.setdefault((file, line), what)
    return [(file, line, what) for (file, line), what in list(found.items())[:MOST_PLACES]]


def _where(scene: Scene, step: Opened, width: int) -> list[Line]:
    if not step.places:
        return []
    out = heading("where in the job")
    for at, (file, line, what) in enumerate(step.places):
        text = step.model.slowness.text_of(file, line)
        out += linked(prose(f"{file}:{line}", width, "place"), Source(file, line, "", (what, f"in {step.sentence}")))
        out += prose(what, width, "text", indent=4)
        if at == 0 and step.excerpt.lines:
            out += excerpt_lines(scene, step.excerpt, line, width)
        elif text:
            out += prose(text, width, "source-here", indent=4)
    return out


def _longest(scene: Scene, step: Opened, width: int) -> list[Line]:
    """What took a millisecond or more by itself, with where its time was read."""
    rows = sorted(step.evidence.rows, key=lambda row: -row.own_ns) if step.evidence is not None else []
    if not rows:
        return []
    out = heading("what took longest in it")
    for row in rows[:MOST_ROWS]:
        category = CATEGORIES[row.category] if 0 <= row.category < len(CATEGORIES) else naming.OTHER
        name = clean(row.function if row.role in ("boundary", "forward", "backward", "compile") else row.name or row.function)
        name = f"[{clean(row.compile_id)}] {name}" if row.compile_id else name
        if row.generation is not None:
            name = f"generation {row.generation}"
        read = f"({READ_FROM.get(row.role, 'timed')})"
        front = f"  {fmt.duration(row.own_ns / 1e9):>8}  {pad(category, 17)}"
        room = width - cells(front) - 1
        shown = cut(name, max(8, room - cells(read) - 1), scene.glyphs.ellipsis)
        line: Line = [(front, "number"), (shown, "frame")]
        if cells(shown) + 1 + cells(read) <= room:
            line.append((f" {read}", "note"))
        out += linked([line], leads_to(step.model, row))
    if len(rows) > MOST_ROWS:
        out += prose(f"and {len(rows) - MOST_ROWS} shorter ones", width, "note")
    return out


# ------------------------------------------------------------------------------------------------- neighbours, the rule


def _neighbours(scene: Scene, step: Opened, width: int) -> list[Line]:
    model = step.model
    now = known_step(model, step.index)
    out = heading("the steps around it")
    if now is not None and key_of(now) == key_of(step.account):
        wide = max(1, min(2 * SIDE + 1, width - 4))
        view = PanelView(top=max(0, min(step.index - wide // 2, model.steps.n - wide)))
        select(view, step.account)
        of = timeline(scene, view, wide)
        out.append([("  ", "text"), *marks_row(of, scene.glyphs)])
        if of.cursor is not None:
            out.append([("  " + " " * of.cursor + scene.glyphs.up, "strong")])
    for label, way in (("slow before it (N)", -1), ("slow after it (n)", 1)):
        near = beside(model, step.index, way)
        if near is None:
            out += fact(label, "none so far" if way > 0 and model.target.ended is None else "none", width, "note")
        else:
            apart = abs(near.account.index - step.index)
            causes = " and ".join(dict.fromkeys(one.cause for one in near.causes))
            took = fmt.duration(near.account.took_ns / 1e9)
            words = f"step {near.account.index}, {apart} {'earlier' if way < 0 else 'later'}: {took}, {causes}"
            out += linked(fact(label, words, width, "text"), About("step", str(near.account.index)))
    cause = step.slow.causes[0].cause if step.slow is not None else None
    tally = model.slowness.tallies.get(cause) if cause is not None else None
    if tally is not None and tally.n > 1:
        every = f", every {tally.every} steps" if tally.every is not None else ""
        out += fact(
            "of the same cause", f"{tally.n} steps{every}, {fmt.duration(tally.lost_ns / 1e9)} lost in all", width, "text"
        )
    return out


def _rule(step: Opened, width: int) -> list[Line]:
    model, slow = step.model, step.slow
    out = heading("the rule")
    out += prose(model.slowness.rule, width)
    if slow is not None and slow.limit_ns:
        out += prose(
            f"here m = {fmt.duration(slow.usual_ns / 1e9)} and d = {fmt.duration(slow.deviation_ns / 1e9)}, from "
            f"{slow.compared} steps; more than {fmt.duration(slow.limit_ns / 1e9)} was slow, and it took "
            f"{fmt.duration(slow.account.took_ns / 1e9)}",
            width,
            "strong",
        )
    if slow is not None:
        out += prose(NAMING, width)
    out += prose(f"steps: {how(model)}", width, "note")
    return out


def how(model: Model) -> str:
    """How steps are told, that they are inferred where they are, and why not by the function that was named for it."""
    unmarked = clean(model.coverage.unmarked)
    return f"{_told(model)}; {unmarked}" if unmarked else _told(model)


def _told(model: Model) -> str:
    steps = model.steps
    marks = "--step MODULE:FUNCTION or tuimon.step() in the loop marks them"
    if steps.source is None:
        return clean(steps.why_not) or f"none has been told so far; {marks}"
    if steps.source == "inferred":
        told = clean(steps.how) or "from the order of regions"
        return f"{told if told.startswith('inferred') else f'inferred: {told}'}; {marks}"
    return clean(steps.how) or steps.source
