"""TOML that a person or a stranger wrote: ceilings, machines, calibrations, themes, walks, accepted boundaries, settings."""

from __future__ import annotations

import contextlib
import copy
import datetime
import json
import math
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tests.fuzz.draws import Draw, changed
from tests.fuzz.of_files import folder
from tests.roofline.test_machines import calibrated as measured_on
from tuimon import accepted, config, toml
from tuimon.app.look import themes
from tuimon.app.look.looks import runs, textual_theme
from tuimon.draw.text import clean
from tuimon.lab import walk
from tuimon.roofline import calibration, ceilings, machines

ROOT = Path(__file__).parents[2]
ENTRY = accepted.Entry("a.py", "f", "Tensor.item()", "x.item()", "a note")
ODD_TOML = ("0x" + "f" * 5000, "9" * 5000, "1e999", "nan", "-inf", "0o" + "7" * 9000, "2026-01-01T00:00:00Z", "10:00:00")
"""Values that JSON does not have."""


def _ceilings(data: bytes) -> None:
    for one in ceilings.parse_ceilings(data, "f"):
        assert one.roof(1.0) >= 0
        str(one)


def _machines(data: bytes) -> None:
    for one in machines.parse_machines(data, "f", how="declared"):
        str(one)


def _calibration(data: bytes) -> None:
    str(calibration.parse(data).machine())


def _theme(data: bytes) -> None:
    path = folder() / "theme.toml"
    path.write_bytes(data)
    made = themes.read_theme(path, _themes())
    textual_theme(made, "x")
    runs([[("x", role) for role in made.looks]], made)


@cache
def _themes() -> dict[str, themes.Theme]:
    return themes.load_themes(user=folder() / "none").themes


def _walk(data: bytes) -> None:
    str(walk.parse_walk(data, "f"))


def _accepted(data: bytes) -> None:
    """What is read can be added to and taken from, and all else stays."""
    path = folder() / "accepted.toml"
    path.write_bytes(data)
    before, said = accepted.load(path)
    for sentence in said:
        assert sentence
    accepted.save(path, ENTRY)
    after, _ = accepted.load(path)
    assert len(after) >= min(len(before), accepted.MOST_ENTRIES - 1) and any(one.which == ENTRY.which for one in after)
    assert accepted.remove(path, ENTRY)
    last, _ = accepted.load(path)
    assert [one for one in before if one.which != ENTRY.which] == last


def _config(data: bytes) -> None:
    path = folder() / "config.toml"
    path.write_bytes(data)
    _resolved(path, {})


def _resolved(path: Path, environ: Mapping[str, str]) -> None:
    found = config.resolve({}, environ, path)
    assert set(found.values) == set(config.BY_NAME)
    for setting in config.SETTINGS:
        value = found[setting.name]
        assert value is None or isinstance(value, (setting.kind, Path)), (setting.name, value)
        assert not setting.choices or value in setting.choices
        if isinstance(value, float):
            assert math.isfinite(value)
        setting.shown(value)
    for sentence in found.problems:
        assert clean(sentence) and "integer string conversion" not in sentence


READERS: dict[str, tuple[Callable[[bytes], None], tuple[type[Exception], ...]]] = {
    "ceilings": (_ceilings, (ceilings.CeilingError,)),
    "machines": (_machines, (ceilings.CeilingError,)),
    "calibration": (_calibration, (calibration.CalibrationError,)),
    "themes": (_theme, (themes.ThemeError,)),
    "walk": (_walk, (walk.WalkError,)),
    "accepted": (_accepted, (accepted.AcceptedError,)),
    "config": (_config, ()),
}
"""What reads each, and what it may raise."""


@cache
def documents() -> dict[str, tuple[bytes, ...]]:
    """Sound ones of each."""
    shipped = ROOT / "tuimon" / "roofline"
    entry = "".join(
        f'[[boundary]]\nfile = "a.py"\nfunction = "f{n}"\nkind = "k"\nsource = "s"\nnote = "n"\n# mine\n\n' for n in range(3)
    )
    settings = (
        'theme = "light"\ninterval = 0.5\nmouse = false\nslow_over = 20\nascii = true\nceilings = "~/c.toml"\nmax_size = 9\n'
    )
    own = 'name = "own"\nbase = "dark"\ntitle = "mine"\ndark = true\n[roles]\nbreak = "bold #ff0000 on #101010"\n'
    measured = calibration._written(measured_on())
    some = (shipped / "ceilings.toml").read_bytes(), (shipped / "machines.toml").read_bytes()
    return {
        "ceilings": (some[0], b"\n[[ceiling]]".join(some[0].split(b"\n[[ceiling]]")[:2])),
        "machines": (some[1], b"\n[[machine]]".join(some[1].split(b"\n[[machine]]")[:2])),
        "calibration": (measured.encode(),),
        "themes": (own.encode(), *(path.read_bytes() for path in sorted((ROOT / "themes").glob("*.toml")))),
        "walk": tuple(path.read_bytes() for path in sorted((ROOT / "demos" / "walks").glob("*.toml"))),
        "accepted": (b"", entry.encode()),
        "config": (b"", settings.encode()),
    }


def reader(name: str) -> Callable[[bytes, bool], None]:
    """A target: the bytes of such a file."""
    read, may = READERS[name]

    def target(data: bytes, thorough: bool) -> None:
        del thorough
        with contextlib.suppress(*may):
            read(data)

    return target


def values(data: bytes, thorough: bool) -> None:
    """A sound file in which some values are others."""
    draw = Draw(data)
    name = draw.pick(tuple(READERS))
    told = copy.deepcopy(toml.parse(draw.pick(documents()[name])))
    for _ in range(1 + draw.below(3)):
        changed(draw, told)
    reader(name)(_dumped(draw, told), thorough)


def _dumped(draw: Draw, told: Mapping[str, Any]) -> bytes:
    odd = draw.pick(ODD_TOML) if draw.below(4) == 0 else None
    lines = []
    for key, value in told.items():
        if odd is not None and draw.below(4) == 0:
            text, odd = odd, None
        else:
            text = written(value)
        lines.append(f"{json.dumps(key)} = {text}")
    return "\n".join(lines).encode("utf-8", "replace")


def written(value: Any) -> str:
    """A value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value.encode("utf-8", "replace").decode()).replace("\x7f", "\\u007f")
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, int):
        return str(value) if abs(value) < 10**4000 else hex(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(key))} = {written(one)}" for key, one in value.items()) + "}"
    return value.isoformat() if isinstance(value, (datetime.date, datetime.time)) else '""'


def environment(data: bytes, thorough: bool) -> None:
    """Settings from the environment, over those of a file."""
    del thorough
    draw = Draw(data)
    words = {}
    for _ in range(draw.below(5)):
        name = draw.pick((*(setting.env for setting in config.SETTINGS), "NO_COLOR", "HOME"))
        value = draw.value("1")
        with contextlib.suppress(ValueError):
            words[name] = (value if isinstance(value, str) else str(value)).replace("\0", "")
    path = folder() / "config.toml"
    path.write_bytes(draw.pick(documents()["config"]))
    _resolved(path, words)
