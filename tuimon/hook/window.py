"""Profiler windows: torch's own profiler for a few steps, where somebody has asked for it.

What it gives are the operators with their shapes and, on a GPU, the kernels. It is opened and closed on the hook's own thread,
over all threads of the job, so the job runs no line for it. What is recorded is written to a file by torch itself and read in
tuimon's process.

It is not free: each operator costs more while it is open, and at its end torch sorts and writes its events with the GIL held.
That is measured and told.

Recording ends in two acts. torch frees what its callbacks write to when the profiler is disabled, and a thread of the job that
is in one at that moment, in an operator without the GIL, crashes (one window in a hundred on a busy machine). So the callbacks
are taken out first, which torch has a call for; the profiler is disabled when each operator that was under way has ended.

How many events there can be is bounded, first by how much memory the process has taken since the begin, and from the second
window on by how many there were in a second of the last one.
"""

import os
import sys
import threading
import time
from itertools import pairwise

from .profilers import INSTRUMENT, Profilers
from .remains import Mortal

STEPS_BEFORE = 32  # so many are looked at before it opens, to tell how much slower the steps in it are
BEFORE_S = 3.0  # and at most so long
MOST_S = 10.0
MOST_STEPS = 1000
MOST_EVENTS = 50_000  # torch needs some 30 us for each at the end, in which the job stands still
MOST_MEMORY = 64 * 1024 * 1024  # bytes that the process may grow by: an event takes about one KiB
EVENT_BYTES = 380  # of one in the file
TICK_MS = 5
QUIET_S = 0.25  # no operator begins to be recorded any more: so long at least until the profiler is disabled,
QUIET_STEPS = 2  # and until so many steps have ended in the meantime,
MOST_QUIET_S = 2.0  # but at most so long where nothing tells steps,
STEP_QUIET_S = 10.0  # and so long where something does: a step of seconds can be one operator that waits for the device
ENDING_S = 1.0  # the same where the hook is taken out: no step is told any more
HURRIED_S = 0.02  # the same on a thread of the job, which waits for it
PATIENT_S = 5.0  # so long the hook's thread waits for a thread of the job that is closing it
# what tells steps, the surest first; the calls of a region only where nothing else does
TELLING = ("mark", "optimizer", "forward")


class Window(metaclass=Mortal):
    """At most one window at a time, and what is told of it."""

    def __init__(self, hook):
        self._hook = hook
        self._profilers = Profilers(hook, self._give_way)
        self._roles = {}  # instrument -> its role, of those that can tell steps
        self._same = {}  # instrument of some sizes -> the one of all
        self._asked = None  # what is under way: {"window", "steps", "most_s", "dir"}
        self._ends = {}  # instrument -> [end ns of its calls], while something is under way
        self._from = 0.0  # when the looking, or the window, began
        self._before = None  # ns of a step before it
        self._number = None  # the instrument that tells the steps
        self._opened = None  # (begin ns, the same on the wall clock, start's cost, memory)
        self._hushed = None  # from when on nothing is recorded: monotonic s
        self._closing = None  # what to tell of a window whose recording has ended: (state, why, end ns, step ends)
        self._ready_ns = 0  # from then on all is recorded; steps that end while it starts are not
        self._rate = None  # events a second, in the last one
        self._files = []
        self._left_in = False

    @property
    def active(self):
        """Whether something is under way, so that the hook's thread has to look often."""
        return self._asked is not None

    def watch(self):
        """Look out for the job's own profilers from now on; to be called whenever torch may have come further."""
        if not self._left_in and self._hook.can_skip:
            self._left_in = True
            self._profilers.watch()
            self._hook.undo.add("profiler window", self._end)  # runs before what `watch` has put in is taken out
        else:
            self._profilers.watch()

    def added(self, number, role, of=None):
        """An instrument was added: whether it can tell steps. `of`: another one, some of whose calls it stands for."""
        if role in TELLING:
            self._roles[number] = role
            if of is not None:
                self._same[number] = of

    # ---------------------------------------------------------------- asked for by tuimon, on the hook's thread

    def command(self, command, message):
        """A command of tuimon's: "window" or "window_cancel". The first is always answered."""
        number = message.get("window")
        number = number if type(number) is int else 0
        if command == "window_cancel":
            self._hook.guarded(INSTRUMENT, self._cancel, None, number)
        elif not self._hook.guarded(INSTRUMENT, self._ask, False, number, message):
            self._tell(
                number, "refused", f"profiler windows {self._hook.instruments.get(INSTRUMENT)}: attach again to try once more"
            )

    def _ask(self, number, message):
        """Take it up, or say why not; {"steps", "most_s", "dir"}."""
        if self._asked is not None:
            self._tell(number, "refused", f"window {self._asked['window']} is not over yet: wait for it, or cancel it")
            return True
        folder = message.get("dir")
        if type(folder) is not str or not os.access(folder, os.W_OK | os.X_OK):
            self._tell(number, "refused", f"the job cannot write to {str(folder)[:200]}: name a folder that it can")
            return True
        why = self._look()
        if why:
            self._tell(number, "refused", why)
            return True
        steps, most_s = message.get("steps"), message.get("most_s")
        self._asked = {
            "window": number,
            "steps": min(max(steps, 1), MOST_STEPS) if type(steps) is int else 5,
            "most_s": min(max(float(most_s), 0.1), MOST_S) if type(most_s) in (int, float) and most_s == most_s else MOST_S,
            "dir": folder,
        }
        self._from, self._ends, self._ready_ns = time.monotonic(), {}, 0
        self._before = self._number = None
        self._hook.outbox.look = self._rows
        self._tell(number, "waiting", "looking at the steps before it")
        return True

    def _cancel(self, number):
        asked = self._asked
        if asked is not None and asked["window"] == number:
            self._stop(asked, "cancelled", "as asked")

    def tick(self):
        """Go on with what is under way."""
        if self._asked is not None:
            self._hook.guarded(INSTRUMENT, self._tick, None)
            if not self._hook.instruments.get(INSTRUMENT, "on").startswith("on"):
                self._abandon(self._hook.instruments[INSTRUMENT])

    def _rows(self, rows):
        """Samples on their way out: keep the ends of what can tell steps."""
        roles, same, ends = self._roles, self._same, self._ends
        for row in rows:
            if row[0] in roles:
                ends.setdefault(same.get(row[0], row[0]), []).append(row[4])

    def _tick(self):
        asked, opened = self._asked, self._opened  # the job's thread may close it, and forget it, at any point
        if asked is None:
            return
        passed = time.monotonic() - self._from
        if opened is None:
            most = max((len(ends) for number, ends in self._ends.items() if self._roles[number] != "forward"), default=0)
            if most > STEPS_BEFORE or passed >= BEFORE_S:
                self._number = self._telling()
                gaps = self._gaps()[-STEPS_BEFORE:]
                self._before = _median(gaps)
                self._open(asked)
            return
        if self._closing is not None:
            if self._is_quiet():
                self._finish(asked)
            return
        if self._number is None:
            self._number = self._telling()
        done = len(self._step_ends()) - 1  # the first end is where the first whole step begins
        if done >= asked["steps"]:
            self._stop(asked, "closed", "")
        elif passed >= asked["most_s"]:
            self._stop(asked, "closed", f"{asked['most_s']:.1f} s were over before {asked['steps']} steps")
        elif self._rate and passed * self._rate > MOST_EVENTS:
            self._stop(asked, "closed", f"as many events as a window may have ({MOST_EVENTS}), after {passed:.1f} s")
        elif _memory() - opened[3] > MOST_MEMORY:
            self._stop(asked, "closed", f"the job's memory grew by {MOST_MEMORY >> 20} MB in it, after {passed:.1f} s")

    def _telling(self):
        """The instrument that tells the steps, by what has come."""
        for role in TELLING:
            found = [number for number in self._ends if self._roles[number] == role]
            if found:
                return max(found, key=lambda number: len(self._ends[number]))
        return None

    def _step_ends(self):
        """The ends of the steps, in their order."""
        return sorted(end for end in self._ends.get(self._number, ()) if end >= self._ready_ns)

    def _gaps(self):
        return [later - earlier for earlier, later in pairwise(self._step_ends())]

    # ---------------------------------------------------------------- opening and closing

    def _refusal(self):
        if not self._hook.can_skip:
            return "the job has not imported torch yet: ask again when it has"
        state = self._hook.instruments.get(INSTRUMENT, "on")
        return "" if state.startswith("on") else f"{state}: attach again to try once more"

    def _look(self):
        return self._refusal() or self._profilers.refusal()

    def _open(self, asked):
        if not self._profilers.take(1.0):
            self._refuse(asked, "the job is starting a profiler of its own: read the trace that it writes")
            return
        try:
            why = self._look()
            if why:
                self._refuse(asked, why)
                return
            self._ends = {}
            self._start()
            self._from = time.monotonic()
            self._tell(asked["window"], "open", "", begin_ns=self._opened[0])
        finally:
            self._profilers.release()

    def _start(self):
        """With the lock held, and nothing between the last look and this that lets another thread run."""
        torch_c = sys.modules["torch._C"]
        kinds, control = torch_c._profiler, torch_c._autograd
        activities = {kinds.ProfilerActivity.CPU}
        cuda = getattr(kinds.ProfilerActivity, "CUDA", None)
        if getattr(sys.modules.get("torch.cuda"), "_initialized", False) is True and cuda in control._supported_activities():
            activities.add(cuda)
        experimental = kinds._ExperimentalConfig(profile_all_threads=True)
        config = kinds.ProfilerConfig(kinds.ProfilerState.KINETO, True, False, False, False, False, experimental)
        memory, (began, wall) = _memory(), _clocks()
        control._prepare_profiler(config, activities)
        # preparing lets other threads run: what would start there waits for our lock, unless it is none of Python's
        self._opened = (began, wall, 0, memory)
        control._enable_profiler(config, activities)
        self._ready_ns = time.monotonic_ns()
        self._opened = (began, wall, self._ready_ns - began, memory)

    def _refuse(self, asked, why):
        self._over()
        self._tell(asked["window"], "refused", why)

    def _stop(self, asked, state, why):
        """End what is under way; on the hook's thread. Does nothing where the job has ended it, or is about to."""
        if not self._profilers.take(PATIENT_S):
            return
        try:
            if self._asked is not asked:
                return
            if self._opened is None:
                self._over()
                self._tell(asked["window"], state, why)
                return
            if self._closing is None:
                told = self._step_ends()
                self._hush()
                self._closing = (state, why, time.monotonic_ns(), told)
        finally:
            self._profilers.release()

    def _is_quiet(self):
        """Whether no thread is in an operator that is recorded, as far as steps and time tell."""
        hushed = self._hushed
        if hushed is None:
            return True  # the job's thread has closed it meanwhile
        passed = time.monotonic() - hushed
        steps = sum(end > hushed * 1e9 for end in self._ends.get(self._number, ()))
        return passed >= QUIET_S and (steps >= QUIET_STEPS or passed >= (STEP_QUIET_S if self._number else MOST_QUIET_S))

    def _finish(self, asked):
        """Close the window that records nothing any more, and tell of it. Does nothing where the job has ended it."""
        if not self._profilers.take(PATIENT_S):
            return
        try:
            if self._asked is not asked or self._opened is None:
                return
            begin, wall, cost, _ = self._opened
            state, why, end, told = self._closing
            before, closing = self._before, time.monotonic_ns()
            file = f"tuimon-window-{os.getpid()}-{asked['window']}.json"
            path = os.path.join(asked["dir"], file) if state == "closed" else ""
            self._close(path)
            self._over()
        finally:
            self._profilers.release()
        gaps = [later - earlier for earlier, later in pairwise(told)]
        spent = cost + time.monotonic_ns() - closing
        size = _size(path)
        if path and not size:
            path, why = "", why or f"torch could not write the trace to {asked['dir']}"
        if size:
            self._rate = max(1.0, size / EVENT_BYTES / max((end - begin) / 1e9, 1e-3))
            self._files.append(path)
        inside = _median(gaps)
        more = {"begin_ns": begin, "begin_wall_ns": wall, "end_ns": end, "path": path, "job_s": spent / 1e9}
        more["slower"] = inside / before if inside and before else None
        if gaps:  # the whole steps in it, to which the trace is cut where it is read
            more["first_ns"], more["last_ns"] = told[0], told[-1]
        self._tell(asked["window"], state, why, steps=len(gaps), **more)

    def _hush(self):
        """Let no operator begin to be recorded any more, with the lock held."""
        kinds, control = sys.modules["torch._C"]._profiler, sys.modules["torch._C"]._autograd
        self._hushed = time.monotonic()  # first: where the call fails, it is closed all the same
        # the CPU's alone, though torch writes a line to stderr then: for a GPU's it would wait for the device
        control._toggle_collection_dynamic(False, {kinds.ProfilerActivity.CPU})

    def _close_soon(self, seconds):
        """Close it where nobody can come back for that, with the lock held: what it has is thrown away."""
        if self._hushed is None:
            self._hush()
        time.sleep(max(0.0, self._hushed + seconds - time.monotonic()))
        self._close("")

    def _close(self, path):
        """Close the profiler, with the lock held, once it is quiet; write what it has if a path is given."""
        control = sys.modules["torch._C"]._autograd
        self._opened = None
        result = control._disable_profiler()
        if path:
            result.save(path)

    def _give_way(self, why):
        """The job is about to start something that a window must not meet: on its thread, with the lock held."""
        if self._opened is not None:
            number, begin, cost = self._asked["window"], self._opened[0], self._opened[2]
            end = time.monotonic_ns()
            self._close_soon(HURRIED_S)
            self._over()
            spent = (cost + time.monotonic_ns() - end) / 1e9
            why = f"{why}: what was recorded is thrown away"
            self._tell(number, "cancelled", why, job_s=spent, begin_ns=begin, end_ns=end)

    def _abandon(self, why):
        """Something of ours has failed: out with it."""
        asked = self._asked
        if asked is not None:
            self._end()
            self._tell(asked["window"], "cancelled", f"profiler windows {why}")

    def _over(self):
        self._asked = self._closing = self._hushed = None
        self._ends = {}
        self._hook.outbox.look = None

    # ---------------------------------------------------------------- the ends of the hook

    def _end(self):
        """Close what is open, for good; gives whether nothing is."""
        if self._opened is not None:
            taken = self._profilers.take(PATIENT_S)
            try:
                if self._opened is not None:
                    mains = threading.get_ident() == threading.main_thread().ident  # the job ends, and waits for it
                    self._close_soon(QUIET_S if mains else ENDING_S)
            finally:
                if taken:
                    self._profilers.release()
        self._over()
        return self._opened is None

    def sweep(self):
        """Remove the files that nobody has read: for an end in which tuimon has gone."""
        for path in self._files:
            try:
                os.unlink(path)
            except OSError:
                continue

    def forked(self):
        """This process is a child that the job has forked while a window was open: let it record nothing.

        To close the profiler here would take as long as to close it there. Its callbacks are what costs; without them a
        profiler that the child starts itself is the only one.
        """
        if self._opened is not None:
            self._opened = None
            sys.modules["torch._C"]._autograd._clear_callbacks()

    def _tell(self, number, state, why, **more):
        steps = more.pop("steps", 0)
        message = {"k": "window", "t": time.monotonic_ns(), "window": number, "state": state, "why": why, "steps": steps}
        message.update(more)
        self._hook.outbox.put(message)


def _clocks():
    """(monotonic ns, the same moment on the wall clock): of three readings the one that was interrupted least."""
    found = []
    for _ in range(3):
        before, wall, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        found.append((after - before, before, wall))
    return min(found)[1:]


def _median(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else None


def _size(path):
    try:
        return os.path.getsize(path) if path else 0
    except OSError:
        return 0


def _memory():
    """Bytes of this process that are in memory; 0 where the kernel does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * 4096
    except (OSError, ValueError, IndexError):
        return 0
