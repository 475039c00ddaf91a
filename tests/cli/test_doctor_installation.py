"""`tuimon doctor` on an installation that others may write to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tuimon.doctor import installation

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: another user")


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A package in folders that are ours alone."""
    package = tmp_path / "lib" / "site" / "tuimon"
    package.mkdir(parents=True)
    for folder in (package, *package.parents[:3]):
        folder.chmod(0o755)
    return package


def test_the_usual_one(installed: Path) -> None:
    found = installation.check([installed])
    assert (found.part, found.name, found.state) == ("machine", "installation", "ok")


@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_a_folder_on_the_way_that_others_may_write_to(mode: int, installed: Path) -> None:
    above = installed.parent.parent
    os.chown(above, -1, 65533 if os.geteuid() == 0 else -1)
    above.chmod(mode)
    found = installation.check([installed])
    if mode == 0o775 and os.geteuid() != 0:
        return  # one's own group may be a private one
    assert found.state == "note" and str(above) in found.what and found.next_step
    assert ("others may write" if mode == 0o777 else "group ") in found.what
    above.chmod(0o1777)  # sticky: what is there stays ours
    assert installation.check([installed]).state == "ok"


def test_a_sticky_folder_is_no_place_to_import_from(installed: Path) -> None:
    installed.chmod(0o1777)
    assert installation.check([installed]).state == "note"


def test_a_file_of_the_package(installed: Path) -> None:
    (installed / "x.py").write_text("")
    (installed / "x.py").chmod(0o666)
    assert "x.py (others may write)" in installation.check([installed, installed / "x.py"]).what


def test_by_a_link(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "open" / "step").symlink_to(installed)
    (tmp_path / "way").symlink_to(tmp_path / "open" / "step")
    assert str(tmp_path / "open") in installation.check([tmp_path / "way"]).what


@needs_root
def test_roots_tuimon_in_a_folder_of_a_users(installed: Path) -> None:
    """`sudo tuimon` from a virtual environment of one's own."""
    os.chown(installed.parent, NOBODY, NOBODY)
    found = installation.check([installed])
    assert found.state == "note" and "root" in found.what and "sudo" in (found.next_step or "")
    assert installation.check([installed], user=NOBODY).state == "ok"  # his own


def test_what_runs_here_is_looked_at() -> None:
    paths = installation.code()
    assert {Path(sys.executable), Path(installation.__file__)} <= set(paths)
    command = [sys.executable, "-c", "from tuimon.doctor import machine; print([c.name for c in machine._here()])"]
    ran = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    assert "'installation'" in ran.stdout


def test_where_a_folder_to_import_from_could_be_made(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(installed / "not" / "there"), "__finder__.of.its.own"])
    assert installation.code()[-1] == installed
    installed.chmod(0o1777)
    assert str(installed) in installation.check(installation.code()[-1:]).what
