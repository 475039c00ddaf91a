"""The monitor in a real pseudo-terminal: what it writes, how it leaves, what it does where it cannot draw."""

from __future__ import annotations

import inspect
import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual import events

from tests.support.terminal import Terminal
from tuimon.app.tty import terminal
from tuimon.app.tty.driver import Parser

ROOT = Path(__file__).resolve().parents[2]
QUIET_BYTES_A_SECOND, BUSY_BYTES_A_SECOND = 1_500, 5_000


class Tty(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    # a worker of pytest-xdist has a size in its environment, which would count for more than the pseudo-terminal's
    not_ours = ("NO_COLOR", "SSH_CONNECTION", "SSH_TTY", "COLUMNS", "LINES")
    env = {name: value for name, value in os.environ.items() if name not in not_ours}
    return {
        **env,
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "PYTHONPATH": str(ROOT),
        "PYTHONUTF8": "1",
        "MONITOR_REPORT": str(tmp_path / "report.json"),
        "MONITOR_BEATS": str(tmp_path / "beats.json"),
        "XDG_CONFIG_HOME": str(tmp_path),
    }


class Starter:
    """Starts monitors, and ends what is left of them."""

    def __init__(self, env: dict[str, str]) -> None:
        self.env = env
        self._started: list[Terminal] = []

    def __call__(
        self, scene: str, width: int = 120, height: int = 40, *, answers: bool = True, ground: str = "", **env: str
    ) -> Terminal:
        argv = [sys.executable, "-m", "tests.support.monitor_program", scene]
        started = Terminal(argv, width, height, {**self.env, **env}, answers=answers, ground=ground)
        self._started.append(started)
        return started

    def close(self) -> None:
        for started in self._started:
            started.close()


@pytest.fixture
def start(environment: dict[str, str]) -> Iterator[Starter]:
    starter = Starter(environment)
    yield starter
    starter.close()


def settled(on: Terminal) -> None:
    """Wait until the first picture is there and the terminal has nothing more to read at once."""
    assert on.wait_for(lambda: on.sees("boundaries and graph breaks")), "\n".join(on.screen.display)
    while on.read(0.05):
        pass


def at_rest(on: Terminal, env: dict[str, str], still: int = 0) -> None:
    """Wait until the first pictures are out, and `still` in a row have changed nothing.

    A machine that is busy takes the first picture in pieces: the monitor then finds its line slow, draws less often for some
    seconds, and says in its second line that it does, and that it does no longer. That is nothing of the job's.
    """

    def rests() -> bool:
        try:
            beats = json.loads(Path(env["MONITOR_BEATS"]).read_text())
        except FileNotFoundError:
            return False
        return beats["pictures"] > 3 and beats["still"] >= still and not beats["slow"]

    assert on.wait_for(rests, 60.0), Path(env["MONITOR_BEATS"]).read_text()
    while on.read(0.05):
        pass


def report(env: dict[str, str]) -> dict[str, float]:
    found: dict[str, float] = json.loads(Path(env["MONITOR_REPORT"]).read_text())
    return found


def test_q_leaves_with_the_terminal_as_it_was(start: Starter, environment: dict[str, str]) -> None:
    on = start("ended")
    settled(on)
    assert on.wait_for(lambda: on.sees("killed by signal 9"))
    on.write("q")
    assert on.ended() == 0
    assert on.data.rstrip().find(b"\x1b[?1049l") > on.data.find(b"\x1b[?1049h") >= 0
    assert report(environment)["detached"] == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_with_the_terminal_as_it_was(
    start: Starter, environment: dict[str, str], number: signal.Signals
) -> None:
    on = start("still")
    settled(on)
    os.kill(on.pid, number)
    assert on.ended() == 128 + number
    assert b"\x1b[?1049l" in on.data
    assert report(environment)["detached"] == 1


def test_a_terminal_that_hangs_up_ends_it_even_where_the_signal_is_ignored(environment: dict[str, str]) -> None:
    code = "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); os.execv(sys.executable, sys.argv[1:])"
    argv = [sys.executable, "-c", code, sys.executable, "-m", "tests.support.monitor_program", "still"]
    on = Terminal(argv, 120, 40, environment)
    try:
        settled(on)
        on.hang_up()
        assert on.ended() is not None
        assert report(environment)["detached"] == 1
    finally:
        on.close()


def test_a_resize_is_followed(start: Starter) -> None:
    on = start("ended")
    settled(on)
    on.resize(80, 24)
    assert on.wait_for(lambda: on.sees("7 event log") and not on.sees("─ 7 event log"))
    on.resize(20, 5)
    assert on.wait_for(lambda: on.sees("ended: signal 9"))
    on.resize(20, 1)
    assert on.wait_for(lambda: on.sees("ended: signal 9"), 8.0)
    on.resize(120, 40)
    assert on.wait_for(lambda: on.sees("─ 7 event log"))


def test_nothing_is_sent_when_nothing_happens(start: Starter, environment: dict[str, str]) -> None:
    on = start("ended")
    settled(on)
    at_rest(on, environment, still=3)
    assert on.read(2.0) == b""


@pytest.mark.parametrize(("scene", "budget"), [("still", 100), ("quiet", QUIET_BYTES_A_SECOND), ("busy", BUSY_BYTES_A_SECOND)])
def test_what_a_job_costs_the_line(start: Starter, environment: dict[str, str], scene: str, budget: int) -> None:
    on = start(scene)
    settled(on)
    at_rest(on, environment, still=3 if scene == "still" else 0)
    for _ in range(10):  # the first numbers of a job widen some columns, on a full machine later than on another
        if len(on.read(1.0)) <= budget:
            break
    seconds = 4
    assert len(on.read(seconds)) <= budget * seconds


def test_a_slow_line_is_drawn_on_less_often_and_told_so(start: Starter) -> None:
    on = start("busy")
    settled(on)
    for turn in range(400):
        if turn % 8 == 0:
            on.write("t")  # another theme: a whole picture, more than the line takes until the next one
        on.read_slowly(800, pause=0.05)
        if on.sees("slow line"):
            break
    assert on.sees("slow line")


def test_without_colours_there_are_none(start: Starter) -> None:
    on = start("ended", NO_COLOR="1")
    settled(on)
    for sequence in re.findall(rb"\x1b\[([0-9;]*)m", on.data):
        assert not set(sequence.split(b";")) & {
            b"38",
            b"48",
            *(str(code).encode() for code in [*range(30, 38), *range(40, 48)]),
        }


def test_without_utf8_there_is_only_ascii(start: Starter) -> None:
    on = start("ended", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    settled(on)
    assert bytes(on.data).isascii()
    assert b"\\u" not in on.data


def test_over_ssh_it_draws_less_often_and_without_the_mouse(start: Starter) -> None:
    on = start("ended", SSH_CONNECTION="192.0.2.1 1 192.0.2.2 22")
    settled(on)
    assert on.sees("2 Hz")
    assert b"\x1b[?1003h" not in on.data


def test_motion_of_the_mouse_is_never_asked_for(start: Starter) -> None:
    on = start("ended")
    settled(on)
    on.write("q")
    assert on.ended() == 0
    assert b"\x1b[?1000h" in on.data and b"\x1b[?1006h" in on.data
    assert b"1003" not in on.data
    assert on.data.rindex(b"\x1b[?1000l") > on.data.index(b"\x1b[?1000h")


def ground_of(on: Terminal) -> str:
    """The colour of the ground in the middle of the screen."""
    return str(on.screen.buffer[on.screen.lines // 2][on.screen.columns - 1].bg)


DARK, LIGHT = "121212", "fafafa"


@pytest.mark.parametrize(
    ("told", "env", "seen"),
    [
        ("rgb:1e1e/1e1e/2e2e", {}, DARK),
        ("rgb:fdfd/f6f6/e3e3", {}, LIGHT),
        ("rgb:ff/ff/ff", {"SSH_CONNECTION": "192.0.2.1 1 192.0.2.2 22"}, LIGHT),
        ("", {"COLORFGBG": "0;15"}, LIGHT),
        ("", {}, DARK),
    ],
)
def test_the_theme_follows_the_ground_of_the_terminal(start: Starter, told: str, env: dict[str, str], seen: str) -> None:
    start.env |= env
    on = start("ended", 80, 24, ground=told)
    settled(on)
    assert ground_of(on) == seen


def test_a_terminal_that_answers_nothing_is_drawn_on(start: Starter) -> None:
    on = start("ended", answers=False)
    settled(on)
    on.write("?")
    assert on.wait_for(lambda: on.sees("help"))
    # what was asked before there was a screen is answered now: that is no key
    on.answers = True
    on.write("\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?62;22c")
    on.write("\x1b")
    assert on.wait_for(lambda: on.sees("boundaries and graph breaks"))
    on.read(0.5)
    assert on.sees("boundaries and graph breaks") and not on.sees("REC")


def test_a_late_answer_that_comes_alone_does_not_end_the_input() -> None:
    parser = Parser()
    for late in ("\x1b[?62;22c", "\x1b]11;rgb:ffff/ffff/ffff\x07"):
        assert list(parser.feed(late)) == []
    (key,) = parser.feed("x")
    assert isinstance(key, events.Key) and key.key == "x"


def test_a_key_that_looks_like_an_answer_is_none(start: Starter) -> None:
    on = start("ended")
    settled(on)
    on.write("\x1b[1;2R")  # shift+f3
    on.write("?")
    assert on.wait_for(lambda: on.sees("help"))


def test_the_linux_console_gets_sixteen_colours_and_ascii(start: Starter, environment: dict[str, str]) -> None:
    del environment["COLORTERM"]
    on = start("ended", TERM="linux")
    settled(on)
    on.read(0.5)
    assert bytes(on.data).isascii()
    assert not re.search(rb"\x1b\[[0-9;]*[34]8;[25];", on.data)
    assert ground_of(on) == "default"  # the console's own


def test_a_dumb_terminal_gets_the_result_in_lines(environment: dict[str, str]) -> None:
    argv = [sys.executable, "-m", "tuimon", "lab", "--intensity", "8", "--bandwidth", "80", "--peak", "1000"]
    on = Terminal(argv, 80, 24, {**environment, "TERM": "dumb"})
    try:
        assert on.ended() == 0
        assert on.sees("640") and b"\x1b" not in on.data
    finally:
        on.close()


def test_a_dumb_terminal_gets_a_sentence(start: Starter, environment: dict[str, str]) -> None:
    on = start("ended", TERM="dumb")
    assert on.ended() == 1
    assert on.sees("--headless") and b"\x1b[?1049h" not in on.data
    assert report(environment)["detached"] == 1


def test_no_terminal_gets_a_sentence(environment: dict[str, str]) -> None:
    argv = [sys.executable, "-m", "tests.support.monitor_program", "ended"]
    done = subprocess.run(argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.returncode == 1
    assert done.stderr == "tuimon: the monitor needs a terminal, and stdin is none; use --headless for a report\n"
    assert done.stdout == ""


def test_reasons_not_to_draw() -> None:
    assert terminal.why_no_screen({"TERM": "xterm"}, Tty(), Tty()) is None
    assert "TERM=dumb" in (terminal.why_no_screen({"TERM": "dumb"}, Tty(), Tty()) or "")
    assert "stderr is none" in (terminal.why_no_screen({}, Tty(), io.StringIO()) or "")
    closed = io.StringIO()
    closed.close()
    assert "stdin is none" in (terminal.why_no_screen({}, closed, Tty()) or "")


@pytest.mark.parametrize(
    ("wanted", "term", "encoding", "name"),
    [
        (False, "xterm-256color", "utf-8", "braille"),
        (True, "xterm-256color", "utf-8", "ascii"),
        (False, "xterm-256color", "ascii", "ascii"),
        (False, "xterm-256color", "latin-1", "ascii"),
        (False, "linux", "utf-8", "ascii"),
    ],
)
def test_glyphs_are_what_the_terminal_can_show(wanted: bool, term: str, encoding: str, name: str) -> None:
    stream = Tty()
    stream.encoding = encoding
    assert terminal.choose_glyphs(wanted, {"TERM": term}, stream).name == name


def test_what_the_painter_takes_from_textual_is_where_it_is_looked_for() -> None:
    """A new Textual that moves these must fail here: pictures would be Textual's own, or none."""
    from textual._compositor import ChopsUpdate, Compositor
    from textual._xterm_parser import XTermParser
    from textual.app import App
    from textual.drivers import linux_driver
    from textual.screen import Screen

    assert list(inspect.signature(App._display).parameters) == ["self", "screen", "renderable"]
    assert list(inspect.signature(Compositor._render_chops).parameters) == ["self", "crop", "is_rendered_line"]
    assert {"chops", "spans"} <= set(inspect.signature(ChopsUpdate).parameters)
    app: App[None] = App()
    assert {"_running", "_closed", "_batch_count", "_driver", "_sync_available"} <= set(dir(app))
    assert isinstance(Screen()._compositor, Compositor)
    assert vars(linux_driver)["XTermParser"].__mro__[-4:] == XTermParser.__mro__[-4:]
    assert {"run_input_thread", "_enable_mouse_support", "_disable_mouse_support", "_enable_mouse_pixels"} <= set(
        dir(linux_driver.LinuxDriver)
    )
    (answer,) = XTermParser().feed("\x1b[24;3R")
    assert isinstance(answer, events.CursorPosition) and (answer.x, answer.y) == (2, 23)


def test_the_backlog_of_the_writer_is_where_it_is_looked_for() -> None:
    """A new Textual that moves its queue must fail here, not silently show old pictures on slow lines."""
    from textual.drivers._writer_thread import WriterThread

    writer = WriterThread(io.StringIO())
    assert writer._queue.qsize() == 0

    class App:
        class _driver:
            _writer_thread = writer

    assert terminal.backlog(App()) == 0  # type: ignore[arg-type]
    writer.write("x")
    assert terminal.backlog(App()) == 1  # type: ignore[arg-type]
    assert terminal.backlog(object()) == 0  # type: ignore[arg-type]
