"""What `tuimon doctor` says of GPUs, with the scripted NVML under the real binding: of each trouble, and what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from tuimon.doctor import Check, gpu
from tuimon.sources.nvml import words as nvml_words

Play = Callable[[str], None]


def told(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


@pytest.mark.parametrize(
    ("code", "state", "what", "step"),
    [
        (4, "problem", "no permission to use the NVIDIA driver", "--gpus all"),
        (8, "problem", "lacks external power", "power cables"),
        (9, "note", "not loaded", "load the kernel module"),
        (12, "note", "no NVIDIA driver here", None),
        (13, "note", "lacks functions", None),
        (16, "problem", "needs a reset", "reboot"),
        (18, "problem", "was upgraded while the old one is still loaded", "reboot"),
    ],
)
def test_a_driver_that_does_not_start(play: Play, code: int, state: str, what: str, step: str | None) -> None:
    play(f"* init !{code}")
    (check,) = gpu.checks()
    assert check.state == state and what in check.what
    assert (check.next_step is None) if step is None else step in (check.next_step or "")


def test_wsl_has_its_own_sentences(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml_words, "is_wsl", lambda: True)
    play("* init !12")
    (check,) = gpu.checks()
    assert "WSL" in check.what and "Windows" in (check.next_step or "")
    play("0 name RTX")
    assert told(gpu.checks())["WSL"].next_step == "nvidia-smi on Windows"


def test_a_binding_that_does_not_fit_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    class NVMLLibraryMismatchError(Exception):
        """The binding's own, which is no NVMLError."""

    def ask(_nvml: object) -> None:
        raise NVMLLibraryMismatchError("unversioned function called with updated pyNVML version")

    monkeypatch.setattr(gpu, "_ask", ask)
    (check,) = gpu.checks()
    assert check.state == "problem" and "NVMLLibraryMismatchError" in check.what and "pip install" in (check.next_step or "")


def test_a_gpu_that_tells_all(play: Play) -> None:
    play("0 name NVIDIA_H200\n0 gpm.support 1\n0 processes 0\n0 mig.mode 0\n0 virtual 0\n0 ecc.uncorrected 0")
    found = gpu.checks()
    assert {check.state for check in found} == {"ok"}, found
    assert set(told(found)) == {"driver", "GPU 0", "activity", "processes", "XID"}


def test_what_some_do_not_tell_is_said_with_their_numbers(play: Play) -> None:
    lines = [f"{index} name A100" for index in range(4)] + [f"{index} processes 0" for index in range(3)]
    play("\n".join(["* count 4", *lines, "0 mig.mode 1", "1 ecc.uncorrected 2", "2 virtual 2", "3 processes !4", "3 events 1"]))
    found = gpu.checks()
    by_name = told(found)
    assert by_name["MIG"].state == "note" and by_name["MIG"].what.startswith("GPU 0: divided by MIG")
    assert by_name["ECC"].state == "problem" and by_name["ECC"].what.startswith("GPU 1: 2 memory errors")
    assert by_name["virtual"].what.startswith("GPU 2: a virtual GPU")
    assert by_name["activity"].what.startswith("no SM or tensor activity")  # of all, so no numbers
    assert [check.what for check in found if check.name == "processes"] == [
        "GPU 0-2: the processes on it are told", "GPU 3: no permission"
    ]  # fmt: skip
    assert any(check.what.startswith("GPU 3: the driver tells no XID") for check in found if check.name == "XID")


def test_a_gpu_that_is_lost_while_it_is_asked_is_not_touched_again(play: Play) -> None:
    """The stand-in aborts when it is."""
    play("* count 2\n0 name H200\n1 name H200\n0 virtual !15")
    by_name = told(gpu.checks())
    assert by_name["GPU 0"].state == "problem" and by_name["GPU 1"].state == "ok"


def test_a_process_and_its_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert gpu.of_process(process.pid) == []
        process.kill()
    for minors, what in ((frozenset({0, 1, 2, 7}), "/dev/nvidia0-2,7 open"), (None, "cannot be seen")):
        monkeypatch.setattr(gpu.gpu_use, "opened", lambda _pid, minors=minors: lambda: minors)
        (check,) = gpu.of_process(os.getpid())
        assert what in check.what
