"""The guided walk: the one that is shipped can be walked to its end, and a file that cannot be used says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tuimon.lab import state, walk
from tuimon.lab.state import Lab
from tuimon.lab.walk import Walk, WalkError, load_walk, parse_walk

ANSWERS = ("640", "1000", "1000", "6.667", "15")


def walked(answers: tuple[str, ...]) -> tuple[Walk, Lab]:
    """To the last stop, doing what each asks for."""
    left = iter(answers)
    here, lab = walk.begin(load_walk(), Lab(score=(3, 9)))
    for _ in range(200):
        order = walk.lacking(here, lab)
        if order.startswith("set the intensity"):
            lab = state.set_intensity(lab, order.split()[4])
        elif order.startswith("set the bandwidth"):
            lab = state.set_bandwidth(lab, order.split()[4])
        elif order.startswith("predict"):
            lab = state.predict(lab, next(left))
        elif order.startswith("trace"):
            lab = state.step(lab)
        elif here.last:
            return here, lab
        else:
            here, lab = walk.go_on(here, lab)
    raise AssertionError(f"stuck at stop {here.at + 1}")


def test_the_shipped_walk_can_be_walked_with_five_predictions() -> None:
    assert walked(ANSWERS)[1].score == (5, 5)
    assert walked(("1", *ANSWERS[1:]))[1].score == (4, 5)


def test_its_two_settings_are_those_of_the_lab_and_set_by_hand() -> None:
    by_hand = [stop for stop in load_walk().stops if stop.by_hand]
    assert [(stop.intensity, stop.bandwidth) for stop in by_hand] == [(8.0, 80e9), (16.0, 80e9)]


def test_it_says_what_it_must() -> None:
    words = " ".join(f"{stop.say} {stop.then}" for stop in load_walk().stops)
    for said in ("potential traffic benefit", "never what was achieved", "hypothetical", "synchronised time", "graph break"):
        assert said in words


def test_its_numbers_are_right() -> None:
    """What the texts claim, from the stops' own numbers."""
    claimed = {1: 640e9, 2: 1000e9, 3: 1000e9, 4: 80e9 / 12, 5: 15e9}
    for at, ceiling in claimed.items():
        stop = load_walk().stops[at]
        assert state.ceiling(Lab(stop.intensity, stop.bandwidth)) == pytest.approx(ceiling, rel=1e-12)


def test_a_stop_that_is_not_done_is_not_left_but_skipped() -> None:
    here, lab = walk.begin(load_walk(), Lab())
    here, lab = walk.go_on(here, lab)
    stayed, told = walk.go_on(here, lab)
    assert stayed.at == here.at == 1 and told.message.startswith("first set the intensity to 8 FLOP/byte: i")
    skipped, _ = walk.skip(here, lab)
    assert skipped.at == 2
    assert walk.back(skipped, lab)[0].at == 1
    assert "first stop" in walk.back(walk.begin(here, lab)[0], lab)[1].message


def test_there_is_nothing_behind_the_last_stop() -> None:
    here, lab = walked(ANSWERS)
    again, told = walk.go_on(here, lab)
    assert again.at == here.at and "last stop" in told.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "title must be a text"),
        ("title = 'x'", "one [[stop]] or more"),
        ("title = 'x'\nstop = 3", "one [[stop]] or more"),
        ("title = 'x'\n[[stop]]\n", "stop 1: say must be a text"),
        ("title = 'x'\n[[stop]]\nsay = 'a'\nfoo = 1", "stop 1: unknown foo"),
        ("title = 'x'\n[[stop]]\nsay = 'a'\npredict = 1", "predict must be true or false"),
        ("title = 'x'\n[[stop]]\nsay = 'a'\npredict = true", "a question needs intensity and bandwidth"),
        ("title = 'x'\n[[stop]]\nsay = 'a'\nintensity = -3", "intensity: -3 is no intensity"),
        ("title = 'x'\n[[stop]]\nsay = 'a'\nintensity = true", "must be a number"),
        ("title = 'x'\n[[stop]]\nsay = 'a'\nbandwidth = inf", "inf is no bandwidth"),
        ("titel = 'x'", "unknown titel"),
        ("title = ", "not TOML"),
        ("title = 'x'\n" + "[[stop]]\nsay = 'a'\n" * 101, "more than 100 stops"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(text: str, said: str) -> None:
    with pytest.raises(WalkError) as refused:
        parse_walk(text.encode(), "mine.toml")
    assert str(refused.value).startswith("mine.toml: ") and said in str(refused.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    for path, says in ((tmp_path, "is a directory"), (tmp_path / "none.toml", "cannot be opened: no such file")):
        with pytest.raises(WalkError, match=says):
            load_walk(path)
    (tmp_path / "latin").write_bytes(b"\xff\xfe")
    with pytest.raises(WalkError, match="not UTF-8"):
        load_walk(tmp_path / "latin")
    (tmp_path / "large").write_bytes(b"#" * (walk.MOST_BYTES + 1))
    with pytest.raises(WalkError, match="no walk is"):
        load_walk(tmp_path / "large")
