"""A person accepts a boundary, or takes that back: it is written down, and the model is told."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tuimon import events as ev
from tuimon.accepted import AcceptedError
from tuimon.app.pump import Watched


def accept(watched: Watched, key: str, note: str | None) -> str:
    """Accept the boundary of this key with a note; with None: no longer accept it. Gives what there is to say."""
    boundary = watched.model.boundaries.get(key)
    if boundary is None:
        return "this boundary is no longer known"
    events: Sequence[ev.Event]
    try:
        if note is not None:
            event, path = watched.marks.accept(watched.model, boundary, note)
            events, what = [event], "accepted; written to"
        else:
            events, path = watched.marks.withdraw(watched.model, boundary)
            what = "no longer accepted; taken out of"
    except AcceptedError as error:
        return str(error)
    before = {one.key for one in watched.model.boundaries.values() if one.accepted is not None}
    watched.accept(events)
    changed = before ^ {one.key for one in watched.model.boundaries.values() if one.accepted is not None}
    several = f"{len(changed)} boundaries " if len(changed) > 1 else ""  # of one line and reason
    home = os.path.expanduser("~")
    return f"{several}{what} {str(path).replace(home, '~', 1) if str(path).startswith(f'{home}/') else path}"
