"""Compile events, from torch's own structured trace.

torch writes one record for everything the compiler does to the logger `torch.__trace`; the same records make up a TORCH_TRACE
log, so tuimon parses both with one parser (`tuimon.sources.trace_records`). This handler picks the records that matter, trims
them and queues them; it does not interpret them. It can be put on the logger before torch is even imported.
"""

import logging
import re
import sys
import time
from _thread import get_ident

from . import facts, stack, texts
from .remains import Mortal

LOGGER = "torch.__trace"

# the phases that the screen names; inside one compilation there are hundreds of finer ones
PHASES = frozenset(
    (
        "entire_frame_compile",
        "entire_backward_compile",
        "bytecode_tracing",
        "backend_compile",
        "create_aot_dispatcher_function",
        "aot_trace_joint_graph",
        "inductor_compile",
        "GraphLowering.run",
        "code_gen",
        "async_compile.wait",
        "build_guards",
    )
)
ARTIFACTS = frozenset(
    [
        "dynamo_graph_break_reason",
        "recompile_reasons",
        *("fx_graph_cache_" + result for result in ("hit", "miss", "bypass")),
        *("aotautograd_cache_" + result for result in ("hit", "miss", "bypass")),
    ]
)
METRICS = (
    "compile_id",
    "co_name",
    "co_filename",
    "co_firstlineno",
    "cache_size",
    "guard_count",
    "graph_op_count",
    "start_time",
    "duration_us",
    "entire_frame_compile_time_s",
    "dynamo_cumulative_compile_time_us",
    "aot_autograd_cumulative_compile_time_us",
    "inductor_cumulative_compile_time_us",
    "triton_compile_time_us",
    "backward_cumulative_compile_time_us",
    "fail_type",
    "fail_reason",
    "restart_reasons",
    "is_forward",
    "recompile_reason",
    "fail_user_frame_filename",
    "fail_user_frame_lineno",
    "num_graph_breaks",
    "gc_time_us",
    "compile_time_autotune_time_us",
    "inductor_fx_local_cache_hit_count",
    "inductor_fx_local_cache_miss_count",
    "aotautograd_local_cache_hit_count",
    "aotautograd_local_cache_miss_count",
    "triton_kernel_compile_times_us",
)
DROPPED_WHEN_NONE = frozenset(METRICS[METRICS.index("fail_user_frame_filename") :])
IDENTITY = "compile identity"  # the instrument: who is being compiled, where it broke, what the guards saw
EAGER = "eager calls"
MOST_OPEN = 16  # compilations whose breaks are remembered until they end
MOST_BREAKS = 64  # of one compilation
LONGEST = 16384  # characters of a payload that are kept: reasons are a few KB, graphs can be megabytes
_NAME = re.compile(r'"name": "([^"]*)"')


class CompileLog(logging.Handler, metaclass=Mortal):
    """Queues what the compiler says."""

    def __init__(self, hook):
        super().__init__(logging.DEBUG)
        self._hook = hook
        self._files = {}
        self.texts = texts.Texts(hook)
        self._broke = {}  # (thread, compile id) -> [(code object, offset)], while the compilation lasts
        self._logger = logging.getLogger(LOGGER)
        self._hiding = None
        self._hidden = False
        self.heard = set()
        """Idents of the threads of which something was told."""

    def watch(self):
        """Listen from now on."""
        logger = self._logger
        self._hook.guarded("hiding the trace", self._hide, None)
        logger.addHandler(self)

        def stop():
            # by a new list: a record that is on its way goes through the old one to its end, and misses no handler
            with logging._lock:
                logger.handlers = [handler for handler in logger.handlers if handler is not self]
            self.close()
            if self._hidden:
                self._hiding[1]()
            return self not in logger.handlers

        self._hook.undo.add("compile log", stop)
        self._hook.instrument("compile events", "on")

    def _hide(self):
        """Keep Dynamo from compiling what torch does for our records only; does nothing before torch is there.

        Without a handler `trace_structured` returns at once. With one it runs much Python; where a backward is compiled late,
        within the compiled step, Dynamo would look at all of that. So it does, without us, in a job that writes a TORCH_TRACE;
        torch's handler for that takes itself away at the first record where no trace is wanted. Called at every record: a
        `torch._dynamo.reset()` forgets what is hidden.
        """
        if self._hiding is None:
            function = getattr(sys.modules.get("torch._logging._internal"), "trace_structured", None)
            code = getattr(function, "__code__", None)
            self._hiding = None if code is None else facts.hide_from_dynamo(code)
            if self._hiding is None:
                return
        hide, show = self._hiding
        others = [handler for handler in self._logger.handlers if handler is not self]
        if not others:
            self._hidden = True
            hide()
        if self._hidden and (others or not self._hook.here[0]):  # the session may have ended in between
            self._hidden = False
            show()

    def handle(self, record):
        """Take a record without the handler's lock: only an append happens here, and a fork must not inherit it held."""
        self._hook.guarded("compile events", self._take, None, record)
        return True

    def emit(self, record):
        """Not used: `handle` does it all."""

    def _at_fork_reinit(self):
        """Called by logging in every child that the job forks: the whole hook is silent there.

        os.register_at_fork could do the same but can never be undone; a handler is forgotten with its last reference. To ask
        for the pid, or for a page that the kernel clears at fork, costs a microsecond at each look.

        And it is off the logger there, by a new list: a child has one thread, and this is before it runs a line of the job's.
        """
        self._hook.falls_silent()
        super()._at_fork_reinit()
        self._logger.handlers = [handler for handler in self._logger.handlers if handler is not self]
        self._hook.window.forked()
        self._hook.collections.forked()

    def _take(self, record):
        metadata = getattr(record, "metadata", None)
        if not self._hook.here[0] or metadata is None:
            return
        self._hook.guarded("hiding the trace", self._hide, None)
        at = time.monotonic_ns()
        payload = getattr(record, "payload", None)
        if "chromium_event" in metadata:
            self._phase(at, metadata, payload)
            return
        if "dynamo_start" in metadata:
            self._hook.dynamo_runs()
            self._send(at, metadata, {"dynamo_start": {"stack": self._stack(metadata["dynamo_start"])}}, None, _nothing)
        elif "artifact" in metadata:
            name = metadata["artifact"].get("name")
            if name in ARTIFACTS:
                more = {"dynamo_graph_break_reason": self._broken, "recompile_reasons": self._failed}.get(name)
                self._send(at, metadata, {"artifact": {"name": name}}, None if more is None else payload, more)
        elif not texts.KINDS.isdisjoint(metadata):
            kind = next(kind for kind in metadata if kind in texts.KINDS)
            self._hook.guarded(texts.INSTRUMENT, self.texts.record, None, at, kind, metadata, payload)
        else:
            for kind in ("compilation_metrics", "bwd_compilation_metrics"):
                if kind in metadata:
                    if kind == "compilation_metrics":
                        self._hook.guarded(texts.INSTRUMENT, self.texts.ended, None, metadata)
                    metrics = metadata[kind]
                    more = self._ended if kind == "compilation_metrics" else None
                    self._send(at, metadata, {kind: metrics_of(metrics.get)}, None, more)

    def _phase(self, at, metadata, payload):
        found = _NAME.search(payload or "", 0, 300)
        if found is None or found.group(1) not in PHASES:
            return
        begins = '"ph": "B"' in payload
        if not begins and '"ph": "E"' not in payload:
            return
        self._send(at, metadata, {"phase": found.group(1), "begins": begins}, None)

    def _send(self, at, metadata, record, payload, more=None):
        """Queue a record. Where `more` is given, what the stack tells goes with it, and a failure there loses no record."""
        for key in ("frame_id", "frame_compile_id", "attempt", "compiled_autograd_id", "rank"):
            if key in metadata:
                record[key] = metadata[key]
        told, then = {}, None
        if more is not None:
            told, then = self._hook.guarded(IDENTITY, self._identity, (told, then), metadata, payload, more)
        if payload is not None and len(payload) > LONGEST:
            payload = payload[:LONGEST]
        thread = self._hook.outbox.name_of(get_ident())
        self.heard.add(get_ident())
        message = {"k": "trace", "t": at, "thread": thread, "record": record, "payload": payload}
        message.update(told)
        self._hook.outbox.put(message)
        if then is not None:  # after the record: what is watched from now on belongs to what it tells
            self._hook.guarded(EAGER, then[0], None, *then[1:])

    # ---------------------------------------------------------------- from the compiling thread's own stack

    def _identity(self, metadata, payload, more):
        """(what goes with the record, (function, arguments..) to call when it is queued or None)."""
        told = {}
        compiled = stack.compiling(sys._getframe(1), metadata)
        if compiled is not None:
            told["code"] = self._hook.codes.number(compiled.code)
            belongs = stack.owner(compiled)
            if belongs:
                told["owner"] = belongs
        return told, more(metadata, payload, compiled, told)

    def _broken(self, metadata, payload, compiled, told):
        """A graph broke: at which instruction."""
        error = sys.exc_info()[1]
        place = stack.broke_at(sys._getframe(1), error, payload)
        if place is not None:
            told["at"] = {"code": self._hook.codes.number(place[0]), "offset": place[1]}
        if compiled is None:  # logged when the compilation was over
            compiled = stack.compiled_before(error, metadata)
            if compiled is not None:
                told["code"] = self._hook.codes.number(compiled.code)
        elif place is not None:
            key = _key(metadata)
            if key not in self._broke:
                while len(self._broke) >= MOST_OPEN:  # compilations that have never ended
                    self._broke.pop(next(iter(self._broke), None), None)
                self._broke[key] = []
            if len(self._broke[key]) < MOST_BREAKS:
                self._broke[key].append(place)

    def _failed(self, _, payload, compiled, told):
        """No cache entry fitted: what its guards saw."""
        if compiled is not None:
            now = stack.values_now(stack.reasons(sys._getframe(1)), compiled)
            if now:
                told["now"] = now

    def _ended(self, metadata, _, compiled, told):
        """A compilation of a frame is over. One that failed leaves its frame to eager; whoever counts eager calls is told."""
        metrics = metadata["compilation_metrics"]
        breaks = self._broke.pop(_key(metadata), [])
        eager = getattr(self._hook, "eager", None)
        if compiled is None or metrics.get("fail_type") is None:
            return None
        told["raised"] = stack.raised(metrics, compiled, sys.exc_info()[1])
        if eager is None or told["raised"]:
            return None
        compile_id = str(metrics.get("compile_id"))
        limit = stack.limit(metrics)
        if limit is not None:
            return eager.refused, compiled.code, compile_id, limit
        # without a break that was logged it is one that Dynamo logs afterwards, if at all
        place = breaks[-1] if breaks else stack.broke_at(None, sys.exc_info()[1], None)
        return eager.skipped, compiled.code, compile_id, *(place or (None, None))

    def _stack(self, start):
        """The stack of a dynamo_start with the file names that torch keeps as numbers put back."""
        table = getattr(sys.modules.get("torch._logging.structured"), "INTERN_TABLE", {})
        files = self._files
        if len(table) != len(files):
            # a copy of the names alone: pairs are objects, and making them can start a collection, in which other threads run
            files = self._files = {table[name]: name for name in list(table)}
        stack = []
        for frame in start.get("stack") or ():
            file = frame.get("filename")
            if isinstance(file, int):
                file = files.get(file, "?")
            stack.append([file, frame.get("line"), frame.get("name")])
        return stack


def metrics_of(get):
    """The metrics that tuimon keeps, from what gives one by its name; those that many compilations lack only where they are."""
    found = {key: _short(get(key)) for key in METRICS}
    return {key: value for key, value in found.items() if value is not None or key not in DROPPED_WHEN_NONE}


def _key(metadata):
    """Which compilation a record is about, among those that are open."""
    return get_ident(), metadata.get("compiled_autograd_id"), metadata.get("frame_id"), metadata.get("frame_compile_id")


def _nothing(*_):
    """No more than who is being compiled."""


def _short(value):
    if isinstance(value, str):
        return value[:2000]
    if isinstance(value, (list, tuple)):
        return [_short(item) for item in value[:20]]
    return value
