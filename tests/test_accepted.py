"""The file of accepted boundaries: it is the user's, and survives whatever is in it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.script import broke, compiled, model_of
from tuimon import events as ev
from tuimon.accepted import NAME, AcceptedError, Entry, load, project_of, remove, save, user_file
from tuimon.marks import Marks
from tuimon.model import Model
from tuimon.model.parts import Boundary

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ONE = Entry("model.py", "forward", "Unsupported Tensor.item() call", "loss.item()", "one read a step")
TWO = Entry("lib/train.py", "loss", "print", "", "")

HANDMADE = """\
# mine
version = 3   # of my own

[[boundary]]
file = "other.py"  # by hand
function = "f"
kind = "print"
reviewed-by = "ann"

# about the next
[[boundary]]
note = 'with \\ in it'
kind = "sleep"
function = "g"
file = "other.py"

[tool]
keep = [1, 2]
"""


def test_there_and_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / NAME
    assert load(path) == ([], [])
    save(path, ONE)
    save(path, TWO)
    assert load(path) == ([ONE, TWO], [])
    assert remove(path, ONE) and not remove(path, ONE)
    assert load(path) == ([TWO], [])
    assert [entry.name for entry in path.parent.iterdir()] == [NAME]  # nothing half-written is left


def test_another_note_takes_the_ones_place(tmp_path: Path) -> None:
    path = tmp_path / NAME
    save(path, ONE)
    other = Entry(*ONE.which, note="on second thoughts")
    save(path, other)
    assert load(path) == ([other], [])


def test_what_others_wrote_stays(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_text(HANDMADE)
    save(path, ONE)
    text = path.read_text()
    assert text.startswith(HANDMADE)
    assert load(path)[0] == [Entry("other.py", "f", "print"), Entry("other.py", "g", "sleep", "", "with \\ in it"), ONE]
    assert remove(path, ONE)
    assert path.read_text() == HANDMADE
    assert remove(path, Entry("other.py", "f", "print"))
    left = path.read_text()
    assert "# about the next" in left and "# mine" in left and "keep = [1, 2]" in left and "version = 3   # of my own" in left
    assert tomllib.loads(left)["boundary"] == tomllib.loads(HANDMADE)["boundary"][1:]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("boundary = 3\n", "no list"),
        ("boundary = [{file = 'model.py', function = 'forward', kind = 'k'}]\n", "cannot change"),
        ("boundary = [{file = 'other.py', function = 'forward', kind = 'k'}]\n", "cannot change"),
        ("x = ", "not TOML"),
        ("[boundary]\nfile = 'x'\n", "no list"),
    ],
)
def test_what_cannot_be_changed_is_left_as_it_is(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / NAME
    path.write_text(text)
    with pytest.raises(AcceptedError, match=says):
        save(path, Entry("model.py", "forward", "k"))
    assert path.read_text() == text


def test_entries_that_lack_something_are_said(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_text('[[boundary]]\nfile = "a.py"\n\n[[boundary]]\nfile = "a.py"\nfunction = 3\nkind = ""\n\n' + HANDMADE[7:])
    entries, problems = load(path)
    assert len(entries) == 2 and len(problems) == 2 and "boundary 1 lacks" in problems[0]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    binary, pipe, large = tmp_path / "binary", tmp_path / "pipe", tmp_path / "large"
    binary.write_bytes(b"\xff\xfe\x00")
    os.mkfifo(pipe)
    large.write_bytes(b"#" * (2 << 20))
    for path, says in ((binary, "UTF-8"), (pipe, "is a fifo"), (large, "larger"), (tmp_path, "is a directory")):
        with pytest.raises(AcceptedError, match=says):
            load(path)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AcceptedError, match="cannot be"):
        save(tmp_path / "file" / NAME, ONE)


def test_links_and_modes(tmp_path: Path) -> None:
    real, link = tmp_path / "real.toml", tmp_path / NAME
    real.write_text("# mine\n")
    real.chmod(0o640)
    link.symlink_to(real)
    save(link, ONE)
    assert link.is_symlink() and load(real) == ([ONE], []) and real.stat().st_mode & 0o777 == 0o640


TEXT = st.text(max_size=30)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(TEXT.filter(bool), TEXT.filter(bool), TEXT, TEXT, TEXT), min_size=1, max_size=4, unique_by=lambda e: e[:4]
    )
)
def test_any_text_comes_back(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str, str, str]]) -> None:
    path = tmp_path_factory.mktemp("any") / NAME
    entries = [Entry(*row) for row in rows]
    for entry in entries:
        save(path, entry)
    assert load(path) == (entries, [])
    for entry in entries:
        assert remove(path, entry)
    assert load(path) == ([], [])


# ------------------------------------------------------------------------------------------------- whose project


def test_the_project_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    inner = tmp_path / "work" / "pkg" / "sub"
    inner.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    source = inner / "model.py"
    source.write_text("")
    assert project_of(source) is None  # the home folder's own repository is no project
    (tmp_path / "work" / "pyproject.toml").write_text("")
    assert project_of(source) == tmp_path / "work" == project_of(inner)
    (tmp_path / "work" / "pkg" / ".git").write_text("gitdir: elsewhere")
    assert project_of(source) == tmp_path / "work" / "pkg"
    assert project_of("<string>") is None and project_of("model.py") is None and project_of(tmp_path / "none.py") is None


def test_the_users_own_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert user_file() == tmp_path / "tuimon" / "accepted.toml"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    (folder / "model.py").write_text("import torch\n\nloss.item()\n")
    monkeypatch.chdir(tmp_path)
    return folder


def job(file: str) -> tuple[Model, Boundary]:
    model = model_of(compiled("0/0", 0, 5, file=file), [broke("0/0", 3, file=file, kind="item", source="loss.item()")])
    return model, next(iter(model.boundaries.values()))


def test_a_mark_survives_a_restart(project: Path) -> None:
    model, boundary = job(str(project / "model.py"))
    marks = Marks()
    assert marks.news(model) == []
    event, path = marks.accept(model, boundary, "one a step")
    assert path == project / NAME
    model.apply([event])
    assert boundary.accepted == "one a step"

    model, boundary = job(str(project / "model.py"))
    marks = Marks()
    model.apply(marks.news(model))
    assert boundary.accepted == "one a step" and marks.news(model) == []
    events, path = marks.withdraw(model, boundary)
    model.apply(events)
    assert boundary.accepted is None and path == project / NAME and load(path) == ([], [])
    with pytest.raises(AcceptedError, match="no file"):
        marks.withdraw(model, boundary)


def test_code_without_a_project_goes_to_the_users_own_file(project: Path) -> None:
    for here, file in ((True, "/nowhere/model.py"), (False, str(project / "model.py"))):
        model, boundary = job(file)
        event, path = Marks(here=here).accept(model, boundary, "")
        assert path == user_file() and event.file == file
        model, boundary = job(file)
        model.apply(Marks(here=here).news(model))
        assert boundary.accepted == ""


def test_a_file_that_is_no_use_is_told_once(project: Path) -> None:
    (project / NAME).write_text("x =")
    model, boundary = job(str(project / "model.py"))
    marks = Marks()
    (line,) = marks.news(model)
    assert isinstance(line, ev.Line) and "not TOML" in line.text and marks.news(model) == []
    with pytest.raises(AcceptedError):
        marks.accept(model, boundary, "")
