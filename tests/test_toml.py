"""What is wrong with a TOML file is one kind of error, whoever reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tuimon import toml
from tuimon.accepted import AcceptedError, load
from tuimon.app.look.themes import ThemeError, parse_theme
from tuimon.app.tour import TourError
from tuimon.app.tour import parse as parse_tour
from tuimon.lab.walk import WalkError, parse_walk
from tuimon.roofline.calibration import CalibrationError
from tuimon.roofline.calibration import parse as parse_calibration
from tuimon.roofline.ceilings import CeilingError, read_document

ODD = [
    b"x = ",
    b"x = " + b"9" * 4301,
    b"x = " + b"[" * 100_000,
    b"\x00",
    b"\xff",
    b"x = 1\nx = 2",
    b"\xef\xbb\xbfx = ",
    b'x = "\\ud800"',
]


@pytest.mark.parametrize("data", ODD, ids=range(len(ODD)))
def test_whatever_is_wrong_is_said(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(toml.NotToml):
        toml.parse(data)
    with pytest.raises(CeilingError, match=r"not TOML|not UTF-8"):
        read_document(data, "it")
    with pytest.raises(CalibrationError):
        parse_calibration(data)
    with pytest.raises(WalkError):
        parse_walk(data, "it")
    with pytest.raises(TourError):
        parse_tour(data, "it")
    if data.isascii():
        with pytest.raises(ThemeError):
            parse_theme(data.decode(), {})
    path = tmp_path / "tuimon-accepted.toml"
    path.write_bytes(data)
    with pytest.raises(AcceptedError):
        load(path)


def test_what_is_right_is_read() -> None:
    assert toml.parse(b"x = 1") == toml.parse("x = 1") == {"x": 1}
