"""The MIG devices of a GPU: what each of its parts has, as far as the driver tells it of a part."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

from tuimon.events import GpuProcess, MigSampled
from tuimon.sources.nvml import words
from tuimon.sources.nvml.gpm import ALL, OF_PART, Gpm
from tuimon.sources.nvml.processes import Job, held, listed
from tuimon.sources.nvml.readers import RARE_S, SLOW_S, Absent, Calls, memory, number, text

REST_S = 30.0
GONE = "part"
"""What is missing of a part that is no longer there: it is told once."""

_PROFILE = re.compile(r"\bMIG (\S+)$")
_STALE = frozenset({2, 6})
"""What a handle answers whose part has been removed: an invalid request, not found."""
_MEMORY = ("memory_used_bytes", "memory_total_bytes")

Activity = tuple[dict[str, float], list[tuple[str, str]]]
"""What GPM gives of a GPU instance: values, and reasons."""


class _Stale(Exception):
    """The part is no longer there."""


class _Part:
    """One MIG device: its handle and what cannot change of it."""

    def __init__(self, number_: int, handle: Any) -> None:
        self.number = number_
        self.handle = handle
        self.fixed: dict[str, Any] = {}
        self.why: dict[str, str] = {}
        """Of what is not known."""
        self.resting: dict[str, tuple[float, str]] = {}
        """What is not asked for before that time, and why."""
        self.answered: set[str] = set()
        """What it has told at least once."""
        self.processes: tuple[GpuProcess, ...] = ()
        self.processes_until = 0.0

    @property
    def instance(self) -> int | None:
        found: int | None = self.fixed.get("gpu_instance")
        return found


class Parts:
    """Those of one GPU in MIG mode. `job` is the process whose part is wanted; `everybody` asks for `MigSampled.held`."""

    def __init__(self, nvml: Any, calls: Calls, gpu: int, job: Job | None = None, *, everybody: bool = False) -> None:
        self._nvml = nvml
        self._calls = calls
        self._gpu = gpu
        self._job = job
        self._everybody = everybody
        self._parts: dict[int, _Part] = {}
        self._gpms: dict[int, Gpm] = {}
        """By GPU instance: its compute instances share the values."""
        self._look_again = 0.0
        self.why: str | None = None
        """Why there is no part to read; None where there is one, or nobody has looked."""

    def read(self, handle: Any) -> list[MigSampled]:
        """One reading of each part; and, once, of each that has been removed, with the reason under `GONE`. `handle` is the
        GPU's. Raises the binding's NVMLError only where the GPU is lost."""
        gone: list[MigSampled] = []
        if time.monotonic() >= self._look_again:
            gone = self._list(handle)
        found: list[MigSampled] = []
        activity: dict[int, Activity] = {}
        for part in list(self._parts.values()):
            try:
                found.append(self._sample(handle, part, activity))
            except _Stale:
                gone.append(self._remove(part.number))
                self._look_again = 0.0  # others may have taken its place
        return found + gone

    def end(self) -> list[MigSampled]:
        """The GPU is in MIG mode no more: give back what is held, and tell of each part that it is gone."""
        gone = [self._remove(number_) for number_ in list(self._parts)]
        self._look_again = 0.0
        return gone

    def close(self) -> None:
        """Give back what the driver keeps for them."""
        for gpm in self._gpms.values():
            gpm.close()
        self._gpms.clear()

    def forget(self) -> list[MigSampled]:
        """The GPU is lost: nothing is given back, as nothing of it may be touched any more."""
        self._gpms.clear()
        return self.end()

    def _list(self, handle: Any) -> list[MigSampled]:
        """Find the parts that there are; those that are there no more."""
        self._look_again = time.monotonic() + RARE_S
        try:
            most = number(self._calls(self._nvml.nvmlDeviceGetMaxMigDeviceCount, handle), most=64)
        except (self._nvml.NVMLError, Absent) as error:
            self._lost(error)
            self.why = str(error) if isinstance(error, Absent) else words.no_value(error.value)
            return []
        gone = []
        for number_ in range(most):
            try:
                there = self._calls(self._nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, number_)
            except self._nvml.NVMLError as error:
                self._lost(error)
                if number_ in self._parts and error.value in _STALE:  # a hole: the numbers of the others stay
                    gone.append(self._remove(number_))
                continue
            part = _Part(number_, there)
            self._introduce(part)
            before = self._parts.get(number_)
            if before is not None and before.fixed == part.fixed:
                before.handle = there
                continue
            if before is not None:
                gone.append(self._remove(number_))
            self._parts[number_] = part
        self.why = None if self._parts else "in MIG mode, but with no part that this user or container may see"
        return gone

    def _remove(self, number_: int) -> MigSampled:
        part = self._parts.pop(number_)
        instance = part.instance
        if instance is not None and all(other.instance != instance for other in self._parts.values()):
            gpm = self._gpms.pop(instance, None)
            if gpm is not None:
                gpm.close()
        return self._event(part, {}, {GONE: "this part has been removed"})

    def _introduce(self, part: _Part) -> None:
        nvml = self._nvml
        once: dict[str, Callable[[], Any]] = {
            "name": lambda: text(self._calls(nvml.nvmlDeviceGetName, part.handle)),
            "uuid": lambda: text(self._calls(nvml.nvmlDeviceGetUUID, part.handle)),
            "gpu_instance": lambda: number(self._calls(nvml.nvmlDeviceGetGpuInstanceId, part.handle)),
            "compute_instance": lambda: number(self._calls(nvml.nvmlDeviceGetComputeInstanceId, part.handle)),
            "sms": lambda: number(self._calls(nvml.nvmlDeviceGetAttributes_v2, part.handle).multiprocessorCount),
        }
        for field, ask in once.items():
            try:
                part.fixed[field] = ask()
            except Absent as absent:
                part.why[field] = str(absent)
            except nvml.NVMLError as error:
                self._lost(error)
                part.why[field] = words.no_value(error.value)

    def _sample(self, handle: Any, part: _Part, activity: dict[int, Activity]) -> MigSampled:
        values: dict[str, Any] = {}
        missing: dict[str, str] = {}
        used = self._asked(part, "memory", lambda: memory(self._nvml, self._calls, part.handle)[:2])
        if isinstance(used, str):
            missing.update(dict.fromkeys(_MEMORY, used))
        else:
            values.update(zip(_MEMORY, used, strict=True))
        self._of_processes(part, values, missing)
        instance = part.instance
        if instance is None:
            missing[ALL] = "its GPU instance is not known"
        else:
            if instance not in activity:
                gpm = self._gpms.setdefault(instance, Gpm(self._nvml, self._calls, instance))
                activity[instance] = gpm.read(handle)
            values.update(activity[instance][0])
            missing.update(activity[instance][1])
        return self._event(part, values, missing)

    def _of_processes(self, part: _Part, values: dict[str, Any], missing: dict[str, str]) -> None:
        wanted = (*(("process_memory_bytes",) if self._job is not None else ()), *(("held",) if self._everybody else ()))
        if not wanted:
            return
        if time.monotonic() >= part.processes_until:
            found = self._asked(part, "processes", lambda: listed(self._nvml, self._calls, part.handle))
            if isinstance(found, str):
                missing.update(dict.fromkeys(wanted, found))
                return
            part.processes, part.processes_until = found, time.monotonic() + SLOW_S
        if self._everybody:
            try:
                values["held"] = held(part.processes)
            except Absent as absent:
                missing["held"] = str(absent)
        if self._job is not None:
            amount = self._job.of_part(part.processes)
            if isinstance(amount, str):
                missing["process_memory_bytes"] = amount
            else:
                values["process_memory_bytes"] = amount

    def _asked(self, part: _Part, what: str, ask: Callable[[], Any]) -> Any:
        """The answer, or why there is none. Raises _Stale."""
        until, why = part.resting.get(what, (0.0, ""))
        if time.monotonic() < until:
            return why
        try:
            answer = ask()
        except Absent as absent:
            return str(absent)
        except self._nvml.NVMLError as error:
            self._lost(error)
            if error.value in _STALE and what in part.answered:  # else it is only this that the driver refuses
                raise _Stale from None
            why = words.no_value(error.value)
            until = float("inf") if error.value in words.PERMANENT else time.monotonic() + REST_S
            part.resting[what] = (until, why)
            return why
        part.answered.add(what)
        return answer

    def _lost(self, error: Exception) -> None:
        """Raise the error, if the GPU is lost."""
        if getattr(error, "value", None) in words.LOST:
            raise error

    def _event(self, part: _Part, values: dict[str, Any], missing: dict[str, str]) -> MigSampled:
        name = part.fixed.get("name", "")
        profile = _PROFILE.search(name)
        missing = missing if GONE in missing else {**part.why, **missing}
        return MigSampled(
            t_ns=time.monotonic_ns(),
            gpu=self._gpu,
            number=part.number,
            name=name,
            profile=profile[1] if profile is not None else "",
            uuid=part.fixed.get("uuid"),
            gpu_instance=part.fixed.get("gpu_instance"),
            compute_instance=part.fixed.get("compute_instance"),
            memory_used_bytes=values.pop("memory_used_bytes", None),
            memory_total_bytes=values.pop("memory_total_bytes", None),
            sms=part.fixed.get("sms"),
            missing=tuple(missing.items()),
            **{field: value for field, value in values.items() if field in _TOLD},
        )


_TOLD = frozenset({"process_memory_bytes", "held", *OF_PART.values()})
