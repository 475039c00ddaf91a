"""`tuimon replay FILE` and `tuimon report FILE`: as a person runs them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.sources.test_kineto import REAL as FILES
from tests.sources.test_kineto import kernel, launch, op, real
from tests.support.terminal import Terminal
from tuimon import cli
from tuimon.commands import replay
from tuimon.commands.options import DONE, FAILED, USAGE

H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85_018_279_936, "computeMajor": 9, "computeMinor": 0}
BF16 = ["c10::BFloat16", "c10::BFloat16"]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A product of 8192 x 8192 matrices in 1.5 ms: 733 TFLOP/s."""
    path = tmp_path / "step.pt.trace.json"
    events = [
        op("aten::mm", 0, 100, dims=[[8192, 8192], [8192, 8192]], types=BF16),
        launch(10, 1),
        kernel("sm90_xmma_gemm_bf16bf16_bf16f32", 200, 1500, 1),
    ]
    header = {"deviceProperties": [H100], "baseTimeNanoseconds": 1751410836000000000}
    path.write_text(json.dumps({"schemaVersion": 1, **header, "traceEvents": events}))
    return path


@pytest.mark.parametrize("command", [("report",), ("replay", "--headless")])
def test_the_report_of_a_trace(command: tuple[str, ...], trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*command, str(trace), "--format", "json"]) == DONE
    report = json.loads(capsys.readouterr().out)
    assert report["target"]["how"] == "file" and report["target"]["command"] == trace.name
    assert report["target"]["devices"] == ["NVIDIA H100 80GB HBM3"]
    assert report["target"]["torch"] is None
    assert report["target"]["attached_at"] == pytest.approx(1751410836, abs=1)
    (point,) = report["roofline"]["points"]
    assert point["name"].startswith("mm 8192x8192")
    gaps = {one["what"]: one["why"] for one in report["coverage"]["not_available"]}
    assert gaps["frames"] == "a profiler's trace does not tell what was compiled, nor why"


def test_the_point_lies_below_the_devices_own_ceiling(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", str(trace)]) == DONE
    written = capsys.readouterr().out
    assert "H100" in written and "datasheet" in written and "989 TFLOP/s" in written
    line = next(line for line in written.split("\n") if "mm 8192x8192" in line)
    assert "733T" in line and "74" in line


def test_a_file_that_is_none_of_these_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.log"
    path.write_text("V1130 12:00:00.123456 1 torch/x.py:1] [0/0] Graph break at line 3\n")
    for command in (["report"], ["replay", "--headless"]):
        assert cli.main([*command, str(path)]) == FAILED
        captured = capsys.readouterr()
        assert captured.out == "" and f"{path} is what TORCH_LOGS prints; TORCH_TRACE=DIR" in captured.err
    assert cli.main(["report", str(tmp_path / "none")]) == FAILED
    assert "no such file" in capsys.readouterr().err


def test_no_file_is_wrong_usage(tmp_path: Path, trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report"]) == USAGE
    assert "tuimon report run.tuimon" in capsys.readouterr().err
    assert cli.main(["report", str(trace), "-o", str(tmp_path)]) == USAGE


def test_a_report_into_a_file(trace: Path, tmp_path: Path) -> None:
    assert cli.main(["report", str(trace), "-o", str(tmp_path / "r.md"), "--format", "md"]) == DONE
    assert "mm 8192x8192" in (tmp_path / "r.md").read_text()


def test_a_table_of_nsight_compute(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kernels.csv"
    head = "ID,Process ID,Process Name,Host Name,Kernel Name,Context,Stream,Section Name,Metric Name,Metric Unit,Metric Value"
    rows = [("gpu__time_duration.sum", "us", "10"), ("dram__bytes.sum", "Mbyte", "20")]
    rows += [(f"sm__sass_thread_inst_executed_op_f{what}_pred_on.sum", "inst", "1e6") for what in ("add", "mul", "fma")]
    path.write_text("\n".join([head, *(f"0,1,p,h,axpy,1,7,S,{name},{unit},{value}" for name, unit, value in rows)]))
    assert cli.main(["report", str(path), "--format", "json"]) == DONE
    report = json.loads(capsys.readouterr().out)
    (point,) = report["roofline"]["points"]
    assert point["name"].startswith("axpy") and point["intensity"] == pytest.approx(4e6 / 20e6)


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
def test_on_the_screen_the_roofline_is_in_front(trace: Path, size: tuple[int, int]) -> None:
    env = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    terminal = Terminal([sys.executable, "-m", "tuimon", "replay", str(trace)], *size, env)
    try:
        assert terminal.wait_for(lambda: terminal.sees("mm 8192"), 60)
        assert terminal.sees("6 roofline") and terminal.sees("H100") and not terminal.sees("2 boundaries")
        terminal.write("q")
        assert terminal.ended() == 0
    finally:
        terminal.close()


def test_the_panel_in_front_does_not_hang_on_how_fast_a_file_is_read(tmp_path: Path) -> None:
    for at, filler in enumerate((0, 2**20 - 12, 3 * 2**20)):  # within a chunk, over the end of one, in a later one
        path = tmp_path / f"{at}.json"
        path.write_text(json.dumps({"x": "y" * filler, "traceEvents": [{"name": "ProfilerStep#5", "ph": "X"}]}))
        assert replay._tells_steps(path)
    (tmp_path / "none.json").write_text(json.dumps({"traceEvents": [{"name": "ProfilerStep", "ph": "X"}]}))
    assert not replay._tells_steps(tmp_path / "none.json") and not replay._tells_steps(tmp_path / "gone")


def test_on_the_screen_a_file_that_is_none_is_told_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("{}")
    terminal = Terminal([sys.executable, "-m", "tuimon", "replay", str(path)], 80, 24, {**os.environ, "TERM": "xterm-256color"})
    try:
        assert terminal.ended() == FAILED
        terminal.read(0.5)
        assert "is JSON, but no trace" in " ".join(terminal.data.decode().split())
    finally:
        terminal.close()


@real
def test_a_real_trace_has_its_own_devices_ceiling(capsys: pytest.CaptureFixture[str]) -> None:
    assert FILES is not None
    traces = FILES / "TraceLens" / "tests" / "traces"
    for path, name, peak in (("h100", "H100", 989e12), ("mi300", "MI300X", 1307e12)):
        assert cli.main(["report", str(traces / path / "Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"), "--format", "json"]) == DONE
        found = json.loads(capsys.readouterr().out)["roofline"]
        assert any(name in one["name"] and one["peak"] == pytest.approx(peak, rel=0.01) for one in found["ceilings"])
        assert found["points"] and found["flop_known_for"] > 0.5
        assert all(point["bytes_how"] for point in found["points"] if point["intensity"] is not None)
