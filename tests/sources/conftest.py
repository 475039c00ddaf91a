"""The scripted NVML under the real binding, and a way to wait without sleeping blindly."""

from __future__ import annotations

import ctypes
import importlib.util
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tuimon.sources.nvml import device


class Clock:
    """A clock that stands still until told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(device.time, "monotonic", clock)
    return clock


def _load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def fake_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built stand-in for libnvidia-ml.so.1."""
    build = _load("fake_nvml_build", Path(__file__).parents[1] / "support" / "fake_nvml" / "build.py")
    if build.compiler() is None:
        pytest.skip("no C compiler to build the scripted NVML with")
    return build.build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def play(fake_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Puts a script under the real binding, in this process: `play(text)`."""
    import pynvml

    # so that several readings take no seconds; the floor has a test of its own
    monkeypatch.setattr("tuimon.sources.nvml.source.LEAST_PERIOD_S", 0.001)
    monkeypatch.setattr("tuimon.sources.nvml.xid.WAIT_MS", 5)  # a source ends when the wait does
    library = ctypes.CDLL(str(fake_library))
    monkeypatch.setattr(pynvml, "nvmlLib", library)
    # the binding keeps the addresses of functions; those of another library must go, before and after
    pynvml._nvmlGetFunctionPointer_cache.clear()

    def write(text: str) -> None:
        _write(tmp_path, text)
        monkeypatch.setenv("FAKE_NVML_SCRIPT", str(tmp_path / "nvml.script"))
        library.fakeReset()

    yield write
    # a thread that has been asked to end, but not waited for, must not find another library, nor be counted in another test
    deadline = time.monotonic() + 20
    while left := [thread.name for thread in threading.enumerate() if thread.name.startswith("tuimon-nvml")]:
        assert time.monotonic() < deadline, f"threads are left behind: {left}"
        time.sleep(0.005)
    pynvml._nvmlGetFunctionPointer_cache.clear()


@pytest.fixture
def change(play: Callable[[str], None], tmp_path: Path) -> Callable[[str], None]:
    """Puts another script in the place of the one that is played, while it is played: `change(text)`."""
    return lambda text: _write(tmp_path, text)


def _write(folder: Path, text: str) -> None:
    new = folder / "nvml.script.new"
    new.write_text(text)
    new.replace(folder / "nvml.script")  # at once: it is read at any moment


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    """Waits for a condition, with a deadline that only a hang can reach."""

    def wait(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < deadline, "the condition did not come true"
            time.sleep(0.005)

    return wait
