"""Where the job's loops turn: the loops in which timed calls stand, and the moments at which their heads are passed.

An anchor is a timed call by which steps can be counted: a compiled graph, a run of the autograd engine, a call in eager. At
its first call the frames around it are noted, on the job's own thread: code objects and offsets, nothing else, because a helper
of the standard library would be looked at by Dynamo there. What loops those frames are in is found out on the hook's thread,
and where the Python has `sys.monitoring` (3.12) their heads are watched from then on.

A first call can have been before the attach, or outside of any loop (a warm-up). For those, and where no head is passed any
more (another loop has begun), the hook's thread looks at the job's stacks until it comes upon a timed call that stands in a
loop: `look`.
"""

import collections
import functools
import sys
import time
import weakref
from _thread import get_ident

from .frames import rows_of, variables_of
from .remains import Mortal

INSTRUMENT = "loop heads"
ANCHORS = frozenset(("forward", "engine", "eager"))
FARTHEST = 400  # frames that are noted
MOST_FRAMES = 8  # of the user's, that are told
MOST_LOOPS = 8  # of a site
MOST_HEADS = 256  # that are watched at a time
MOST_NOTED = 256  # anchors whose notes wait in the queue: they keep code objects alive
MOST_KNOWN = 4096  # code objects whose loops are remembered
GENERATOR, NESTED = 0x20, 0x10  # of a code object's flags
HANDLERS = ("PUSH_EXC_INFO", "CLEANUP_THROW")  # what a handler begins with
HERE = (lambda: 0).__code__.co_filename.rpartition("/")[0] + "/"


class Loops(metaclass=Mortal):
    """Notes where anchors stand, tells it, and has the heads of their loops watched."""

    def __init__(self, hook):
        self._hook = hook
        self._notes = collections.deque()  # the anchors of notes that are in the queue
        self._of = {}  # id of a code object -> (weak reference to it, its loops)
        self._told = {}  # (anchor, thread) -> what was told of it last
        self._heads = {}  # number of a loop's instrument -> (code number, head) of it
        self._let_go = set()  # (code number, head) of loops that turn too fast to be watched
        self._seeking = set()  # anchors that were never seen in a loop
        self._threads = collections.Counter()  # ident -> times an anchor was seen on it
        self._passed = False
        self.numbers = set()
        """The instruments that are anchors."""

    # ---------------------------------------------------------------- on any thread

    def anchor(self, number):
        """The call that is timed under this number runs for the first time, here and now: note where. Costs some microseconds.

        It is noted in the queue itself, so it is told before the first row of these calls: by where they stand, two calls that
        are compiled as one are told apart. Their code objects are told of before that, also where somebody else names one of
        them meanwhile. Under Dynamo's eyes too: this function must be hidden from it, as all of the hook is and what it calls.
        """
        self.numbers.add(number)
        frame, found, told = sys._getframe(1), [], self._hook.codes.number
        for _ in range(FARTHEST):
            if frame is None:
                break
            code = frame.f_code
            if is_users(code):
                told(code)
                found.append((code, frame.f_lasti))
            frame = frame.f_back
        if len(self._notes) < MOST_NOTED:
            self._notes.append(number)
            note = functools.partial(self._hook.guarded, "loops", self._noted, None, number, get_ident(), found)
            if not self._hook.outbox.put(note, soon=True):
                self._notes.pop()

    def added(self, number, role, before_attach):
        """An instrument has been told of. That of a graph or of a call in eager is told while its code is being compiled, for a
        call that comes next: unless that was before the attach, it stands here and now. The engine's calls `anchor` itself."""
        if role in ANCHORS:
            self.numbers.add(number)
            self._seeking.add(number)
            if role != "engine" and not before_attach:
                self.anchor(number)

    # ---------------------------------------------------------------- on the hook's thread

    def thread(self):
        """The ident of the thread on which most anchors were seen; None where none was."""
        return max(self._threads, key=self._threads.get, default=None)

    def saw(self, ident):
        """An anchor's row of this thread was seen."""
        self._threads[ident] += 1
        if self._threads[ident] > 1000:  # what was long ago counts less
            for each in list(self._threads):
                self._threads[each] //= 2

    def second(self):
        """Once a second: which heads are passed at all, and which too often."""
        monitoring = self._monitoring()
        if monitoring is None:
            self._passed = bool(self._told)
            return
        passed, let_go = monitoring.refill()
        self._passed = not self._heads or bool(passed & set(self._heads))
        for number in let_go & set(self._heads):
            self._let_go.add(self._heads.pop(number))
        if let_go:
            for key, message in list(self._told.items()):
                if let_go & {row[0] for row in message["heads"]}:
                    heads = [[0 if row[0] in let_go else row[0], *row[1:]] for row in message["heads"]]
                    self._tell({**message, "t": time.monotonic_ns(), "heads": heads}, key)

    @property
    def wanted(self):
        """Whether a look at a stack might tell what is not known yet."""
        return bool(self._seeking) or not self._passed

    def look(self, ident):
        """Look whether a thread is in a timed call right now; if so note where that stands."""
        found, number = [], None
        for code, _, offset, _ in rows_of(ident, FARTHEST):
            if is_timed(code):
                # the outermost that is timed: what is within it is not the loop's
                for variables in variables_of(ident, code, FARTHEST):
                    if variables.get("number") in self.numbers:
                        number, found = variables["number"], []
            elif number is not None:
                found.append((code, offset))
        if number is not None:
            self._take(number, ident, found)

    def watches(self, code):
        """Whether a head in this code object is watched."""
        number = self._hook.codes.number(code)
        return any(place[0] == number for place in list(self._heads.values()))

    def _noted(self, number, ident, frames):
        """An anchor's note has come out of the queue: what is put here goes out in its place."""
        self._notes.popleft()
        self._threads[ident] += 1
        self._take(number, ident, frames)

    def _take(self, number, ident, frames):
        """`frames`: [(code, offset)], innermost first."""
        site = [(code, offset) for code, offset in reversed(frames) if is_users(code)]
        if not site:
            return
        around = [[(head, jump) for head, jump in self.loops(code) if head <= offset <= jump] for code, offset in site]
        keep = _most_telling(around)
        heads = []
        for at in keep:
            code = site[at][0]
            told = self._hook.codes.number(code)
            heads += [[self._head(code, told, head), told, head, jump] for head, jump in around[at]]
        heads = heads[-MOST_LOOPS:]
        if heads:
            self._seeking.discard(number)
        else:
            self._seeking.add(number)
        message = {
            "k": "loops",
            "t": time.monotonic_ns(),
            "thread": ident,
            "anchor": number,
            "heads": heads,
            "site": [[self._hook.codes.number(site[at][0]), site[at][1]] for at in keep],
        }
        before = self._told.get((number, ident))
        if before is None or (before["heads"], before["site"]) != (message["heads"], message["site"]):
            self._tell(message, (number, ident))

    def _tell(self, message, key):
        self._told[key] = message
        while len(self._told) > MOST_KNOWN:
            self._told.pop(next(iter(self._told)))
        self._hook.outbox.put(message)

    def _head(self, code, told, head):
        """The number under which passages of a head are told; 0 where they cannot be."""
        monitoring = self._monitoring()
        if monitoring is None or (told, head) in self._let_go:
            return 0
        number = monitoring.number_of_head(code, head)
        if number is None and len(self._heads) < MOST_HEADS:
            number = self._hook.next_number()
            self._heads[number] = (told, head)
            place = code.co_name, code.co_filename, _line_of(code, head)
            self._hook.send_added(number, "loop", None, "loop", *place, False, code=told, offset=head)
            monitoring.head(code, head, number)
        return number or 0

    def _monitoring(self):
        if not self._hook.can_skip or not self._hook.here[0]:
            return None
        monitoring = self._hook.eager.monitoring()
        why_not = monitoring.why_not()
        if why_not is None:
            self._hook.instrument(INSTRUMENT, "on")
            return monitoring
        if INSTRUMENT not in self._hook.instruments:
            self._hook.instrument(INSTRUMENT, why_not)
        return None

    def loops(self, code):
        """[(offset of the head, offset of the last jump back to it)] of a code object, outermost first."""
        known = self._of.get(id(code))
        if known is None or known[0]() is not code:
            while len(self._of) >= MOST_KNOWN:
                self._of.pop(next(iter(self._of)))
            known = self._of[id(code)] = (weakref.ref(code), loops_of(code))
        return known[1]


def loops_of(code):
    """[(offset of the head, offset of the last jump back to it)] of a code object, outermost first. Not for Dynamo's eyes."""
    dis = sys.modules.get("dis")  # torch has it; nothing is imported for this
    if dis is None:
        return []
    found = {}
    jumps = {*dis.hasjrel, *dis.hasjabs}
    for each in dis.get_instructions(code):
        if each.opname in HANDLERS and sys.version_info >= (3, 12):
            break  # handlers stand behind all the rest, and jump back to where that goes on
        # the jump without an interrupt is that of an `await` or a `yield from`
        if each.opcode in jumps and type(each.argval) is int and each.argval <= each.offset and "NO_INT" not in each.opname:
            found[each.argval] = max(found.get(each.argval, 0), each.offset)
    return sorted(found.items(), key=lambda loop: (loop[0], -loop[1]))


def is_users(code):
    """Whether a frame of this code object is the user's, or a library's that is not torch: where a loop of steps can be."""
    file = code.co_filename
    folder = getattr(sys.modules.get("torch"), "__path__", None)
    return not file.startswith(("<frozen ", HERE)) and not (folder and file.startswith(folder[0] + "/"))


def is_timed(code):
    """Whether a frame of this code object is a timer of ours, by its free variables: what it stands for is running."""
    if not code.co_flags & NESTED:
        return False
    free = code.co_freevars
    return "number" in free and "dropped" in free


def _most_telling(around):
    """Which frames to tell, by index, outermost first: the innermost of those that are in loops, then the innermost others."""
    order = sorted(range(len(around)), key=lambda at: (bool(around[at]), at), reverse=True)
    return sorted(order[:MOST_FRAMES])


def _line_of(code, offset):
    line = code.co_firstlineno
    for begin, end, number in code.co_lines():
        if begin <= offset < end and number is not None:
            line = number
    return line
