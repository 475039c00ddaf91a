"""The stacks of other threads, read in one go.

Between two instructions of Python the lock of the interpreter can go to the thread that is looked at. It goes on, and frames
that were seen of it are stale: under Dynamo on Python 3.11 even what they point to may be gone. So a stack is read within one
call of C code, in which no instruction of Python runs and no collection begins, and no frame is kept.
"""

import functools
import gc
import itertools
import operator
import sys
from collections import deque

_ROW = operator.attrgetter("f_code", "f_lineno", "f_lasti", "f_globals")
_CODE = operator.attrgetter("f_code")
_VARIABLES = operator.attrgetter("f_locals")
_CLEAR = operator.methodcaller("clear")
_OFF, _ON = functools.partial(gc.disable), functools.partial(gc.enable)
_NONE = ((),)  # one call without arguments


def rows_of(ident, most):
    """[(code, line, offset, globals)] of a thread's frames, innermost first, at most so many; [] for no such thread."""
    rows = []
    _at_once(functools.partial(rows.extend, map(_ROW, _frames(ident, most))))
    return rows


def variables_of(ident, code, most):
    """The variables of each frame of a thread that runs this very code object, as dicts, innermost first.

    Up to Python 3.12 asking for them leaves a copy with the frame that keeps alive what is in it, so that one is emptied.
    """
    found = []
    frames, same = itertools.tee(_frames(ident, most))
    asked = map(_VARIABLES, itertools.compress(frames, map(functools.partial(operator.is_, code), map(_CODE, same))))
    if sys.version_info >= (3, 13):
        pairs = zip(map(dict, asked), strict=True)
    else:
        first, again = itertools.tee(asked)
        pairs = zip(map(dict, first), map(_CLEAR, again), strict=True)
    _at_once(functools.partial(found.extend, pairs))
    return [pair[0] for pair in found]


def _frames(ident, most):
    innermost = map(operator.methodcaller("get", ident), itertools.starmap(sys._current_frames, _NONE))
    chained = itertools.accumulate(itertools.chain(innermost, itertools.repeat("f_back", most - 1)), getattr)
    return itertools.takewhile(bool, chained)  # the outermost one's `f_back` is None


def _at_once(walk):
    """Call it with no collection in it: up to Python 3.11 one can begin wherever an object is made, and run the job's code."""
    plans = {True: (_OFF, walk, _ON), False: (walk,)}
    collected = gc.isenabled()
    plan = itertools.chain.from_iterable(map(plans.__getitem__, itertools.starmap(gc.isenabled, _NONE)))
    try:
        deque(map(functools.partial.__call__, plan), 0)
    except BaseException:
        if collected:
            gc.enable()
        raise
