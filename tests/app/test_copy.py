"""What `y` copies: to the terminal by OSC 52, and into the log."""

from __future__ import annotations

import base64
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.test_picker import Picking, picking, some
from tests.support.fake_feed import MODEL, busy
from tests.support.monitor import Driven, drive, settings
from tests.support.terminal import Terminal
from tuimon.app import everywhere
from tuimon.app.tty import terminal

ROOT = Path(__file__).resolve().parents[2]
OSC = re.compile(rb"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07")


def test_rows_are_copied_in_full(sent: list[str]) -> None:
    async def body(on: Driven) -> None:
        await on.press("y")
        await on.press("3", "y", "4", "y", "7", "y", "5", "y")
        await on.press("L", "1", "escape", "y")

    drive(busy(), (80, 24), body)
    boundary, recompile, region, line, host, formula = sent
    assert boundary.endswith(f", at {MODEL}:57") and "Tensor.item()" in boundary and "share 17" in boundary
    assert f", at {MODEL}:" in recompile and f", at {MODEL}:" in region
    assert recompile.startswith("recompiles: ") and region.startswith("regions: ") and "calls" in region
    assert re.match(r"\d\d:\d\d:\d\d ", line)
    assert host.startswith("host: ")
    assert formula == "min(1,000 GFLOP/s, 8 FLOP/byte x 80 GB/s) = ?"
    assert not any("\n" in text or "\t" in text for text in sent)


def test_pages_are_copied_with_file_and_line(sent: list[str]) -> None:
    async def body(on: Driven) -> None:
        await on.press("2", "enter", "y")

    drive(busy(), (80, 24), body)
    assert len(sent) == 1 and "model.py" in sent[0] and ":57" in sent[0]


def test_a_process_of_the_list_is_copied_and_the_list_can_stand_still(sent: list[str]) -> None:
    async def body(on: Picking) -> None:
        await on.press("j", "y")
        assert "copied" in on.text
        await on.press("space")
        assert "the list stands still" in on.text
        found = on.app.found
        on.app._beat()
        await on.app.workers.wait_for_complete()
        assert on.app.found is found
        await on.press("space", "slash", *"!zzz", "enter")
        assert "the list goes on" in on.text or "stands still" not in on.text
        assert on.app.view.filter == "!zzz" and len(on.app._rows) == len(on.app.found or [])
        await on.press("escape", "q")

    picking(some, body)
    assert len(sent) == 1 and re.search(r"pid \d+", sent[0]) and "python" in sent[0]


def test_the_clipboard_can_be_off(sent: list[str]) -> None:
    async def body(on: Driven) -> None:
        await on.press("y")
        assert "the clipboard is off" in on.text
        assert on.feed.model.log[-1].text.startswith("copied: ")

    drive(busy(), (120, 24), body, settings(clipboard=False))
    assert sent == []


def test_no_more_is_sent_than_terminals_take(sent: list[str]) -> None:
    async def body(on: Driven) -> None:
        on.app.copy("é" * 200_000)
        assert "(the first 70 kB)" in on.text
        assert len(on.feed.model.log[-1].text) < 1000

    drive(busy(), (120, 24), body)
    assert len(sent[0].encode()) <= everywhere.MOST_COPIED and set(sent[0]) == {"é"}
    assert len(terminal.clipboard_sequence(sent[0], {})) < 100_000


class TestInATerminal:
    """The bytes themselves, as a terminal, tmux and GNU screen get them."""

    @pytest.fixture(params=["plain", "tmux", "screen"])
    def on(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Terminal]]:
        gone = ("NO_COLOR", "SSH_CONNECTION", "SSH_TTY", "COLUMNS", "LINES", "TMUX", "STY")
        env = {name: value for name, value in os.environ.items() if name not in gone}
        env |= {"TERM": "xterm-256color", "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "XDG_CONFIG_HOME": str(tmp_path)}
        env |= {"plain": {}, "tmux": {"TMUX": "/tmp/none,1,0"}, "screen": {"STY": "1.none"}}[request.param]
        started = Terminal([sys.executable, "-m", "tuimon", "lab"], 80, 24, env)
        yield request.param, started
        started.close()

    def test_what_is_sent(self, on: tuple[str, Terminal]) -> None:
        kind, term = on
        assert term.wait_for(lambda: term.sees("roofline lab")), "\n".join(term.screen.display)
        term.write("1")
        assert term.wait_for(lambda: term.sees("I 8 FLOP/byte") and term.sees("the ceiling, in GFLOP/s:"))
        term.write("\x1b")
        assert term.wait_for(lambda: term.sees("q quit"))
        term.write("y")
        assert term.wait_for(lambda: b"]52;c;" in term.data and term.sees("copied"))
        found = OSC.findall(term.data)
        assert found and base64.b64decode(found[-1]).startswith(b"min(1,000 GFLOP/s, 8 FLOP/byte")
        assert (b"\x1bPtmux;\x1b\x1b]52;c;" in term.data) == (kind == "tmux")
        assert (b"\x1bP\x1b]52;c;" in term.data) == (kind == "screen")
        term.write("q")
        assert term.ended() == 0
