"""The gates on fed numbers, the file that is kept, the command with a scripted child, and one short real measurement."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import stat
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.roofline.test_machines import calibrated
from tuimon.commands import calibrate, idle_gpus
from tuimon.commands.options import DONE, FAILED, USAGE, Options
from tuimon.doctor.ceilings import checks
from tuimon.roofline import calibration, hardware, inforce
from tuimon.roofline.calibration import CalibrationError, keep, load_all, parse
from tuimon.roofline.gates import Repeat, judge, others
from tuimon.roofline.measuring import CannotMeasure, asked_of_a_cpu, measure

CLEAN = [9.0e10, 8.9e10, 9.1e10, 9.05e10, 8.95e10, 9.0e10]


def fed(rates: list[float], cpu: float = 1.0, other: float = 0.0) -> list[Repeat]:
    return [Repeat(rate, cpu, other, 0.03) for rate in rates]


# ------------------------------------------------------------------------------------------------- gates


def test_the_best_of_clean_repeats_is_taken() -> None:
    verdict = judge(fed(CLEAN) + fed([2e10, 3e10], cpu=0.4) + fed([9.9e10], cpu=0.5))
    assert (verdict.best, verdict.quality, verdict.clean, verdict.repeats) == (9.1e10, "ok", 6, 9)
    assert verdict.median == 9.0e10 and verdict.cv is not None and verdict.cv < 0.01
    assert verdict.spread == pytest.approx(0.0167, abs=0.002)


def test_steady_noisy_and_refused() -> None:
    assert judge(fed([10.0, 9.5, 9.0, 10.5])).quality == "noisy"
    far = judge(fed([10.0, 5.0, 9.0, 4.0]))
    assert far.best is None and far.quality == "refused" and "differ by" in far.why


@pytest.mark.parametrize("clean", [0, 1, 2])
def test_fewer_than_three_clean_repeats_are_refused_with_the_reason(clean: int) -> None:
    verdict = judge(fed(CLEAN[:clean]) + fed([4e10] * 8, cpu=0.45))
    assert verdict.best is None
    assert verdict.why.startswith(f"{clean} of {clean + 8} repeats clean (at least 3 must be)")
    assert "45% of the CPU time" in verdict.why
    assert verdict.by_cpu_time == pytest.approx(4e10 / 0.45)  # told, never kept


def test_several_threads_are_judged_by_what_they_waited() -> None:
    # a product that the library makes with one of two threads uses half of their CPU time, and is as clean as any
    assert judge([Repeat(rate, 0.5, waited=0.001) for rate in CLEAN]).best == 9.1e10
    waiting = judge([Repeat(rate, 0.99, waited=0.4) for rate in CLEAN])
    assert waiting.best is None and "waited for a CPU for 40% of the time" in waiting.why


def test_a_device_that_tells_no_cpu_time_is_judged_by_its_spread() -> None:
    assert judge([Repeat(rate, None) for rate in CLEAN]).best == 9.1e10
    assert judge([]).best is None and judge([]).why.startswith("0 of 0")


def test_what_others_used_is_a_mean_over_time() -> None:
    assert others([Repeat(1, 1, 0.9, 0.01), Repeat(1, 1, -0.4, 0.03)]) == 0.0  # ticks are rough: single ones mean nothing
    assert others([Repeat(1, 1, 0.5, 0.01), Repeat(1, 1, 1.5, 0.03)]) == pytest.approx(1.25)
    assert others([]) == 0.0


@given(st.lists(st.tuples(st.floats(1, 1e15), st.floats(0, 1.2)), max_size=12))
def test_any_repeats_have_a_verdict(pairs: list[tuple[float, float]]) -> None:
    verdict = judge([Repeat(rate, cpu) for rate, cpu in pairs])
    assert (verdict.best is None) == bool(verdict.why)
    if verdict.best is not None:
        assert verdict.best == max(rate for rate, cpu in pairs if cpu >= 0.97) and verdict.clean >= 3


# ------------------------------------------------------------------------------------------------- what is kept


def test_what_is_kept_is_read_back_and_used_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    cpu = replace(hardware.cpu(), key="cpu-x")
    assert inforce.known(own_cpu=cpu).host is None
    path = keep(calibrated())
    assert path == tmp_path / "tuimon" / "calibration" / "cpu-x.toml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert os.listdir(path.parent) == ["cpu-x.toml"]
    assert load_all() == ([calibrated()], [])
    host = inforce.known(own_cpu=cpu).host
    assert host is not None and host.threads == (1, 2)
    assert inforce.known(own_cpu=replace(cpu, key="cpu-y")).host is None  # another processor, or other cores of it


def test_doctor_tells_which_ceilings_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    cpu, h200, strange = checks(["NVIDIA H200", "NVIDIA X9"])
    assert cpu.state == "note" and "not calibrated" in cpu.what and cpu.next_step == "tuimon calibrate"
    assert h200.state == "ok" and "H200 SXM" in h200.what
    assert strange.state == "note" and "no maker's figures" in strange.what
    path = keep(replace(calibrated(), key=hardware.cpu().key))
    (told,) = checks()
    assert told.state == "ok" and told.what == "X: calibrated on 2026-11-30 with 1 and 2 threads"
    path.write_text("schema = 9")
    files, cpu = checks()
    assert files.state == "note" and "moved to" in files.what and cpu.state == "note"


def test_odd_names_survive(tmp_path: Path) -> None:
    odd = replace(calibrated(), name='A "CPU" \\ with ümläuts, 漢字 # and more', driver="1.0-'x'")
    keep(odd, tmp_path)
    assert load_all(tmp_path)[0] == [odd]


def test_a_newer_calibration_replaces_what_it_measured_and_nothing_else() -> None:
    old = calibrated()
    newer = replace(old, figures=tuple(replace(one, value=one.value * 2) for one in old.figures if one.threads == 2))
    joined = old.joined(newer)
    assert len(joined.figures) == len(old.figures)
    values = {one.which: one.value for one in joined.figures}
    assert values["peak", "f32", 1] == 9e10 and values["peak", "f32", 2] == 3.6e11


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text[: len(text) // 2], "not TOML"),
        (lambda text: text.replace("schema = 1", "schema = 7"), "another version of tuimon"),
        (lambda text: text.replace("schema = 1", ""), "another version of tuimon"),
        (lambda text: text.replace("value = 90000000000.0", "value = nan", 1), "figure 1: value must be a number"),
        (lambda text: text.replace("value = 90000000000.0", "value = -1.0", 1), "figure 1: value must be a number"),
        (lambda text: text.replace('of = "f32"', 'of = "f33"', 1), "figure 1: of must be one of"),
        (lambda text: text.replace('key = "cpu-x"', 'key = "../x"'), "key cannot be"),
        (lambda text: text[: text.index("[[figure]]")], "no figures"),
        (lambda text: "", "another version"),
        (lambda text: "\x00\x01", "not TOML"),
    ],
)
def test_a_corrupt_file_is_one_sentence_and_moved_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[str], str], says: str
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    path = keep(calibrated())
    bad = change(path.read_text())
    path.write_text(bad)
    found = inforce.known()
    (sentence,) = found.problems
    assert says in sentence and "cpu-x.bad" in sentence and "\n" not in sentence
    assert found.of_name("NVIDIA H200") is not None  # the packaged figures
    assert path.with_suffix(".bad").read_text() == bad and not path.exists()
    assert inforce.known().problems == ()
    path.write_text(bad)
    assert "cpu-x.bad2" in inforce.known().problems[0]  # and the first one is not lost
    assert path.with_suffix(".bad").read_text() == bad


@given(st.binary(max_size=300))
def test_any_bytes_are_a_calibration_or_an_error(data: bytes) -> None:
    with contextlib.suppress(CalibrationError):
        parse(data)


# ------------------------------------------------------------------------------------------------- the command


Lines = list[dict[str, Any]]


def told(cpu: float = 1.0, other: float = 0.0, rates: list[float] | None = None, threads: tuple[int, ...] = (1, 2)) -> Lines:
    """What a child tells: f32 both ways, DRAM four ways."""
    lines: Lines = [{"k": "begin", "torch": "2.13.0+cpu", "python": "3.11.7", "import_s": 1.0}]
    for count in threads:
        lines.append({"k": "set", "threads": count, "left": 1})
        ways = [("peak", "dtype", "f32", way) for way in ("NN", "NT")]
        ways += [("bandwidth", "boundary", "DRAM", way) for way in ("read", "copy", "in place", "triad")]
        for at, (what, field, of, way) in enumerate(ways):
            number = f"{count}.{at}"
            lines.append({"k": "probe", "probe": number, "threads": count, "size": "512", "what": what, field: of, "way": way})
            for rate in rates or CLEAN:
                scaled = rate * count * (1 + at / 10)
                lines.append(
                    {"k": "repeat", "probe": number, "rate": scaled, "cpu": cpu, "waited": None, "others": other, "s": 0.03}
                )
    return [*lines, {"k": "failed", "dtype": "f16", "way": "NN", "threads": 1, "why": "no kernel"}, {"k": "end", "took_s": 9.0}]


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """A program in the place of an interpreter with torch, that tells lines and ends; the machine seems to be quiet."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(hardware, "pressure", lambda: 0.0)
    monkeypatch.setattr(calibrate, "gpus", lambda: ([], "no NVIDIA driver here"))

    def write(lines: Lines, status: int = 0, error: str = "") -> str:
        path = tmp_path / "python"
        text = "\n".join(map(json.dumps, lines))
        path.write_text(
            f"#!{sys.executable}\nimport sys\nprint({text!r})\nsys.stderr.write({error!r})\nsys.exit({status})\n", "utf-8"
        )
        path.chmod(0o755)
        return str(path)

    return write


Printed = pytest.CaptureFixture[str]


def test_clean_figures_are_kept_and_delivered(child: Callable[..., str], capsys: Printed) -> None:
    assert calibrate.run(Options(), python=child(told())) == DONE
    out, err = capsys.readouterr()
    assert re.search(r"f32 matrix +1 +100 GFLOP/s .* 6/6 +NT 512 \* +ok", out)
    assert re.search(r"DRAM +2 +273 GB/s .* triad 512 \*", out)
    assert "kept in" in err and "f16 NN is not measured" in err and "with 2 threads" in err
    (kept,), problems = load_all()
    assert problems == [] and kept.key == hardware.cpu().key and len(kept.figures) == 4
    assert {len(one.ways) for one in kept.figures} == {2, 4}  # every way is kept beside the best
    host = inforce.known().host
    assert host is not None
    peak = host.peak("vector", "f32", threads=1)  # the units of products are those of everything else
    assert peak is not None and peak.flops == pytest.approx(9.1e10 * 1.1)
    assert calibrate.run(Options(format="json"), show=True) == DONE
    shown = json.loads(capsys.readouterr().out)
    assert shown["schema"] == "tuimon.calibration/1"
    assert shown["devices"][0]["figures"][0]["quality"] == "ok" and shown["refused"] == []
    assert calibrate.run(Options(format="md"), show=True) == DONE
    assert "| f32 matrix | 1 |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (told(cpu=0.45), "0 of 6 repeats clean"),
        (told(rates=[9e10, 4e10, 8e10, 3e10]), "its repeats differ"),
        (told(rates=CLEAN[:2]), "2 of 2 repeats clean"),
    ],
)
def test_under_another_load_nothing_is_kept_and_what_was_kept_stays(
    child: Callable[..., str], capsys: Printed, lines: Lines, says: str
) -> None:
    older = replace(calibrated(), key=hardware.cpu().key)
    path = keep(older)
    assert calibrate.run(Options(), python=child(lines)) == FAILED
    out, err = capsys.readouterr()
    assert says in err and "nothing was kept" in err and out == ""
    assert load_all() == ([older], []) and os.listdir(path.parent) == [path.name]


def test_bandwidths_measured_beside_other_work_are_refused_but_peaks_are_kept(
    child: Callable[..., str], capsys: Printed
) -> None:
    assert calibrate.run(Options(format="json"), python=child(told(other=0.9))) == FAILED
    out, err = capsys.readouterr()
    assert "other work used 0.9 CPUs meanwhile" in err
    report = json.loads(out)
    assert {figure["what"] for figure in report["devices"][0]["figures"]} == {"peak"}
    assert [one["of"] for one in report["refused"]] == ["DRAM", "DRAM"]


def test_one_way_that_is_not_clean_takes_the_figure_with_it(child: Callable[..., str], capsys: Printed) -> None:
    lines = told(threads=(1,))
    for line in lines:
        if line.get("probe") == "1.1" and line["k"] == "repeat":
            line["cpu"] = 0.6  # NT, which may be the faster one by far
    assert calibrate.run(Options(), python=child(lines)) == FAILED
    assert "f32 with 1 thread refused: NT: 0 of 6" in capsys.readouterr().err
    assert {one.what for one in load_all()[0][0].figures} == {"bandwidth"}


@pytest.mark.parametrize(
    ("lines", "status", "error", "says"),
    [
        (
            [{"k": "lacking", "why": "No module named 'torch'"}],
            0,
            "",
            "has no torch that can be used (No module named 'torch')",
        ),
        ([], 139, "Segmentation fault\n", "ended early, with status 139: Segmentation fault"),
        (told()[:9], 1, "MemoryError", "ended early, with status 1: MemoryError"),
        ([{"k": "probe"}], 0, "", "makes no sense"),
        ([{"k": "repeat", "probe": "9"}, {"k": "begin"}], 0, "", "ended early"),
    ],
)
def test_a_child_that_fails_is_one_sentence(
    child: Callable[..., str], capsys: Printed, lines: Lines, status: int, error: str, says: str
) -> None:
    assert calibrate.run(Options(), python=child(lines, status, error)) == FAILED
    err = capsys.readouterr().err
    assert says in err and "Traceback" not in err
    assert load_all() == ([], [])


def test_a_busy_machine_is_waited_for_and_then_refused(
    child: Callable[..., str], capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibrate, "WAIT_S", 0.0)
    seen = iter([80.0, 80.0])
    monkeypatch.setattr(hardware, "pressure", lambda: next(seen, 80.0))
    assert calibrate.run(Options(), python=child(told())) == FAILED
    err = capsys.readouterr().err
    assert "waiting for the machine to become quiet" in err and "another load has the CPU" in err
    monkeypatch.setattr(calibrate, "WAIT_S", 60.0)
    falling = iter([80.0, 5.0])
    monkeypatch.setattr(hardware, "pressure", lambda: next(falling, 5.0))
    assert calibrate.run(Options(), python=child(told())) == DONE


def test_wrong_words_are_said_before_anything_is_measured(child: Callable[..., str], capsys: Printed) -> None:
    assert calibrate.run(Options(), python="/no/such/python") == FAILED
    assert "no program that can be started" in capsys.readouterr().err
    assert calibrate.run(Options(), python=child(told()), device="tpu") == USAGE
    assert "cpu or cuda:N" in capsys.readouterr().err
    assert calibrate.run(Options(), python=child(told()), threads=100_000) == FAILED
    assert "would wait for each other" in capsys.readouterr().err
    assert calibrate.run(Options(), show=True) == FAILED
    assert "nothing is calibrated here" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------- GPUs, scripted


class Nvml:
    """As much of the binding as looking at a GPU takes."""

    NVML_CLOCK_SM = 1

    class NVMLError(Exception):
        value = 3

    def __init__(self, processes: int = 0, used: int = 0) -> None:
        self.processes, self.used = processes, used

    def nvmlDeviceGetComputeRunningProcesses_v3(self, handle: object) -> list[Any]:
        row = {"usedGpuMemory": 1, "gpuInstanceId": 0xFFFFFFFF, "computeInstanceId": 0xFFFFFFFF}
        return [type("Process", (), {"pid": 40 + at, **row}) for at in range(self.processes)]

    def nvmlDeviceGetUtilizationRates(self, handle: object) -> Any:
        return type("Rates", (), {"gpu": self.used})

    def nvmlDeviceGetClockInfo(self, handle: object, which: int) -> int:
        return 1755

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: object) -> int:
        return 4


def of_a_gpu(dtypes: tuple[str, ...] = ("bf16", "f32", "f64")) -> Lines:
    lines: Lines = [{"k": "begin", "torch": "2.13.0+cu130", "import_s": 2.0, "name": "NVIDIA H200", "memory_bytes": 150 << 30,
                     "cache_bytes": 60 << 20, "capability": "9.0", "runtime": "13.0"}]  # fmt: skip
    probes = [("peak", "dtype", of, way) for of in dtypes for way in ("NN", "NT")]
    probes += [("bandwidth", "boundary", "DRAM", way) for way in ("read", "copy", "in place", "triad")]
    for at, (what, field, of, way) in enumerate(probes):
        lines.append({"k": "probe", "probe": str(at), "threads": None, "size": "8192", "what": what, field: of, "way": way})
        lines += [
            {"k": "repeat", "probe": str(at), "rate": rate * 1e3, "cpu": None, "waited": None, "others": 0.0, "s": 0.05}
            for rate in CLEAN
        ]
    return [*lines, {"k": "end", "took_s": 9.0}]


def test_an_idle_gpu_is_measured_and_a_used_one_is_not(
    child: Callable[..., str], capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown(nvml: Nvml) -> None:
        gpu = idle_gpus.Gpu(0, "NVIDIA H200", 150754820096, "580.82", None, nvml)
        monkeypatch.setattr(calibrate, "gpus", lambda: ([gpu], ""))

    shown(Nvml(processes=2))
    assert calibrate.run(Options(), python=child(of_a_gpu()), device="cuda:0") == FAILED
    assert "2 processes use it (pid 40, 41)" in capsys.readouterr().err
    shown(Nvml(used=40))
    assert calibrate.run(Options(), python=child(of_a_gpu()), device="cuda") == FAILED
    assert "it is 40 % busy" in capsys.readouterr().err
    assert load_all() == ([], [])
    shown(Nvml())
    assert calibrate.run(Options(), python=child(of_a_gpu()), device="cuda:0") == DONE
    out, err = capsys.readouterr()
    assert "1,755 MHz" in out and "driver 580.82" in out and "held down meanwhile (power cap)" in err
    machine = inforce.known().of_name("NVIDIA H200", 150754820096)
    assert machine is not None and machine.name == "H200 SXM"
    bf16 = machine.peaks["matrix", "bf16", "dense"]
    assert [one.how for one in bf16] == ["calibrated", "datasheet"] and bf16[0].clock_mhz == 1755
    assert machine.peaks["vector", "f32", "dense"][0].how == "calibrated"  # no tf32: not what matrix units do
    assert machine.peaks["matrix", "f64", "dense"][0].how == "calibrated"  # but f64 they take, at 9.0
    hbm = machine.bandwidth("HBM")
    assert hbm is not None and hbm.how == "calibrated" and hbm.threads is None
    assert calibrate.run(Options(), python=child(of_a_gpu()), device="cuda:3") == USAGE
    assert "shows 1 GPU" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------- one real run


def test_sizes_are_chosen_by_the_caches() -> None:
    asked = asked_of_a_cpu([1, 0], 512 << 10, 64 << 20, 64 << 30)
    assert asked["dram"] == 256 << 20 and asked["threads"] == [1, 0]
    assert asked_of_a_cpu([1], None, None, None)["dram"] == 128 << 20
    assert asked_of_a_cpu([1], 1, 32 << 20, 400 << 20)["dram"] == 100 << 20
    with pytest.raises(CannotMeasure, match="too little"):
        asked_of_a_cpu([1], 1, 64 << 20, 400 << 20)


def test_this_machine_tells_what_it_is() -> None:
    cpu = hardware.cpu()
    assert cpu.name and 1 <= cpu.cpus <= (os.cpu_count() or 1) and re.fullmatch(r"cpu-[a-z0-9.-]+", cpu.key)
    assert cpu == hardware.cpu() or cpu.key == hardware.cpu().key
    waited = hardware.pressure()
    assert waited is None or 0 <= waited <= 100
    assert calibration.folder().name == "calibration"


@pytest.mark.live
def test_a_short_real_measurement() -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed next to tuimon")
    seen: list[str] = []
    asked = {
        **asked_of_a_cpu([1], 256 << 10, 8 << 20, None),
        "budget_s": 0.1,
        "repeat_s": 0.002,
        "dram": 16 << 20,
        "dtypes": ["f32"],
    }
    measured = measure(sys.executable, asked, on=lambda kind, _: seen.append(kind))
    assert seen[0] == "begin" and seen[1] == "set" and seen[-1] == "end"
    assert measured.failed == []
    found = {(probe.what, probe.of, probe.way) for probe in measured.probes}
    assert found == {("peak", "f32", way) for way in ("NN", "NT", "TN")} | {
        ("bandwidth", boundary, way) for boundary in ("DRAM", "LLC") for way in ("read", "copy", "in place", "triad")
    }
    for probe in measured.probes:  # one round at least, however little time there was
        assert len(probe.repeats) >= 1 and probe.threads == 1
        for repeat in probe.repeats:
            assert repeat.rate > 0 and repeat.cpu is not None and repeat.seconds > 0
