"""A still of the model: what a frozen screen shows while the collecting goes on."""

from __future__ import annotations

import copy
from collections import Counter, deque

from tuimon.model import Model
from tuimon.model.parts import Lap, Sizes
from tuimon.model.surroundings import image as still_surroundings


def _still_laps(laps: dict[Sizes, deque[Lap]]) -> dict[Sizes, deque[Lap]]:
    """Laps as they are: only the last one of each changes in place."""
    image = {}
    for sizes, held in laps.items():
        image[sizes] = copied = deque(held, held.maxlen)
        if copied:
            copied[-1] = copy.copy(copied[-1])
    return image


def still(model: Model) -> Model:
    """A copy of all that panels read, which later events do not change. Never apply events to it.

    The parts that change in place are copied one by one: a deep copy takes a hundred times as long, and a screen must freeze
    at the key stroke, not a second later.
    """
    image = copy.copy(model)
    image.tap = None
    image.target = copy.copy(model.target)
    image.frames = {}
    for key, frame in model.frames.items():
        image.frames[key] = frame = copy.copy(frame)
        frame.entries = list(frame.entries)
    image.regions = {}
    for key, region in model.regions.items():
        image.regions[key] = region = copy.copy(region)
        region.initial = region.initial.copy()
        region.steady = region.steady.copy()
        region.after_guard_change = region.after_guard_change.copy()
        region.share = copy.copy(region.share)
        region.graphs = list(region.graphs)
        region.laps = _still_laps(region.laps)
        region.device_laps = _still_laps(region.device_laps)
    image.windows = deque((copy.copy(window) for window in model.windows), model.windows.maxlen)
    image.kernels = dict(model.kernels)
    image.boundaries = {}
    for key, boundary in model.boundaries.items():
        image.boundaries[key] = boundary = copy.copy(boundary)
        boundary.host = boundary.host.copy()
        boundary.share = copy.copy(boundary.share)
    image.compilations = list(model.compilations)
    image.recompiles = list(model.recompiles)
    image.running = {}
    for key, running in model.running.items():
        image.running[key] = running = copy.copy(running)
        running.phases = list(running.phases)
    image.steps = copy.copy(model.steps)
    image.steps.durations = model.steps.durations.copy()
    image.steps.recent = deque(model.steps.recent, model.steps.recent.maxlen)
    image.steps.accounts = deque(model.steps.accounts, model.steps.accounts.maxlen)
    image.steps.slow = deque(model.steps.slow, model.steps.slow.maxlen)
    image.steps.evidences = dict(model.steps.evidences)
    image.coverage = copy.copy(model.coverage)
    image.coverage.instruments = dict(model.coverage.instruments)
    image.coverage.not_available = dict(model.coverage.not_available)
    image.surroundings = still_surroundings(model.surroundings)
    image.log = deque(model.log, model.log.maxlen)
    image.versions = Counter(model.versions)
    return image
