"""The bootstrap by itself: loading a bundle, and leaving nothing."""

from __future__ import annotations

import binascii
import logging
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from tuimon.attach.inject import delivery
from tuimon.hook import wire
from tuimon.hook.bundle import boot_source, bundle, compiled, compiled_boot, in_order, kind


@pytest.fixture
def boot() -> dict[str, Any]:
    """The bootstrap's names."""
    names: dict[str, Any] = {"__name__": "_tuimon_boot"}
    exec(compile(delivery.boot_source(), "<tuimon>", "exec"), names)
    yield names
    names["unload"]()
    assert not [name for name in sys.modules if name.startswith("_tuimon_hook")]


def test_bundle_is_the_hook_and_compiles() -> None:
    sources = bundle()
    assert {"session", "wire"} <= set(sources)
    assert not {"boot", "bundle", "__init__"} & set(sources)
    for name, source in sources.items():
        compile(source, name, "exec")


def test_the_hook_loads(boot: dict[str, Any]) -> None:
    assert not boot["load"](bundle().items())
    assert sys.modules["_tuimon_hook.session"].Session


def test_the_hook_loads_compiled_with_the_names_and_lines_of_its_source(boot: dict[str, Any]) -> None:
    modules = boot["modules_of"]({"code": binascii.b2a_base64(compiled()).decode(), "kind": kind()})
    assert [name for name, _ in modules] == list(bundle())
    assert not boot["load"](modules)
    run = sys.modules["_tuimon_hook.undo"].Undo.run.__code__
    assert run.co_filename == "<tuimon hook>/undo.py"
    assert "def run(" in bundle()["undo"].splitlines()[run.co_firstlineno - 1]


def test_code_of_another_python_is_not_executed(boot: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="another Python"):
        boot["modules_of"]({"code": binascii.b2a_base64(b"not code").decode(), "kind": "cpython-399 00"})


def test_both_sides_name_their_byte_code_alike(boot: dict[str, Any]) -> None:
    assert boot["kind"]() == kind()


def test_modules_find_each_other_whatever_their_order(boot: dict[str, Any]) -> None:
    sources = {
        "a": "from . import c, b as other\nfrom .d import FOUR\nvalue = c.value + other.value + FOUR\n",
        "b": "from . import (\n    c,  # first\n    d,\n)\nvalue = c.value + d.FOUR\n",
        "c": "value = 1\n",
        "d": "FOUR = 4\nwhere = __file__, __name__, __package__\n",
    }
    assert not boot["load"](in_order(sources).items())
    modules = sys.modules
    assert modules["_tuimon_hook.a"].value == 1 + 5 + 4
    assert modules["_tuimon_hook.d"].where == ("<tuimon hook>/d.py", "_tuimon_hook.d", "_tuimon_hook")


def test_two_that_import_each_other_do_not_go_round_for_ever() -> None:
    sources = {
        "a": "from . import b\n    from . import e\nfrom .d import x\nfrom os import path\n",
        "b": "from . import a as c\n",
        "e": "",
        "d": "",
    }
    assert list(in_order(sources)) == ["b", "d", "a", "e"]


def test_second_load_is_refused_and_does_not_touch_the_first(boot: dict[str, Any]) -> None:
    assert not boot["load"]({"a": "x = 1\n"}.items())
    other: dict[str, Any] = {}
    exec(compile(delivery.boot_source(), "<tuimon>", "exec"), other)
    other["LEAVING_S"] = 0.0
    assert other["load"]({"a": "x = 2\n"}.items()) is sys.modules["_tuimon_hook"]
    other["unload"]()
    assert sys.modules["_tuimon_hook.a"].x == 1


def test_dead_copy_in_a_forked_child_gives_way(boot: dict[str, Any]) -> None:
    assert not boot["load"]({"a": "x = 1\n", "gone": ""}.items())
    sys.modules["_tuimon_hook"].pid += 1  # as a child sees what its parent had
    other: dict[str, Any] = {}
    exec(compile(delivery.boot_source(), "<tuimon>", "exec"), other)
    assert not other["load"]({"a": "x = 2\n"}.items())
    assert sys.modules["_tuimon_hook.a"].x == 2
    assert "_tuimon_hook.gone" not in sys.modules
    other["unload"]()


def test_nobody_listens(boot: dict[str, Any], tmp_path: Path) -> None:
    boot["boot"](str(tmp_path / "nothing"), "token")  # comes back, silently
    boot["boot_here"](str(tmp_path / "nothing"), "token")


def test_where_no_thread_can_be_had_the_hook_leaves(boot: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is on processes, so the refusal is the interpreter's own, made by hand here."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sources = bundle()
        before = list(sys.meta_path), list(logging.getLogger("torch.__trace").handlers)

        def greet(connection: socket.socket, token: str) -> Any:
            assert not boot["load"](sources.items())
            return sys.modules["_tuimon_hook.session"].Session(connection, {}, {})

        def refuse(*_: object) -> None:
            raise RuntimeError("can't start new thread")

        boot.update(connect=lambda path: ours, greet=greet, who=boot["identity"](ours))
        monkeypatch.setattr("_thread.start_new_thread", refuse)
        boot["boot_here"]("", "")
        assert (list(sys.meta_path), list(logging.getLogger("torch.__trace").handlers)) == before
        assert "_tuimon_hook" not in sys.modules and ours.fileno() == -1
        said = b"".join(iter(lambda: theirs.recv(1 << 16), b""))
    frames = wire.Decoder().feed(said)  # a garbage collection in between is told in a frame of samples
    messages = [wire.read_json(body) for kind, body in frames if kind == wire.JSON_FRAME]
    assert messages[0]["k"] == "ack" and messages[-1]["left"] == []
    assert messages[-1]["reason"] == "no thread can be had for the hook: can't start new thread"


def test_script_is_one_text_without_a_nul() -> None:
    text = delivery.script(delivery.boot_source(), "/tmp/it's here", 'a"b')
    compile(text.decode(), "x", "exec")
    assert b"\0" not in text
    with pytest.raises(ValueError, match="NUL"):
        delivery.script("\0", "", "")


@pytest.mark.parametrize(("named", "file"), [(kind(), "<tuimon boot_line>"), ("cpython-399 00", "<tuimon boot>")])
def test_script_runs_compiled_where_the_byte_code_is_the_same(monkeypatch: pytest.MonkeyPatch, named: str, file: str) -> None:
    started: list[Any] = []
    monkeypatch.setattr("_thread.start_new_thread", lambda function, arguments: started.append((function, arguments)))
    text = delivery.script(boot_source(), "/s", "t", compiled_boot(), named)
    assert b"\0" not in text
    names: dict[str, Any] = {}
    exec(compile(text, "<string>", "exec"), names)
    assert started == [(names["boot_and_go"], ("/s", "t"))]
    assert names["connect"].__code__.co_filename == file
    assert names["boot"].__globals__ is names["connect"].__globals__ is names
