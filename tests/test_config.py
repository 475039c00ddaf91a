"""Settings: which of four places is in force, and what becomes of what cannot be used."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tuimon import cli
from tuimon.commands.options import Options
from tuimon.config import BY_NAME, MOST_BYTES, SETTINGS, Config, config_file, resolve, short

PLACES = ("flag", "env", "file")


class Said(NamedTuple):
    """The same setting in three places, with three values."""

    flag: tuple[str, ...]
    flag_value: object
    env: str
    env_value: object
    file: str
    file_value: object
    of_record: bool = False


SAID = {
    "theme": Said(("--theme", "light"), "light", "mono", "mono", '"ansi16"', "ansi16"),
    "background": Said(("--background", "light"), "light", "dark", "dark", '"auto"', "auto"),
    "color": Said(("--color", "auto"), "auto", "none", "none", '"none"', "none"),
    "ascii": Said(("--no-ascii",), False, "1", True, "true", True),
    "mouse": Said(("--no-mouse",), "off", "yes", "on", "true", "on"),
    "clipboard": Said(("--no-clipboard",), False, "on", True, "false", False),
    "interval": Said(("--interval", "2"), 2.0, "3", 3.0, "0.5", 0.5),
    "slow_over": Said(("--slow-over", "0"), 0.0, "7.5", 7.5, "12", 12.0),
    "stacks": Said(("--stacks",), True, "0", False, "false", False),
    "ceilings": Said(("--ceilings", "/a.toml"), Path("/a.toml"), "/b.toml", Path("/b.toml"), '"/c.toml"', Path("/c.toml")),
    "max_size": Said(("--max-size", "7"), 7, "8", 8, "9", 9, of_record=True),
}


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An environment and a folder for settings in which nothing is set; gives the file."""
    for name in [*os.environ]:
        if name.startswith("TUIMON_") or name == "NO_COLOR":
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = config_file()
    file.parent.mkdir()
    assert file == tmp_path / "tuimon" / "config.toml"
    return file


def parsed(*words: str) -> Options:
    return cli._options(cli.make_parser().parse_args(words))


def in_force(said: Said, *words: str) -> Config:
    start = ("record", "1", "-o", "x.tuimon") if said.of_record else ("attach", "1")
    config = parsed(*start, *words).config
    assert config is not None
    return config


def test_every_setting_is_tried() -> None:
    assert set(SAID) == set(BY_NAME)


@pytest.mark.parametrize(("above", "below"), list(itertools.combinations((*PLACES, "default"), 2)))
@pytest.mark.parametrize("name", SAID)
def test_what_stands_above_is_in_force(
    name: str, above: str, below: str, monkeypatch: pytest.MonkeyPatch, nothing_set: Path
) -> None:
    setting, said = BY_NAME[name], SAID[name]
    if "env" in (above, below):
        monkeypatch.setenv(setting.env, said.env)
    if "file" in (above, below):
        nothing_set.write_text(f"# mine\n{name} = {said.file}\n")
    config = in_force(said, *(said.flag if "flag" in (above, below) else ()))
    value, where = config.values[name]
    assert config.problems == ()
    if above == "flag":
        assert value == said.flag_value and where in said.flag
    elif above == "env":
        assert value == said.env_value and where == setting.env
    else:
        assert value == said.file_value and where == f"{short(nothing_set)}:2"
    others = {other: resolved for other, resolved in config.values.items() if other != name}
    assert all(where == "default" for _, where in others.values())


def test_defaults_are_the_options_as_they_were() -> None:
    made = parsed("attach", "1")
    assert (made.theme, made.interval, made.slow_over_ms, made.ceilings, made.mouse) == (None,) * 5
    assert (made.ascii, made.no_color, made.stacks, made.clipboard, made.background) == (False, False, True, True, "auto")
    assert all(where == "default" for _, where in resolve({}).values.values())


def test_no_color_stands_between_the_flag_and_the_file(monkeypatch: pytest.MonkeyPatch, nothing_set: Path) -> None:
    nothing_set.write_text('color = "auto"\n')
    assert not parsed("list").no_color
    monkeypatch.setenv("NO_COLOR", "1")
    found = parsed("list")
    assert found.no_color and found.config is not None and found.config.values["color"].where == "NO_COLOR"
    assert not parsed("list", "--color", "auto").no_color
    assert parsed("list", "--no-color").no_color
    monkeypatch.setenv("TUIMON_COLOR", "auto")  # says it of tuimon alone
    assert not parsed("list").no_color


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("theme = ", "is not TOML, so nothing in it holds"),
        ("interval = 3\nthem = 'light'", ":2: there is no setting 'them'; did you mean theme?"),
        ("interval = 3\nqqqq = 1", "there are theme, background"),
        ("interval = 3\n[keys]\nq = 'x'", ":2: there is no setting 'keys'"),
        ("interval = 3\ntheme = 3", ":2: theme is 3: it is a text"),
        ("interval = 3\nascii = 'yes'", ":2: ascii is 'yes': it is true or false"),
        ("interval = 3\nmouse = 'maybe'", ":2: mouse is 'maybe': it is auto, on or off"),
        ("interval = 3\nstacks = 0", "stacks is 0: it is true or false"),
        ("interval = 3\nslow_over = -1", "slow_over is -1: it is a number from 0 to 86400000"),
        ("interval = 3\nmax_size = 1.5", "max_size is 1.5: it is a whole number above 0"),
        ("interval = 3\nmax_size = nan", "max_size is nan"),
        ("interval = 3\nmax_size = inf", "max_size is inf"),
        ("interval = 3\nmax_size = true", "max_size is true: it is a whole number above 0"),
        ("interval = 3\nceilings = ''", "ceilings is '': it is the name of a file"),
        ("interval = 3\ntheme = ''", "theme is '': it is a text"),
        ("interval = inf", "interval is inf"),
        ("interval = 3\ntheme = ['light']", "theme is an array: it is a text"),
        ("interval = 3\n[theme]\nname = 'light'", ":2: theme is a table: it is a text"),
        ("interval = 3\ntheme = 2026-11-30", "theme is 2026-11-30: it is a text"),
        (f"interval = 3\nmax_size = {'9' * 400}", f"max_size is {'9' * 40}..: it is a whole number above 0"),
        (f"interval = 3\nslow_over = -{'9' * 400}", "slow_over is -999"),
        (f"max_size = {'9' * 5000}", "is not TOML"),
        ("theme = " + "[" * 3000, "is not TOML"),
        ("interval = 3\nceilings = '~nobody-of-this-name/x.toml'", "there is no home of that name"),
        ('interval = 3\nceilings = "a\\u0000b"', "no file has such a name"),
        (f"interval = 3\nmouse = '{'x' * 90_000}'", f"mouse is '{'x' * 39}..: it is auto, on or off"),
    ],
)
def test_what_is_wrong_is_a_sentence_and_the_rest_holds(
    text: str, says: str, nothing_set: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing_set.write_text(text)
    config = resolve({})
    assert len(config.problems) == 1 and says in config.problems[0] and str(nothing_set) in config.problems[0]
    assert config["interval"] == (3.0 if "interval = 3" in text else None)
    assert cli.main(["list"]) == 0
    assert f"tuimon: {config.problems[0]}\n" in capsys.readouterr().err


def test_a_file_of_another_program(nothing_set: Path) -> None:
    nothing_set.write_text("theme = 'light'\n" + "".join(f"key_{number} = 1\n" for number in range(3_000)))
    config = resolve({})
    assert config["theme"] == "light" and len(config.problems) == 6
    assert config.problems[-1] == f"{nothing_set}: 2995 more names in it are no setting's"


def test_a_file_of_another_system(nothing_set: Path) -> None:
    nothing_set.write_bytes(b"\xef\xbb\xbftheme = 'light'\r\nascii = true\r\nmouse = 3\r\n")
    config = resolve({})
    assert (config["theme"], config["ascii"]) == ("light", True)
    assert config.problems == (f"{nothing_set}:3: mouse is 3: it is auto, on or off",)


@pytest.mark.parametrize(
    ("name", "text"), [("CEILINGS", "~nobody-of-this-name/x"), ("MAX_SIZE", "9" * 400), ("MAX_SIZE", "9" * 5000)]
)
def test_odd_words_in_the_environment(name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"TUIMON_{name}", text)
    (problem,) = resolve({}).problems
    assert problem.startswith(f"TUIMON_{name} is '{text[:20]}") and len(problem) < 120


@pytest.mark.parametrize("text", ["maybe", "-1", "nan", "1e999", "0x"])
def test_what_is_wrong_in_the_environment_is_a_sentence_too(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for setting in SETTINGS:
        if setting.kind in (bool, int, float) or setting.choices:
            monkeypatch.setenv(setting.env, text)
    config = resolve({})
    assert len(config.problems) == len(SETTINGS) - 2
    assert all(where == "default" for _, where in config.values.values())


def test_files_that_are_none(nothing_set: Path) -> None:
    nothing_set.write_bytes(b"theme = '\xff'")
    assert "not UTF-8" in resolve({}).problems[0]
    nothing_set.write_text("#" * (MOST_BYTES + 1))
    assert "larger" in resolve({}).problems[0]
    nothing_set.unlink()
    os.mkfifo(nothing_set)  # reading it would never end
    assert "is a fifo" in resolve({}).problems[0]
    nothing_set.unlink()
    nothing_set.mkdir()
    assert "is a directory" in resolve({}).problems[0]
    nothing_set.rmdir()
    nothing_set.symlink_to("nowhere")
    assert resolve({}).problems == ()
    assert resolve({}, path=Path("/proc/self/mem/x")).problems == ()  # below a file there is none


def test_the_file_is_read_though_a_flag_stands_above_it(nothing_set: Path) -> None:
    nothing_set.write_text("theme = 5")
    config = resolve({"theme": "light"})
    assert config["theme"] == "light" and "theme is 5" in config.problems[0]


def test_paths(nothing_set: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nothing_set.write_text('ceilings = "own.toml"')
    assert resolve({})["ceilings"] == nothing_set.parent / "own.toml"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TUIMON_CEILINGS", "~/own.toml")
    assert resolve({})["ceilings"] == tmp_path / "own.toml"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert config_file() == tmp_path / ".config" / "tuimon" / "config.toml"
    assert short(config_file()) == "~/.config/tuimon/config.toml"
    assert short(tmp_path.parent / "x") == str(tmp_path.parent / "x")


def test_ceilings_of_the_settings_that_cannot_be_used_end_nothing(
    nothing_set: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing_set.write_text('ceilings = "own.toml"')
    assert cli.main(["list"]) == 0
    assert f"{nothing_set}:1: ceilings cannot be used: " in capsys.readouterr().err
    (nothing_set.parent / "own.toml").write_text("[[ceiling]")
    assert cli.main(["list"]) == 0
    assert "not TOML" in capsys.readouterr().err
    (nothing_set.parent / "own.toml").unlink()
    os.mkfifo(nothing_set.parent / "own.toml")
    assert cli.main(["list"]) == 0
    assert "own.toml is a fifo" in capsys.readouterr().err


def test_nothing_is_loaded_for_settings_that_are_not_there() -> None:
    program = (
        "import sys, tuimon.config as c; c.resolve({}); print(*sorted({'tomllib', 'tomli', 'difflib'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout == "\n"
