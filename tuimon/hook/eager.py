"""Which calls of a frame run in eager: past the recompile limit, because Dynamo has given the frame up, or by a stance.

Nothing is watched before the first such frame is met; a healthy job has none. What is met is watched by `monitoring` where the
Python has it, else by `lookups`, which sees frames that have cache entries only.
"""

import sys
import time
import weakref
from _thread import get_ident

from .lookups import Lookups
from .monitoring import GENERATOR, Monitoring
from .remains import Mortal

CALLS, CROSSINGS, LIMITED = "frames.eager_calls", "boundaries.crossings", "frames.limited_eager_calls"
ALONE = "itself alone: frames that it calls then are not compiled any more, and not counted"
ALL = "all its calls, also those that Dynamo did not see"
EAGER = "eager calls"
BY_LINE = "by line: before the attach Dynamo noted no instruction"
MOST_OF_A_STANCE = 1024  # frames that are watched because of a stance
MOST_STANCES = 32  # changes of stance that are followed at once; each costs a message and more for each frame


class Eager(metaclass=Mortal):
    """Watches frames whose calls run in eager, and what would have broken them."""

    def __init__(self, hook):
        self._hook = hook
        self._forced = [False]
        self._monitoring = None
        self._lookups = None
        self._ids = {}  # instrument -> compile id it was told with
        self._gaps = set()
        self._stance = "default"
        self._by_stance = []  # (weak reference to a code object, its instrument)
        self._stances = None  # changes that were followed; None: torch's function for it is not watched

    # ---------------------------------------------------------------- for the log of the compiler, on the compiling thread

    def refused(self, code, compile_id, limit):
        """The recompile limit has refused a call of this code object: it runs in eager, and later ones that fit no entry do.

        `limit` is the limit's name.
        """
        self._hook.guarded("eager calls", self._refused, None, code, compile_id, False)

    def skipped(self, code, compile_id, at_code, at_offset):
        """Dynamo has given the frame of `code` up. The instruction that broke it, if known, is the one at `at_offset` in
        `at_code` (the frame's own code object, or that of a function it calls); else both are None."""
        self._hook.guarded("eager calls", self._skipped, None, code, compile_id, at_code, at_offset, "", False)

    # ---------------------------------------------------------------- on the hook's thread

    def place_existing(self, past):
        """Watch what was met before the attach: an iterable of (code, compile_id, "limit" or "skipped", line that broke it)."""
        for code, compile_id, why, fail_line in past:
            if why == "limit":
                self._hook.guarded("eager calls", self._refused, None, code, compile_id, True)
            else:
                self._hook.guarded("eager calls", self._place_skipped, None, code, compile_id, fail_line)

    def look(self):
        """Once a second: whether the job has changed its stance, and whether something went uncounted."""
        module = vars(sys.modules["torch._dynamo.eval_frame"]) if "torch._dynamo.eval_frame" in sys.modules else {}
        name = getattr(module.get("_stance"), "stance", None)
        if isinstance(name, str):
            self.stance(name)
        if self._lookups is not None and self._lookups.unseen:
            self._tell_gap(LIMITED, "a profiler ran while calls of a frame past its limit came: those could not be told apart")

    def watch_stance(self):
        """Be told of each `torch.compiler.set_stance`. Does nothing where Dynamo is not loaded yet, or the second time."""
        module = sys.modules.get("torch._dynamo.decorators")
        original = None if module is None else vars(module).get("_set_stance")
        if self._stances is not None or original is None:
            return
        self._stances = 0
        followed, guarded = self._follow, self._hook.guarded

        def _set_stance(stance):
            prior = original(stance)
            guarded("eager calls", followed, None, stance)
            return prior

        vars(_set_stance).update(vars(original))
        self._hook.skip(_set_stance)
        module._set_stance = _set_stance
        self._hook.undo.attribute(module, "_set_stance", _set_stance, original)

    def _follow(self, stance):
        name = getattr(stance, "stance", None)
        if not self._hook.here[0] or type(name) is not str or name == self._stance:
            return
        self._stances += 1
        if self._stances <= MOST_STANCES:
            self.stance(name)
        else:
            self._tell_gap(CALLS, "the job changes its stance often: of its calls in eager only some were counted")

    def stance(self, name):
        """The stance that the job has set (`torch.compiler.set_stance`), as far as it was seen."""
        if name != self._stance:
            self._stance = name
            self._hook.guarded("eager calls", self._take_stance, None, name)

    # ---------------------------------------------------------------- watching

    def _refused(self, code, compile_id, before_attach):
        watcher = self._watcher()
        if watcher is None:
            return
        number = self._calls(watcher, code, compile_id, "limit", ALONE, before_attach)
        # `monitoring` sees the refused call begin. `lookups` does not: its lookup is over
        if watcher is self._lookups and not before_attach and _goes_on():
            _put_instant(self._hook.outbox, number)

    def _skipped(self, code, compile_id, at_code, at_offset, counted, before_attach):
        why_not = self._why_no_monitoring()
        if why_not is not None:
            self._tell_gap(CALLS, why_not)
            self._tell_gap(CROSSINGS, why_not)
            return
        self._calls(self._monitoring, code, compile_id, "skipped", "", before_attach)
        if at_code is not None and self._monitoring.number_of(at_code, at_offset) is None:
            if at_code.co_flags & GENERATOR:
                counted = counted or ALL
            number = self._tell(at_code, compile_id, "crossing", "", counted, before_attach, at_offset)
            self._monitoring.passes(at_code, at_offset, number)

    def _place_skipped(self, code, compile_id, fail_line):
        at_code = at_offset = None
        if fail_line and self._why_no_monitoring() is None:
            at_code, at_offset = _instruction_at(code, fail_line)
            if at_code is None:
                self._tell_gap(
                    CROSSINGS, "it broke before the attach, in a function that it calls: at which instruction is not known"
                )
        self._skipped(code, compile_id, at_code, at_offset, BY_LINE, True)

    def _calls(self, watcher, code, compile_id, why, counted, before_attach):
        """Watch calls of a code object; gives the instrument. Asked again, for the same frame of Dynamo's, it is the same.

        After a `torch._dynamo.reset()` it is another frame, whose ids begin again.
        """
        number = watcher.number_of(code)
        if number is None or (not before_attach and _begins_again(self._ids.get(number), compile_id)):
            number = self._tell(code, compile_id, "eager", why, counted, before_attach)
            self._ids[number] = compile_id
            watcher.calls(code, number)
        return number

    def _tell(self, code, compile_id, role, why, counted, before_attach, offset=None):
        if self._monitoring is not None and self._monitoring.sees_all_calls:
            counted = counted or ALL
        number = self._hook.next_number()
        name, file, line = code.co_name, code.co_filename, code.co_firstlineno
        more = {"code": self._hook.codes.number(code), "why": why, "counted": counted}
        if offset is not None:
            more["offset"] = offset
        self._hook.send_added(number, role, compile_id, name, name, file, line, before_attach, **more)
        return number

    def monitoring(self):
        """What watches code objects by `sys.monitoring`: one for the session, shared with those who watch other things by it.

        To be asked for once under the session's gate, before two threads can: each would take a tool.
        """
        if self._monitoring is None:
            self._monitoring = Monitoring(self._hook, self._forced)
        return self._monitoring

    def _why_no_monitoring(self):
        if EAGER not in self._hook.instruments:
            self._hook.instrument(EAGER, "on")
        return self.monitoring().why_not()

    def _watcher(self):
        """What is to watch calls of frames that have entries; None where nothing can, and then that has been told."""
        why_not = self._why_no_monitoring()
        if why_not is None:
            return self._monitoring
        if hasattr(sys, "monitoring"):  # a profile function would be dear there: it is made of the same events, on all code
            self._tell_gap(CALLS, why_not)
            return None
        if self._lookups is None:
            lookups = Lookups(self._hook, self._lost)
            why_not = lookups.why_not()
            if why_not is not None:
                self._tell_gap(CALLS, why_not)
                return None
            self._lookups = lookups
        return self._lookups

    def _lost(self):
        self._tell_gap(LIMITED, "the job has put a hook of its own (guard collectives?) in the place of the one that counts")

    # ---------------------------------------------------------------- stances

    def _take_stance(self, name):
        watcher = self._monitoring if self._lookups is None else self._lookups
        for reference, number in self._by_stance:
            code = reference()
            if code is not None and watcher.number_of(code) == number:
                watcher.forget_calls(code)
        self._by_stance.clear()
        self._forced[0] = name == "force_eager"
        if name not in ("force_eager", "eager_on_recompile"):
            return
        why_not = self._why_no_monitoring()
        if why_not is not None and name == "force_eager":
            self._tell_gap(CALLS, f"under the stance force_eager Dynamo looks nothing up, and {why_not}")
            return
        watcher = self._watcher()
        seen = getattr(getattr(sys.modules.get("torch._dynamo.convert_frame"), "input_codes", None), "seen", None)
        if watcher is None or seen is None:
            return
        for held in list(seen)[-MOST_OF_A_STANCE:]:
            code = held() if callable(held) else held
            if hasattr(code, "co_code") and watcher.number_of(code) is None:
                counted = f"while the stance was seen to be {name}"
                if self._stances is None or self._stances > MOST_STANCES:
                    counted += ", by a look each second"
                self._by_stance.append((weakref.ref(code), self._calls(watcher, code, None, "stance", counted, False)))

    def _tell_gap(self, what, why):
        if (what, why) not in self._gaps:
            self._gaps.add((what, why))
            self._hook.send_gap(what, why)


def _put_instant(outbox, number):
    if len(outbox.queue) < outbox.limit:
        at = time.monotonic_ns()
        outbox.queue.append((number, get_ident(), 0, at, at))
    else:
        outbox.dropped[0] += 1


def _begins_again(before, now):
    """Whether a compile id ("3/8") cannot be a later one of the frame that had the other: ids only grow, but for a reset.

    None: of no compilation, as where a stance was why.
    """
    if now is None or before is None:
        return now is not None
    frame_before, _, number_before = before.rpartition("/")
    frame, _, number = now.rpartition("/")
    if frame != frame_before or not (number.isdigit() and number_before.isdigit()):
        return True
    return int(number) <= int(number_before)


def _goes_on():
    """Whether the call that was refused a compilation runs in eager. Not so where the job has asked for an error instead."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "__call__" and frame.f_globals.get("__name__") == "torch._dynamo.convert_frame":
            variables = frame.f_locals
            inner = getattr(variables.get("self"), "_inner_convert", None)
            if type(variables) is dict:
                variables.clear()  # a copy that would keep alive what is in it
            if inner is not None:
                return not getattr(getattr(inner, "_box", None), "error_on_graph_break", False)
        frame = frame.f_back
    return True


# what breaks a graph, the surest first: entering a `with`, a call, an operator; by the beginnings of names from 3.12 on
_BREAKING = (("BEFORE_WITH", "LOAD_SPECIAL"), ("CALL",), ("BINARY_", "COMPARE_", "STORE_SUBSCR", "UNARY_", "POP_JUMP_"))


def _instruction_at(code, line):
    """(code object, offset) of the instruction that most probably broke a graph on a line: in the frame's own code or one
    nested in it. (None, None) where the line is in neither. For Pythons that know the positions of instructions."""
    import dis  # here, because only a job with torch comes this way, and torch has it

    for holder in _nested(code):
        on_line = [each for each in dis.get_instructions(holder) if each.positions and each.positions.lineno == line]
        for at, each in enumerate(on_line):
            # what stands behind a condition on the line runs now and then, and with the jump itself the rest is done
            if each.opname.startswith("POP_JUMP") and any(one.opname.startswith("CALL") for one in on_line[:at]):
                on_line = on_line[:at]
                break
        for names in _BREAKING:
            found = [each.offset for each in on_line if each.opname.startswith(names) and "INTRINSIC" not in each.opname]
            if found:
                return holder, found[0] if names[0] == "BEFORE_WITH" else found[-1]
    return None, None


def _nested(code):
    yield code
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            yield from _nested(constant)
