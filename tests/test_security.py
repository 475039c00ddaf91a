"""What SECURITY.md promises of all of the package, and that each of its promises has the test that it names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "tuimon").rglob("*.py"))}
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))))


def calls() -> Iterator[tuple[str, str, ast.Call]]:
    """(file, name of what is called, call)."""
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                yield str(path.relative_to(ROOT)), ast.unparse(node.func), node


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_a_promise_has_its_test(file: str, test: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert test in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_promise_names_one() -> None:
    rows = [line for line in (ROOT / "SECURITY.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    promises = [line for line in rows if not line.startswith(("| promise", "| ---"))]
    assert len(promises) > 15
    assert [line for line in promises if "`tests/" not in line.rsplit("|", 2)[1]] == []


def test_nothing_speaks_over_a_network() -> None:
    """Sockets are of the kernel's own families; `create_server` and the servers of the standard library are not used."""
    families = {"AF_UNIX", "AF_NETLINK"}
    wrong = []
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr.startswith(("AF_", "PF_")) and node.attr not in families:
                wrong.append(f"{path}: {node.attr}")
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
                wrong += [
                    f"{path}: {name}"
                    for name in names
                    if re.match(r"(socketserver|http|urllib|asyncio\.streams|ftplib|xml)\b", name)
                ]
    for file, name, node in calls():
        if name == "socket.socket":  # without a family it would be one of the internet
            given = [*map(ast.unparse, node.args), *(word.arg or "" for word in node.keywords)]
            if not given or not (given[0].startswith("socket.AF_") or "fileno" in given):
                wrong.append(f"{file}: {ast.unparse(node)}")
        if name.endswith(("create_server", "create_connection", "start_server", "open_connection")):
            wrong.append(f"{file}: {name}")
    assert wrong == []


def test_no_text_becomes_a_command() -> None:
    wrong = []
    for file, name, node in calls():
        shell = [word for word in node.keywords if word.arg == "shell" and ast.unparse(word.value) != "False"]
        if shell or name in ("os.system", "os.popen", "eval", "subprocess.getoutput", "subprocess.getstatusoutput"):
            wrong.append(f"{file}: {ast.unparse(node)}")
        if name in ("pickle.load", "pickle.loads", "marshal.load", "marshal.loads", "exec") and file not in EXECUTES:
            wrong.append(f"{file}: {name}")
    assert wrong == []


EXECUTES = {
    "tuimon/hook/boot.py": "the hook, in the job, after the proof",
    "tuimon/hook/site/sitecustomize.py": "the bootstrap that lies beside it",
    "tuimon/playback/fold.py": "states that playback itself has kept, in its own memory",
}
"""Where bytes become code or objects, and whose they are."""


OPENS = {
    "tuimon/plain.py": "the one way in",
    "tuimon/attach/inject/helper.py": "the folder that it is started in",
    "tuimon/attach/inject/remote_exec.py": "a script of its own, made new",
    "tuimon/attach/places.py": "folders of the job's, part by part, and what is ours in them: no link is followed",
    "tuimon/attach/preflight.py": "/proc",
    "tuimon/attach/procfs.py": "/proc",
    "tuimon/commands/demo.py": "demos of its own",
    "tuimon/commands/export.py": "writes what it is asked to, beside the name or into what is there",
    "tuimon/commands/run.py": "a log of its own",
    "tuimon/commands/run_log.py": "logs of its own, in a folder of its user's alone",
    "tuimon/relay/sent.py": "the package itself",
    "tuimon/roofline/calibration.py": "what it has just written",
    "tuimon/roofline/hardware.py": "/proc, /sys",
    "tuimon/sources/gpu_use.py": "/proc",
    "tuimon/sources/kernel.py": "/proc, /sys",
    "tuimon/sources/recording/place.py": "/proc",
    "tuimon/sources/recording/segments.py": "a recording that it makes new, and the folder of it",
    "tuimon/sources/threads.py": "/proc",
    "tuimon/tail.py": "a log of its own",
}
"""What opens files by itself, and which; all else is read by `tuimon.plain`. (The hook opens what the job may open anyway.)"""


def test_files_are_opened_in_one_way() -> None:
    wrong = []
    for file, name, node in calls():
        first = ast.unparse(node.args[0]) if node.args else ""
        opens = name in ("open", "io.open", "os.open") or (name.endswith(".open") and re.match(r"'[rwax]", first))
        reads = name.endswith((".read_text", ".read_bytes")) and not node.args  # a path's
        given = "resources.files(" in name or first == "os.devnull" or re.match(r"f?'/(proc|sys)/", first)
        if (opens or reads) and not (given or re.match(r"Path\('/(proc|sys)/", name)) and not file.startswith("tuimon/hook/"):
            wrong += [f"{file}: {ast.unparse(node)}"] if file not in OPENS else []
    assert wrong == [], "open it by tuimon.plain, or say here whose file it is"
