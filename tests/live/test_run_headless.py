"""`tuimon run` without a screen: exact numbers, the program's own status and streams, limits and signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import TUIMON, Ran, environment, start, tuimon, until

pytestmark = pytest.mark.live
pytest.importorskip("torch")

JOB = """\
import os, sys
import torch

@torch.compile(backend="eager")
def step(x):
    h = x.sin()
    print("in the middle", file=sys.stdout)  # the break is here
    return h.cos()

weight = torch.nn.Parameter(torch.ones(4))
optimizer = torch.optim.SGD([weight], lr=0.1)
for number in range(int(sys.argv[1])):
    size = 4 if number != 5 else 3
    step(weight[:size]).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
BREAK_LINE = 7


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "job.py"
    path.write_text(JOB)
    return path


def run_job(job: Path, steps: int, *options: str) -> Ran:
    return tuimon("run", "--headless", *options, "--", sys.executable, str(job), str(steps))


def test_breaks_crossings_recompiles_and_steps_are_exact(job: Path) -> None:
    ran = run_job(job, 12, "--format", "json")
    assert ran.status == 0, ran.err
    report = ran.report
    (boundary,) = report["boundaries"]
    assert (boundary["user_file"], boundary["user_line"]) == (str(job), BREAK_LINE)
    assert boundary["crossings"] == 12 and boundary["per_step"] == 1
    assert {(r["function"], r["compile_id"]) for r in report["recompiles"]} == {
        ("step", "0/1"),
        (f"torch_dynamo_resume_in_step_at_{BREAK_LINE}", "1/1"),
    }
    assert report["steps"]["n"] == 12 and report["steps"]["source"] == "optimizer"
    assert report["target"]["how"] == "run" and report["target"]["steps_before_attach"] == 0
    assert report["target"]["ended"]["status"] == 0
    assert report["coverage"]["dropped"] == 0
    # what the program prints is there, and does not mix with the data
    assert ran.err.count("in the middle") == 12 and "in the middle" not in ran.out


def test_with_a_file_for_the_report_the_programs_stdout_stays_its_own(job: Path, tmp_path: Path) -> None:
    written = tmp_path / "report.json"
    ran = run_job(job, 3, "--format", "json", "-o", str(written))
    assert ran.status == 0
    assert ran.out == "in the middle\n" * 3
    assert json.loads(written.read_text())["steps"]["n"] == 3


def test_the_programs_stdin_and_arguments_are_its_own(tmp_path: Path) -> None:
    text = "import sys; print(sys.stdin.read().upper(), sys.argv[1:])"
    ran = tuimon("run", "--headless", "--", sys.executable, "-c", text, "--steps", "--", "x", stdin="hello")
    assert ran.status == 0
    assert "HELLO ['--steps', '--', 'x']" in ran.err


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("import sys; sys.exit(7)", 7, "exit status 7"),
        ("raise ValueError('no good')", 1, "no good"),
    ],
)
def test_it_ends_as_the_program_ends_and_reports_what_was_seen(text: str, status: int, said: str) -> None:
    ran = tuimon("run", "--headless", "--format", "json", "--", sys.executable, "-c", text)
    assert ran.status == status
    assert said in ran.err
    assert ran.report["target"]["torch"] is None
    assert "target.torch" in {gap["what"] for gap in ran.report["coverage"]["not_available"]}


def test_a_program_that_is_killed_gives_128_and_the_signal() -> None:
    text = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"  # at once, perhaps before the hook has said a word
    ran = tuimon("run", "--headless", "--", sys.executable, "-c", text)
    assert ran.status == 128 + signal.SIGKILL
    assert "killed by SIGKILL" in ran.err


def test_a_script_that_is_not_there() -> None:
    ran = tuimon("run", "--headless", "--", sys.executable, "/no/such/train.py")
    assert ran.status == 2  # Python's own
    assert "/no/such/train.py" in ran.err


@pytest.mark.parametrize(("word", "code"), [("no-such-program", "[not-found]"), ("/etc/hostname", "[not-executable]")])
def test_a_program_that_cannot_be_started_is_refused_by_name(word: str, code: str) -> None:
    ran = tuimon("run", "--headless", "--", word)
    assert ran.status == 3
    assert code in ran.err and ran.out == ""


def test_a_program_that_is_no_python_and_ends_gives_its_status() -> None:
    ran = tuimon("run", "--headless", "--", "sh", "-c", "exit 4")
    assert ran.status == 4
    assert "tuimon:" in ran.err


def test_at_the_limit_the_report_comes_and_the_program_goes_on(job: Path, tmp_path: Path) -> None:
    done = tmp_path / "done"
    job.write_text(JOB + f"open({str(done)!r}, 'w').write('all')\n")
    ran = run_job(job, 4000, "--steps", "5", "--format", "json")
    assert ran.status == 0
    assert ran.report["steps"]["n"] >= 5
    assert ran.report["target"]["ended"]["how"] in ("detached", "exited")
    assert done.read_text() == "all"


def test_a_term_signal_is_for_the_program(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    text = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\n"
        f"open({str(ready)!r}, 'w').close()\n"
        "while True: time.sleep(0.05)\n"
    )
    process = start([*TUIMON, "run", "--headless", "--format", "json", "--", sys.executable, "-c", text])
    try:
        until(ready.exists, "the program")
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 9, err
    assert json.loads(out)["target"]["ended"]["status"] == 9


def test_ctrl_c_reaches_the_program_and_the_report_still_comes(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    text = f"import time\nopen({str(ready)!r}, 'w').close()\nwhile True: time.sleep(0.05)\n"
    process = start([*TUIMON, "run", "--headless", "--format", "json", "--", sys.executable, "-c", text])
    try:
        until(ready.exists, "the program")
        os.killpg(process.pid, signal.SIGINT)  # what a terminal does at Ctrl-C
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode in (1, 128 + signal.SIGINT), err
    assert "KeyboardInterrupt" in err
    assert json.loads(out)["target"]["ended"]["how"] in ("exited", "detached")


def test_a_reader_that_goes_away_breaks_nothing() -> None:
    process = start([*TUIMON, "run", "--headless", "--", sys.executable, "-c", "pass"])
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    err = process.stderr.read()
    assert process.wait(60) == 0
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("script", "given", "wanted"),
    [
        ("export PYTHONPATH=/x/lib:$PYTHONPATH; ", "/user/a:/user/b", "/x/lib:/user/a:/user/b"),
        ("export PYTHONPATH=/x/lib; ", "/user/a", "/x/lib"),
        ("", "/user/a", "/user/a"),
    ],
)
def test_a_path_that_a_launch_script_extends_stays(tmp_path: Path, script: str, given: str, wanted: str) -> None:
    child, program = tmp_path / "child.py", tmp_path / "program.py"
    child.write_text("import os; print('path', os.environ.get('PYTHONPATH'), flush=True)\n")
    program.write_text(child.read_text() + f"import subprocess, sys; subprocess.run([sys.executable, {str(child)!r}])\n")
    line = f"{script}{sys.executable} {program}"
    ran = tuimon("run", "--format", "json", "--", "bash", "-c", line, PYTHONPATH=given)
    assert [text for text in ran.err.splitlines() if text.startswith("path ")] == [f"path {wanted}"] * 2, ran.err


def test_options_may_stand_before_the_command(tmp_path: Path) -> None:
    ran = tuimon("--headless", "--format", "json", "run", "--", sys.executable, "-c", "raise SystemExit(4)")
    assert ran.status == 4 and ran.report["target"]["ended"]["status"] == 4


def test_closed_standard_streams_change_nothing_for_the_program(tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    words = [*TUIMON, "run", "--format", "json", "-o", str(out), "--", sys.executable, "-c", "raise SystemExit(3)"]
    line = " ".join(f"'{word}'" for word in words) + " <&- >&- 2>&-"
    ran = subprocess.run(["bash", "-c", line], env=environment(), timeout=240, check=False)
    assert ran.returncode == 3
    assert json.loads(out.read_text())["target"]["ended"]["status"] == 3


def test_a_job_that_closes_every_descriptor_keeps_its_files_to_itself(tmp_path: Path) -> None:
    kept = tmp_path / "checkpoint"
    text = (
        "import os, time\n"
        "time.sleep(0.3)\n"
        "os.closerange(3, 4096)\n"
        f"files = [open({str(kept)!r} + str(i), 'w') for i in range(600)]\n"
        "time.sleep(1.0)\n"
        "for file in files: file.write('mine'); file.close()\n"
    )
    ran = tuimon("run", "--format", "json", "--", sys.executable, "-c", text)
    assert ran.status == 0, ran.err
    assert {(tmp_path / f"checkpoint{i}").read_text() for i in range(600)} == {"mine"}
