"""`tuimon attach PID`: watch a process that runs already."""

from __future__ import annotations

import shlex
import signal

from tuimon.attach.refusal import Refused
from tuimon.attach.session import attach
from tuimon.commands.options import CANNOT_ATTACH, DONE, Options, say
from tuimon.commands.watch import report, signals, watch
from tuimon.feed import LiveFeed


def run(pid: int, options: Options) -> int:
    """Attach, show or watch, detach. The job goes on in every case."""
    if options.screen:
        from tuimon.app import warm_up

        warm_up()
    try:
        session = attach(pid, {}, progress=say)
    except Refused as refusal:
        say(f"cannot attach to {pid}: {refusal.sentence} [{refusal.code}]")
        return CANNOT_ATTACH
    argv = session.hello.get("argv") or []
    feed = LiveFeed(session, shlex.join(str(word) for word in argv) or f"pid {pid}")
    feed.start()
    if options.screen:
        from tuimon.commands.screen import show

        status = show(feed, options)
        ended = feed.model.target
        gone = ended.ended is not None and ended.ended != "detached"
        say(f"{pid}: {ended.ended_detail}" if gone else f"detached from {pid}; it runs on")
        return status
    return _headless(feed, pid, options)


def _headless(feed: LiveFeed, pid: int, options: Options) -> int:
    with signals(signal.SIGINT, signal.SIGTERM) as stop:
        say(f"attached to {pid}; Ctrl-C ends the watching, not the job")
        try:
            why = watch(feed, options, stop)
        finally:
            feed.detach()
        if why == "ended":
            say(feed.model.target.ended_detail)
        if feed.left:
            say(f"the hook could not take out everything it had put in: {', '.join(feed.left)}")
        return report(feed, options) or DONE
