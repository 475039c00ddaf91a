"""Waits, lookups and gaps of a trace: in the report, on the page of windows and beside the roofline."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.test_panels import scene
from tests.sources.test_kineto import kernel, launch, op, read
from tests.sources.test_kineto_steps import BROKEN, folded
from tuimon.app.details import window
from tuimon.app.panels.roofline import spans_words
from tuimon.model import Model
from tuimon.report import build
from tuimon.report.spans import lines
from tuimon.sources.files import no_progress, open_any

WAIT = op("cudaStreamSynchronize", 225, 5, cat="cuda_runtime", correlation=90)
TRACE = [*BROKEN, launch(130, 1), kernel("a", 150, 50, 1), launch(320, 4), kernel("c", 330, 10, 4), WAIT]


def test_a_report_has_them_with_the_hosts_and_the_devices_time_apart(tmp_path: Path) -> None:
    found = build(folded(tmp_path, *TRACE))["spans"]
    assert found["window"] is None and found["lookups"][0] == {"compile_id": "0/0", "n": 1, "total": pytest.approx(2e-6)}
    (gap,) = found["gaps"]
    assert (gap["from"], gap["to"], gap["n"], gap["syncs"]) == ("0/0", "1/0", 1, 1)
    assert (gap["host"], gap["device"]) == (pytest.approx(100e-6), pytest.approx(130e-6))
    assert {(one["name"], one["n"]) for one in found["syncs"]} == {("aten::item", 1), ("cudaStreamSynchronize", 1)}
    told = "\n".join(lines(found))
    assert "gap [0/0] to [1/0]: once, host 100 us each, the device without a kernel 130 us, a wait for the device in 1" in told
    assert "aten::item: took a value once" in told and "cudaStreamSynchronize: waited for the device once" in told


def test_without_kernels_the_devices_part_is_null_with_its_reason(tmp_path: Path) -> None:
    report = build(folded(tmp_path, *BROKEN))
    assert report["spans"]["gaps"][0]["device"] is None
    assert "spans.gaps.device" in [one["what"] for one in report["coverage"]["not_available"]]
    assert "the device's not known" in "\n".join(lines(report["spans"]))


def test_without_a_trace_there_is_none_and_the_reason_is_told() -> None:
    report = build(Model())
    assert report["spans"] is None and lines(None) == []
    assert "spans" in [one["what"] for one in report["coverage"]["not_available"]]


def test_the_screen_tells_them_too(tmp_path: Path) -> None:
    read(tmp_path, *TRACE)  # writes the file
    (opened,), _ = open_any(tmp_path / "trace.json")
    shown = scene([event for batch in opened.events(no_progress) for event in batch])
    words = spans_words(shown)
    assert "1 wait for the device (5.00 us in all)" in words and "1 gap between regions (host 100 us in all)" in words
    page = "\n".join("".join(text for text, _ in line) for line in window.lines(shown, 5, 100))
    assert "This is a file" in page and "cache lookups before region [0/0]: 1, 2.00 us each" in page and "gap [0/0]" in page
    assert spans_words(scene([])) == ""
