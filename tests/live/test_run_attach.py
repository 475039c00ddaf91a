"""`tuimon attach` without a screen: on a job that was started without tuimon, and on what is no such job."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command import TUIMON, start, tuimon, until

pytestmark = pytest.mark.live
pytest.importorskip("torch")

JOB = """\
import sys, time
import torch

@torch.compile(backend="eager")
def step(x):
    h = x.sin()
    print(end="")  # the break is here
    return h.cos()

weight = torch.nn.Parameter(torch.ones(4))
optimizer = torch.optim.SGD([weight], lr=0.1)
number = 0
while True:
    step(weight[: 4 if number != 5 else 3]).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    number += 1
    if number % 10 == 0:
        with open(sys.argv[1], "w") as file:
            file.write(str(number))
    time.sleep(0.005)
"""
BREAK_LINE = 7


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    folder = tmp_path_factory.mktemp("job")
    script, counter = folder / "job.py", folder / "steps"
    script.write_text(JOB)
    process = start([sys.executable, str(script), str(counter)])
    try:
        until(counter.exists, "the job's tenth step", 240)
        yield process, counter
    finally:
        process.kill()
        process.communicate()


def goes_on(counter: Path) -> bool:
    """Whether the job makes further steps."""
    before = counter.read_text()
    until(lambda: counter.read_text() not in ("", before), "further steps")
    return True


def test_what_happened_before_is_there_and_what_happens_now_is_counted(job: tuple[subprocess.Popen[str], Path]) -> None:
    process, counter = job
    ran = tuimon("attach", str(process.pid), "--steps", "20", "--format", "json")
    assert ran.status == 0, ran.err
    report = ran.report
    assert report["target"]["pid"] == process.pid and report["target"]["how"] == "injected"
    (boundary,) = report["boundaries"]
    assert (boundary["user_line"], boundary["before_attach"]) == (BREAK_LINE, True)
    assert boundary["crossings"] >= 20
    assert "0/1" in {r["compile_id"] for r in report["recompiles"] if r["before_attach"]}
    assert report["steps"]["n"] >= 20
    assert goes_on(counter)


def test_it_ends_after_the_duration(job: tuple[subprocess.Popen[str], Path]) -> None:
    process, counter = job
    ran = tuimon("attach", str(process.pid), "--duration", "0.5", "--format", "json")
    assert ran.status == 0
    assert ran.report["target"]["ended"]["how"] == "detached"
    assert goes_on(counter)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_watching_and_not_the_job(number: signal.Signals, job: tuple[subprocess.Popen[str], Path]) -> None:
    process, counter = job
    watcher = start([*TUIMON, "attach", str(process.pid), "--interval", "0.1", "--format", "json"])
    try:
        assert watcher.stderr is not None
        for line in watcher.stderr:
            if "a step (" in line:
                break
        watcher.send_signal(number)
        out, err = watcher.communicate(timeout=120)
    finally:
        watcher.kill()
    assert watcher.returncode == 0, err
    assert json.loads(out)["steps"]["n"] > 0
    assert goes_on(counter)


def test_a_job_that_ends_ends_the_watching(tmp_path: Path) -> None:
    go = tmp_path / "go"
    text = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)"
    process = start([sys.executable, "-c", text])
    watching = start([*TUIMON, "attach", str(process.pid), "--format", "json"])
    try:
        assert watching.stderr is not None
        assert any("attached to" in line for line in watching.stderr)
        go.touch()
        out, err = watching.communicate(timeout=120)
    finally:
        for started in (process, watching):
            started.kill()
            started.communicate()
    assert watching.returncode == 0, err
    report = json.loads(out)
    assert report["target"]["ended"]["how"] == "exited"
    assert report["target"]["torch"] is None


def test_a_process_that_is_not_there_is_refused_by_name() -> None:
    gone = subprocess.Popen([sys.executable, "-c", "pass"])
    gone.wait()
    ran = tuimon("attach", str(gone.pid))
    assert ran.status == 3
    assert ran.out == "" and "[" in ran.err and str(gone.pid) in ran.err


def test_a_process_that_is_no_python_is_refused_by_name() -> None:
    sleeper = subprocess.Popen(["sleep", "100"])
    try:
        ran = tuimon("attach", str(sleeper.pid))
    finally:
        sleeper.kill()
        sleeper.wait()
    assert ran.status == 3
    assert ran.out == ""


def test_the_list_has_the_job(job: tuple[subprocess.Popen[str], Path]) -> None:
    process, _ = job
    ran = tuimon("list", "--format", "json")
    assert ran.status == 0
    (target,) = [target for target in json.loads(ran.out)["targets"] if target["pid"] == process.pid]
    assert target["attachable"] and target["has_torch"]


def test_a_job_that_dies_while_its_child_holds_the_socket_is_seen_to_end(tmp_path: Path) -> None:
    go, forked = tmp_path / "go", tmp_path / "child"
    program = (
        f"import os, time\n"
        f"while not os.path.exists({str(go)!r}): time.sleep(0.01)\n"
        f"if os.fork() == 0: open({str(forked)!r}, 'w').write(str(os.getpid()))\n"
        f"time.sleep(600)\n"
    )
    process = start([sys.executable, "-c", program])
    watching = start([*TUIMON, "attach", str(process.pid), "--format", "json"])
    try:
        assert watching.stderr is not None
        assert any("attached to" in line for line in watching.stderr)
        go.touch()
        until(lambda: forked.exists() and forked.read_text() != "", "the child")
        process.kill()
        process.wait()
        out, _ = watching.communicate(timeout=120)
        assert json.loads(out)["target"]["ended"]["how"] == "exited"
    finally:
        for started in (process, watching):
            started.kill()
        if forked.exists() and forked.read_text():
            os.kill(int(forked.read_text()), signal.SIGKILL)
        for started in (process, watching):
            started.communicate()
