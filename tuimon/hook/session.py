"""The life of the hook in the job: put in, serve, take out.

Everything here runs on the hook's own thread, but for what the instruments put on the job's threads (timers, the log handler,
the optimizer's hooks). The promises: no exception of ours reaches the job, nothing of ours blocks it, nothing of ours stays.
"""

import contextlib
import os
import select
import sys
import threading
import time
import weakref
from _thread import allocate_lock

from . import facts, forked, history, offers, own_code, timers, wire
from .arrival import Arrival
from .codes import Codes
from .collect import Collections
from .comm import Communication
from .compile_log import CompileLog
from .device_clock import DeviceClock
from .eager import Eager
from .line import Life, Line
from .looking import EVERY_NS, Looking
from .loops import Loops
from .marks import Marks
from .now import Now
from .outbox import Outbox
from .pool import Pool
from .regions import Regions
from .remains import Mortal
from .settings import Settings
from .sites import Sites
from .steps import Steps
from .thread_clock import ThreadClock
from .torch_names import TorchNames
from .undo import Undo
from .waits import Waits
from .weave import Weaving
from .window import TICK_MS as WINDOW_TICK_MS
from .window import Window

TICK_MS = 100  # how often the queue is emptied
STATUS_S = 1.0
SETTLED_S = 1.0  # so long after a module has come it is looked at each tick what torch has got by now; then once a second
GOODBYE_S = 0.5  # so long it is tried to send what is left when the session or the job ends, while tuimon takes nothing of it
PATIENT_S = 4.0  # and so long in any case; tuimon waits a second longer
GATE_S = 2.0  # at most so long the hook's thread waits for a thread of the job that is putting something in


class Session(metaclass=Mortal):
    """One attachment. `install()`, then `serve()` until it is over."""

    def __init__(self, sock, hello, options):
        self._sock = Line(sock)
        self._hello = hello or {}
        self._life = Life(self._hello.get("life"))
        self._options = options or {}
        self._over = threading.Event()
        self._loaded, self._settled = 0, 0.0  # modules, when counted last; until when each tick looks for more of torch
        self._asked = False  # whether tuimon has asked for the end
        self._reason = "detached"
        self._numbers = iter(range(1, 2**32))
        self._cost_ns = 0.0
        self._told = None
        self.settings = Settings()
        self._names = TorchNames(self)
        self._offered = None
        self.here = [True]
        self._pid = os.getpid()
        self.outbox = Outbox(self._sock)
        self.undo = Undo()
        self.instruments = {}
        self._skip_code = None
        self._gate = allocate_lock()  # held by whoever puts something in, and to end that
        self.codes = Codes(self)
        self.eager = Eager(self)
        self.loops = Loops(self)
        self._looking = Looking(self, self.loops, self._options.get("stacks") is not False)
        self._marks = Marks(self, self._options.get("step"))
        self.clock = DeviceClock(self)
        self._pool = Pool(self)
        self._regions = Regions(self)
        self.sites = Sites(self)
        self.thread_clock = ThreadClock(self)
        self.weaving = Weaving(self)
        self._steps = Steps(self)
        self.collections = Collections(self)
        self._waits = Waits(self)
        self.window = Window(self)
        self._communication = Communication(self)
        self._log = CompileLog(self)
        self.texts = self._log.texts
        self.now = Now(self, self._log.heard)

    # ---------------------------------------------------------------- for the instruments

    def guarded(self, name, function, otherwise, *args):
        """Call `function(*args)`; if it raises, switch off the instrument of that name and give `otherwise`.

        Only Exception is held back: a KeyboardInterrupt that lands here is the job's own.
        """
        if not self.instruments.get(name, "on").startswith("on"):
            return otherwise
        try:
            return function(*args)
        except Exception as error:  # noqa: BLE001 - the job must never see it
            self.instrument(name, f"failed: {type(error).__name__}: {str(error)[:300]}")
            return otherwise

    def instrument(self, name, state):
        """Note the state of an instrument: "on", "on: " and how; or why it is not, which begins with another word."""
        self.instruments[name] = state

    def skip(self, function):
        """Make Dynamo run this function as it is, without looking into it. For where `can_skip` holds."""
        self._skip_code(function.__code__)

    def next_number(self):
        """A fresh instrument number."""
        return next(self._numbers)

    def send_added(self, number, role, compile_id, name, function, file, line, before_attach, backend=None, **more):
        """Tell tuimon what an instrument number stands for. Always before its first sample. `more`: what only its role has."""
        self.outbox.put(
            {
                "k": "added",
                "t": time.monotonic_ns(),
                "instrument": number,
                "role": role,
                "compile_id": compile_id,
                "name": name,
                "function": function,
                "file": file,
                "line": line,
                "backend": backend,
                "before_attach": before_attach,
                **more,
            }
        )
        self.loops.added(number, role, before_attach)
        self.window.added(number, role)

    def send_variant(self, number, of, sizes, about):
        """Tell tuimon that a number stands for the calls of instrument `of` at those sizes: a list of (symbol, int).

        `about`: what `of` was told with, from its compile id to its line.
        """
        self.loops.numbers.add(number)
        self.window.added(number, "forward", of)
        message = {"k": "added", "t": time.monotonic_ns(), "instrument": number, "role": "forward", "variant_of": of}
        message.update(zip(("compile_id", "name", "function", "file", "line"), about))  # noqa: B905 - 3.10 syntax
        message.update(sizes=sizes, backend=None, before_attach=False)
        self.outbox.put(message)

    def send_gap(self, what, why):
        """Tell tuimon what cannot be told here, in the report's own names, and why: a sentence."""
        self.outbox.put({"k": "gap", "t": time.monotonic_ns(), "what": what, "why": why})

    def falls_silent(self):
        """Nothing of ours that the job still calls puts anything from now on. Also for a child that the job has forked."""
        self.here[0] = False
        self.outbox.falls_silent()

    def dynamo_runs(self):
        """Dynamo is about to compile on this thread: whatever could not be installed before can be now."""
        self.torch_is_there()

    # ---------------------------------------------------------------- life

    def install(self):
        """Put in all that can be put in now. The rest follows when the job imports it."""
        try:
            self._install()
        except BaseException:
            self.undo.run()
            raise

    def _install(self):
        self._sock.settimeout(0.0)
        self._cost_ns = timers.cost_of_a_call(Outbox)
        self._offered = self.guarded("offers", offers.gather, None)
        self.outbox.put(
            {
                "k": "ack",
                "t": time.monotonic_ns(),
                "proto": wire.PROTOCOL,
                "digest": self._hello.get("digest"),
                "offers": self._offered,
            }
        )
        self._tell_facts()
        # runs at exit too, but leaves no place behind in atexit's list when it is taken away, as unregistering there does
        farewell = weakref.finalize(self, self._job_ends)
        self.undo.add("atexit", lambda: (farewell.detach(), not farewell.alive)[1])
        self.guarded("farewell", forked.tell_the_end, None, self, Session._job_ends)
        self._log.watch()
        self._names.look()
        self.torch_is_there(GATE_S)
        if self._skip_code is None:
            Arrival(self).enter()
        self._install_late()
        with contextlib.suppress(OSError):
            self.outbox.flush()  # a job that kills itself at once has said at least that it was attached to

    def torch_is_there(self, patience=0.0):
        """Take what torch offers, if the job has imported it by now. Cheap when it has not, or when it is done.

        A thread of the job never waits here: whoever is in it already does it all, or the next look will. A fork copies the
        gate as it is; the child has no hook (`here`), and no use for it.
        """
        if not self.here[0] or not self._gate.acquire(patience > 0, patience or -1):
            return
        try:
            if self.here[0]:  # the session may have ended meanwhile
                self._take_torch()
        finally:
            self._gate.release()

    def _take_torch(self):
        if self._skip_code is None:
            skip_code = facts.code_skipper()
            if skip_code is None:
                return
            for code in own_code.all_of_it():
                skip_code(code)
            self._skip_code = skip_code
            # here, where one thread is at a time
            self.guarded("loops", self.eager.monitoring().why_not, None)
        self.guarded("marked steps", self._marks.watch, None)
        self.guarded("steps", self.thread_clock.watch, None)
        self.guarded("steps", self._steps.watch, None)
        self.guarded("collections", self.collections.watch, None)
        self.guarded("waits", self._waits.watch, None)
        self.guarded("profiler windows", self.window.watch, None)
        self.guarded("communication", self._communication.watch, None)
        self.guarded("regions", self._watch_if_loaded, None)
        self.guarded("eager calls", self.eager.watch_stance, None)

    def _watch_if_loaded(self):
        if "torch._dynamo.convert_frame" in sys.modules:
            self._regions.watch()

    @property
    def can_skip(self):
        """Whether functions can be hidden from Dynamo. Nothing is put on the job's path before that is so."""
        return self._skip_code is not None

    def _install_late(self):
        if not hasattr(sys.modules.get("torch._dynamo.convert_frame"), "input_codes"):
            return
        past = self.guarded("history", history.History, None, self)
        if past is not None:
            self.guarded("history", history.send, None, self, past)
        self.now.look(past.by_id if past is not None else {})  # after the history, which has the names
        if past is None:
            return
        if self.can_skip:
            self.guarded("regions", self._regions.place_existing, None, past.entries)
            self.guarded("regions", self._regions.tell_dead, None, past.dead_graphs())
            self.eager.place_existing(past.left_to_eager())
        self.guarded("history", history.send_breaks, None, self)
        self.instruments.setdefault("history", "on")

    def region_placed(self):
        """There is a compiled region more: what the job computes with will have been set by now, and is told afresh."""
        self.settings.again()

    def serve(self):
        """Send, and listen for "detach", until tuimon or the job says that it is over. Always takes the hook out."""
        try:
            self._serve()
        except OSError:
            self._reason = "connection lost"
        except Exception as error:  # noqa: BLE001 - the job must never see it
            self._reason = f"hook failed: {error!r}"
        finally:
            self._leave()

    def _serve(self):
        decoder = wire.Decoder()
        poll = select.poll()  # not select(): a job can have more than 1,024 files open
        poll.register(self._sock, select.POLLIN)
        self._life.watch(poll)
        next_tick = next_status = 0.0
        while True:
            ready = poll.poll(WINDOW_TICK_MS if self.window.active else self._looking.rest_ms() or TICK_MS)
            if ready and self._life.is_over(poll, ready):
                self._reason = "tuimon has gone"
                return
            if any(number == self._sock.fileno() for number, _ in ready):
                try:
                    data = self._sock.recv(65536)
                except (BlockingIOError, InterruptedError):
                    data = None
                if data == b"":
                    return
                for kind, body in decoder.feed(data) if data else ():
                    if kind == wire.JSON_FRAME and self._commanded(wire.read_json(body)) == "detach":
                        self._asked = True
                        return
            if self.window.active or self.outbox.hurry:
                self.outbox.flush()
            if self.window.active:
                self.window.tick()
            self._looking.tick()
            now = time.monotonic()
            if now < next_tick:
                continue
            next_tick = now + TICK_MS / 1000 - EVERY_NS / 2e9
            if self._loaded != (loaded := len(sys.modules)):
                self._loaded, self._settled = loaded, now + SETTLED_S
            if now < self._settled or now >= next_status or self._options.get("step"):
                self.torch_is_there()
            self.guarded("weaving", self.weaving.one, None)
            self.now.tick()
            if now >= next_status:
                next_status = now + STATUS_S
                self._tell_facts()
                self.guarded("eager calls", self.eager.look, None)
                self.guarded("loops", self.loops.second, None)
                self.clock.poll()
                self.guarded("memory pool", self._pool.second, None)
                self._names.look()
                self._tell_status()
            self.outbox.flush()

    def _commanded(self, message):
        """Do what tuimon asks for, and give its name; "detach" is the caller's."""
        command = message.get("cmd")
        if command in ("window", "window_cancel"):
            self.window.command(command, message)
        return command

    def leave(self, reason):
        """Take the hook out, and say goodbye. For whoever cannot have it served."""
        self._reason = reason
        self._leave()

    def _leave(self):
        # whoever is putting something in finishes first, and nobody begins after that. One that does not finish in time (a
        # thread that was frozen in it) finds `Undo` at its end, which puts back at once what comes late
        entered = self._gate.acquire(timeout=GATE_S)
        self.falls_silent()  # what of ours is still being called, or has been wrapped by somebody else
        if entered:
            self._gate.release()
        left = self.undo.run()
        if not self._asked:
            self.window.sweep()
        self.settings.again()
        try:
            self.guarded("facts", self._tell_facts, None)
            self._tell_status()
            self.outbox.put({"k": "detached", "detached": True, "reason": self._reason, "left": left})
            self.outbox.finish(GOODBYE_S, PATIENT_S)
        finally:
            self.outbox.queue.clear()
            self._over.set()

    def _job_ends(self):
        """At exit of the job, on its main thread: have the rest sent, within a bound."""
        if os.getpid() != self._pid:
            return  # a forked child: the socket is the parent's
        self._reason = "exit"
        try:
            self._sock.shutdown(0)  # SHUT_RD: wakes the sender, which reads the end of the stream
        except OSError:
            return
        taken, deadline = 0, time.monotonic() + PATIENT_S
        while not self._over.wait(2 * GOODBYE_S) and self.outbox.taken != taken and time.monotonic() < deadline:
            taken = self.outbox.taken

    # ---------------------------------------------------------------- telling

    def _tell_facts(self):
        now = facts.gather(self.settings)
        if now != self._told:
            self._told = now
            self.outbox.put({"k": "facts", "t": time.monotonic_ns(), "wall": time.time(), **now})
        now = self.guarded("offers", offers.gather, self._offered)
        if now != self._offered:
            self._offered = now
            self.outbox.put({"k": "offers", "t": time.monotonic_ns(), "offers": now})

    def _tell_status(self):
        outbox = self.outbox
        own_s = time.thread_time() if threading.get_ident() != threading.main_thread().ident else 0.0
        self.outbox.put(
            {
                "k": "status",
                "t": time.monotonic_ns(),
                "samples": outbox.samples,
                "dropped": outbox.dropped[0],
                "hook_s": outbox.samples * self._cost_ns / 1e9 + own_s,
                "call_ns": self._cost_ns,
                "instruments": dict(self.instruments),
            }
        )
