"""How several processes stand beside each other: who is slow, who is behind, who says nothing. Pure; the time is given."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from tuimon.app.panels.pace import late
from tuimon.app.scene import Rank, Standing
from tuimon.draw.glyphs import GlyphSet
from tuimon.model import Model
from tuimon.model.ranks.lateness import Lateness
from tuimon.model.ranks.standing import late_words, waits_words
from tuimon.model.ranks.verdicts import Verdict

if TYPE_CHECKING:
    from tuimon.model.ranks.jobs import Jobs

SILENT_S = 5.0
"""The hook reports about once a second, but a native call that holds the GIL may keep it for some; later, it is said."""

SLOW = 1.25
"""A rank whose median step takes this many times that of the middle rank is called slow."""

LEAST_STEPS = 8
"""Of fewer steps a median says little."""

EVERY_NS = 1_000_000_000
"""Medians and places are looked at once a second: they do not move faster, and 64 ranks cost something."""

_LOCAL = re.compile(r"--local[-_]rank[= ]\d+")
"""What some launchers add to the command of each rank."""

_LOOKS = {
    "running": (" ", "text"),
    "no torch": (" ", "note"),
    "compiling": ("*", "compile"),
    "late": ("", "bad"),
    "slow": ("", "warn"),
    "no step": ("=", "warn"),
    "silent": ("?", "warn"),
    "stopped": ("?", "warn"),
    "attaching": ("~", "note"),
    "refused": ("!", "bad"),
    "lost": ("x", "ended"),
    "ended": ("x", "ended"),
    "detached": ("x", "ended"),
    "read": (" ", "text"),
}
"""Condition -> (sign, role). The late and the slow ones have the arrow of the glyph set."""

NAMED = 1_000_000
"""`Standing.look` of a rank that a sentence is about is at least this."""
_WORRYING = ("refused", "lost", "stopped", "silent", "no step", "slow")
"""What to look at behind those that are late, the worst first."""


def jobs(ranks: Sequence[Rank]) -> list[tuple[int, ...]]:
    """Those that are ranks of one job, by their places in `ranks`: only they may be compared with each other.

    Ranks of one job have a number each, run the same command and, where the job has a name, have the same one.
    """
    told = _told(ranks)
    if _memo.get("told") == told:
        return cast("list[tuple[int, ...]]", _memo["jobs"])
    _memo.update(told=told, jobs=_jobs(ranks), names=None)
    return cast("list[tuple[int, ...]]", _memo["jobs"])


_memo: dict[str, object] = {}
"""What was worked out last: it is asked for many times in one drawing."""


def _told(ranks: Sequence[Rank]) -> tuple[object, ...]:
    """What names and jobs are made from."""
    return tuple((id(rank.model), rank.model.versions["target"], rank.rank, rank.label, rank.pid, rank.job) for rank in ranks)


def _jobs(ranks: Sequence[Rank]) -> list[tuple[int, ...]]:
    found: dict[tuple[str | None, str], list[int]] = {}
    for at, rank in enumerate(ranks):
        if rank.number is not None:
            target = rank.model.target  # ranks in files are one job where they lie in one folder: it is named after that
            command = "" if target.how == "file" and rank.job else target.command or rank.title
            found.setdefault((rank.job, _LOCAL.sub("", command)), []).append(at)
    return [tuple(places) for places in found.values() if len({ranks[at].number for at in places}) == len(places)]


def are_one_job(ranks: Sequence[Rank]) -> bool:
    """Whether all of them are ranks of one job, and not programs that happen to be watched together."""
    return any(len(places) == len(ranks) for places in jobs(ranks))


def names(ranks: Sequence[Rank]) -> list[str]:
    """What to call each, as short as can be: the numbers of the ranks of one job, else pids, with hosts where they need it."""
    jobs(ranks)
    if _memo["names"] is None:
        _memo["names"] = _names(ranks)
    return cast("list[str]", _memo["names"])


def _names(ranks: Sequence[Rank]) -> list[str]:
    if are_one_job(ranks):
        return [str(rank.number) for rank in ranks]
    pids = Counter(rank.pid for rank in ranks)
    return [
        rank.label if rank.pid is None else f"{rank.pid}@{rank.host}" if pids[rank.pid] > 1 and rank.host else str(rank.pid)
        for rank in ranks
    ]


class Standings:
    """Keeps the places of the processes, and looks at them anew when it is time to."""

    def __init__(self) -> None:
        self._runners: tuple[int, ...] = ()
        self._starts: dict[int, int] = {}
        self._looked_ns: int | None = None
        self._medians: list[float | None] = []
        self._behind: list[int | None] = []
        self._slow: set[int] = set()
        self._late: set[int] = set()
        self._beside: list[tuple[str, int, str]] = []
        self.verdicts: tuple[Verdict, ...] = ()
        """On the ranks beside each other, as of the last look; the most costly first."""

    def look(self, ranks: Sequence[Rank], clock_ns: int, glyphs: GlyphSet, beside: Jobs | None = None) -> tuple[Standing, ...]:
        """How each of them stands. `clock_ns` is of any clock that goes on; `beside`: what is known of their meetings."""
        runners = tuple(at for at, rank in enumerate(ranks) if _runs(rank.model))
        if runners != self._runners or self._looked_ns is None or clock_ns - self._looked_ns >= EVERY_NS:
            self._looked_ns = clock_ns
            self._compare(ranks, runners)
            self._meet(ranks, beside)
        first = {verdict.key: place for place, verdict in reversed(list(enumerate(self.verdicts)))}
        out = []
        for at, rank in enumerate(ranks):
            word = condition(rank, at in self._slow)
            if at in self._late and word in ("running", "slow"):
                word = "late"
            sign, role = _LOOKS.get(word, (" ", "text"))
            look = 2 * NAMED - first[at] if at in first else 0
            if not look and word in _WORRYING:
                look = len(_WORRYING) - _WORRYING.index(word)
            out.append(Standing(word, sign or glyphs.down, role, self._medians[at], self._behind[at], *self._beside[at], look))
        return tuple(out)

    def _meet(self, ranks: Sequence[Rank], beside: Jobs | None) -> None:
        """What is known of where they meet: who comes late, and for whom each waits."""
        found: dict[int, Verdict] = {}
        called = dict(enumerate(names(ranks)))
        self._beside = [("", -1, "")] * len(ranks)
        seen: dict[int, Lateness] = {}
        for at in range(len(ranks)):
            lateness = beside.of(at) if beside is not None else None
            if lateness is None:
                continue
            seen[id(lateness)] = lateness
            of = lateness.of(at)
            late = late_words(of)
            self._beside[at] = late, -1 if of.median_ns is None else of.median_ns, waits_words(of, called)
        verdicts = sorted((one for lateness in seen.values() for one in lateness.verdicts()), key=lambda one: -one.cost_s)
        for one in verdicts:
            found.setdefault(one.key, one)
        self.verdicts = tuple(verdicts)
        self._late = {at for at, one in found.items() if one.kind != "compile_skew"}

    def _compare(self, ranks: Sequence[Rank], runners: tuple[int, ...]) -> None:
        summaries = [rank.model.steps.durations.summary for rank in ranks]
        self._medians = [summary.median for summary in summaries]
        self._runners = runners
        self._slow = set()
        self._behind = [None] * len(ranks)
        for job in jobs(ranks):
            running = tuple(at for at in runners if at in job)
            enough = {at: summaries[at].median or 0.0 for at in running if summaries[at].n >= LEAST_STEPS}
            middle = sorted(enough.values())[(len(enough) - 1) // 2] if len(enough) > 1 else None
            self._slow |= {at for at, median in enough.items() if middle is not None and median > SLOW * middle}
            for at, behind in self._places(ranks, running).items():
                self._behind[at] = behind

    def _places(self, ranks: Sequence[Rank], runners: tuple[int, ...]) -> dict[int, int]:
        """Steps behind the first for each: steps made since the last of them was attached, up to one and the same moment."""
        if len(runners) < 2:
            return {}
        if not set(runners) <= set(self._starts):  # somebody is new: all begin anew, together
            begin = max(_wall(ranks[at].model, ranks[at].model.target.attached_ns or 0) for at in runners)
            self._starts.update((at, _steps_until(ranks[at].model, begin)) for at in runners)
        now = min(_wall(ranks[at].model, ranks[at].model.now_ns) for at in runners)
        made = {at: _steps_until(ranks[at].model, now) - self._starts[at] for at in runners if ranks[at].model.steps.n}
        first = max(made.values(), default=0)
        return {at: max(0, first - count) for at, count in made.items()}


def condition(rank: Rank, slow: bool = False) -> str:
    """How it stands with one of them, in a word or two."""
    model = rank.model
    target = model.target
    if target.how == "file" and target.ended == "detached":
        return "read"
    if target.ended is not None:
        return "ended" if target.ended == "exited" else target.ended
    if target.attached_ns is None:
        return "attaching"
    if rank.silence is not None and (rank.silence[1] or rank.silence[0] >= SILENT_S):
        return "stopped" if rank.silence[1] else "silent"
    if target.torch is None:
        return "no torch"
    if model.running:
        return "compiling"
    if late(model, rank.now_ns if rank.beat_ns is None else rank.beat_ns) is not None:
        return "no step"
    return "slow" if slow else "running"


def _runs(model: Model) -> bool:
    return model.target.attached_ns is not None and model.target.ended is None


def _wall(model: Model, t_ns: int) -> float:
    """A time on the job's clock as Unix time in s: what the clocks of several hosts have in common."""
    return t_ns / 1e9 + (model.wall_offset_s or 0.0)


def _steps_until(model: Model, wall_s: float) -> int:
    """How many steps had ended at a time, as far back as the latest steps are kept."""
    steps = model.steps
    if steps.last_end_ns is None:
        return 0
    until_ns = (wall_s - (model.wall_offset_s or 0.0)) * 1e9
    count, end = steps.n, steps.last_end_ns
    for _, took_ns, _ in reversed(steps.recent):
        if end <= until_ns:
            break
        count -= 1
        end -= took_ns
    # the first step has an end and no known length
    return 0 if count == 1 and end > until_ns else count
