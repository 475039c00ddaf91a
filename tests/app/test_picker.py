"""The picker: what it lists, what keys do, and whole screens of it."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.monitor import screen_text
from tuimon.app.look.themes import load_themes
from tuimon.app.picker.app import PickerApp
from tuimon.app.picker.rows import LONGEST_WHY, WHY_NOT, ListView, attach_words, draw, entries, name
from tuimon.attach.find.process import Target
from tuimon.draw.glyphs import ASCII, BRAILLE, GlyphSet
from tuimon.draw.text import line_cells

GOLDEN = Path(__file__).parent / "golden"
ATTACH = Path(__file__).parents[2] / "tuimon" / "attach"
OTHER_USER = (
    "process 9100 belongs to bob: tuimon may look into processes of its own user only; use sudo, "
    "or ask bob to start it with `tuimon run`"
)


@dataclass
class Found:
    """A process as it was found."""

    pid: int
    command: list[str]
    kind: str = "job"
    parent: int | None = None
    rank: int | None = None
    world_size: int | None = None
    job: str | None = None
    user: str | None = "alice"
    age: float = 11_220.0
    python: str | None = "3.12"
    gpus: list[int] | None = field(default_factory=list)
    container: str | None = None
    has_torch: bool | None = True
    attachable: bool = True
    code: str | None = None
    why: str | None = None


def some() -> list[Found]:
    """A job of four ranks under torchrun, one alone, one that is too old, one of somebody else."""
    train = ["python", "/home/user/project/train.py", "--size", "small"]
    launcher = ["/opt/env/bin/torchrun", "--nproc-per-node", "4", "train.py"]
    return [
        Found(4700, launcher, "launcher", attachable=False, why="a launcher"),
        *(Found(4711 + rank, train, parent=4700, rank=rank, world_size=4, job="llm-7b", gpus=[rank]) for rank in range(4)),
        Found(8123, ["python", "-u", "/srv/exp/finetune.py", "--config", "configs/large.yaml"], age=410, gpus=[0, 2]),
        Found(
            9001,
            ["python3.9", "legacy.py"],
            python="3.9",
            age=99,
            attachable=False,
            code="old-python",
            why="Python 3.9 is too old: use 3.10",
        ),
        Found(
            9100,
            ["python", "serve.py"],
            user="bob",
            python=None,
            gpus=None,
            attachable=False,
            code="uid",
            why=OTHER_USER,
            container="web",
        ),
    ]


class Picking:
    """A picker that runs, its keys, its screen."""

    def __init__(self, app: PickerApp[Found], pilot: Any) -> None:
        self.app, self.pilot = app, pilot

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
            await self.pilot.pause()

    async def look(self) -> None:
        """Look again, and wait for what comes of it."""
        self.app.action_refresh_list()
        await self.app.workers.wait_for_complete()
        await self.pilot.pause()

    @property
    def text(self) -> str:
        return screen_text(self.app)  # type: ignore[arg-type]

    @property
    def selected(self) -> list[str]:
        """The words of the selected row."""
        return next(line for line in self.text.split("\n")[2:] if line.startswith("▸")).split()[1:]


def picking(
    find: Callable[[], Sequence[Found]],
    body: Callable[[Picking], Awaitable[None]],
    size: tuple[int, int] = (80, 24),
    glyphs: GlyphSet = BRAILLE,
) -> list[Found] | None:
    """Run the picker and `body` on it; gives what was picked."""
    app: PickerApp[Found] = PickerApp(find, load_themes(), "dark", glyphs, watch=False)

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await app.workers.wait_for_complete()
            await pilot.pause()
            await body(Picking(app, pilot))

    asyncio.run(run())
    return app.return_value


PICTURES = [
    ("some", some, (80, 24), (), BRAILLE),
    ("some", some, (120, 40), (), BRAILLE),
    ("some", some, (40, 10), (), BRAILLE),
    ("none", list, (80, 24), (), BRAILLE),
    ("none", list, (120, 40), (), BRAILLE),
    ("refused", some, (80, 24), ("G",), BRAILLE),
    ("refused", some, (120, 40), ("G",), BRAILLE),
    ("refused", some, (40, 10), ("G",), ASCII),
    ("help", some, (80, 24), ("question_mark",), BRAILLE),
]


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: f"{picture[0]}-{picture[2][0]}x{picture[2][1]}")
def test_screen(picture: Any) -> None:
    title, find, size, keys, glyphs = picture
    seen = []

    async def body(on: Picking) -> None:
        await on.press(*keys)
        seen.append(on.text + "\n")

    picking(find, body, size, glyphs)
    file = GOLDEN / f"picker-{title}-{size[0]}x{size[1]}.txt"
    if os.environ.get("TUIMON_UPDATE_GOLDEN"):
        file.write_text(seen[0], encoding="utf-8")
    assert seen[0] == file.read_text(encoding="utf-8")


def test_every_row_says_whether_it_can_be_attached_to() -> None:
    found = some()
    found[2].has_torch = False
    found[3].attachable, found[3].code, found[3].why = False, "stopped", "it is stopped"
    assert [attach_words(row)[0] for row in entries(found)] == [
        "1 cannot", "ready", "no torch yet", "no: stopped", "ready", "ready", "no: Python 3.9", "no: other user",
    ]  # fmt: skip
    odd = Found(1, ["python"], attachable=False, code="a-code-that-nobody-knows-yet", why="for some reason")
    assert attach_words(entries([odd])[0]) == ("no: a code that no", "warn")
    for code, word in WHY_NOT.items():
        assert len(f"no: {word.format(python='3.14')}") <= LONGEST_WHY, code
    assert all(code in "".join(path.read_text() for path in ATTACH.rglob("*.py")) for code in WHY_NOT)


def test_what_nobody_has_gets_no_column() -> None:
    def heads(found: list[Found]) -> list[str]:
        lines = draw(entries(found), ListView(), 100, 24, BRAILLE)
        return "".join(text for text, _ in lines[2]).split()

    alone = [Found(1, ["python", "a.py"]), Found(2, ["python", "b.py"])]
    assert heads(alone) == ["pid", "user", "age", "python", "attach", "command"]
    alone[1].gpus = [0]
    assert heads(alone) == ["pid", "user", "gpu", "age", "python", "attach", "command"]
    alone[1].rank = 0
    assert heads(alone)[0] == "ranks"


@pytest.mark.parametrize("height", range(6, 40))
def test_what_stands_below_a_short_list_takes_no_row_away(height: int) -> None:
    lines = ["".join(text for text, _ in line) for line in draw(entries(some()), ListView(), 80, height, BRAILLE)]
    assert len(lines) == height
    rows = sum(line[6:].strip()[:2].isdigit() or " all " in line[:8] for line in lines if "ready" in line or "no:" in line)
    others = [line for line in lines if "tuimon demo" in line or "enter attaches" in line]
    if others:
        assert rows == 8 and lines.index(others[-1]) < height - 3
    if height >= 24:
        assert len(others) == 2


def test_ranks_of_a_job_have_a_row_for_all_and_their_launcher_has_none() -> None:
    rows = entries(some())
    assert [name(row) for row in rows][:2] == ["all 4 ranks of llm-7b", "python /home/user/project/train.py --size small"]
    assert [one.pid for one in rows[0].chosen] == [4711, 4712, 4713, 4714]
    assert 4700 not in [one.pid for row in rows for one in row.found]
    assert [bool(row.chosen) for row in rows] == [True] * 6 + [False] * 2  # what cannot be attached to comes last


def test_ranks_of_which_some_cannot_be_attached_to_are_counted() -> None:
    found = some()
    found[2].attachable, found[2].why = False, "it is stopped"
    row = entries(found)[0]
    assert name(row) == "3 of 4 ranks of llm-7b"
    assert [one.pid for one in row.chosen] == [4711, 4713, 4714]


def test_a_job_of_one_rank_and_ranks_without_a_launcher() -> None:
    alone = [Found(1, ["python", "a.py"], rank=0, world_size=1, job="x")]
    assert [row.whole for row in entries(alone)] == [False]
    two = [Found(pid, ["python", "a.py"], rank=pid, world_size=2, job="slurm 7") for pid in (1, 2)]
    assert [row.whole for row in entries(two)] == [True, False, False]


def test_rows_of_a_job_stay_together_also_those_that_cannot_be_attached_to() -> None:
    found = some()
    found[2].attachable, found[2].why = False, "it is stopped"
    assert [row.key for row in entries(found)][:5] == ["job 4700", "4711", "4712", "4713", "4714"]


def test_jobs_that_a_shell_has_started_are_no_ranks() -> None:
    shell = Found(1, ["bash", "run.sh"], "launcher", attachable=False, why="..")
    two = [Found(pid, ["/opt/bin/python", f"/srv/{pid}.py"], parent=1) for pid in (2, 3)]
    assert [(row.key, row.whole) for row in entries([shell, *two])] == [("2", False), ("3", False)]  # "no" says nothing new
    assert [row.key for row in entries([shell])] == ["1"]

    async def body(on: Picking) -> None:
        assert "all ranks" not in on.text.split("\n")[-1]

    picking(lambda: two, body)
    spawning = Found(1, ["/opt/bin/python", "/srv/train.py", "-x"], "launcher", attachable=False, why="..")
    assert name(entries([spawning, *two])[0]) == "all 2 processes of 2.py"


def test_the_target_of_attach_has_what_the_picker_needs() -> None:
    needed = {
        *("pid", "kind", "parent", "rank", "world_size", "job", "user", "age", "command"),
        *("python", "gpus", "container", "attachable", "why"),
    }
    assert needed <= set(Target.__dataclass_fields__)


def test_enter_picks_one_or_all_ranks() -> None:
    async def all_of_them(on: Picking) -> None:
        await on.press("enter")

    async def one(on: Picking) -> None:
        await on.press("j", "j", "enter")

    async def all_from_one(on: Picking) -> None:
        await on.press("j", "j", "a")

    for body, pids in ((all_of_them, [4711, 4712, 4713, 4714]), (one, [4712]), (all_from_one, [4711, 4712, 4713, 4714])):
        assert [found.pid for found in picking(some, body) or []] == pids


def test_what_cannot_be_attached_to_is_not_picked_and_says_why() -> None:
    async def body(on: Picking) -> None:
        await on.press("G")
        assert "process 9100 belongs to bob" in on.text and "(in container web)" in " ".join(on.text.split())
        for key in ("enter", "a"):
            await on.press(key)
            assert on.app.is_running and "it cannot be attached to; why stands above" in on.text
        await on.press("k", "k", "a")
        assert on.app.is_running and "no part of a job" in on.text
        await on.press("q")

    assert picking(some, body) is None


@pytest.mark.parametrize("keys", [("q",), ("ctrl+c",), ("question_mark", "q", "q"), ("question_mark", "escape", "ctrl+q")])
def test_leaving_picks_nothing(keys: tuple[str, ...]) -> None:
    async def body(on: Picking) -> None:
        await on.press(*keys)

    assert picking(some, body) is None


def test_the_selection_stays_on_its_process_when_others_come_and_go() -> None:
    found = some()

    async def body(on: Picking) -> None:
        await on.press("j", "j", "j")
        assert on.app.view.cursor == "4713"
        found.insert(0, Found(77, ["python", "new.py"]))
        await on.look()
        assert on.app.view.cursor == "4713" and on.selected[:2] == ["2/4", "4713"] and "new.py" in on.text
        del found[4]  # the selected one
        await on.look()
        assert on.app.view.cursor == "4714"  # what took its place

    picking(lambda: list(found), body)


def test_a_filter_narrows_while_it_is_typed() -> None:
    async def body(on: Picking) -> None:
        await on.press("slash", *"alicefinetune")
        assert "nothing matches" in on.text
        await on.press(*["backspace"] * 13, *"finetune")
        assert "1 of 8" in on.text and on.selected[:2] == ["-", "8123"]
        await on.press("enter", "enter")

    assert [found.pid for found in picking(some, body) or []] == [8123]


def test_a_look_that_takes_long_does_not_hold_up_the_screen_and_one_that_fails_is_said() -> None:
    slow = threading.Event()

    def find() -> list[Found]:
        if not slow.wait(20):
            raise TimeoutError
        raise OSError("no /proc")

    app: PickerApp[Found] = PickerApp(find, load_themes(), "dark", BRAILLE, watch=False)

    async def run() -> None:
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause()
            assert "looking for PyTorch processes" in screen_text(app)  # type: ignore[arg-type]
            slow.set()
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert "looking for processes failed: OSError: no /proc" in screen_text(app)  # type: ignore[arg-type]

    asyncio.run(run())


@pytest.mark.parametrize("height", range(1, 8))
def test_on_few_lines_rows_come_first_and_say_whether_they_can_be_attached_to(height: int) -> None:
    def text(cursor: str) -> list[str]:
        return [
            "".join(part for part, _ in line).rstrip()
            for line in draw(entries(some()), ListView(cursor=cursor), 20, height, BRAILLE)
        ]

    able, unable = text("8123"), text("9001")
    assert any(line.startswith("▸   8123 finetu") for line in able)
    assert any(line.startswith("▸   9001 no: leg") for line in unable)
    if height > 1:
        assert unable[-1].startswith(" no: Python 3.9")
    if height > 2:
        assert "PyTorch processes" in able[0] and sum(line[4:8].isdigit() for line in able) == height - 1


@pytest.mark.parametrize("glyphs", [BRAILLE, ASCII], ids=lambda glyphs: glyphs.name)
def test_any_size_and_any_name(glyphs: GlyphSet) -> None:
    awkward = Found(
        5,
        ["\x1b]0;evil\x07", "学習" * 40, "x" * 900],
        user="\u202ename",
        job="[b]",
        why="\x1b[31m" + "y" * 900,
        attachable=False,
    )
    rows = entries([*some(), awkward])
    for width in (1, 3, 10, 39, 80, 200):
        for height in (1, 2, 3, 5, 9, 24):
            for cursor in (None, "5", "4712"):
                lines = draw(rows, ListView(cursor=cursor), width, height, glyphs)
                assert len(lines) == height
                assert all(line_cells(line) == width for line in lines)
                assert all(text.isprintable() for line in lines for text, _ in line)
