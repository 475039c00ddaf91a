"""Our lines within a function: it does what it did, at its own lines; and where that is not sure nothing is woven."""

from __future__ import annotations

import ast
import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
import traceback
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hook.test_eager import Hook as PlainHook
from tuimon.hook import sites, weave

GIVEN = ("note",)
TEXTS = ('at = note("front")', 'at = note("raised")', 'note("behind")\nif at is not None:\n    note(at)')


class Held:
    """What is woven here: a method with returns in its middle, a `with`, a `finally`, defaults and names of its class's own."""

    __secret = 3

    def plain(self, what: int, /, more: list[int] | None = None, *rest: Any, key: str = "k", **others: Any) -> Any:
        """Its words."""
        if what < 0:
            return None
        if what == 0:
            raise ValueError("nothing")
        try:
            with open(os.devnull) as file:
                return [self.__secret, what, more, rest, key, others, len(file.read()), os.sep]
        finally:
            self.left = what


def outside(one, two=2):  # type: ignore[no-untyped-def]
    return os.path.join(str(one), str(two))


def closes(over: int) -> Callable[[], int]:
    return lambda: over


def yields() -> Iterator[int]:
    yield 1


def shadowed(note: int) -> int:
    return note


def at_its_own(at: int) -> int:
    at += 1
    return at


async def waits() -> None:
    pass


def made(function: Callable[..., Any], log: list[str]) -> Any:
    return weave.woven(function, {"note": log.append}, *TEXTS)


def ends(function: Callable[..., Any], *args: Any, **more: Any) -> Any:
    """What a call gives, or how it fails and where: (type, text, lines of the function's own frames)."""
    try:
        return function(*args, **more)
    except Exception as error:  # noqa: BLE001
        rows = traceback.extract_tb(error.__traceback__)[1:]
        return type(error), str(error), [(row.filename, row.lineno, row.name, row.line) for row in rows]


def test_it_does_what_it_did_and_ours_around_it() -> None:
    log: list[str] = []
    ours, held = made(Held.plain, log), Held()
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]]
    calls = [((held, 2, None, 4), {"key": "x", "y": 1}), ((held, 1), {}), ((held, -1), {}), ((held, 0), {}), ((held,), {})]
    for args, more in calls:
        log.clear()
        found = repr(ends(ours, *args, **more))
        assert found == repr(ends(Held.plain, *args, **more))
        expected = [] if len(args) == 1 else ["front", *(["raised"] if args[1] == 0 else []), "behind"]
        assert log == expected
    code, theirs = ours.__code__, Held.plain.__code__
    assert (code.co_filename, code.co_name) == (theirs.co_filename, theirs.co_name)
    assert code.co_firstlineno == theirs.co_firstlineno - 2  # of `front` and its `try`
    assert getattr(code, "co_qualname", "") == getattr(theirs, "co_qualname", "")
    assert (ours.__name__, ours.__qualname__, ours.__module__, ours.__doc__) == ("plain", "Held.plain", __name__, "Its words.")
    assert ours.__annotations__ == Held.plain.__annotations__ != {}
    assert ours.__globals__ is globals() and ours.__kwdefaults__ == {"key": "k"} and ours.__defaults__ == (None,)


def test_a_function_of_a_module_and_lines_in_front_alone() -> None:
    log: list[str] = []
    ours = weave.woven(outside, {"note": log.append}, 'note("front")')
    assert ours(1) == outside(1) and log == ["front"]
    assert ends(ours) == ends(outside)


@pytest.mark.parametrize(
    "function", [closes(1), yields, shadowed, at_its_own, waits, len, Held().plain], ids=lambda one: str(one.__qualname__)
)
def test_what_is_not_sure_stays_as_it_is(function: Callable[..., Any]) -> None:
    assert made(function, []) is None


@pytest.mark.parametrize("text", ["note(nowhere)", "note(at_its_own)", "note(self.name, other)"])
def test_our_lines_know_nothing_but_what_is_given_them(text: str) -> None:
    assert weave.woven(Held.plain, {"note": print}, text) is None
    assert weave.woven(Held.plain, {"note": print}, "note(self.name, what, max)") is not None


def loaded(path: Path, text: str) -> types.FunctionType:
    path.write_text(text)
    scope: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), scope)
    found = scope["f"]
    assert isinstance(found, types.FunctionType)
    return found


def test_a_source_that_has_changed_is_not_that_of_the_function(tmp_path: Path) -> None:
    path, text = tmp_path / "one.py", "import os\n\n\n\n\n\n\ndef f(a, b=1):\n    # a word\n    return os.getpid() + a + 1\n"
    function = loaded(path, text)
    assert made(function, [])(1) == function(1)
    changes = [("+ 1", "+ 2"), ("+ 1", "+ True"), ("a,", "c,"), ("    # a word\n", "")]
    changes += [("getpid", "getppid"), ("a, b", "a, *, b"), ("    return", "    a += 0; return")]
    for old, new in changes:
        path.write_text(text.replace(old, new))
        assert made(function, []) is None, (old, new)
    path.write_text(text.replace("a word", "another"))
    assert made(function, []) is not None
    for other in ("", "import os\n\n\ndef f(", text.encode("utf-16").decode("latin-1"), "\0" * 90):
        path.write_text(other)
        assert made(function, []) is None
    path.unlink()
    assert made(function, []) is None


def test_a_name_of_pythons_that_the_module_has_for_another_thing(tmp_path: Path) -> None:
    function = loaded(tmp_path / "two.py", "len = None\n\n\n\n\n\n\ndef f(a):\n    return a\n")
    assert weave.woven(function, {"note": print}, "note(len)") is None
    assert weave.woven(function, {"note": print}, "note(max)") is not None


# -------------------------------------------------------------------- in the place of a stand-in


class Hook(PlainHook):
    """What the weaving needs of a session."""

    def __init__(self) -> None:
        super().__init__()
        self.sites = sites.Sites(self)
        self.skipped: list[types.CodeType] = []

    def skip(self, function: Callable[..., Any]) -> None:
        self.skipped.append(function.__code__)


class Place:
    """Where the job looks it up."""

    call = outside


@pytest.fixture
def place() -> Iterator[type[Place]]:
    yield Place
    assert vars(Place)["call"] is outside


def put_in(hook: Hook, weaving: weave.Weaving, log: list[str]) -> Callable[..., Any]:
    def ours(*args: Any) -> Any:
        return outside(*args)

    Place.call = ours  # type: ignore[method-assign]
    hook.undo.attribute(Place, "call", ours, outside)
    weaving.later([(Place, "call")], ours, outside, {"note": log.append}, *TEXTS)
    return ours


def test_a_stand_in_is_replaced_hidden_and_put_back(place: type[Place]) -> None:
    hook, log = Hook(), []  # type: ignore[var-annotated]
    weaving = weave.Weaving(hook)
    put_in(hook, weaving, log)
    for _ in range(2):
        weaving.one()
    woven = vars(place)["call"]
    assert woven.__wrapped__ is outside and hook.skipped == [woven.__code__] and hook.sites.hidden[0] is woven.__code__
    assert place.call(1) == outside(1) and log == ["front", "behind"]
    assert hook.undo.run() == []


def test_one_that_somebody_has_wrapped_since_stays(place: type[Place]) -> None:
    hook = Hook()
    weaving = weave.Weaving(hook)
    ours = put_in(hook, weaving, [])
    place.call = theirs = lambda *args: ours(*args)  # type: ignore[method-assign,assignment]
    weaving.one()
    assert vars(place)["call"] is theirs and hook.skipped == []
    place.call = ours  # type: ignore[method-assign]
    assert hook.undo.run() == []


def test_one_that_is_wrapped_later_is_told_of(place: type[Place]) -> None:
    hook = Hook()
    weaving = weave.Weaving(hook)
    put_in(hook, weaving, [])
    weaving.one()
    woven = vars(place)["call"]
    place.call = theirs = lambda *args: woven(*args)  # type: ignore[method-assign,assignment]
    assert hook.undo.run() == ["Place.call", "Place.call"] and vars(place)["call"] is theirs
    place.call = outside  # type: ignore[method-assign]


def test_a_job_that_makes_trees_meanwhile_gets_its_own() -> None:
    """Up to Python 3.12 at least, two threads that make trees of Python's at once (`ast.parse`) can fail: so we make none."""
    source, failed, over = Path(weave.__file__).read_text(), [], threading.Event()

    def parse() -> None:
        while not over.is_set():
            try:
                ast.parse(source)
            except SystemError as error:
                failed.append(error)

    before = gc.get_threshold(), sys.getswitchinterval()
    thread = threading.Thread(target=parse)
    gc.callbacks.append(switches)  # within what makes a tree another thread comes to run only in a collection
    gc.set_threshold(100)
    sys.setswitchinterval(1e-6)
    try:
        thread.start()
        for _ in range(40):
            assert made(Held.plain, []) is not None
    finally:
        over.set()
        thread.join()
        gc.callbacks.remove(switches)
        gc.set_threshold(*before[0])
        sys.setswitchinterval(before[1])
    assert failed == []


def switches(*_: object) -> None:
    time.sleep(0)


def test_no_file_is_opened_but_the_source(tmp_path: Path) -> None:
    """Of text that is no Python the interpreter opens the file that it is said to be of; a job's filter may forbid that."""
    source = tmp_path / "theirs.py"
    source.write_text("\n" * 40 + "def theirs(\n    one,\n    two=2,\n):\n    return (\n        one +\n        two\n    )\n")
    program = f"""
        import sys
        sys.path[:0] = [{str(Path(__file__).parents[2])!r}, {str(tmp_path)!r}]
        from theirs import theirs
        from tuimon.hook import weave
        opened = []
        sys.addaudithook(lambda event, args: opened.append(args[0]) if event == "open" else None)
        made = weave.woven(theirs, {{"note": id}}, "note(1)", "pass", "note(2)")
        sys.addaudithook(lambda *_: None)
        assert made(1) == 3 and made.__code__.co_filename == theirs.__code__.co_filename
        assert opened == [{str(source)!r}], opened
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=60)
