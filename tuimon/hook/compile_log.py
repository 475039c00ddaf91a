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

from . import facts

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
)
LONGEST = 16384  # characters of a payload that are kept: reasons are a few KB, graphs can be megabytes
_NAME = re.compile(r'"name": "([^"]*)"')


class CompileLog(logging.Handler):
    """Queues what the compiler says."""

    def __init__(self, hook):
        super().__init__(logging.DEBUG)
        self._hook = hook
        self._files = {}
        self._logger = logging.getLogger(LOGGER)
        self._hiding = None
        self._hidden = False

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
        """
        self._hook.here[0] = False
        super()._at_fork_reinit()

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
            self._send(at, metadata, {"dynamo_start": {"stack": self._stack(metadata["dynamo_start"])}}, None)
        elif "artifact" in metadata:
            name = metadata["artifact"].get("name")
            if name in ARTIFACTS:
                keep = payload if name in ("dynamo_graph_break_reason", "recompile_reasons") else None
                self._send(at, metadata, {"artifact": {"name": name}}, keep)
        else:
            for kind in ("compilation_metrics", "bwd_compilation_metrics"):
                if kind in metadata:
                    metrics = metadata[kind]
                    self._send(at, metadata, {kind: {key: _short(metrics.get(key)) for key in METRICS}}, None)

    def _phase(self, at, metadata, payload):
        found = _NAME.search(payload or "", 0, 300)
        if found is None or found.group(1) not in PHASES:
            return
        begins = '"ph": "B"' in payload
        if not begins and '"ph": "E"' not in payload:
            return
        self._send(at, metadata, {"phase": found.group(1), "begins": begins}, None)

    def _send(self, at, metadata, record, payload):
        for key in ("frame_id", "frame_compile_id", "attempt", "compiled_autograd_id", "rank"):
            if key in metadata:
                record[key] = metadata[key]
        if payload is not None and len(payload) > LONGEST:
            payload = payload[:LONGEST]
        thread = self._hook.outbox.name_of(get_ident())
        self._hook.outbox.put({"k": "trace", "t": at, "thread": thread, "record": record, "payload": payload})

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


def _short(value):
    if isinstance(value, str):
        return value[:2000]
    if isinstance(value, (list, tuple)):
        return [_short(item) for item in value[:20]]
    return value
