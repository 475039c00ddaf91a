"""The command line as a contract: what is usage, what is listed, what an option means wherever it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tuimon import cli
from tuimon.commands.options import Options, Record
from tuimon.model import Model


def parsed(*words: str) -> Options:
    return cli._options(cli.make_parser().parse_args(words))


@pytest.mark.parametrize(
    "words",
    [
        ("frobnicate",),
        ("attach",),
        ("attach", "abc"),
        ("attach", "-1"),
        ("attach", "0"),
        ("attach", "ssh://host"),
        ("attach", "ssh://host/abc"),
        ("attach", "ssh://host/1", "--via", "sh"),
        ("attach", "1", "--via", ""),
        ("attach", "1", "--via", "a 'b"),
        ("list", "ssh://host/5"),
        ("list", "--via", ""),
        ("list", "gpu7"),
        ("--duration", "0", "list"),
        ("--duration", "nan", "list"),
        ("--steps", "1.5", "list"),
        ("--format", "xml", "list"),
        ("attach", "1", "--step", "train"),
        ("attach", "1", "--step", "train:step()"),
        ("attach", "1", "--slow-over", "fast"),
        ("attach", "1", "--slow-over", "-1"),
        ("attach", "1", "--slow-over", "nan"),
        ("run", "--slow-over", "inf", "--", "true"),
        ("demo", "--slow-over", "1e12"),
        ("attach", "1", "--slow-over"),
        ("list", "--slow-over", "5"),
        ("record",),
        ("record", "1"),
        ("record", "-o", "/tmp/x.tuimon"),
        ("record", "-o", "/tmp/x.tuimon", "--"),
        ("record", "1", "-o", "/tmp/x.tuimon", "--", "true"),
        ("record", "1", "-o", "/tmp/x.tuimon", "--max-size", "0"),
        ("record", "1", "-o", "/tmp/x.tuimon", "--phases", "steady"),
        ("record", "1", "-o", "/tmp/x.tuimon", "--phases", "steady=0"),
        ("attach", "1", "--prometheus", "/tmp/tuimon.txt"),
        ("attach", "1", "--prometheus", "/no/such/folder/tuimon.prom"),
        ("list", "--prometheus", "/tmp/tuimon.prom"),
        ("replay",),
        ("replay", "x", "--speed", "0"),
        ("report",),
        ("compare", "a"),
        ("export", "x", "-o", "y"),
        ("export", "x", "--to", "csv"),
        ("export", "x", "--to", "svg", "-o", "y"),
        ("--no-such-option",),
        ("help", "frobnicate"),
        ("completion",),
        ("completion", "tcsh"),
        ("--background", "blue", "list"),
    ],
)
def test_wrong_usage_ends_with_2(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status: object = cli.main(words)
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err


def test_run_without_a_program_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run"]) == 2
    assert cli.main(["run", "--headless", "--"]) == 2
    assert "tuimon run -- python train.py" in capsys.readouterr().err


def test_a_report_that_could_not_be_written_is_said_before_anything_starts(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "-o", "/no/such/folder/report", "--", "echo", "started"]) == 2
    captured = capsys.readouterr()
    assert "/no/such/folder" in captured.err and "started" not in captured.out


def test_a_file_of_ceilings_that_cannot_be_used_is_said_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "own.toml"
    for text, says in (
        ('[[ceiling]]\nname = "x"\npeak_flops = 1e12\nbandwidth_bytes_s = nan\nboundary = "DRAM"\nhow = "declared"', "nan"),
        ('[[machine]]\nname = "x"\nsource = "y"\nbandwidth = { HBM = 1e12 }', "match missing"),
        ("[[ceiling]", "not TOML"),
    ):
        path.write_text(text)
        assert cli.main(["--ceilings", str(path), "run", "--", "echo", "started"]) == 2
        captured = capsys.readouterr()
        assert str(path) in captured.err and says in captured.err and "started" not in captured.out
    assert cli.main(["run", "--ceilings", str(tmp_path / "none"), "--", "echo", "started"]) == 2
    assert "no such file" in capsys.readouterr().err


def test_help_lists_what_there_is_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--help"])
    assert ended.value.code == 0
    listed = capsys.readouterr().out
    for command in (
        "attach", "run", "record", "list", "doctor", "demo", "lab", "replay", "report", "compare", "export", "calibrate",
        "themes", "completion", "help",
    ):  # fmt: skip
        assert f"\n  {command} " in listed
    assert "\n  relay " not in listed


def test_what_record_is_told() -> None:
    options = parsed("record", "1", "-o", "run.tuimon", "--max-size", "7", "--phases", "initial=1,steady=2.5s")
    assert options.record == Record(Path("run.tuimon"), 7 << 20) and options.output is None
    assert options.headless and not options.reported
    assert [(one.name, one.steps, one.seconds) for one in options.phases] == [("initial", 1, None), ("steady", None, 2.5)]
    assert parsed("record", "1", "-o", "run.tuimon", "--format", "json").reported
    assert parsed("attach", "1", "-o", "report.json").record is None and parsed("attach", "1").reported


def test_a_recording_that_could_not_be_written_is_said_before_anything_starts(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    there = tmp_path / "there.tuimon"
    there.write_text("mine")
    (tmp_path / "link.tuimon").symlink_to(there)
    for name, says in (("there.tuimon", "--force"), ("link.tuimon", "no ordinary file"), ("no/x.tuimon", "no directory")):
        assert cli.main(["record", "-o", str(tmp_path / name), "--", "echo", "started"]) == 1
        captured = capfd.readouterr()
        assert says in captured.err and "started" not in captured.out + captured.err
    assert there.read_text() == "mine"


def test_options_may_stand_before_and_behind_the_command() -> None:
    before = parsed("--steps", "7", "--ascii", "list")
    behind = parsed("list", "--steps", "7", "--ascii")
    assert before == behind
    assert behind.steps == 7 and behind.ascii


def test_how_much_slower_a_slow_step_is() -> None:
    assert parsed("attach", "1").slow_over_ms is None
    for words in (("attach", "1", "--slow-over", "2.5"), ("demo", "--slow-over", "2.5"), ("run", "--slow-over", "2.5", "a.py")):
        options = parsed(*words)
        model = Model()
        options.judge(model)
        assert model.slowness.over_ns == 2_500_000
        assert "2.5 ms" in model.slowness.rule
    untouched = Model()
    Options().judge(untouched)
    assert untouched.slowness.over_ns == 10_000_000
    Options(slow_over_ms=0.0).judge(untouched)
    assert untouched.slowness.over_ns == 0


def test_what_goes_over_pcie_is_read_only_where_it_is_asked_for() -> None:
    assert not parsed("attach", "1").pcie and not parsed("list").pcie
    for words in (("attach", "1", "--pcie"), ("demo", "--pcie"), ("run", "--pcie", "a.py")):
        assert parsed(*words).pcie


def test_a_wrong_limit_for_slow_steps_is_told_why(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["attach", "1", "--slow-over", "-3"])
    assert "'-3' is not a number of milliseconds from 0 to" in capsys.readouterr().err


def test_a_form_without_a_file_asks_for_a_report_instead_of_a_screen() -> None:
    assert parsed("list", "--format", "json").headless
    assert not parsed("list", "--format", "json", "-o", "x").headless
    assert not parsed("list").headless


@pytest.mark.parametrize(("value", "off"), [("1", True), ("", False)])
def test_no_color_in_the_environment(value: str, off: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", value)
    assert parsed("list").no_color is off


@pytest.mark.parametrize(
    ("words", "program"),
    [
        (["run", "--", "python", "x.py", "--steps", "3"], ["python", "x.py", "--steps", "3"]),
        (["run", "python", "x.py", "--steps", "3"], ["python", "x.py", "--steps", "3"]),
        (["run", "--headless", "--", "a", "--", "b"], ["a", "--", "b"]),
        (["run", "a", "--", "b"], ["a", "--", "b"]),
    ],
)
def test_the_programs_words_are_its_own(words: list[str], program: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[list[str], Options]] = []

    def run(command: list[str], options: Options) -> int:
        seen.append((command, options))
        return 5

    monkeypatch.setattr("tuimon.commands.run.run", run)
    assert cli.main(words) == 5
    ((command, options),) = seen
    assert command == program
    assert options.steps is None


def test_what_goes_to_the_hook_is_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TUIMON_STACKS", raising=False)
    assert parsed("attach", "1").hook == {}
    assert parsed("attach", "1", "--step", "train:Trainer.step").hook == {"step": "train:Trainer.step"}
    assert parsed("run", "--no-stacks", "--step", "pkg.t:step", "python").hook == {"step": "pkg.t:step", "stacks": False}
    monkeypatch.setenv("TUIMON_STACKS", "0")
    assert parsed("run", "python").hook == {"stacks": False}
