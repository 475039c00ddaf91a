"""One cell of the matrix: a Python, a kind of target, a form; what has to come of it, and trying it."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.attach.conftest import DUMMY_SESSION
from tuimon.attach.refusal import Refused

from .matrix_pythons import Interpreter
from .matrix_target import PLAIN, TORCH, Residue, Running, Wrong, attach_by, nothing_left

FORMS = ("ladder", "pending", "thread", "remote_exec")
REMOTE_EXEC_FROM = (3, 14)
CANNOT_START = frozenset({"main-busy", "no-thread"})
"""By one form alone: the main thread has not come by, or there is no thread to be borrowed."""
GIL_HELD = frozenset({"gil-held"})
REFUSED_TRIES = 3
"""Where every attach has to be refused so many are enough: each takes all of its patience, and leaves a queued call."""


@dataclass(frozen=True)
class Kind:
    """A kind of target."""

    name: str
    program: Path
    mode: str
    needs_torch: bool = False
    stays: bool = False
    """The main thread never comes back to Python."""
    sleeper: bool = True
    """There is always a thread that sleeps in a call from which one may be borrowed; None: at times."""
    rests: bool = False
    """Only now and then is there such a thread, so the thread form alone may be refused."""
    quiet: bool = False
    """It makes no rounds of its own."""
    long: bool = False
    """Its rounds take `native_s`."""
    holds_gil: bool = False
    """Nearly all the time: an attach that takes the GIL several times may outlast its patience, and be refused by that name."""
    argument: str = ""

    def may_be_refused(self, form: str) -> tuple[bool, bool]:
        """(must each attach be refused, may some be refused)."""
        if form in ("pending", "remote_exec"):
            return self.stays, self.stays
        if form == "thread":
            return not self.sleeper and not self.rests, not self.sleeper
        return False, False


KINDS = [
    Kind("training", TORCH, "training", needs_torch=True, argument="aot_eager"),
    Kind("running", PLAIN, "busy", sleeper=False),
    Kind("sleeping", PLAIN, "sleeping", stays=True, quiet=True),
    Kind("forking", PLAIN, "forking", sleeper=False, rests=True),
    Kind("no torch yet", TORCH, "no_torch_yet", needs_torch=True, sleeper=False),
    Kind("epoll in C", PLAIN, "raw_epoll"),
    Kind("checksum", PLAIN, "checksum", sleeper=False),
    Kind("4 threads", PLAIN, "busy_threads", sleeper=False, rests=True),
    Kind("loader", TORCH, "loader", needs_torch=True),
    Kind("compiling", TORCH, "compiling", needs_torch=True),
    Kind("lock", PLAIN, "lock", stays=True, quiet=True),
    Kind("malloc", PLAIN, "memory", sleeper=False),
    Kind("matmul", TORCH, "matmul", needs_torch=True, long=True),
    Kind("native, GIL free", PLAIN, "native_free", sleeper=False, long=True),
    Kind("native, GIL held", PLAIN, "native_held", sleeper=False, long=True, holds_gil=True),
    Kind("idle threads", PLAIN, "idle_threads"),
]


@dataclass
class Settings:
    """How much of it."""

    attaches: int = 200
    cell_s: float = 240.0
    """Seconds after which a cell ends with what it has."""
    native_s: float = 20.0
    nice: int = 0


@dataclass
class Result:
    """What came of a cell."""

    python: str
    executable: str
    target: str
    form: str
    asked: int
    """Attaches that a cell was to have."""
    wanted: int = 0
    """The same, or fewer where every one has to be refused."""
    tried: int = 0
    attached: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    mechanisms: dict[str, int] = field(default_factory=dict)
    acks: list[float] = field(default_factory=list)
    """Seconds from the call of `attach` to the hook's answer."""
    stops: list[float] = field(default_factory=list)
    """Seconds of each stop of one thread."""
    left: list[str] = field(default_factory=list)
    wrong: str = ""
    seconds: float = 0.0

    @property
    def verdict(self) -> str:
        """ "ok", "ok, N of M" where the time has ended it, or what is wrong."""
        if self.wrong:
            return self.wrong
        if not self.tried:
            return "not tried"
        return "ok" if self.tried >= self.wanted else f"ok, {self.tried} of {self.wanted}"

    @property
    def failed(self) -> bool:
        """Whether it must not stay so."""
        return bool(self.wrong)

    def as_json(self) -> dict[str, Any]:
        """All of it, and the verdict."""
        return {**asdict(self), "verdict": self.verdict}


def spread(values: Sequence[float]) -> tuple[float, float, float] | None:
    """Median, p99 and most; None of nothing."""
    if not values:
        return None
    ordered = sorted(values)
    return statistics.median(ordered), ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))], ordered[-1]


def milliseconds(values: Sequence[float]) -> str:
    """The three figures in ms."""
    found = spread(values)
    return (
        "-" if found is None else " / ".join(f"{value * 1e3:.2f}" if value < 0.1 else f"{value * 1e3:.0f}" for value in found)
    )


def forms_for(python: Interpreter, wanted: Sequence[str] = FORMS) -> list[str]:
    """The forms that this Python has."""
    return [form for form in wanted if form != "remote_exec" or python.version[:2] >= REMOTE_EXEC_FROM]


def kinds_for(python: Interpreter, wanted: Sequence[str] = ()) -> list[Kind]:
    """The kinds of target that this Python can be."""
    return [kind for kind in KINDS if (not wanted or kind.name in wanted) and (python.has_torch or not kind.needs_torch)]


def dummy_bundle() -> dict[str, str]:
    """A hook that does nothing but answer: what the injection itself does is all that there is to see then."""
    hook = Path(__file__).resolve().parents[2] / "tuimon" / "hook"
    return {"session": DUMMY_SESSION, **{name: (hook / f"{name}.py").read_text("utf-8") for name in ("wire", "remains")}}


def try_cell(
    python: Interpreter, kind: Kind, form: str, target: Running, settings: Settings, say: Callable[[str], None]
) -> Result:
    """Attach and detach so often, by one form."""
    must_refuse, may_refuse = kind.may_be_refused(form)
    result = Result(python.label, python.executable, kind.name, form, settings.attaches, settings.attaches)
    if must_refuse:
        result.wanted = min(REFUSED_TRIES, settings.attaches)
    begun = time.monotonic()
    sources = None if kind.needs_torch else dummy_bundle()
    patience = 3 * settings.native_s + 30.0 if kind.long else 60.0
    if may_refuse:
        patience = 1.0
    right = (CANNOT_START if may_refuse else frozenset()) | (GIL_HELD if kind.holds_gil else frozenset())
    codes: Counter[str] = Counter()
    mechanisms: Counter[str] = Counter()
    try:
        before = _warm_up(target, form, must_refuse or kind.holds_gil, sources, patience)
        for number in range(result.wanted):
            if time.monotonic() - begun > settings.cell_s:
                break
            _one(target, form, patience, sources, result, codes, mechanisms, right)
            if number % 50 == 49:
                say(f"{number + 1} of {result.wanted}")
        if must_refuse and result.attached:
            raise Wrong(f"{result.attached} attaches worked that cannot have worked")
        if not must_refuse and not result.attached and result.tried and not kind.rests and not kind.holds_gil:
            raise Wrong("none of the attaches worked")
        if not kind.quiet:
            target.gets_on(5 * settings.native_s + 60.0 if kind.long else 60.0)
        if not (must_refuse and kind.stays):  # a queued call that is never made keeps its memory: it cannot be known to be done
            nothing_left(target, before, 60.0 if kind.holds_gil else 5.0)  # the hook too has to wait for the GIL
        elif result.left:
            result.left = sorted(set(result.left))
        target.check()
    except Wrong as wrong:
        result.wrong = str(wrong)
    result.refused, result.mechanisms = dict(codes), dict(mechanisms)
    result.seconds = time.monotonic() - begun
    return result


def _warm_up(target: Running, form: str, refused: bool, sources: dict[str, str] | None, patience: float) -> Residue:
    """What is there before; after one attach, which imports the modules that the bootstrap needs."""
    if not refused:
        try:
            attach_by(target.pid, None if form == "thread" else _name(form), max(patience, 60.0), sources).detach()
        except Refused as refusal:
            raise Wrong(f"the first attach was refused: {refusal.code}: {refusal.sentence}") from None
        time.sleep(0.2)
    return target.residue()


def _name(form: str) -> str | None:
    return None if form == "ladder" else form


def _one(
    target: Running,
    form: str,
    patience: float,
    sources: dict[str, str] | None,
    result: Result,
    codes: Counter[str],
    mechanisms: Counter[str],
    right: frozenset[str],
) -> None:
    """Attach, detach, look. Raises Wrong."""
    result.tried += 1
    begun = time.monotonic()
    try:
        session = attach_by(target.pid, _name(form), patience, sources)
    except Refused as refusal:
        codes[refusal.code] += 1
        target.check()
        if refusal.code not in right:
            raise Wrong(f"attach {result.tried} was refused: {refusal.code}: {refusal.sentence}") from None
        return
    result.acks.append(time.monotonic() - begun)
    goodbye = session.detach(20.0)
    session.settled(20.0)
    report = session.report
    waited = time.monotonic() + max(20.0, patience)
    while report.left and time.monotonic() < waited:
        time.sleep(0.02)  # a call that is still queued is made in its time, and then the helper takes the rest away
    result.attached += 1
    result.stops += report.stops
    mechanisms[report.mechanism] += 1
    result.left += report.left
    target.check()
    if form != "ladder" and report.mechanism not in ("", form):
        raise Wrong(f"asked for the form {form}, got {report.mechanism}")
    if goodbye is None:
        raise Wrong(f"no goodbye at attach {result.tried}")
    if goodbye["left"] or report.left:
        raise Wrong(f"left behind at attach {result.tried}: {[*goodbye['left'], *report.left]}")
