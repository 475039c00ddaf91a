"""Lines of a log as records: whole ones, broken ones, and what is not torch's at all."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path

import pytest

from tests.sources.logs import NAME, WHOLE, head, line
from tuimon.sources import glog
from tuimon.sources.files import open_any
from tuimon.sources.torch_trace import lines
from tuimon.sources.torch_trace.lines import Damage, Record, prefixes, records

TWO = line({"a": 1}, "one\ntwo") + line({"b": 2})


def read(text: str, prefix: str | None = None, size: int = 0) -> tuple[list[Record], Damage]:
    damage = Damage()
    chunks = [text[at : at + size] for at in range(0, len(text), size)] if size else [text]
    return list(records(chunks, damage, lambda _: True, prefix)), damage


@pytest.mark.parametrize("size", [0, 1, 7, 64])
def test_a_payload_is_the_lines_with_a_tab_less(size: int) -> None:
    (one, two), damage = read(TWO, size=size)
    assert (one.payload, two.payload) == ("one\ntwo", None)
    assert (one.line, two.line, one.month, one.day, one.who) == (1, 4, 11, 30, 4711)
    assert one.ns == 36000 * 10**9 and two.told == {"b": 2}
    assert damage == Damage()


def test_lines_may_end_as_on_windows_and_the_last_one_not_at_all() -> None:
    (one, two), _ = read(TWO.replace("\n", "\r\n").rstrip())
    assert one.payload == "one\ntwo" and two.told == {"b": 2}


def test_a_record_that_is_broken_is_counted_and_its_payload_is_nobodys() -> None:
    text = line({"a": 1}) + f'{head()} {{"broken": \n\tpayload\n' + line({"b": 2}, "kept")
    found, damage = read(text)
    assert [one.told.get("b") or one.told.get("a") for one in found] == [1, 2]
    assert found[0].payload is None and found[1].payload == "kept"
    assert (damage.records, damage.lines) == (1, [2])
    assert damage.sentence(2) == "1 of 3 records could not be read (line 2)"


@pytest.mark.parametrize("text", ["[1]", '"x"', "1e999x", "{" * 2000, "[" * 100_000, '{"a": ' + "9" * 5000 + "}"])
def test_json_that_is_no_record(text: str) -> None:
    found, damage = read(f"{head()} {{{text}\n{NAME}")
    assert len(found) == 1 and damage.records == 1


def test_other_lines_are_counted_and_do_not_end_a_payload() -> None:
    noise = "a warning of a library\n\n"
    one, rest = TWO.split("\ttwo\n")
    found, damage = read(f"{noise}{one}{noise}\ttwo\n{rest}")
    assert found[0].payload == "one\ntwo" and damage.foreign == 2
    assert damage.sentence(2) == "2 lines in it are no part of a record"
    assert Damage(foreign=1).sentence(2) == "1 line in it is no part of a record"


def test_ranks_in_one_file_are_told_apart_though_their_lines_are_mixed() -> None:
    zero, one = line({"r": 0}, "zero\nlast"), line({"r": 1}, "one")
    for_each = [f"[rank{number}]:{text}" for number, text in ((0, zero), (1, one))]
    assert prefixes(["".join(for_each)]) == ["rank0", "rank1"]
    for number, payload in ((0, "zero\nlast"), (1, "one")):
        (found,), damage = read("".join(for_each), f"rank{number}")
        assert (found.told["r"], found.payload) == (number, payload)
        assert damage == Damage()
    by_line = [[f"[default{n}]:{row}" for row in text.splitlines()] for n, text in ((0, zero), (1, one))]
    text = "\n".join(row for rows in zip_longest(*by_line, fillvalue="") for row in rows)
    assert [one.payload for one in read(text, "default0")[0]] == ["zero\nlast"]
    assert [one.payload for one in read(text, "default1")[0]] == ["one"]


def test_one_rank_whose_prefix_comes_later_is_one() -> None:
    text = NAME + f"[rank3]:{line({'a': 1}, 'payload')}"
    found, damage = read(text)
    assert len(found) == 2 and found[1].payload == "payload" and damage == Damage()


def test_what_is_too_long_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LONGEST_LINE", 1000)
    monkeypatch.setattr(lines, "LONGEST_PAYLOAD", 50)
    text = line({"a": "x" * 2000}) + line({"b": 1}, "y" * 40 + "\n" + "y" * 40) + NAME
    for size in (0, 100):
        found, damage = read(text, size=size)
        assert [one.cut for one in found] == [True, False] and damage.records == 1
        assert len(found[0].payload or "") <= 50


def test_payloads_that_nobody_wants_are_not_kept() -> None:
    (one, two) = records([TWO], Damage(), lambda told: "b" in told)
    assert one.payload is None and two.payload is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (WHOLE, "records"),
        ("*****\nSetting OMP_NUM_THREADS\nW1206 15:18:15.9 1 torch/distributed/run.py:7] hi\n" + WHOLE, "records"),
        ("[rank0]:" + NAME, "records"),
        ("[rank0]: " + NAME, "records"),
        ("[trainer0]:" + NAME, "records"),
        ("V1130 12:00:00.123456 1 torch/x.py:1] [0/0] [__graph_breaks] Graph break\n", "text"),
        ("I1130 12:00:00.123456 1 C:\\torch\\x.py:1] {}\n", "records"),
        ('{"traceEvents": []}', ""),
        ("[rank0]: hello\n", ""),
        ("", ""),
        ("V1130 12:00:00 torch\n", ""),
    ],
)
def test_the_kind_of_a_log(text: str, kind: str) -> None:
    assert glog.kind(text) == kind


def test_a_log_may_have_a_nul_in_it(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"\0\0\0" + ("\n" + WHOLE).encode())
    assert [one.kind for one in open_any(tmp_path / "log")[0]] == ["torch_trace"]
