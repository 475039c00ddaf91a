"""Reading one GPU through NVML: every value for itself, so that one that fails does not take the others with it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from tuimon.events import GpuProcess, GpuSampled, MigSampled
from tuimon.sources.nvml import links, words
from tuimon.sources.nvml.gpm import ALL, NEVER, NOT_YET, RATES, Gpm
from tuimon.sources.nvml.mig import Parts
from tuimon.sources.nvml.processes import UNSEEN, Job, Use, held, listed
from tuimon.sources.nvml.readers import SLOW_S, Absent, Calls, Reader, memory, of_device, text

REST_S = 30.0
"""How long a value rests after a failure that may pass (no permission, a timeout)."""

_USE = "_use"
_LIST = "processes"


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a reader gave last: values, or why it gave none, and until when that stands."""

    until: float
    values: dict[str, Any]
    missing: dict[str, str]


class Device:
    """One GPU: its handle, what is known to be unsupported on it, and whether it is lost.

    `job` is the process whose part is wanted; `everybody` asks for `GpuSampled.held`. It is opened at its first reading. One
    thread uses it; others may look at `lost` and `handle`.
    """

    def __init__(
        self, nvml: Any, calls: Calls, index: int, job: Job | None = None, *, everybody: bool = False, pcie: bool = False
    ) -> None:
        self._nvml = nvml
        self._calls = calls
        self.index = index
        self._job = job
        self._everybody = everybody
        self._name: str | None = None
        self._virtual: Literal["", "vgpu", "passthrough", "wsl"] | None = None
        self._mig: bool | None = None
        self._lost: str | None = None
        self.handle: Any = None
        """None while it could not be had, and again once the GPU is lost."""
        self._unopened: tuple[float, str] = (0.0, "")
        self._readers = (
            *of_device(),
            Reader((_LIST,), lambda nvml, calls, handle: (listed(nvml, calls, handle),), every_s=SLOW_S),
            links.pcie(pcie),
            links.nvlink(),
            Reader((_USE,), Use().read, every_s=SLOW_S),
        )
        self._answers: dict[Reader, _Answer] = {}
        self._gpm = Gpm(nvml, calls)
        self._parts = Parts(nvml, calls, index, job, everybody=everybody)
        self._of_parts: list[MigSampled] = []

    @property
    def lost(self) -> str | None:
        """Why no more is asked of this GPU, or None while it answers."""
        return self._lost

    def sample(self) -> GpuSampled:
        """Read every value. Never raises for the driver's sake: what fails is None, with its reason in `missing`."""
        before = self._calls.spent_s
        values: dict[str, Any] = {}
        missing: dict[str, str] = {}
        self._of_parts = []
        with self._calls.reading():
            if self.handle is None and self._lost is None and time.monotonic() >= self._unopened[0]:
                self._open()
            if self.handle is not None:
                self._read(values, missing)
                self._read_parts(missing)
        if self._lost is not None:
            self.handle = None  # clients that went on using one have crashed inside the driver's library
            known = ("uuid", "minor", "pci_bus_id")
            once = {field: value for answer in self._answers.values() for field, value in answer.values.items()}
            values = {field: once[field] for field in known if field in once}
            missing = {"gpu": self._lost}
            self._of_parts = self._parts.forget()
        elif self.handle is None:
            missing = {"gpu": self._unopened[1]}
        else:
            self._of_processes(values, missing)
        return GpuSampled(
            t_ns=time.monotonic_ns(),
            index=self.index,
            name=self._name or f"GPU {self.index}",
            utilization=values.pop("utilization", None),
            memory_used_bytes=values.pop("memory_used_bytes", None),
            memory_total_bytes=values.pop("memory_total_bytes", None),
            missing=tuple(missing.items()),
            virtual=self._virtual or "",
            lost=self._lost,
            took_s=self._calls.spent_s - before,
            **values,
        )

    def parts(self) -> list[MigSampled]:
        """The readings of its MIG devices, of the same round; each that has been removed is told once."""
        return self._of_parts

    def close(self) -> None:
        """Give back what the driver keeps for it."""
        self._gpm.close()
        self._parts.close()

    def _open(self) -> None:
        try:
            self.handle = self._calls(self._nvml.nvmlDeviceGetHandleByIndex, self.index)
        except self._nvml.NVMLError as error:
            why = words.no_value(error.value)
            if error.value in words.LOST:
                self._lost = why
            else:
                self._unopened = (time.monotonic() + REST_S, why)
        except Exception as error:  # noqa: BLE001 - the binding has exceptions outside its family
            self._unopened = (time.monotonic() + REST_S, _broke(error))

    def _read(self, values: dict[str, Any], missing: dict[str, str]) -> None:
        self._introduce()
        activity: dict[str, float] = {}
        reasons: list[tuple[str, str]] = []
        try:
            if self._lost is None:
                activity, reasons = self._gpm.read(self.handle)
        except self._nvml.NVMLError as error:
            self._lost = words.no_value(error.value)
        except Exception as error:  # noqa: BLE001 - as above
            reasons = [(ALL, _broke(error))]
        strange = 0
        for reader in self._readers:
            if self._lost is not None:
                return
            if activity.keys() >= set(reader.fields):
                continue  # GPM tells it at no cost
            answer = self._answers.get(reader)
            if answer is None or time.monotonic() >= answer.until:
                answer, code = self._ask(reader)
                self._answers[reader] = answer
                strange += code == words.UNKNOWN
                if strange == 2 and self._lost is None:
                    self._probe()
            values.update(answer.values)
            missing.update(answer.missing)
            if "mig_mode" in answer.values and answer.values["mig_mode"] != self._mig:
                if self._mig is not None:
                    self._anew()
                self._mig = answer.values["mig_mode"]
        for field in activity:
            missing.pop(field, None)
        values.update(activity)
        missing.update(reasons)
        if missing.get(ALL) == words.no_value(words.NOT_SUPPORTED):
            missing[ALL] = words.unsupported(ALL, self._virtual or "", self._mig) or missing[ALL]
        if missing.get(ALL) == NEVER and self._virtual == "vgpu":  # that the GPU is too old is not known of a part of one
            missing[ALL] = words.VGPU
        if missing.get(ALL) == NOT_YET:
            missing.update({field: NOT_YET for field in RATES.values() if field not in values})

    def _probe(self) -> None:
        """Several values have ended in an unknown error. Each GPU tells its memory, or why not: one that has the same answer to
        that is as gone as one that says so."""
        try:
            memory(self._nvml, self._calls, self.handle)
        except self._nvml.NVMLError as error:
            if error.value == words.UNKNOWN or error.value in words.LOST:
                self._lost = words.no_value(error.value)
        except Absent:
            pass

    def _anew(self) -> None:
        """MIG was switched on or off: what is supported is another matter now."""
        self._answers.clear()
        self._gpm.close()
        self._gpm = Gpm(self._nvml, self._calls)

    def _read_parts(self, missing: dict[str, str]) -> None:
        if self._lost is not None:
            return
        if not self._mig:
            self._of_parts = self._parts.end()
            return
        try:
            self._of_parts = self._parts.read(self.handle)
        except self._nvml.NVMLError as error:
            self._lost = words.no_value(error.value)
        except Exception as error:  # noqa: BLE001 - the binding has exceptions outside its family
            missing["mig"] = _broke(error)
        else:
            if self._parts.why is not None:
                missing["mig"] = self._parts.why

    def _ask(self, reader: Reader) -> tuple[_Answer, int]:
        """Its answer, and the code with which the driver refused it."""
        code = 0
        now = time.monotonic()
        try:
            read = dict(zip(reader.fields, reader.read(self._nvml, self._calls, self.handle), strict=True))
        except Absent as absent:
            return _Answer(now + reader.every_s, {}, dict.fromkeys(reader.fields, str(absent))), code
        except self._nvml.NVMLError as error:
            code = int(error.value)
            why = words.no_value(code)
            if code in words.LOST:
                self._lost = why
            elif code in words.PERMANENT:
                why = words.unsupported(reader.fields[0], self._virtual or "", self._mig) or why
            until = float("inf") if code in words.PERMANENT else time.monotonic() + REST_S
            return _Answer(until, {}, dict.fromkeys(reader.fields, why)), code
        except Exception as error:  # noqa: BLE001 - the binding has exceptions outside its family; only this value is without
            why = _broke(error)
            return _Answer(now + REST_S, {}, dict.fromkeys(reader.fields, why)), code
        values = {field: value for field, value in read.items() if not isinstance(value, Absent)}
        missing = {field: str(value) for field, value in read.items() if isinstance(value, Absent)}
        return _Answer(float("inf") if reader.once else now + reader.every_s, values, missing), code

    def _of_processes(self, values: dict[str, Any], missing: dict[str, str]) -> None:
        """Put the list of processes, their use and the target's part together."""
        use: dict[int, float] = values.pop(_USE, {})
        why_no_use = missing.pop(_USE, None)
        if _LIST not in values:
            wanted = ("process_memory_bytes", "job_sm_percent") if self._job is not None else ()
            for field in (*wanted, *(("held",) if self._everybody else ())):
                missing[field] = missing[_LIST]
            if self._job is not None:
                values["job_here"] = self._job.here(values.get("minor"))
                if values["job_here"] is None:
                    missing["job_here"] = UNSEEN
            return
        processes: tuple[GpuProcess, ...] = with_use(values[_LIST], use)
        values[_LIST] = processes
        if self._everybody:
            try:
                values["held"] = held(processes)
            except Absent as absent:
                missing["held"] = str(absent)
        if self._job is not None:
            of_job, absent_of_it = self._job.on(values.get("minor"), processes)
            values.update(of_job)
            missing.update(absent_of_it)
        if why_no_use is not None:
            if processes:
                missing["processes_sm"] = why_no_use
            if self._job is not None and "job_sm_percent" not in values:
                missing["job_sm_percent"] = why_no_use

    def _introduce(self) -> None:
        """Ask for its name and for whether it is a virtual one, until that is known."""
        try:
            if self._name is None:
                self._name = text(self._calls(self._nvml.nvmlDeviceGetName, self.handle))
        except self._nvml.NVMLError as error:
            if error.value in words.LOST:
                self._lost = words.no_value(error.value)
                return
        except Exception:  # noqa: BLE001 - a name of other bytes than text: there is the number
            self._name = f"GPU {self.index}"
        try:
            if self._virtual is None:
                mode = int(self._calls(self._nvml.nvmlDeviceGetVirtualizationMode, self.handle))
                self._virtual = "wsl" if words.is_wsl() else "vgpu" if mode == 2 else "passthrough" if mode == 1 else ""
        except self._nvml.NVMLError as error:
            if error.value in words.LOST:
                self._lost = words.no_value(error.value)
            elif error.value in words.PERMANENT:
                self._virtual = "wsl" if words.is_wsl() else ""
        except Exception:  # noqa: BLE001 - an older binding does not know the call
            self._virtual = "wsl" if words.is_wsl() else ""


def _broke(error: Exception) -> str:
    return f"the Python package nvidia-ml-py failed: {type(error).__name__}"


def with_use(processes: Iterable[GpuProcess], use: dict[int, float]) -> tuple[GpuProcess, ...]:
    """The processes, each with its share of the driver's last period where that is known."""
    return tuple(process._replace(sm_percent=use.get(process.pid)) for process in processes)
