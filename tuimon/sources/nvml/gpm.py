"""How busy a GPU's units and its memory are, from the driver's own counters: GPM, on Hopper and newer.

A value is a mean over the time between two samples, of the whole device or of one GPU instance (MIG). Two samples are kept in
turn, one for each reading, so that nothing ever sleeps here. Between samples less than a tenth of a second apart the driver's
values mean nothing.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from typing import Any

from tuimon.sources.nvml import words

LEAST_S = 0.1
REST_S = 30.0
"""How long it rests after a failure that may pass (no permission)."""

METRICS = {
    2: "sm_activity",
    3: "sm_occupancy",
    5: "tensor_activity",
    10: "dram_activity",
    11: "fp64_activity",
    12: "fp32_activity",
    13: "fp16_activity",
}
"""nvmlGpmMetricId_t -> the field of `GpuSampled`. All are percentages."""

RATES = {20: "pcie_tx_bytes_s", 21: "pcie_rx_bytes_s", 60: "nvlink_rx_bytes_s", 61: "nvlink_tx_bytes_s"}
"""The same; the driver gives MiB/s. Where it does not, there is another way (`nvml_links`), so that no reason is told here."""

OF_PART = {metric: METRICS[metric] for metric in (2, 5, 10)}
"""What is told of a GPU instance: the fields of `MigSampled`."""

NOT_YET = "not yet: it takes two readings"
NEVER = "not supported on this GPU (Hopper and newer have it)"
_MIB = 1024.0 * 1024.0
_MOST_RATE = 1e14
"""Bytes a second: a hundred times what any link carries."""

ALL = "activity"
"""What is missing where none of them can be read."""

_CALLS = (
    "nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmSampleFree", "nvmlGpmSampleGet", "nvmlGpmMigSampleGet",
    "nvmlGpmMetricsGet", "c_nvmlGpmMetricsGet_t", "NVML_GPM_METRICS_GET_VERSION",
)  # fmt: skip

Missing = list[tuple[str, str]]


class Gpm:
    """Of one GPU, or of one GPU instance of it. `calls` makes the calls into the driver, one at a time."""

    def __init__(self, nvml: Any, calls: Callable[..., Any], instance: int | None = None) -> None:
        self._nvml = nvml
        self._calls = calls
        self._instance = instance
        self._metrics = {**METRICS, **RATES} if instance is None else OF_PART
        self._samples: list[Any] = []
        self._latest: int | None = None
        """Which of the two holds the latest sample; None: neither does."""
        self._taken_s = 0.0
        self._never: str | None = None
        self._rest: tuple[float, str] = (0.0, "")
        self._supported = False
        self._values: dict[str, float] = {}
        self._missing: Missing = []

    def read(self, handle: Any) -> tuple[dict[str, float], Missing]:
        """The values between the last two samples, and the reason for each that is missing; `ALL` for all of them.

        `handle` is the GPU's, also for an instance of it.
        Raises the binding's NVMLError only where the GPU is lost.
        """
        until, why = self._rest
        now = time.monotonic()
        if self._never is not None or now < until:
            return {}, [(ALL, self._never or why)]
        if self._latest is not None and now - self._taken_s < LEAST_S:
            return self._values, self._missing
        try:
            self._take(handle)
        except self._nvml.NVMLError as error:
            self._latest, self._values = None, {}
            if error.value in words.LOST:
                raise
            why = words.no_value(error.value)
            if error.value in words.PERMANENT:
                self._never = why
            else:
                self._rest = (time.monotonic() + REST_S, why)
            self._missing = [(ALL, why)]
        return self._values, self._missing

    def close(self) -> None:
        """Give the samples back."""
        with contextlib.suppress(self._nvml.NVMLError):
            while self._samples:
                self._calls(self._nvml.nvmlGpmSampleFree, self._samples.pop())
        self._latest = None

    def _take(self, handle: Any) -> None:
        if not self._supported:
            lacking = [name for name in _CALLS if not hasattr(self._nvml, name)]
            if lacking:
                self._never = "needs a newer nvidia-ml-py"
            elif not self._calls(self._nvml.nvmlGpmQueryDeviceSupport, handle).isSupportedDevice:
                self._never = NEVER
            if self._never is not None:
                self._missing = [(ALL, self._never)]
                return
            self._supported = True
        while len(self._samples) < 2:
            self._samples.append(self._calls(self._nvml.nvmlGpmSampleAlloc))
        newer = 0 if self._latest is None else 1 - self._latest
        if self._instance is None:
            self._calls(self._nvml.nvmlGpmSampleGet, handle, self._samples[newer])
        else:
            self._calls(self._nvml.nvmlGpmMigSampleGet, handle, self._instance, self._samples[newer])
        older, self._latest, self._taken_s = self._latest, newer, time.monotonic()
        if older is None:
            self._values, self._missing = {}, [(ALL, NOT_YET)]
        else:
            self._values, self._missing = self._between(self._samples[older], self._samples[newer])

    def _between(self, older: Any, newer: Any) -> tuple[dict[str, float], Missing]:
        asked = self._nvml.c_nvmlGpmMetricsGet_t()
        asked.version = self._nvml.NVML_GPM_METRICS_GET_VERSION
        asked.numMetrics = len(self._metrics)
        asked.sample1, asked.sample2 = older, newer
        for place, metric in enumerate(self._metrics):
            asked.metrics[place].metricId = metric
        self._calls(self._nvml.nvmlGpmMetricsGet, asked)
        values: dict[str, float] = {}
        missing: Missing = []
        for place, (metric, field) in enumerate(self._metrics.items()):
            code, value = int(asked.metrics[place].nvmlReturn), float(asked.metrics[place].value)
            if metric in RATES:
                if not code and math.isfinite(value) and 0 <= value * _MIB < _MOST_RATE:
                    values[field] = value * _MIB
            elif code:
                missing.append((field, words.no_value(code)))
            elif not (math.isfinite(value) and 0 <= value < 101):
                missing.append((field, f"the driver gave {value:g}, which cannot be"))
            else:
                values[field] = min(value, 100.0)
        return values, missing
