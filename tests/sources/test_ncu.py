"""Tables of Nsight Compute, of several versions and forms; and tables that are none of its."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sources.reading import events_of
from tests.sources.test_trace_file import told
from tuimon import events as ev
from tuimon.sources.trace_file import Unreadable

OLD = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Kernel Time","Context","Stream","Section Name","Metric Name",'
)
NEW = '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",'
LAST = '"Metric Unit","Metric Value"'
RULES = ',"Rule Name","Rule Type","Rule Description","Estimated Speedup Type","Estimated Speedup"'
ADD, MUL, FMA = (f"smsp__sass_thread_inst_executed_op_f{what}_pred_on.sum" for what in ("add", "mul", "fma"))


def old(number: int, kernel: str, metric: str, unit: str, value: str) -> str:
    return f'"{number}","77","python3","host","{kernel}","2026-01-01 00:00:00","1","7","","{metric}","{unit}","{value}"'


def new(number: int, kernel: str, metric: str, unit: str, value: str, more: str = "") -> str:
    launch = f'"{number}","77","p","h","{kernel}","1","7","(256, 1, 1)","(1, 1, 1)","0","9.0","S"'
    return f'{launch},"{metric}","{unit}","{value}"{more}'


def counters(tmp_path: Path, *lines: str) -> ev.CountersSeen:
    path = tmp_path / "kernels.csv"
    path.write_text("\n".join(lines) + "\n")
    (found,) = [one for one in events_of(path) if isinstance(one, ev.CountersSeen)]
    return found


def refused(tmp_path: Path, *lines: str) -> str:
    with pytest.raises(Unreadable) as caught:
        counters(tmp_path, *lines)
    return str(caught.value)


def test_a_line_for_each_metric(tmp_path: Path) -> None:
    lines = ["==PROF== Connected to process 77 (/usr/bin/python3)", OLD + LAST]
    for number in (0, 1):
        lines += [
            old(number, "axpy(float*, int)", "gpu__time_duration.sum", "usecond", "1,250.50"),
            old(number, "axpy(float*, int)", "dram__bytes.sum", "Mbyte", "3.00"),
            old(number, "axpy(float*, int)", "lts__t_bytes.sum", "byte", "4,000,000"),
            old(number, "axpy(float*, int)", ADD, "inst", "10"),
            old(number, "axpy(float*, int)", MUL, "inst", "20"),
            old(number, "axpy(float*, int)", FMA, "inst", "1,000"),
        ]
    lines += ["==PROF== Disconnected from process 77"]
    (row,) = counters(tmp_path, *lines).rows
    assert row == ("axpy(float*, int)", 2, 2_501_000, 4060.0, 6e6, 8e6, "vector", "f32")


def test_the_columns_of_later_versions_and_rules(tmp_path: Path) -> None:
    tensor = "sm__ops_path_tensor_src_bf16_dst_fp32.sum"
    lines = [
        NEW + '"Section Name","Metric Name",' + LAST + RULES,
        new(0, "gemm", "gpu__time_duration.sum", "ns", "1,000", ',"","","","",""'),
        new(0, "gemm", tensor, "", "5,000,000", ',"","","","",""'),
        new(0, "gemm", tensor.replace(".sum", "_sparsity_off.sum"), "", "5,000,000", ',"","","","",""'),
        new(0, "gemm", "dram__bytes_read.sum", "Kbyte", "2", ',"","","","",""'),
        new(0, "gemm", "dram__bytes_write.sum", "byte", "500", ',"","","","",""'),
        new(0, "gemm", "", "", "", ',"SOLBottleneck","INF","words, with a comma","",""'),
    ]
    assert counters(tmp_path, *lines).rows == (("gemm", 1, 1000, 5e6, 2500.0, None, "matrix", "bf16"),)


def test_details_call_the_time_duration(tmp_path: Path) -> None:
    rows = counters(tmp_path, NEW + '"Section Name","Metric Name",' + LAST, new(0, "k", "Duration", "us", "12.5")).rows
    assert rows == (("k", 1, 12_500, None, None, None, "", ""),)


def test_a_line_for_each_kernel(tmp_path: Path) -> None:
    names = [
        *NEW.strip(",").split(","),
        '"device__attribute_display_name"',
        '"gpu__time_duration.sum"',
        '"dram__bytes.sum"',
        f'"{FMA}"',
    ]
    units = [""] * 12 + ["ns", "Gbyte", "inst"]
    values = ['"0"', '"1"', '"p"', '"h"', '"k<1, 2>(int)"', '"1"', '"7"', '"(1, 1, 1)"', '"(1, 1, 1)"', '"0"', '"9.0"',
              '"NVIDIA H100 80GB HBM3"', '"2,000"', '"0.5"', '"7"']  # fmt: skip
    seen = counters(tmp_path, ",".join(names), ",".join(units), ",".join(values))
    assert seen.rows == (("k<1, 2>(int)", 1, 2000, None, 5e8, None, "", ""),)  # adds and products were not asked for
    assert seen.device == "NVIDIA H100 80GB HBM3"
    target = events_of(tmp_path / "kernels.csv")[0]
    assert isinstance(target, ev.TargetSeen) and target.devices == ("NVIDIA H100 80GB HBM3",)


def test_not_counted_is_unknown_and_not_zero(tmp_path: Path) -> None:
    lines = [OLD + LAST, old(0, "k", "gpu__time_duration.sum", "ns", "5"), old(0, "k", "dram__bytes.sum", "byte", "n/a")]
    assert counters(tmp_path, *lines).rows == (("k", 1, 5, None, None, None, "", ""),)


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ([OLD + LAST], "without a kernel"),
        ([OLD + LAST, old(0, "k", "dram__bytes.sum", "byte", "5")], "without the kernels' times; ask for them: ncu --csv"),
        ([OLD + LAST, old(0, "k", "gpu__time_duration.sum", "parsec", "5")], "without the kernels' times"),
        (['"Time (%)","Total Time (ns)","Instances","Name"', "1,2,3,k"], "Nsight Systems"),
        (['"Type","Time(%)","Time","Calls","Avg"', "1,2,3,4,5"], "nvprof"),
        (["Name,Calls,TotalDurationNs,Percentage", "k,1,2,3"], "the columns Name, Calls, TotalDurationNs, Percentage"),
        ([NEW + '"x"', "0,1,2,3,4,5,6,7,8,9,10,11"], "no line of units"),
        (["a,b,c,d" * 3, '"' * 3], "no kind of file"),
    ],
)
def test_other_tables(lines: list[str], sentence: str, tmp_path: Path) -> None:
    assert sentence in refused(tmp_path, *lines)


CELLS = st.sampled_from(["", "0", "1,2", "k", "gpu__time_duration.sum", "ns", "5", "1e400", "nan", "-1", FMA, '"', "\x1b[31m"])


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([OLD + LAST, NEW + '"Section Name","Metric Name",' + LAST, NEW + '"gpu__time_duration.sum"']),
       st.lists(st.lists(CELLS | st.text(max_size=6), max_size=18), max_size=6))  # fmt: skip
def test_any_cells(header: str, rows: list[list[str]]) -> None:
    lines = [header, *(",".join(f'"{cell}"' if "," in cell else cell for cell in row) for row in rows)]
    told("\n".join(lines).encode("utf-8", "replace"))
