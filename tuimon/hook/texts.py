"""The graphs of the compiler as torch writes them to its log: kept as references, packed on the hook's own thread.

torch makes these texts for its log whether we keep them or not. What AOTAutograd has made of a graph is what counts; Dynamo's
own graph goes out only where a compilation ends without one (a backend that takes that). Lines of comment hold the user's
source, and are left out before anything leaves the process.

Of a graph that was compiled before the attach, Inductor's code object still has its own form of it; other backends keep the
graph itself.
"""

import re
import sys
import time
from binascii import b2a_base64

from .graphs import behind, held_by
from .late_graphs import graph_modules, written
from .remains import Mortal

INSTRUMENT = "graph texts"
OF_AOT = ("aot_forward_graph", "aot_backward_graph", "aot_inference_graph")
OF_DYNAMO = "dynamo_output_graph"
CODE = "inductor_output_code"
KINDS = frozenset((*OF_AOT, OF_DYNAMO, CODE))
LONGEST = 8 * 1024 * 1024  # characters of one text
MOST_HELD = 32 * 1024 * 1024  # characters in all that wait to be sent
MOST_OPEN = 16  # compilations whose own graph is kept until they end
PIECE = 1 << 18  # characters that are packed at a time: the GIL is not held for longer
MOST_MODELLED = 2000  # kernels whose bytes Inductor is asked for: it takes some 20 us for each, on the compiling thread
NEAR = 16  # frames from the log handler to whoever logs
_COMMENT = re.compile(r"(?m)^[ \t]*#.*\n?")


class Texts(metaclass=Mortal):
    """Takes the texts where they come up, on the compiling thread."""

    def __init__(self, hook):
        self._hook = hook
        self._open = {}  # compilation -> (ns, Dynamo's text), while no other has come
        self._taken = 0  # characters; counted by compiling threads, one of which compiles at a time
        self._packed = [0]  # and by the hook's thread

    def record(self, at, kind, metadata, payload):
        """A record of one of `KINDS`."""
        if type(payload) is not str:
            return
        key = _key(metadata)
        if kind == OF_DYNAMO:
            while len(self._open) >= MOST_OPEN:  # compilations that have never ended
                self._open.pop(next(iter(self._open), None), None)
            self._open[key] = at, payload, metadata.get("attempt") or 0
            return
        if kind in OF_AOT:
            self._open.pop(key, None)
        size = model_bytes(sys._getframe(1)) if kind == CODE else None
        self._put(at, _compile_id(key), metadata.get("attempt") or 0, kind, payload, model_bytes=size)

    def ended(self, metadata):
        """A compilation is over: what is left of it is told."""
        found = self._open.pop(_key(metadata), None) if self._open else None
        if found is not None and metadata["compilation_metrics"].get("fail_type") is None:
            at, text, attempt = found
            self._put(at, _compile_id(_key(metadata)), attempt, OF_DYNAMO, text)

    def late(self, compile_id, graph):
        """Tell what hangs on a graph's callable from before the attach."""
        counts = {}
        codes = code_objects(graph)
        for code, backward in codes:
            trains = getattr(code, "fx_kwargs", None)
            backward = backward or (type(trains) is dict and trains.get("is_backward") is True)
            kind = "aot_backward_graph" if backward else "aot_forward_graph"
            place = counts[kind] = counts.get(kind, -1) + 1
            direction = "backward" if backward else "forward"
            for told, name in ((kind, "inductor_post_grad_graph_str"), (CODE, "source_code")):
                text = getattr(code, name, None)
                if type(text) is str and text:
                    self._put(time.monotonic_ns(), compile_id, 0, told, text, place=place, direction=direction, late=True)
        for held, backward in [] if codes else graph_modules(graph):
            direction = "backward" if backward else "forward"
            place = counts[direction] = counts.get(direction, -1) + 1
            message = {"k": "graph", "t": time.monotonic_ns(), "compile_id": compile_id, "attempt": 0, "place": place}
            message.update(direction=direction, before_attach=True, model_bytes=None)
            self._hook.outbox.put(_Writing(message, held, backward))

    def _put(self, at, compile_id, attempt, kind, text, late=False, model_bytes=None, **more):
        size = len(text)
        message = {"k": "graph", "t": at, "compile_id": compile_id, "attempt": attempt, "kind": kind, "length": size}
        message.update(before_attach=late, model_bytes=model_bytes, **more)
        if size > LONGEST or self._taken - self._packed[0] + size > MOST_HELD:
            message.update(z="", cut=True)
            self._hook.outbox.put(message)
            return
        self._taken += size
        dropped = self._hook.outbox.dropped[0]
        self._hook.outbox.put(_Packing(message, text, self._packed))
        if self._hook.outbox.dropped[0] != dropped:
            self._packed[0] += size  # a full queue; at worst another thread's drop is taken for ours


class _Packing(metaclass=Mortal):
    """A message that is made when it is sent."""

    def __init__(self, message, text, packed):
        self._message = message
        self._text = text
        self._packed = packed

    def __call__(self):
        """The message; on the hook's thread."""
        text, self._text = self._text, ""
        self._packed[0] += len(text)
        try:
            self._message["z"] = packed(text)
        except Exception as error:  # noqa: BLE001 - one text less, and it is said
            self._message.update(z="", cut=True, why=repr(error)[:200])
        return self._message


class _Writing(metaclass=Mortal):
    """The same, of a graph whose text is yet to be written."""

    def __init__(self, message, graph, backward):
        self._message = message
        self._graph = graph
        self._kind = OF_AOT[1 if backward else 0]

    def __call__(self):
        """The message; on the hook's thread."""
        graph, self._graph = self._graph, None
        message = self._message
        try:
            text, aten = written(graph)
            message.update(kind=self._kind if aten else OF_DYNAMO, length=len(text))
            message.update({"z": packed(text)} if len(text) <= LONGEST else {"z": "", "cut": True})
        except Exception as error:  # noqa: BLE001 - one text less, and it is said
            message.update(kind=self._kind, length=0, z="", cut=True, why=repr(error)[:200])
        return message


def packed(text):
    """A text without its lines of comment, compressed, in base64."""
    import zlib

    press, parts, at = zlib.compressobj(1), [], 0
    while at < len(text):
        end = text.find("\n", at + PIECE) + 1 or len(text)
        parts.append(press.compress(_COMMENT.sub("", text[at:end]).encode("utf-8", "backslashreplace")))
        at = end
    parts.append(press.flush())
    return b2a_base64(b"".join(parts), newline=False).decode()


def model_bytes(frame):
    """Bytes that Inductor says the kernels read and write, of the graph whose code is being logged at this frame.

    torch logs the code when its scheduler is done with the graph and still has it at hand; that is when torch's own log of
    metrics asks for the same, in the same way. Each kernel keeps its answer, so torch would find it. None where the code comes
    out of a cache, which has no scheduler, and where torch cannot tell.
    """
    for _ in range(NEAR):
        if frame is None or "_inductor" in frame.f_code.co_filename:
            break
        frame = frame.f_back
    if frame is None or not frame.f_code.co_filename.endswith("_inductor/graph.py"):
        return None
    try:
        nodes = sys.modules["torch._inductor.virtualized"].V.graph.scheduler.nodes
        size = sum(node.get_read_write_buffers_sizes() for node in nodes) if len(nodes) <= MOST_MODELLED else None
    except Exception:  # noqa: BLE001 - another torch, or an operator whose traffic it cannot tell
        return None
    return size if type(size) is int and size > 0 else None


def code_objects(graph):
    """[(Inductor's object, whether it was found as a backward)] behind a compiled graph's callable, nearest first."""
    return behind(graph, _code_object, lambda value: held_by(value) or _attributes(value))


def _code_object(value):
    return value if type(value).__name__ == "CompiledFxGraph" else None


def _attributes(value):
    """What a plain callable object of torch's own holds that can be called."""
    module = type(value).__module__
    if not isinstance(module, str) or not module.startswith(("torch._functorch", "torch._inductor", "torch._dynamo")):
        return []
    return [one for one in list(getattr(value, "__dict__", {}).values()) if callable(one)]


def _key(metadata):
    return metadata.get("compiled_autograd_id"), metadata.get("frame_id"), metadata.get("frame_compile_id")


def _compile_id(key):
    """As torch writes a CompileId."""
    autograd, frame, number = key
    if autograd is None:
        return f"{frame}/{number}"
    return f"!{autograd}" if frame is None else f"!{autograd}/{frame}/{number}"
