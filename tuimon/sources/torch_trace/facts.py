"""What a log tells of the job itself: versions, devices, settings. Most of it stands in the metrics of each compilation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tuimon import events as ev
from tuimon.sources.torch_trace.payloads import parsed

_DYNAMO: tuple[tuple[str, object], ...] = (
    ("suppress_errors", False),
    ("error_on_recompile", False),
    ("fail_on_recompile_limit_hit", False),
    ("automatic_dynamic_shapes", True),
    ("assume_static_by_default", True),
    ("capture_scalar_outputs", False),
    ("capture_dynamic_output_shape_ops", False),
    ("compiled_autograd", False),
)
_INDUCTOR: tuple[tuple[str, object], ...] = (("fx_graph_cache", True), ("force_disable_caches", False))
"""Settings that change what the numbers mean, with what they are by default: the hook tells the same of a running job."""
_LIMITS = ("recompile_limit", "cache_size_limit")
_DEVICE = re.compile(r"system_info\[device\]: \{'name': '([^'\\\n]{1,100})'\}")
_VERSION = re.compile(r"\d{1,3}\.\d{1,3}\.\d{1,3}\S{0,20}")


@dataclass
class Facts:
    """What is known so far. `changed` is set where something new came, and taken back by who has told it."""

    pid: int | None = None
    rank: int | None = None
    world_size: int | None = None
    python: str | None = None
    torch: str | None = None
    limit: int | None = None
    device: str | None = None
    on_cpu: bool = False
    options: tuple[tuple[str, str], ...] = ()
    changed: bool = False

    def target(self, at: int, command: str, wall_s: float) -> ev.TargetSeen:
        """The event."""
        self.changed = False
        return ev.TargetSeen(
            t_ns=at,
            pid=self.pid,
            command=command,
            python=self.python,
            torch=self.torch,
            how="file",
            wall_s=wall_s,
            devices=(self.device,) if self.device else ("cpu",) if self.on_cpu else (),
            rank=self.rank,
            world_size=self.world_size,
            recompile_limit=self.limit,
            options=self.options,
        )

    def metrics(self, metrics: dict[str, Any]) -> None:
        """Take in what the metrics of a compilation say."""
        python = _VERSION.match(str(metrics.get("python_version") or ""))
        if python is not None:
            self._note("python", python[0])
        if isinstance(metrics.get("pytorch_version"), str):
            self._note("torch", metrics["pytorch_version"][:60])
        dynamo, inductor = (_settings(metrics.get(name)) for name in ("dynamo_config", "inductor_config"))
        limit = next((dynamo[name] for name in _LIMITS if type(dynamo.get(name)) is int), None)
        if limit is not None and 0 < limit < 2**31:
            self._note("limit", limit)
        if not dynamo and metrics.get("config_suppress_errors") is True:
            dynamo = {"suppress_errors": True}
        told = [("dynamo", "disabled by torch._dynamo.config.disable")] if dynamo.get("disable") is True else []
        for table, settings in ((_DYNAMO, dynamo), (_INDUCTOR, inductor)):
            for name, default in table:
                value = settings.get(name)
                if type(value) in (bool, int, str) and value != default:
                    told.append((name, str(value)[:100]))
        threads = inductor.get("compile_threads")
        if type(threads) is int:
            told.append(("compile_threads", str(threads)))
        if told or dynamo or inductor:
            self._note("options", tuple(told))

    def version(self, payload: str | None) -> None:
        """Take in the record with which newer versions of torch begin a log."""
        told = parsed(payload)
        version = told.get("pytorch_version") if isinstance(told, dict) else None
        if isinstance(version, str):
            self._note("torch", version[:60])

    def cache(self, payload: str | None) -> None:
        """Take in the key of a cache lookup, which has the device's name in it."""
        found = _DEVICE.search(payload or "") if self.device is None else None
        if found is not None:
            self._note("device", found[1])

    def tensor(self, told: Any) -> None:
        """Take in the description of a tensor."""
        if self.on_cpu or self.device is not None or not isinstance(told, dict):
            return
        if str(told.get("device")).startswith("device(type='cpu'"):
            self._note("on_cpu", True)

    def _note(self, name: str, value: object) -> None:
        if getattr(self, name) != value:
            setattr(self, name, value)
            self.changed = True


def _settings(text: Any) -> dict[str, Any]:
    found = parsed(text) if isinstance(text, str) else text
    return found if isinstance(found, dict) else {}
