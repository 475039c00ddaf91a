"""What tuimon tells of itself: its help, the themes, and what makes a shell complete it."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_listing import JOB
from tuimon import cli
from tuimon.commands import completion, groups, listing, overview, values
from tuimon.commands.options import FAILED, Options
from tuimon.commands.parser import make_parser
from tuimon.config import SETTINGS

SOURCE = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("columns", ["80", "40", "200", None])
def test_help_fits_a_screen(columns: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 23  # the prompt has the last one
    assert max(map(len, lines)) < 80
    for line in lines:
        assert line == line.rstrip()


def test_help_of_a_command_begins_with_what_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    common = argparse.ArgumentParser(add_help=False)
    groups.add_common(common)
    for name, parser in overview.commands(make_parser()).items():
        text = parser.format_help()
        assert text.isascii()
        named = text.partition(overview.COMMON)[2].replace("[no-]", "")
        for action in common._actions:  # all of them by name, what they do in one place: half of each help was the same
            assert max(action.option_strings, key=len).replace("--no-", "--") in named or name in ("record", "export")
        own = text.partition(overview.COMMON)[0].partition("\noptions:")[2]
        assert ("--output FILE" in own) == (name in ("record", "export"))
        assert text.startswith(f"usage: tuimon {name} [options]")
        assert text.rindex("options of every command") > text.rindex("--help")
        assert max(map(len, text.splitlines())) <= 80
    assert set(overview.commands(make_parser())) == set(overview.meanings(make_parser()))
    for columns in ("1", "20", "1000"):
        monkeypatch.setenv("COLUMNS", columns)
        assert "--ceilings FILE" in overview.commands(make_parser())["list"].format_help()


@pytest.mark.parametrize("word", [None, *overview.TOPICS])
def test_help_as_a_command(word: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["help"] if word is None else ["help", word]) == 0
    shown = capsys.readouterr()
    assert shown.out and not shown.err
    if word == "settings":
        assert all(f"\n{setting.name} " in shown.out and setting.env in shown.out for setting in SETTINGS)
    if word == "options":
        assert "--no-color" in shown.out and "exit status" in shown.out


def test_help_on_settings_and_options_fits_80_cells(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/home/kim/.config")
    cli.main(["help", "settings"])
    cli.main(["help", "options"])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("4711",), "to watch it: tuimon attach 4711"),
        (("ssh://gpu7/1",), "to watch it: tuimon attach ssh://gpu7/1"),
        (("train.py", "--lr", "0.1"), "to start it: tuimon run -- python train.py"),
        (("torchrun", "train.py"), "to start it: tuimon run -- torchrun .."),
        (("pyproject.toml",), "to look into it: tuimon replay pyproject.toml"),
        (("atach",), "there is no command 'atach'; did you mean attach?"),
        (("it's",), 'there is no command "it\'s"; `tuimon --help` shows them'),
        (("",), "there is no command ''"),
        (("\x1b[31m\udcff",), r"there is no command '\x1b[31m\udcff'; `tuimon --help`"),
        (("list", "--pidss"), "tuimon list: error: there is no option '--pidss'; did you mean --pids?"),
        (("list", "--slow-over", "3"), "there is no option '--slow-over'; `tuimon list --help` shows them"),
        (("--vesion",), "there is no option '--vesion'; did you mean --version?"),
        (("-x",), "there is no option '-x'; `tuimon help options` shows them"),
        (("doctor", "1", "2"), "tuimon doctor: error: '2' is one word too many"),
    ],
)
def test_what_is_none_of_it_is_told_with_what_may_be_meant(
    words: tuple[str, ...], says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(SOURCE)
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 2 and says in capsys.readouterr().err


def test_help_on_what_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["help", "atach"]) == 2
    assert "did you mean attach?" in capsys.readouterr().err


def test_pids_alone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from dataclasses import replace

    found = [JOB, replace(JOB, pid=7, attachable=False, code="dead"), replace(JOB, pid=8, attachable=False, code="launcher")]
    monkeypatch.setattr(listing, "find_targets", lambda: found)
    assert listing.run(Options(), pids=True) == 0
    assert capsys.readouterr().out == f"{JOB.pid}\n8\n"


def test_themes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert cli.main(["themes"]) == 0
    assert "\nlight " in capsys.readouterr().out
    mine = tmp_path / "tuimon" / "themes" / "mine.toml"
    mine.parent.mkdir(parents=True)
    mine.write_text('name = "mine"\nbase = "dark"\ntitle = "my own"\n')
    assert cli.main(["themes", "--check", str(mine)]) == 0
    assert "theme mine, my own" in capsys.readouterr().err
    mine.write_text('name = "mine"\nbase = "dark"\n[roles]\nfoo = "red"\n')
    assert cli.main(["themes", "--check", str(mine)]) == FAILED
    assert "mine.toml: there is no role 'foo'" in capsys.readouterr().err
    assert cli.main(["themes"]) == FAILED
    assert "mine.toml: there is no role 'foo'" in capsys.readouterr().out
    assert cli.main(["themes", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["problems"] and "dark" in [one["name"] for one in told["themes"]]
    assert cli.main(["themes", "--check", str(tmp_path / "none.toml")]) == FAILED
    assert "none.toml" in capsys.readouterr().err


def test_the_reference_is_made_of_the_code() -> None:
    from tools.reference import FILE, reference

    assert FILE.read_text(encoding="utf-8") == reference(), "python -m tools.reference"


def test_every_command_in_a_help_is_one() -> None:
    lines = [
        line.strip()
        for parser in overview.commands(make_parser()).values()
        for line in (parser.description or "").splitlines()
        if line.startswith("  tuimon ")
    ]
    assert len(lines) > 10
    for line in lines:
        words = shlex.split(re.split(r" {2,}| > ", line)[0])[1:]
        make_parser().parse_args(cli._split(words)[0])


# ------------------------------------------------------------------------------------------------ completion

COMPLETE = """\
source "$1"; shift
COMP_WORDS=(tuimon "$@"); COMP_CWORD=$#; COMP_LINE="tuimon $*"; COMP_POINT=${#COMP_LINE}
"$(complete -p tuimon | sed 's/.*-F \\([^ ]*\\).*/\\1/')" tuimon "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what `tuimon completion` prints, and a `tuimon` that lists two processes."""
    pytest.importorskip("shtab")
    folder = tmp_path_factory.mktemp("completion")
    for shell in values.SHELLS:
        ran = subprocess.run(
            [sys.executable, "-m", "tuimon", "completion", shell], capture_output=True, text=True, cwd=SOURCE, timeout=60
        )
        assert ran.returncode == 0 and not ran.stderr
        (folder / shell).write_text(ran.stdout)
    stand_in = folder / "bin" / "tuimon"
    stand_in.parent.mkdir()
    stand_in.write_text(
        f'#!/bin/sh\n[ "$*" = "{completion.PIDS.split(" 2>")[0].partition(" ")[2]}" ] && echo 4711 && echo 4812\n'
    )
    stand_in.chmod(0o755)
    return folder


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("",), {"attach", "help", "themes"}),
        (("at",), {"attach"}),
        (("attach", "--sl"), {"--slow-over"}),
        (("attach", ""), {"4711", "4812"}),
        (("attach", "47"), {"4711"}),
        (("doctor", ""), {"4711", "4812"}),
        (("export", "x", "--to", ""), {"perfetto", "csv"}),
        (("--theme", ""), {"dark", "light", "mono"}),
        (("demo", "--theme", "li"), {"light"}),
        (("--theme", "=", "li"), {"light"}),  # how bash takes --theme=li apart
        (("attach", "1", "--background", "="), {"auto", "dark", "light"}),
        (("x[$(touch pwned)]", ""), {"attach"}),
        (("attach", "$(touch pwned)"), set()),
        (("demo", "train"), {"train_small_gpt"}),
        (("completion", ""), set(values.SHELLS)),
        (("help", "opt"), {"options"}),
        (("replay", "tests/cli/test_h"), {"tests/cli/test_help.py"}),
        (("attach", "1", "-o", "pyp"), {"pyproject.toml"}),
        (("run", "--", "python", "tuimon/cl"), {"tuimon/cli.py"}),
        (("list", "--zz"), set()),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bash(words: tuple[str, ...], found: set[str], scripts: Path) -> None:
    environ = {**os.environ, "PATH": f"{scripts / 'bin'}:{os.environ['PATH']}"}
    ran = subprocess.run(
        ["bash", "--norc", "-c", COMPLETE, "bash", scripts / "bash", *words],
        capture_output=True, text=True, env=environ, cwd=SOURCE, timeout=60,
    )  # fmt: skip
    assert ran.stderr == ""
    said = set(ran.stdout.split())
    assert found <= said
    if words[-1]:  # nothing but what begins so
        assert said == found


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_can_read_it(shell: str, scripts: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    ran = subprocess.run([shell, "-n", scripts / shell], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0 and ran.stderr == ""


def test_processes_are_looked_for_at_the_tab(scripts: Path) -> None:
    text = (scripts / "zsh").read_text()
    assert text.count("$(tuimon list") == text.count("_tuimon_pids() {") == 1
    assert ":_tuimon_pids" in text


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish here")
@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("tuimon at", {"attach"}),
        ("tuimon attach ", {"4711", "4812"}),
        ("tuimon export x --to ", {"perfetto", "csv"}),
        ("tuimon demo train", {"train_small_gpt"}),
    ],
)
def test_fish(line: str, found: set[str], scripts: Path, tmp_path: Path) -> None:
    environ = {**os.environ, "PATH": f"{scripts / 'bin'}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    program = 'source $argv[1]; complete -C "$argv[2]"'
    ran = subprocess.run(
        ["fish", "--no-config", "-c", program, scripts / "fish", line],
        capture_output=True, text=True, env=environ, cwd=tmp_path, timeout=60,
    )  # fmt: skip
    assert found <= {row.split("\t")[0] for row in ran.stdout.splitlines()}


def test_without_shtab_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert cli.main(["completion", "bash"]) == FAILED
    assert "pip install shtab" in capsys.readouterr().err
