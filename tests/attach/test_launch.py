"""Starting a program with the hook in it."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tuimon.attach import launch as launching
from tuimon.attach.launch import how_it_ended, launch
from tuimon.attach.refusal import Refused

from .conftest import until

REPORT = """
import json, os, subprocess, sys
facts = dict(
    connect=os.environ.get("TUIMON_CONNECT"), pythonpath=os.environ.get("PYTHONPATH"),
    path=[entry for entry in sys.path if "tuimon" in entry and entry.endswith("site")],
    hook="_tuimon_hook.session" in sys.modules, argv=sys.argv[1:],
    user=getattr(sys.modules.get("sitecustomize"), "OF_THE_USER", None),
)
child = [sys.executable, "-c", "import os, sys; print(os.environ.get('TUIMON_CONNECT'), '_tuimon_hook' in sys.modules)"]
facts["child"] = subprocess.run(child, capture_output=True, text=True).stdout.split()
print(json.dumps(facts), flush=True)
sys.stdin.readline()
facts["after"] = [name for name in sys.modules if "tuimon" in name]
print(json.dumps(facts["after"]), flush=True)
sys.exit(5)
"""


def run(argv: list[str], dummy: dict[str, str], **options) -> tuple[dict[str, object], list[str], int, object]:
    """Launch, read the program's report, detach, let it end."""
    process, session = launch(argv, {}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, sources=dummy, **options)
    assert process.stdin is not None and process.stdout is not None
    with process:
        facts = json.loads(process.stdout.readline())
        assert session.detach() is not None
        process.stdin.write(b"\n")
        process.stdin.close()
        after = json.loads(process.stdout.readline())
        return facts, after, process.wait(), session


def test_hook_is_there_before_the_first_line_and_nothing_else(dummy: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(REPORT)
    facts, after, status, session = run([sys.executable, str(script), "--lr", "1"], dummy)
    assert facts["hook"] is True
    assert facts["argv"] == ["--lr", "1"]
    assert facts["connect"] is None and facts["path"] == []
    assert facts["pythonpath"] == os.environ.get("PYTHONPATH")
    assert facts["child"] == ["None", "False"]
    assert after == []
    assert status == 5
    assert session.how == "run" and session.mechanism == "run"


def test_users_own_settings_come_back(dummy: dict[str, str], tmp_path: Path) -> None:
    script, own = tmp_path / "train.py", tmp_path / "own"
    script.write_text(REPORT)
    own.mkdir()
    (own / "sitecustomize.py").write_text("OF_THE_USER = 'ran'\n")
    facts, *_ = run([sys.executable, str(script)], dummy, env={**os.environ, "PYTHONPATH": str(own)})
    assert facts["pythonpath"] == str(own)
    assert facts["user"] == "ran"
    assert facts["hook"] is True


def test_users_sitecustomize_that_fails_does_so_as_without_us(dummy: dict[str, str], tmp_path: Path) -> None:
    script, own = tmp_path / "train.py", tmp_path / "own"
    script.write_text(REPORT)
    own.mkdir()
    (own / "sitecustomize.py").write_text("raise RuntimeError('the users fault')\n")
    with open(tmp_path / "errors", "wb") as errors:
        facts, *_ = run([sys.executable, str(script)], dummy, env={**os.environ, "PYTHONPATH": str(own)}, stderr=errors)
    assert facts["hook"] is True
    assert "the users fault" in (tmp_path / "errors").read_text()


def test_module_and_wrapper(dummy: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "trainer.py").write_text(REPORT)
    facts, _, status, _ = run([sys.executable, "-m", "trainer", "x"], dummy, cwd=tmp_path)
    assert facts["hook"] is True and facts["argv"] == ["x"] and status == 5
    facts, *_ = run(["sh", "-c", f'"{sys.executable}" trainer.py y; exit 3'], dummy, cwd=tmp_path)
    assert facts["hook"] is True and facts["argv"] == ["y"]


@pytest.mark.parametrize("name", ["torchrun", "accelerate"])
def test_launcher_hands_on_to_rank_zero(dummy: dict[str, str], tmp_path: Path, name: str) -> None:
    (tmp_path / "train.py").write_text(REPORT)
    (tmp_path / "quiet.py").write_text(
        "import os, sys\nsys.exit('_tuimon_hook' in sys.modules or 'TUIMON_CONNECT' in os.environ)\n"
    )
    launcher = tmp_path / name
    launcher.write_text(
        "import os, subprocess, sys\n"
        "assert '_tuimon_hook' not in sys.modules\n"
        "other = subprocess.run([sys.executable, 'quiet.py'], env={**os.environ, 'RANK': '1'})\n"
        "assert other.returncode == 0, 'rank 1 is left alone'\n"
        "sys.exit(subprocess.run([sys.executable, 'train.py'], env={**os.environ, 'RANK': '0'}).returncode)\n"
    )
    facts, _, status, _ = run([sys.executable, str(launcher)], dummy, cwd=tmp_path)
    assert facts["hook"] is True
    assert facts["child"] == ["None", "False"]
    assert status == 5


def refused(argv: list[str], **options) -> Refused:
    """How a launch fails."""
    with pytest.raises(Refused) as caught:
        launch(argv, {}, **options)
    return caught.value


def test_nothing_to_start(tmp_path: Path) -> None:
    plain = tmp_path / "train.py"
    plain.write_text("print('hello')\n")
    assert refused([]).code == "not-found"
    assert refused([str(tmp_path / "nothing")]).code == "not-found"
    assert "put `python` in front" in refused(["no-such-script.py"]).sentence
    assert refused([str(plain / "below")]).code == "not-found"
    assert refused([sys.executable], cwd=tmp_path / "nowhere").code == "not-found"
    no = refused([str(plain)])
    assert no.code == "not-executable" and "python" in no.sentence
    binary = tmp_path / "binary"
    binary.write_bytes(b"\x7fELF but not really")
    binary.chmod(0o755)
    assert refused([str(binary)]).code == "not-executable"


def test_program_that_ends_at_once() -> None:
    gone = refused(["sh", "-c", "exit 7"])
    assert gone.code == "ended" and "exit status 7" in gone.sentence
    assert gone.process is not None and gone.process.wait() == 7
    killed = refused(["sh", "-c", "kill -9 $$"])
    assert "SIGKILL" in killed.sentence


def test_program_without_the_hook_runs_on(tmp_path: Path) -> None:
    done = tmp_path / "done"
    script = f"import sys; sys.stdin.readline(); open({str(done)!r}, 'w').close()"
    quiet = refused([sys.executable, "-I", "-c", script], stdin=subprocess.PIPE, timeout=0.5)
    assert quiet.code == "no-hello" and "-I" in quiet.sentence
    assert quiet.process is not None and quiet.process.poll() is None and quiet.process.stdin is not None
    quiet.process.stdin.write(b"\n")
    quiet.process.stdin.close()
    assert quiet.process.wait() == 0
    assert done.exists()


def test_program_runs_when_tuimon_is_gone(tmp_path: Path) -> None:
    from tuimon.attach import launch as module

    environment = module._environment(None, str(tmp_path / "nobody"), "token")
    ran = subprocess.run([sys.executable, "-c", "print(1)"], env=environment, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("1\n", "", 0)
    environment["TUIMON_CONNECT"] = "nonsense"
    ran = subprocess.run([sys.executable, "-c", "print(1)"], env=environment, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("1\n", "", 0)


def test_hook_that_fails_does_not_keep_the_program_from_running(dummy: dict[str, str], tmp_path: Path) -> None:
    done = tmp_path / "done"
    script = f"import sys; open({str(done)!r}, 'w').write(str([n for n in sys.modules if '_tuimon' in n]))"
    broken = {**dummy, "session": "raise RuntimeError('as asked')"}
    no = refused([sys.executable, "-c", script], sources=broken)
    assert no.code == "hook" and "as asked" in no.sentence
    assert no.process is not None and no.process.wait() == 0
    until(done.exists)


def test_endings_in_words() -> None:
    assert how_it_ended(0) == "exit status 0"
    assert how_it_ended(-11) == "killed by SIGSEGV"
    assert how_it_ended(-64) in ("killed by SIGRTMAX", "killed by signal 64")


def test_who_has_gone_before_he_was_let_in_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = [True]
    look = select.select

    def ready(*given: Any) -> Any:
        return (given[0], [], []) if said and said.pop() else look(*given)

    monkeypatch.setattr(launching.select, "select", ready)
    ended: list[str] = []

    def wait() -> None:
        with subprocess.Popen([sys.executable, "-c", ""]) as process, pytest.raises(Refused) as refused:
            launching._wait(listening, process, "token", 30.0)
        ended.append(refused.value.code)

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        until(lambda: ended)
    assert ended == ["ended"]
