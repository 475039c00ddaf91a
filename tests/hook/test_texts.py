"""Graph texts: what is kept of torch's log, what goes out of it, and what is bounded."""

from __future__ import annotations

import base64
import types
import zlib
from typing import Any

import pytest

from tuimon.hook import texts
from tuimon.hook.outbox import Outbox


class Hook:
    """What is needed of a session."""

    def __init__(self) -> None:
        self.outbox = Outbox(None)

    def sent(self) -> list[dict[str, Any]]:
        """What has been queued, as it goes out."""
        found = [entry() if callable(entry) else entry for entry in self.outbox.queue]
        self.outbox.queue.clear()
        return found


def text_of(message: dict[str, Any]) -> str:
    return zlib.decompress(base64.b64decode(message["z"], validate=True)).decode()


ID = {"frame_id": 3, "frame_compile_id": 1, "attempt": 0}
GRAPH = "class f:\n    def forward(self):\n        # File: model.py:3 in f, code: return secret(a)\n        mm = 1\n  #x\n"


def test_the_users_source_is_left_out() -> None:
    hook = Hook()
    texts.Texts(hook).record(5, "aot_forward_graph", ID, GRAPH)
    (message,) = hook.sent()
    assert text_of(message) == "class f:\n    def forward(self):\n        mm = 1\n"
    about = {name: message[name] for name in ("k", "t", "compile_id", "attempt", "kind", "length", "before_attach")}
    assert about == {
        "k": "graph", "t": 5, "compile_id": "3/1", "attempt": 0, "kind": "aot_forward_graph", "length": len(GRAPH),
        "before_attach": False,
    }  # fmt: skip


def test_a_text_of_many_pieces_is_whole() -> None:
    text = "".join(f"a{n} = b  # kept\n# gone {n}\n" for n in range(60000)) + "# gone"
    assert len(text) > 4 * texts.PIECE
    assert zlib.decompress(base64.b64decode(texts.packed(text))).decode() == "".join(
        f"a{n} = b  # kept\n" for n in range(60000)
    )


@pytest.mark.parametrize("aot", [True, False])
def test_dynamos_own_graph_goes_out_only_where_no_other_does(aot: bool) -> None:
    hook = Hook()
    made = texts.Texts(hook)
    made.record(1, "dynamo_output_graph", {**ID, "attempt": 0}, "thrown away")
    made.record(2, "dynamo_output_graph", {**ID, "attempt": 1}, "x = a @ b\n")
    assert hook.sent() == []
    if aot:
        made.record(3, "aot_inference_graph", {**ID, "attempt": 1}, "mm\n")
    made.ended({**ID, "compilation_metrics": {"fail_type": None}})
    (message,) = hook.sent()
    assert (message["kind"], text_of(message)) == (
        ("aot_inference_graph", "mm\n") if aot else ("dynamo_output_graph", "x = a @ b\n")
    )
    assert message["attempt"] == 1
    made.ended({**ID, "compilation_metrics": {}})
    assert hook.sent() == []


def test_a_compilation_that_fails_has_no_graph() -> None:
    hook = Hook()
    made = texts.Texts(hook)
    made.record(2, "dynamo_output_graph", ID, "x = a @ b\n")
    made.ended({**ID, "compilation_metrics": {"fail_type": "BackendCompilerFailed"}})
    for n in range(100):
        made.record(2, "dynamo_output_graph", {"frame_id": n, "frame_compile_id": 0}, "x = a @ b\n")
    made.record(2, "aot_forward_graph", ID, None)
    assert hook.sent() == [] and len(made._open) == texts.MOST_OPEN


def test_what_is_held_is_bounded_and_said_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "LONGEST", 100)
    monkeypatch.setattr(texts, "MOST_HELD", 150)
    hook = Hook()
    made = texts.Texts(hook)
    made.record(1, "aot_forward_graph", ID, "a" * 101)
    made.record(1, "aot_forward_graph", ID, "b" * 100)
    made.record(1, "aot_forward_graph", ID, "c" * 100)
    sent = hook.sent()
    assert [(message["z"] == "", message.get("cut"), message["length"]) for message in sent] == [
        (True, True, 101), (False, None, 100), (True, True, 100),
    ]  # fmt: skip
    made.record(1, "aot_forward_graph", ID, "d" * 100)
    assert text_of(hook.sent()[0]) == "d" * 100
    hook.outbox.limit = -100_000  # full
    made.record(1, "aot_forward_graph", ID, "e" * 100)
    hook.outbox.limit = 10
    made.record(1, "aot_forward_graph", ID, "f" * 100)
    assert text_of(hook.sent()[0]) == "f" * 100


def test_compile_ids_are_written_as_torch_writes_them() -> None:
    hook = Hook()
    made = texts.Texts(hook)
    for autograd, frame, number in ((None, 0, 2), (1, None, None), (1, 0, 2)):
        metadata = {"compiled_autograd_id": autograd, "frame_id": frame, "frame_compile_id": number}
        made.record(1, "aot_forward_graph", metadata, "a")
    assert [message["compile_id"] for message in hook.sent()] == ["0/2", "!1", "!1/0/2"]


def test_inductors_objects_are_found_behind_closures() -> None:
    hook = Hook()

    class CompiledFxGraph:
        def __init__(self, text: str, backward: bool) -> None:
            self.inductor_post_grad_graph_str, self.source_code = text, f"code of {text}"
            self.fx_kwargs = {"is_backward": backward}

        def __call__(self) -> None:
            pass

    first, second = CompiledFxGraph("fw", False), CompiledFxGraph("bw", True)

    def region() -> None:
        (first or second or region)()

    texts.Texts(hook).late("5/0", region)
    sent = hook.sent()
    assert [(m["kind"], m["place"], m["direction"], text_of(m), m["before_attach"]) for m in sent] == [
        ("aot_forward_graph", 0, "forward", "fw", True),
        ("inductor_output_code", 0, "forward", "code of fw", True),
        ("aot_backward_graph", 0, "backward", "bw", True),
        ("inductor_output_code", 0, "backward", "code of bw", True),
    ]
    assert texts.code_objects(types.SimpleNamespace()) == []
