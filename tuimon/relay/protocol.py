"""What the two ends of a relay say to each other.

First comes a talk with the shell over there, in lines; every line of it that is meant for us begins with a mark that is new
for each connection, so that what a login script prints in between is passed over. The line `<mark> relay` is the last one;
from there on both directions are frames of `hook.wire`.

Near to far, JSON frames: `{"list": n, "everything": bool}`, `{"choose": n, "pids": [..], "everybody": bool}`,
`{"attach": s, "pid":, "options": {..}, "patience": seconds or null, "fold": bool, "over": ns, "pcie": bool}` (with "fold": how
much longer than the usual a slow step takes at least; may be missing), `{"whole": s, "on": bool}` (of a session that is folded:
pass its calls on too, or no more), `{"cancel": s}`, `{"detach": s, "seconds":}`,
`{"hook": s, "message": {..}}` (a command for the hook), `{"beat": ns of the near end's clock, "got": bytes taken so far}`.
n and s are numbers that the near end chooses; s names a session.

Far to near, JSON frames `{"relay": word, ..}`: `hello`, `beat`, `answer` (n, to "list" and "choose"), and for a session s
`progress`, `waiting`, `refused`, `attached`, `settled`, `over`. And `of`: what is passed on from here to the next `of` belongs
to session s: the hook's own frames, and source events `{"k": "event", ..}`. The JSON of those has PASSED_ON before it, so that
nothing that a job says can be taken for a word of the relay.
"""

from __future__ import annotations

import math
from typing import Any

from tuimon.hook import wire

RELAY = f"1.{wire.PROTOCOL}"
"""What both ends have to speak alike: the number of this protocol, raised when an end that speaks the older one could not go
on, and that of the hook's frames, which the far end passes on as they are."""

MARK_VARIABLE = "TUIMON_RELAY"
"""Holds the mark in the environment of the far end, or "probe"."""

PASSED_ON = b">"
"""Before the body of each JSON frame of a session. A frame of samples needs none: the relay itself sends no samples."""

BEAT_S = 5.0
"""Each end says something at least so often.."""
LOST_S = 30.0
"""..and takes the line for cut when nothing has come for so long."""


def number(value: Any) -> int:
    """A whole number from the other end, not negative and below 2**63. Raises WireError where it is none."""
    if type(value) is not int or not 0 <= value < 2**63:
        raise wire.WireError(f"a number is wanted, not {repr(value)[:60]}")
    return value


def seconds(value: Any) -> float:
    """A number of seconds from the other end, not negative and finite. Raises WireError where it is none."""
    if type(value) is float and 0.0 <= value < math.inf:
        return value
    return float(number(value))
