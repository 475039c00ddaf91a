"""`tuimon attach`: watch processes that run already: one, several ranks, those of another host."""

from __future__ import annotations

import contextlib
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tuimon.attach.find.choice import choose
from tuimon.attach.find.process import Target
from tuimon.attach.inject.waiting import Waiting
from tuimon.attach.refusal import Refused
from tuimon.attach.session import attach
from tuimon.attach.tracer import get_ready
from tuimon.commands.nodes import FEW, connect, places_of
from tuimon.commands.options import CANNOT_ATTACH, DONE, FAILED, USAGE, Far, Options, say
from tuimon.commands.recordings import Recordings
from tuimon.commands.watch import report, signals, watch
from tuimon.draw.text import clean
from tuimon.feed import LiveFeed
from tuimon.fleet import Fleet
from tuimon.relay import near
from tuimon.relay.place import Place, parse, via
from tuimon.ways import Contact, Session, Way

PATIENCE_S = 30.0
"""Without a screen nobody looks on and cancels: so long a job may take to let the hook in."""


class Wanted(NamedTuple):
    """What the words of a command line mean."""

    pids: list[int]
    """Here, or where --via leads."""
    places: dict[Place, list[int]]
    """On other hosts; without a pid: every job there."""


def run(words: Sequence[str], options: Options, far: Far, *, everybody: bool = False, patience: float | None = None) -> int:
    """Attach, show or watch, detach. The jobs go on in every case.

    `everybody` is --all; `patience` in seconds is how long a busy job may take to let the hook in. Gives the exit status.
    """
    try:
        wanted = _understand(words, far, everybody=everybody)
    except ValueError as error:
        say(str(error))
        return USAGE
    if patience is None and not options.screen:
        patience = PATIENCE_S
    if far.via is None and not far.nodes and (wanted.pids or not wanted.places):
        get_ready()  # while it is found out what is meant
    with contextlib.ExitStack() as links:
        try:
            ways = _ways(wanted, far, links, options, everybody=everybody, patience=patience)
        except Refused as refusal:
            say(f"cannot attach: {clean(refusal.sentence)} [{refusal.code}]")
            return CANNOT_ATTACH
        return watch_all(ways, options, each=not everybody)


def watch_all(ways: Sequence[Way], options: Options, *, each: bool = True) -> int:
    """Attach in all these ways, with a screen or without, until it is over. Gives the exit status.

    `each`: all of them were asked for by name, so that one which cannot be attached to is a failure, though the others go on.
    """
    fleet = Fleet([LiveFeed(way, pcie=options.pcie) for way in ways])
    for feed in fleet.members:
        options.judge(feed.model)
    with Recordings(options.record) as recordings:
        recordings.begin(fleet.members, folder=not each)
        status = _watch_all(fleet, options, each=each)
    return recordings.status(status)


def _watch_all(fleet: Fleet, options: Options, *, each: bool) -> int:
    fleet.start()
    if options.screen:
        from tuimon.commands.screen import show

        status = show(fleet, options)
        if fleet.refused is None:
            _say_how_it_ended(fleet)
    else:
        status = _headless(fleet, options)
    if fleet.refused is not None:
        for label, refusal in fleet.refusals:
            say(f"cannot attach to {label}: {clean(refusal.sentence)} [{refusal.code}]")
        return CANNOT_ATTACH
    if fleet.refusals and each and status == DONE:
        return CANNOT_ATTACH
    lost = [feed.label for feed in fleet.members if feed.model.target.ended == "lost"]
    if lost and status == DONE:
        say(f"the connection to {', '.join(lost)} was lost; attach again to go on watching")
        return FAILED
    return status


def local_way(target: Target, patience: float | None, hook: dict[str, object] | None = None) -> Way:
    """The way to a process of this machine. `hook`: what goes to the hook there."""

    def begin(contact: Contact) -> Session:
        def waiting(what: Waiting) -> None:
            contact.waiting(what.sentence, what.since_s)

        return attach(
            target.pid, hook or {}, patience=patience, progress=contact.say, waiting=waiting, cancelled=contact.cancelled
        )

    return _way(target, None, begin)


def _way(target: Target, host: str | None, begin: Callable[[Contact], Session]) -> Way:
    label = f"rank {target.rank}" if target.rank is not None else str(target.pid)
    return Way(label, shlex.join(target.command), target.rank, host, begin, target.pid, target.job)


def _understand(words: Sequence[str], far: Far, *, everybody: bool) -> Wanted:
    """The words sorted. Raises ValueError with a sentence where they make no sense."""
    pids: list[int] = []
    places: dict[Place, list[int]] = {}
    for word in words:
        if word.isascii() and word.isdigit() and len(word) < 10 and int(word) > 0:
            pids.append(int(word))
        elif "://" in word:
            place, pid = parse(word)
            if pid is None and not everybody:
                raise ValueError(
                    f"which process of {place.name}? Say {word.rstrip('/')}/PID, or --all; `tuimon list {word}` shows them"
                )
            places.setdefault(place, []).extend([] if pid is None else [pid])
        else:
            raise ValueError(f"{word!r} is no process id, and no ssh://[user@]host[:port]/PID; `tuimon list` shows them")
    if places and far.via is not None:
        raise ValueError("ssh:// and --via are two ways to another host: use one of them")
    if far.nodes and not everybody:
        raise ValueError("--nodes wants --all: every PyTorch job of these hosts; a process id is that of one host only")
    if far.nodes:
        places_of(far.nodes, far.via)  # what cannot be understood is wrong usage too
    elif far.via is not None:
        via(far.via)
    if not words and not everybody:
        raise ValueError("attach to what? `tuimon list` shows the processes; `tuimon attach PID`, or --all")
    return Wanted(pids, places)


def _ways(
    wanted: Wanted,
    far: Far,
    links: contextlib.ExitStack,
    options: Options,
    *,
    everybody: bool,
    patience: float | None,
) -> list[Way]:
    """A way to each process that is meant. Connects to other hosts, which may ask for a password: no screen yet."""
    places = dict(wanted.places)
    here: list[Target] = []
    hook = options.hook
    places.update((place, []) for place in places_of(far.nodes, far.via) if place not in places)
    if far.via is not None and not far.nodes:
        places[via(far.via)] = wanted.pids
    elif wanted.pids or not places:
        here = choose(wanted.pids, everybody)
        if not places:
            return [local_way(target, patience, hook) for target in here]
    ways = [local_way(target, patience, hook) for target in here] if here else []
    several = everybody and len(places) > 1
    meant: list[tuple[near.Link, Target]] = []
    nothing: Refused | None = None
    for link in connect(list(places), Narration, agree(far), links, go_on=several):
        for note in link.notes:
            say(note)
        try:
            meant += [(link, target) for target in link.choose(places[link.place], everybody)]
        except Refused as refusal:
            if not several:
                raise
            nothing = refusal
            say(f"{clean(link.place.name)} is left out: {clean(refusal.sentence)} [{refusal.code}]")
    if nothing is not None and not meant:
        raise nothing
    fold = len(meant) > FEW if far.fold is None else far.fold
    over_ns, pcie = options.slow_over_ns, options.pcie
    return ways + [
        far_way(link, link.place, target, patience, hook, fold=fold, over_ns=over_ns, pcie=pcie) for link, target in meant
    ]


def far_way(
    link: near.Link,
    place: Place,
    target: Target,
    patience: float | None,
    hook: dict[str, object] | None = None,
    *,
    fold: bool = False,
    over_ns: int | None = None,
    pcie: bool = False,
) -> Way:
    """The way to a process of another host. `hook`: what goes to the hook there; `fold`: its calls are counted there, and a
    step is slow there where it takes `over_ns` longer than the usual (None: as the rule has it); `pcie`: what its GPUs move
    over PCIe is read there."""

    def begin(contact: Contact) -> Session:
        return link.open_session(target.pid, hook or {}, contact, patience=patience, fold=fold, over_ns=over_ns, pcie=pcie)

    return _way(target, place.name, begin)


def agree(far: Far) -> Callable[[str], bool]:
    """Who is asked whether tuimon may be sent along: the option, else the person at the terminal, else nobody."""

    def ask(question: str) -> bool:
        if far.send:
            return True
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return False
        sys.stderr.write(f"tuimon: {clean(question)} [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    return ask


class Narration(Contact):
    """What happens before there is a screen, on stderr."""

    def __init__(self) -> None:
        super().__init__(lambda sentence, _since_s: say(clean(sentence)))


def _headless(fleet: Fleet, options: Options) -> int:
    with signals(signal.SIGINT, signal.SIGTERM) as stop:
        try:
            why = watch(fleet, options, stop)
        finally:
            fleet.detach()
        if fleet.refused is not None:
            return CANNOT_ATTACH
        if not any(feed.attached for feed in fleet.members):
            _say_how_it_ended(fleet)  # interrupted before there was anything to report
            return FAILED
        if why == "ended" or fleet.silent_goodbyes:
            _say_how_it_ended(fleet)
        if fleet.left:
            say(f"the hook could not take out everything it had put in: {clean(', '.join(fleet.left))}")
        return report(fleet, options) or DONE


def _say_how_it_ended(fleet: Fleet) -> None:
    for feed in fleet.members:
        target = feed.model.target
        if target.ended is not None and target.ended not in ("detached", "refused"):
            say(f"{feed.label}: {clean(target.ended_detail)}")
    going_on = [feed for feed in fleet.members if feed.model.target.ended in (None, "detached")]
    for sentence in fleet.silent_goodbyes:
        say(clean(sentence))
    let_go = [feed.label for feed in going_on if feed.attached and feed.silent_goodbye is None]
    if let_go:
        say(f"detached from {', '.join(let_go)}; {'it runs' if len(let_go) == 1 else 'they run'} on")
    given_up = [feed.label for feed in going_on if not feed.attached]
    if given_up:
        say(f"gave up attaching to {', '.join(given_up)}: nothing will be run there, and what was queued goes by itself")
