"""Who may import whom: the house of CONTRIBUTING.md, held by reading the sources and by looking into fresh interpreters."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "tuimon"

MAY_IMPORT: dict[str, set[str]] = {
    "events": set(),
    "hook": set(),
    "draw": set(),
    "model": {"events"},
    "attach": {"events", "hook", "plain"},
    "sources": {"events", "hook", "plain"},
    "roofline": {"model", "events", "plain", "toml"},
    "lab": {"roofline", "plain", "toml"},
    "report": {"model", "roofline", "events", "draw", "plain"},
    "app": {
        "model",
        "roofline",
        "lab",
        "draw",
        "events",
        "accepted",
        "config",
        "marks",
        "plain",
        "question",
        "recorder",
        "toml",
    },
    "accepted": {"events", "plain", "toml"},
    "config": {"plain", "toml"},
    "plain": set(),
    "toml": set(),
    "question": set(),
    "marks": {"accepted", "events", "model"},
    "tail": {"events"},
    "ways": {"attach"},
    "relay": {"events", "attach", "hook", "sources", "model", "draw"},
    "doctor": {"attach", "sources", "roofline", "config", "question"},
    "around": {"sources"},
    "feed": {"around", "events", "attach", "hook", "model", "plain", "sources", "tail", "ways"},
    "recorder": {"events", "sources"},
    "playback": {"events", "model", "sources"},
    "fleet": {"attach", "feed", "model", "sources"},
}
"""Room -> rooms that it may import, itself apart. The command line (cli, commands, __main__) may import all of them."""

FREE = {"cli", "commands", "__main__", "__init__"}
HOOK_ALLOWED_OUTSIDE = {"attach", "sources", "feed", "relay"}
"""Rooms on tuimon's side may use of the hook only the framing and the bundle."""
HOOK_PARTS = ("tuimon.hook.wire", "tuimon.hook.bundle")


def files() -> Iterator[tuple[str, Path]]:
    """(room, file) for every module of the package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        relative = path.relative_to(PACKAGE)
        yield (relative.parts[0] if len(relative.parts) > 1 else relative.stem), path


def imported(path: Path) -> Iterator[str]:
    """The full names of all modules that a file imports, wherever in it."""
    package = ("tuimon", *path.relative_to(PACKAGE).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) + "." if node.level else ""
            module = f"{base}{node.module or ''}".rstrip(".")
            yield from (f"{module}.{alias.name}" for alias in node.names)


def test_every_room_is_known() -> None:
    assert {room for room, _ in files()} <= set(MAY_IMPORT) | FREE


@pytest.mark.parametrize("room", sorted(MAY_IMPORT))
def test_a_room_imports_only_what_lies_before_it(room: str) -> None:
    wrong = []
    for owner, path in files():
        if owner != room:
            continue
        for name in imported(path):
            parts = name.split(".")
            if parts[0] == "tuimon" and len(parts) > 1 and parts[1] not in MAY_IMPORT[room] | {room, "__version__"}:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert wrong == []


def test_outside_the_hook_only_its_framing_and_its_bundle_are_used() -> None:
    wrong = []
    for room, path in files():
        if room not in HOOK_ALLOWED_OUTSIDE:
            continue
        for name in imported(path):
            if name.startswith("tuimon.hook") and not name.startswith(HOOK_PARTS):
                wrong.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert wrong == []


def test_the_hook_is_standard_library_and_the_jobs_own_torch() -> None:
    allowed = sys.stdlib_module_names | {"torch"}
    wrong = []
    for room, path in files():
        if room != "hook":
            continue
        for name in imported(path):
            top = name.split(".")[0]
            if top not in allowed and not name.startswith(("tuimon.hook", "_tuimon_hook")):
                wrong.append(f"{path.name} imports {name}")
    assert wrong == []


CHILD = PACKAGE / "roofline" / "probe.py"
"""A program of its own: the child that calibrates."""


def test_the_child_that_calibrates_is_imported_by_nobody_and_imports_nothing_of_tuimon() -> None:
    users = [path for _, path in files() if any(name.startswith("tuimon.roofline.probe") for name in imported(path))]
    assert users == []
    assert {name.split(".")[0] for name in imported(CHILD)} <= sys.stdlib_module_names | {"torch"}


def test_nothing_on_tuimons_side_imports_torch() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for room, path in files()
        if room != "hook" and path != CHILD
        for name in imported(path)
        if name.split(".")[0] == "torch"
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import tuimon.events", {"torch", "textual", "psutil", "pynvml"}),
        ("import tuimon.model", {"torch", "textual", "psutil", "pynvml"}),
        ("import tuimon.draw.table, tuimon.draw.roofline", {"torch", "textual", "psutil", "pynvml"}),
        ("import tuimon.hook.session", {"torch", "textual", "psutil", "pynvml"}),
        ("import tuimon.report", {"torch", "textual", "psutil", "pynvml"}),
        ("import tuimon.lab.walk", {"torch", "textual", "psutil", "pynvml"}),
        ("import tuimon.config, tuimon.app.keymap, tuimon.draw.svg", {"torch", "textual", "psutil", "pynvml"}),
        ("import tuimon.app", {"torch", "textual"}),
        ("import tuimon.feed", {"torch", "textual"}),
        (
            "import tuimon.cli\ntry: tuimon.cli.main(['--help'])\nexcept SystemExit: pass",
            {"torch", "textual", "psutil", "pynvml"},
        ),
        ("import tuimon.cli; tuimon.cli.main(['help', 'settings'])", {"torch", "textual", "psutil", "pynvml", "shtab"}),
        ("import tuimon.cli; tuimon.cli.main(['completion', 'bash'])", {"torch", "textual"}),
        ("import tuimon.cli; tuimon.cli.main(['themes'])", {"torch", "textual", "psutil", "pynvml", "shtab"}),
        ("import tuimon.cli; tuimon.cli.main(['list'])", {"torch", "textual", "shtab"}),
    ],
)
def test_what_is_not_needed_is_not_loaded(statement: str, unwanted: set[str]) -> None:
    program = f"import sys\n{statement}\nprint('loaded:', *sorted(set(sys.modules) & {unwanted!r}), file=sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stderr.strip().splitlines()[-1].strip() == "loaded:"
