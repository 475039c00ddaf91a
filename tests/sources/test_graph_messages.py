"""The hook's messages about graphs and windows: put together, bounded, and without an exception whatever they hold."""

from __future__ import annotations

import base64
import json
import os
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.sources.test_graph_text import TEXTS
from tuimon import events as ev
from tuimon.hook import wire
from tuimon.sources.graph_messages import LONGEST_TEXT
from tuimon.sources.live import LiveDecoder

T = 5_000_000_000


def graph(kind: str, text: str, compile_id: str = "0/0", attempt: int = 0, **more: Any) -> dict[str, Any]:
    packed = base64.b64encode(zlib.compress(text.encode(), 1)).decode()
    return {
        "k": "graph", "t": T, "compile_id": compile_id, "attempt": attempt, "kind": kind, "z": packed, "length": len(text),
        "before_attach": False, "model_bytes": None, **more,
    }  # fmt: skip


def decoded(decoder: LiveDecoder, message: dict[str, Any]) -> list[ev.Event]:
    return decoder.frame(wire.JSON_FRAME, wire.json_frame(message)[wire.HEADER.size :])


def texts(program: str, *kinds: str) -> list[tuple[str, str]]:
    return [(kind, text) for kind, text in TEXTS[program] if kind in kinds]


AOT = ("aot_forward_graph", "aot_backward_graph", "aot_inference_graph")


def started(compile_id: str, direction: str = "forward") -> dict[str, Any]:
    frame, number = compile_id.split("/")
    record = {"dynamo_start": {"stack": []}, "frame_id": int(frame), "frame_compile_id": int(number), "attempt": 0}
    return {"k": "trace", "t": T, "thread": "main", "record": record, "payload": None}


def test_forward_backward_and_what_inductor_made_of_them() -> None:
    decoder = LiveDecoder(1, "", "run")
    told: list[ev.GraphSeen] = []
    for kind, text in texts("dynamic", *AOT, "inductor_output_code"):
        for event in decoded(decoder, graph(kind, text, model_bytes=512 if kind.startswith("inductor") else None)):
            assert isinstance(event, ev.GraphSeen)
            told.append(event)
    assert [(one.direction, one.place, bool(one.kernels), one.model_bytes) for one in told] == [
        ("forward", 0, False, None),
        ("backward", 0, False, None),
        ("forward", 0, True, 512),
        ("backward", 0, True, 512),
    ]
    assert told[2].rows == told[0].rows and told[2].symbols == (("s77", 16),)


def test_several_graphs_of_an_id_have_places() -> None:
    decoder = LiveDecoder(1, "", "run")
    ((kind, text),) = texts("linear", "aot_forward_graph")
    places = [decoded(decoder, graph(kind, text))[0].place for _ in range(3)]  # type: ignore[attr-defined]
    assert places == [0, 1, 2]


def test_another_attempt_or_another_compilation_of_the_id_begins_anew() -> None:
    decoder = LiveDecoder(1, "", "run")
    ((kind, text),) = texts("linear", "aot_forward_graph")
    first, second = (decoded(decoder, graph(kind, text, attempt=n))[0] for n in (0, 1))
    assert isinstance(first, ev.GraphSeen) and isinstance(second, ev.GraphSeen)
    assert (first.place, second.place, second.attempt) == (0, 0, 1)
    decoded(decoder, started("0/0"))  # after a reset ids are given again
    (third,) = decoded(decoder, graph(kind, text, attempt=1))
    assert isinstance(third, ev.GraphSeen) and third.place == 0


def test_dynamos_graph_only_where_there_is_no_other() -> None:
    ((kind, text),) = texts("linear", "dynamo_output_graph")
    (alone,) = decoded(LiveDecoder(1, "", "run"), graph(kind, text))
    assert isinstance(alone, ev.GraphSeen) and alone.level == "torch"
    decoder = LiveDecoder(1, "", "run")
    for aot in texts("linear", "aot_forward_graph"):
        decoded(decoder, graph(*aot))
    assert decoded(decoder, graph(kind, text)) == []


@pytest.mark.parametrize("more", [{"z": "", "cut": True}, {"z": None}])
def test_a_text_that_was_not_sent_is_cut(more: dict[str, Any]) -> None:
    message = {**graph("aot_forward_graph", ""), "length": 9_000_000, **more}
    (event,) = decoded(LiveDecoder(1, "", "run"), message)
    assert isinstance(event, ev.GraphSeen) and event.cut and event.why and event.rows == ()


def test_a_text_that_unpacks_without_end_is_cut() -> None:
    (event,) = decoded(LiveDecoder(1, "", "run"), graph("aot_forward_graph", " " * (LONGEST_TEXT + 10)))
    assert isinstance(event, ev.GraphSeen) and event.cut


def test_a_graph_that_is_too_large_is_cut() -> None:
    wide = ", ".join(["x"] * 3000)
    lines = [f'        c{n}: "f32[{n}][1]cpu" = torch.ops.aten.cat.default([{wide}], {n})' for n in range(40)]
    text = (
        'class G(torch.nn.Module):\n    def forward(self, x: "f32[4][1]cpu"):\n' + "\n".join(lines) + "\n        return (c1,)\n"
    )
    (event,) = decoded(LiveDecoder(1, "", "run"), graph("aot_forward_graph", text))
    assert isinstance(event, ev.GraphSeen) and event.cut and event.rows == () and "larger" in event.why


@pytest.mark.parametrize("z", ["!!", "AAAA", base64.b64encode(zlib.compress(b"x" * 500)[:-4]).decode(), 5, ["x"], {"a": 1}])
def test_what_is_no_packed_text_is_an_error_that_is_told(z: Any) -> None:
    with pytest.raises(wire.WireError, match="'graph'"):
        decoded(LiveDecoder(1, "", "run"), {**graph("aot_forward_graph", "x"), "z": z})


def test_nothing_of_the_users_text_goes_on() -> None:
    text = TEXTS["linear"][0][1].replace("addmm:", "secret_name:").replace("class GraphModule", "class Secret")
    (event,) = decoded(LiveDecoder(1, "", "run"), graph("aot_forward_graph", text))
    assert isinstance(event, ev.GraphSeen) and event.rows and "ecret" not in repr(event)


def test_compilations_without_number_are_not_all_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuimon.sources.graph_messages.MOST_KEPT", 10)
    decoder = LiveDecoder(1, "", "run")
    ((kind, text),) = texts("mm", "aot_inference_graph")
    for number in range(50):
        decoded(decoder, graph(kind, text, f"{number}/0"))
    assert len(decoder._graphs._told) == 10


# -------------------------------------------------------------------------------------------------- windows

TRACE = {
    "schemaVersion": 1,
    "traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "Torch-Compiled Region: 0/0", "pid": 1, "tid": 1, "ts": 0.0, "dur": 100.0},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10.0, "dur": 50.0,
         "args": {"Input Dims": [[4, 8], [8, 2]], "Input type": ["float", "float"], "Concrete Inputs": ["", ""]}},
    ],
}  # fmt: skip


def window(path: str, **more: Any) -> dict[str, Any]:
    return {"k": "window", "t": T, "window": 3, "state": "closed", "why": "", "steps": 5, "job_s": 0.2, "slower": 1.5,
            "begin_ns": T - 100, "end_ns": T - 10, "path": path, **more}  # fmt: skip


def reader(folder: Path) -> LiveDecoder:
    """For a job that was told to write its windows' files there."""
    return LiveDecoder(None, "", "run", folder=lambda: os.open(folder, os.O_RDONLY | os.O_DIRECTORY))


def test_a_windows_file_is_read_and_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "tuimon-window-12-3.json"
    path.write_text(json.dumps(TRACE))
    changed, seen = decoded(reader(tmp_path), window(str(path)))
    assert isinstance(changed, ev.WindowChanged) and (changed.state, changed.job_s) == ("closed", 0.2)
    assert isinstance(seen, ev.KernelsSeen) and seen.window == 3
    assert (seen.begin_ns, seen.end_ns) == (T - 100, T - 10)  # on the job's clock
    assert seen.rows[0][:2] == ("", "aten::mm") and seen.rows[0][4] == "0/0"
    assert not path.exists()


@pytest.mark.parametrize("name", ["trace.json", "tuimon-window-1-1.json.bak", "tuimon-window-x-1.json", "../passwd"])
def test_a_file_of_another_name_is_left_alone(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(json.dumps(TRACE))
    (changed,) = decoded(reader(tmp_path), window(str(path)))
    assert isinstance(changed, ev.WindowChanged) and "name" in changed.why
    assert path.exists()


def test_a_link_is_left_alone(tmp_path: Path) -> None:
    aim = tmp_path / "aim"
    aim.write_text(json.dumps(TRACE))
    (tmp_path / "tuimon-window-1-1.json").symlink_to(aim)
    (changed,) = decoded(reader(tmp_path), window(str(tmp_path / "tuimon-window-1-1.json")))
    assert isinstance(changed, ev.WindowChanged) and "is a symbolic link" in changed.why and aim.exists()


def test_a_file_elsewhere_is_neither_read_nor_taken_away(tmp_path: Path) -> None:
    """Whatever path the job tells, links in it or not: it names a file of its own folder and no other."""
    own, other = tmp_path / "own", tmp_path / "other"
    own.mkdir()
    other.mkdir()
    aim = other / "tuimon-window-1-1.json"
    aim.write_text(json.dumps(TRACE))
    (own / "way").symlink_to(other)
    for path in (aim, own / "way" / aim.name, own / ".." / "other" / aim.name):
        (changed,) = decoded(reader(own), window(str(path)))
        assert isinstance(changed, ev.WindowChanged) and "is not there" in changed.why and aim.exists()
    (own / aim.name).hardlink_to(aim)  # a second name of a file that is another's
    (changed,) = decoded(reader(own), window(str(own / aim.name)))
    assert isinstance(changed, ev.WindowChanged) and "second name" in changed.why and aim.exists()
    os.unlink(own / aim.name)
    os.mkfifo(own / aim.name)
    (changed,) = decoded(reader(own), window(str(own / aim.name)))
    assert isinstance(changed, ev.WindowChanged) and "is a fifo" in changed.why


def test_what_cannot_be_read_is_said_with_the_window(tmp_path: Path) -> None:
    path = tmp_path / "tuimon-window-1-1.json"
    path.write_text("{}")
    (changed,) = decoded(reader(tmp_path), window(str(path), why="most_s"))
    assert isinstance(changed, ev.WindowChanged)
    assert changed.why.startswith("most_s; the profile that torch wrote is JSON, but no trace") and not path.exists()


def test_a_path_of_another_host_is_not_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "tuimon-window-1-1.json"
    path.write_text(json.dumps(TRACE))
    assert len(decoded(LiveDecoder(None, "", "run"), window(str(path)))) == 1
    assert path.exists()


@pytest.mark.parametrize("state", ["waiting", "open", "refused", "cancelled"])
def test_the_other_states(state: str) -> None:
    (changed,) = decoded(
        LiveDecoder(1, "", "run"), {"k": "window", "t": T, "window": 1, "state": state, "why": "w", "steps": 0}
    )
    assert isinstance(changed, ev.WindowChanged) and (changed.state, changed.why) == (state, "w")
