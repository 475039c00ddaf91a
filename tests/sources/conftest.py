"""The scripted NVML under the real binding, and a way to wait without sleeping blindly."""

from __future__ import annotations

import ctypes
import importlib.util
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest


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
    monkeypatch.setattr("tuimon.sources.nvml.LEAST_PERIOD_S", 0.001)
    monkeypatch.setattr(pynvml, "nvmlLib", ctypes.CDLL(str(fake_library)))
    # the binding keeps the addresses of functions; those of another library must go, before and after
    pynvml._nvmlGetFunctionPointer_cache.clear()

    def write(text: str) -> None:
        script = tmp_path / "nvml.script"
        script.write_text(text)
        monkeypatch.setenv("FAKE_NVML_SCRIPT", str(script))

    yield write
    pynvml._nvmlGetFunctionPointer_cache.clear()


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    """Waits for a condition, with a deadline that only a hang can reach."""

    def wait(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < deadline, "the condition did not come true"
            time.sleep(0.005)

    return wait
