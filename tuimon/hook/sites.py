"""Where a long call was made from: told for rows of a millisecond and more, and for at most twenty of them a second.

The job's thread walks its own frames outwards, notes code objects and places, and looks at nothing else of them.
"""

import os
import sys
from _thread import get_ident

from .remains import Mortal

LONG_NS = 1_000_000
A_SECOND = 20  # messages
OF_A_ROLE = 4  # of those, for one role, whatever the length
LONGER = 1.5  # a call that much longer than the longest told in this second is told all the same
TOLD = 6  # frames
MOST_PATH = 16  # of the user's, with the places at which they stand
FARTHEST = 60  # frames looked at
GENERATED = ("<frozen ", "<eval_with_key>")

_SECOND_NS = 1_000_000_000


class Sites(metaclass=Mortal):
    """Tells where long calls of instruments were made from."""

    def __init__(self, hook):
        self._hook = hook
        self._second = 0
        self._told = 0
        self._roles = {}  # role -> [told in this second, ns of the longest of them]
        self._torch = None
        self._python = os.path.dirname(os.__file__) + "/"
        self.hidden = []
        """Code objects that are ours and have a file of torch's (`weave`)."""

    def tell(self, role, number, begin, end):
        """A call of this instrument has just ended on this thread. For those of `LONG_NS` and more."""
        self._hook.guarded("sites", self._tell, None, role, number, begin, end, sys._getframe(1))

    def _wanted(self, role, begin, end):
        # two threads at a time may tell one more between them
        second = end // _SECOND_NS
        if second != self._second:
            self._second, self._told = second, 0
            self._roles.clear()
        if self._told >= A_SECOND:
            return False
        told = self._roles.setdefault(role, [0, 0])
        if told[0] >= OF_A_ROLE and end - begin < told[1] * LONGER:
            return False
        self._told += 1
        told[0] += 1
        told[1] = max(told[1], end - begin)
        return True

    def _tell(self, role, number, begin, end, frame):
        if not self._wanted(role, begin, end):
            return
        ours = sys._getframe().f_code.co_filename.rpartition("/")[0] + "/"
        while frame is not None and (frame.f_code.co_filename.startswith(ours) or _is_among(frame.f_code, self.hidden)):
            frame = frame.f_back
        if frame is None:
            return  # a thread of the hook's own
        user, stack, path = None, [], []
        innermost = frame
        for _ in range(FARTHEST):
            if frame is None or len(path) >= MOST_PATH:
                break
            code = frame.f_code
            if not code.co_filename.startswith(ours):
                if len(stack) < TOLD:
                    stack.append([code.co_filename, frame.f_lineno or 0, code.co_name])
                if not self._is_library(code.co_filename):
                    user = user or frame
                    path.append([self._hook.codes.number(code), frame.f_lasti])
            frame = frame.f_back
        at = user or innermost
        stack.reverse()
        path.reverse()
        self._hook.outbox.put(
            {
                "k": "site",
                "t": end,
                "thread": get_ident(),
                "instrument": number,
                "code": self._hook.codes.number(at.f_code),
                "line": at.f_lineno or 0,
                "lasti": at.f_lasti,
                "stack": stack,
                "path": path,
            }
        )

    def _is_library(self, file):
        """Whether it is torch's own code or Python's: neither is where the user would look first."""
        if self._torch is None:
            folder = getattr(sys.modules.get("torch"), "__path__", None)
            self._torch = (*GENERATED, folder[0] + "/") if folder else None
        if file.startswith(self._torch or GENERATED):
            return True
        return file.startswith(self._python) and "-packages/" not in file


def _is_among(code, codes):
    return any(one is code for one in codes)  # not `in`: code objects that are equal can be two functions
