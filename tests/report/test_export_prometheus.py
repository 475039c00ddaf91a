"""The Prometheus text: read by a parser that takes nothing but what the format allows; and written whole or not at all."""

from __future__ import annotations

import math
import os
import re
import threading
from pathlib import Path

import pytest

from tests.report.jobs import MS, model_of, training
from tuimon import events as ev
from tuimon.model import Model
from tuimon.report.prometheus import exposition, write
from tuimon.report.ranks import Watched

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"')


def parsed(text: str) -> tuple[dict[str, str], Series]:
    """({metric: type}, {(name, labels): value}). Raises AssertionError for all that a strict reader of the format refuses."""
    assert text == "" or text.endswith("\n"), "the last line has no end"
    kinds: dict[str, str] = {}
    helped: set[str] = set()
    closed: set[str] = set()
    series: Series = {}
    under_way = ""
    for line in text.split("\n")[:-1]:
        assert line, "an empty line"
        if line.startswith("# "):
            _, what, name, rest = line.split(" ", 3)
            assert NAME.fullmatch(name) and what in ("HELP", "TYPE")
            assert name not in closed, f"{name} comes up twice"
            if what == "HELP":
                assert name not in helped
                helped.add(name)
                assert re.fullmatch(r"(?:[^\\]|\\\\|\\n)+", rest)
            else:
                assert name not in kinds and rest in ("counter", "gauge", "summary")
                assert name == under_way or not under_way or closed.add(under_way) is None
                kinds[name], under_way = rest, name
            continue
        found = re.fullmatch(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\{(.*)\} (\S+)", line)
        assert found, line
        name, inside, number = found.groups()
        bare = re.sub(r"_(sum|count)$", "", name) if kinds.get(under_way) == "summary" else name
        assert bare == under_way and bare in helped, f"{name} does not stand below its TYPE"
        assert not name.endswith("_total") or kinds[bare] == "counter"
        assert kinds[bare] != "counter" or name.endswith("_total")
        labels = tuple(LABEL.findall(inside))
        assert ",".join(f'{label}="{value}"' for label, value in labels) == inside, line
        assert len({label for label, _ in labels}) == len(labels), "a label twice"
        value = float(number)
        assert math.isfinite(value)
        assert (name, labels) not in series, f"a series twice: {line}"
        series[name, labels] = value
    return kinds, series


def watched(model: Model, at: int = 0) -> Watched:
    return Watched(f"rank {at}", at, 4242 + at, None, model, at)


def values(series: Series, name: str, **wanted: str) -> list[float]:
    return [value for (found, labels), value in series.items() if found == name and wanted.items() <= dict(labels).items()]


def test_what_is_known_is_there_in_base_units() -> None:
    kinds, series = parsed(exposition([watched(model_of(training(20)))]))
    assert kinds["tuimon_steps_total"] == "counter" and kinds["tuimon_step_seconds"] == "summary"
    assert values(series, "tuimon_step_seconds", quantile="0.5") == [0.01]
    assert values(series, "tuimon_boundary_crossings_total") == [20]
    assert values(series, "tuimon_boundary_host_seconds_total") == pytest.approx([0.02])
    assert values(series, "tuimon_recompiles_total", refused="false") == [1]
    assert values(series, "tuimon_recompiles_total", refused="true") == [1]
    assert values(series, "tuimon_gpu_utilization_ratio", gpu="0") == [0.4]
    assert values(series, "tuimon_resident_memory_bytes") == [1 << 30]
    assert values(series, "tuimon_samples_dropped_total") == [3]
    assert {dict(labels)["job"] for _, labels in series} == {"python train.py"}
    assert {dict(labels)["pid"] for _, labels in series} == {"4242"}


def test_the_end_is_told_and_what_is_not_known_is_left_out() -> None:
    _, series = parsed(exposition([watched(model_of(training(20)))]))
    assert values(series, "tuimon_up") == [0] and values(series, "tuimon_exit_status") == [0]
    assert values(series, "tuimon_gpu_power_watts") == []
    _, series = parsed(exposition([watched(model_of(training(20)[:3]))]))
    assert values(series, "tuimon_up") == [1] and values(series, "tuimon_steps_total") == []
    _, series = parsed(exposition([watched(Model())]))  # not attached yet
    assert values(series, "tuimon_up") == [0] and len(series) == 2


def test_nothing_of_the_job_breaks_the_format_and_ranks_are_told_apart() -> None:
    events = training(20)
    evil = 'python "a\\b"\n{x="1"} 7 \x1b[31m \ud800 \u202e' + "y" * 10_000
    events[0] = ev.TargetSeen(1 * MS, 4242, evil, "3.11", "2.13", "run", 1.0, ("cpu",), rank=0, world_size=2)
    events.insert(1, ev.GraphBroke(4_000 * MS, "9/0", 0, 'say "no"\n', 'say "no"\\\n', None, "f", 'C:\\a"b.py', 3))
    text = exposition([watched(model_of(events)), watched(model_of(training(5)), 1)])
    _, series = parsed(text)
    assert len(values(series, "tuimon_up")) == 2 and len(text.encode()) < 200_000
    ups = [dict(labels)["rank"] for name, labels in series if name == "tuimon_up"]
    assert ups == ["0", "1"]


def test_two_of_one_name_do_not_make_a_series_twice() -> None:
    same = model_of(training(5))
    parsed(exposition([Watched("a", 0, 1, None, same), Watched("b", 0, 1, None, same)]))


def test_a_reader_finds_the_old_or_the_new_file_whole(tmp_path: Path) -> None:
    path = tmp_path / "tuimon.prom"
    texts = ["a" * 100_000 + "\n", "b" * 200_000 + "\n"]
    write(path, texts[0])
    over = threading.Event()

    def writing() -> None:
        for number in range(200):
            write(path, texts[number % 2])
        over.set()

    thread = threading.Thread(target=writing)
    thread.start()
    looks = 0
    while not over.is_set() or not looks:
        assert path.read_text() in texts
        looks += 1
    thread.join()
    assert os.listdir(tmp_path) == ["tuimon.prom"]
    assert path.stat().st_mode & 0o777 == 0o644


def test_where_it_cannot_be_written_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "tuimon.prom").mkdir()
    with pytest.raises(OSError):
        write(tmp_path / "tuimon.prom", "x\n")
    assert os.listdir(tmp_path) == ["tuimon.prom"]
    with pytest.raises(OSError):
        write(tmp_path / "no" / "tuimon.prom", "x\n")


def test_what_another_user_has_put_there_is_neither_waited_for_nor_kept(tmp_path: Path) -> None:
    """In a folder that is shared: pipes under the name itself and under one that can be foreseen, and a link."""
    (tmp_path / "aim").write_text("mine")
    for at, there in enumerate(("fifo", "link")):
        path = tmp_path / f"{at}.prom"
        for name in (path, tmp_path / f".{path.name}.{os.getpid()}.tmp"):
            os.mkfifo(name) if there == "fifo" else name.symlink_to("aim")
        writing = threading.Thread(target=write, args=(path, "x 1\n"), daemon=True)
        writing.start()
        writing.join(20)
        assert not writing.is_alive(), there
        assert not path.is_symlink() and path.is_file() and path.read_text() == "x 1\n"
        assert path.stat().st_uid == os.geteuid() and path.stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "aim").read_text() == "mine"
