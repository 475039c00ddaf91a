"""All of a model as plain values: two models are the same if these are; and what no model may hold."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterator
from typing import Any

from tuimon.model import Model
from tuimon.model.statistics import Durations

PARTS = (
    "target",
    "frames",
    "regions",
    "boundaries",
    "compilations",
    "recompiles",
    "running",
    "steps",
    "warmup",
    "coverage",
    "surroundings",
    "history",
    "graphs",
    "windows",
    "closed_windows",
    "kernels",
    "counters",
    "log",
    "logged",
    "now_ns",
    "overflow",
)


def dump(model: Model) -> dict[str, Any]:
    """Every part of the model."""
    recorded = {name: _plain(getattr(model.recorded, name)) for name in ("absent", "spans", "executed", "gaps")}
    parts = {name: _plain(getattr(model, name)) for name in PARTS}
    return parts | recorded | {"phases": _plain(model.phases.all), "generation": model.generations.current}


def _plain(value: Any) -> Any:
    if isinstance(value, Durations):
        return {"n": value.n, "total_ns": value.total_ns, "window": value.latest(value.n)}
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, deque)):
        return [_plain(one) for one in value]
    return value


def negatives(value: Any, path: str = "") -> Iterator[str]:
    """Where in a dump a number is below zero."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from negatives(one, f"{path}.{key}")
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from negatives(one, f"{path}[{number}]")
    elif isinstance(value, (int, float)) and value < 0:
        yield f"{path} = {value}"
