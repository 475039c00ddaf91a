"""The list of processes as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tuimon import cli
from tuimon.attach.find.process import Target
from tuimon.attach.refusal import Refused
from tuimon.commands import listing
from tuimon.commands.options import CANNOT_ATTACH, USAGE, Far, Options
from tuimon.draw.text import cells

JOB = Target(
    pid=4242, kind="job", parent=None, rank=0, local_rank=0, world_size=2, job="llama (77)", user="ann",
    started=1.0, age=3725.0, command=["/opt/bin/python3.11", "train.py", "\x1b[31m"],
    python="3.11", has_torch=True, gpus=[0, 1, 2], container=None,
    attachable=True, how="injected", code=None, why=None,
)  # fmt: skip
OTHER = replace(
    JOB, pid=99, rank=None, local_rank=None, world_size=None, job=None, user=None, age=3.0, command=["python", "漢" * 200],
    python=None, has_torch=None, gpus=None, attachable=False, how=None, code="uid", why="it belongs to bob: use sudo",
)  # fmt: skip
LAUNCHER = replace(
    JOB, pid=4000, kind="launcher", rank=None, world_size=None, gpus=[], attachable=False, how=None, code="launcher",
    why="process 4000 only starts others", command=["/opt/bin/python", "/opt/bin/torchrun", "train.py"],
)  # fmt: skip
RANKS = [replace(JOB, pid=4000 + number, parent=4000, rank=number, gpus=[number]) for number in (1, 2)]


def columns(lines: Sequence[str], name: str, width: int) -> list[str]:
    at = lines[0].index(name)
    return [line[at : at + width].strip() for line in lines[1:]]


def test_the_table_shows_what_can_be_attached_to_and_why_not() -> None:
    lines = listing.table([JOB, OTHER])
    assert lines[1].split()[:7] == ["4242", "0/2", "ann", "0-2", "1h02m", "3.11", "yes"]
    assert "llama (77): python train.py" in lines[1]
    assert any("99: it belongs to bob" in line for line in lines[3:])
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    far_away = replace(
        OTHER, pid=4194304, user="somebody-with-a-name", age=9e7, container="0123456789ab", rank=100, world_size=1024
    )
    lines = listing.table([JOB, OTHER, LAUNCHER, *RANKS, far_away], width)
    assert all(cells(line) <= width for line in lines)


def test_ranks_stand_below_their_launcher() -> None:
    lines = listing.table([LAUNCHER, *RANKS, OTHER])
    assert lines[1].split()[-6:] == ["all", "(launcher)", "llama", "(77):", "torchrun", "train.py"]
    command = lines[0].index("JOB / COMMAND")
    assert all(line[command:].startswith("  python train.py") for line in lines[2:4])
    assert listing.depths([LAUNCHER, *RANKS, OTHER]) == [0, 1, 1, 0]
    assert not any("only starts others" in line for line in lines)  # that is no fault


def test_columns_that_say_nothing_are_left_out() -> None:
    lines = listing.table([replace(JOB, rank=None, gpus=[])])
    assert "RANK" not in lines[0] and "GPU" not in lines[0]


def test_same_reason_is_given_once() -> None:
    others = [replace(OTHER, pid=pid, why=f"process {pid} belongs to bob: use sudo") for pid in (31, 32, 33)]
    text = "\n".join(listing.table(others))
    assert text.count("belongs to bob") == 1 and "the same for 2 more: 32, 33" in text


@pytest.mark.parametrize(
    ("devices", "word"), [(None, "?"), ([], "-"), ([3], "3"), ([0, 1], "0,1"), ([0, 2, 5], "0,2,5"), ([0, 1, 2, 3], "0-3")]
)
def test_devices(devices: list[int] | None, word: str) -> None:
    assert listing.gpu(devices) == word


def test_marks() -> None:
    assert listing.title(replace(JOB, has_torch=False, job=None)).startswith("(torch not loaded yet) python")
    assert listing.title(replace(JOB, container="yes", job=None)).startswith("(in a container) python")
    assert listing.title(replace(JOB, container="web", job=None)).startswith("(in web) python")


def test_nothing_there_says_what_would_be_shown() -> None:
    text = " ".join(listing.table([]))
    assert text.startswith("No PyTorch process here") and "tuimon list ssh://HOST" in text


def test_next_step() -> None:
    assert listing.next_step([OTHER]) == []
    assert listing.next_step([JOB])[1].startswith("tuimon attach 4242 ")
    whole = listing.next_step([LAUNCHER, *RANKS])
    assert whole[1].startswith("tuimon attach 4000 ") and whole[2].startswith("tuimon attach --all")
    shell = replace(LAUNCHER, pid=1, command=["bash", "run.sh"])
    below = [replace(rank, parent=1) for rank in RANKS]
    assert listing.next_step([shell, *below])[1].startswith("tuimon attach 4001 ")  # its jobs may be strangers to each other
    assert listing.next_step([JOB], "ssh://gpu7/")[1].startswith("tuimon attach ssh://gpu7/4242 ")


def test_json_has_every_field(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(listing, "find_targets", lambda: [JOB, OTHER])
    assert listing.run(Options(format="json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "tuimon.list/1"
    assert [target["pid"] for target in found["targets"]] == [4242, 99]
    assert found["targets"][1]["code"] == "uid"
    assert set(found["targets"][0]) == set(Target.__dataclass_fields__)


def test_tuimon_alone_says_what_to_do_next(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(listing, "find_targets", list)
    assert listing.run(Options(), hints=True) == 0
    assert "tuimon attach PID" in capsys.readouterr().out


def test_another_host(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(listing, "_of_another_host", lambda far, quiet: [JOB])
    assert listing.run(Options(), Far("ssh://gpu7", None)) == 0
    assert "tuimon attach ssh://gpu7/4242" in capsys.readouterr().out
    assert listing.run(Options(), Far(None, "kubectl exec -i pod --")) == 0
    assert "tuimon attach --via 'kubectl exec -i pod --' 4242" in capsys.readouterr().out


def test_host_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(far: Far, *, quiet: bool) -> list[Target]:
        raise Refused("lost", "there is nobody") if far.place else ValueError("no such place")

    monkeypatch.setattr(listing, "_of_another_host", refuse)
    assert listing.run(Options(), Far("ssh://gpu7", None)) == CANNOT_ATTACH
    assert listing.run(Options(), Far(None, "x")) == USAGE
    said = capsys.readouterr()
    assert said.out == "" and "there is nobody [lost]" in said.err


@pytest.mark.parametrize("pids", [False, True])
def test_a_list_of_another_host_says_what_it_waits_for(pids: bool, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", "--via", "false", *(["--pids"] if pids else [])]) == 3
    assert ("tuimon: connecting to " in capsys.readouterr().err) == (not pids)  # a shell that completes wants no words
