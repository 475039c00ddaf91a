"""What a kernel tells of a hostile process, and what a driver answers: command lines, environments, maps, states, values."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from tests.fuzz.draws import ODD, Draw
from tests.fuzz.of_files import folder
from tests.fuzz.seen import looked_at
from tuimon import events as ev
from tuimon.attach.find import belongings, command_lines, ranks
from tuimon.marks import Marks
from tuimon.model import Model
from tuimon.sources import carried, groups, kernel, threads, tree
from tuimon.sources.nvml.device import Device
from tuimon.sources.nvml.readers import Calls

STAT = (
    "77 (a) b) (c) S 1 1 1 0 -1 4194560 10 0 2 0 5 6 0 0 20 0 1 0 999 1000 200 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 "
    "3 0 0 5"
)
FILES = {
    "stat": STAT,
    "status": "Name:\ta\nUid:\t0\t0\t0\t0\nNSpid:\t77\t1\nVmSwap:\t 12 kB\n",
    "io": "rchar: 5\nread_bytes: 10\nwrite_bytes: 4\n",
    "cmdline": "python\0-m\0torch.distributed.run\0train.py\0",
    "cgroup": "0::/docker-0123456789ab.scope\n4:cpu,cpuacct:/x\n",
    "schedstat": "5 6 7\n",
    "pressure": "some avg10=0.12 avg60=0.1 avg300=0 total=5\n",
    "maps": "7f00-7f10 r-xp 0 08:01 5  /opt/torch/lib/libtorch_cpu.so\n7f20-7f30 rw-p 0 0:6 7 /dev/nvidia0\n/x/libcuda.so.1\n",
}
WORDS = (
    "RANK", "LOCAL_RANK", "WORLD_SIZE", "NODE_RANK", "CUDA_VISIBLE_DEVICES", "SLURM_PROCID", "SLURM_JOB_ID", "SLURM_JOB_NAME",
    "TORCHELASTIC_RUN_ID", "ENVIRONMENT", "HOSTNAME", "KUBERNETES_SERVICE_HOST",
)  # fmt: skip
PARSERS: tuple[Callable[[str], object], ...] = (
    tree.stat, tree._io, threads.sched, threads.faults, kernel.swapped_bytes, kernel.some_share, kernel.usage, groups._pairs,
    groups._number, lambda text: groups.folders(text, "cpu"), belongings.container_in_cgroup, belongings.torch_library,
    lambda text: belongings.at_least(text, (2, 5)), ranks.number,
)  # fmt: skip


def _kernel_text(draw: Draw) -> str:
    """A file of /proc with something else in it."""
    text = FILES[draw.pick(tuple(FILES))]
    for _ in range(draw.below(4)):
        at = draw.below(len(text) + 1)
        piece = draw.pick((draw.text(), "9" * 12, "-1", "²", "nan", "inf", ")", "(", "\0", "\n", " "))
        text = text[:at] + piece + text[at + draw.below(6) :]
    return text if draw.below(8) else draw.rest().decode("utf-8", "replace")


def proc(data: bytes, thorough: bool) -> None:
    """Files of /proc, parsed, and a folder of such files as the tree of a job's processes."""
    del thorough
    draw = Draw(data)
    text = _kernel_text(draw)
    for parse in PARSERS:
        parse(text)
    words = ("python", "-m", "-c", "torchrun", "-W", "", "train.py", "/bin/sh", draw.text())
    argv = [draw.pick(words) for _ in range(draw.below(7))]
    for judge in (
        command_lines.program, command_lines.launcher, command_lines.is_script_of_a_shell, command_lines.is_compile_worker,
        command_lines.is_tuimon, command_lines.made_by_multiprocessing,
    ):  # fmt: skip
        judge(argv)
    command_lines.is_python(draw.text(), argv, draw.text())
    tree.kind_of(draw.text(), argv, "job", list(argv[: draw.below(3)]))
    told = ("0", "1", "0,1", "²", "9" * 5000, "-1", "", "GPU-1", "\u0661", draw.text())
    environment = {draw.pick(WORDS): draw.pick(told) for _ in range(5)}
    ranks.place(environment)
    opened = [draw.text(), "/dev/nvidia0"] if draw.below(2) else []
    belongings.gpus(opened, text if draw.below(2) else "/libcuda.so.1", environment)
    _tree(draw)


def _tree(draw: Draw) -> None:
    place = folder() / "proc"
    for pid in ("77", "78"):
        for name in ("stat", "io", "cmdline", "cgroup"):
            path = place / pid / name
            path.parent.mkdir(parents=True, exist_ok=True)
            sound = FILES[name].replace("77 ", f"{pid} ")
            path.write_text(_kernel_text(draw) if draw.below(3) == 0 else sound, "utf-8", "replace")
        task = place / pid / "task" / pid
        task.mkdir(parents=True, exist_ok=True)
        (task / "schedstat").write_text(FILES["schedstat"] if draw.below(2) else _kernel_text(draw), "utf-8", "replace")
    seen = tree.Tree(77, place)
    for _ in range(2):
        made = seen.sample()
        if made is not None:
            _kept(made)
    groups.Groups(77, place, place).now()


def _kept(event: ev.Event) -> None:
    """What a source puts, a recording and the line to another host take."""
    model = Model()
    model.apply([carried.checked(event)])


# ------------------------------------------------------------------------------------------------- the driver


class _Error(Exception):
    """As the binding has it."""

    def __init__(self, value: int) -> None:
        self.value = value


class _Struct:
    """A structure whose fields are what the driver put there: of the kinds that they have in C."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("busId", "busIdLegacy", "name"):
            made: Any = self._draw.take(self._draw.below(32))
        elif name == "metrics":
            made = [_Struct(self._draw) for _ in range(64)]
        elif name == "value":
            made = _Both(self._draw)
        elif name == "valueType":
            made = self._draw.below(8)
        elif name == "nvmlReturn":
            made = self._draw.pick((0, 0, 0, 3, 999))
        else:
            made = _number(self._draw)
        setattr(self, name, made)
        return made


class _Both(float):
    """A number with a fraction, and a union of numbers without."""

    def __new__(cls, draw: Draw) -> _Both:
        made = super().__new__(cls, draw.number("<d") if draw.below(4) else draw.below(100))
        made.draw = draw
        return made

    draw: Draw

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.draw.number("<d") if name == "dVal" else _number(self.draw)


class _Binding:
    """NVML by a driver that answers anything of the kind that C has: numbers of 64 bits, bytes, structures, errors."""

    NVMLError = _Error

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name.startswith("c_nvml"):
            return lambda: _Struct(self._draw)
        if not name.startswith("nvml"):
            return self._draw.below(200)

        def call(*_: object, **__: object) -> Any:
            if self._draw.below(6) == 0:
                raise _Error(self._draw.pick((1, 2, 3, 4, 6, 7, 10, 13, 15, 16, 18, 21, 25, 27, 28, 999, 12345)))
            return _told(name, self._draw)

        call.__name__ = name
        return call


def _told(name: str, draw: Draw) -> Any:
    """An answer of the kind that a function of that name gives."""
    if name.endswith(("Name", "UUID", "Version", "SerialNumber")):
        raw = draw.take(draw.below(40))
        return raw.decode("utf-8", "replace") if draw.below(2) else raw
    if name.endswith(("Capability", "MigMode")):
        return [_number(draw), _number(draw)]
    if "Processes" in name or ("Utilization" in name and "Process" in name):
        return [_Struct(draw) for _ in range(draw.below(4))]
    if "FieldValues" in name:
        return [_Struct(draw), _Struct(draw)]
    return _Struct(draw) if name.endswith(("Info", "Rates", "Info_v2")) or "Gpm" in name else _number(draw)


def _number(draw: Draw) -> int:
    return draw.pick((0, 1, 50, 100, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1, draw.number("<Q"), draw.number("<I")))


def driver(data: bytes, thorough: bool) -> None:
    """A GPU, read twice through a driver that answers anything."""
    draw = Draw(data)
    model, device = Model(), None
    with contextlib.suppress(_Error):
        device = Device(_Binding(draw), Calls(), draw.below(4), everybody=bool(draw.below(2)), pcie=bool(draw.below(2)))
    for _ in range(2):
        if device is not None:
            for event in (device.sample(), *device.parts()):
                model.apply([carried.checked(event)])
    looked_at(model, thorough=thorough)


# ------------------------------------------------------------------------------------------------- where files are looked for


def places(data: bytes, thorough: bool) -> None:
    """What is accepted is looked for where the job says that its files are."""
    del thorough
    draw = Draw(data)
    model = Model()
    texts = [one for one in ODD if isinstance(one, str)]
    for line in range(1 + draw.below(5)):
        start = draw.pick(("/", f"{folder()}/", "/proc/self/", "", "/root/", "/dev/fd/", "//"))
        file = start + draw.pick((draw.text(), "x" * 300, "a\0b", "../" * 50 + "a.py", "x/" * 200, draw.pick(texts)[:400]))
        broke = ev.GraphBroke(5, f"{line}/0", 0, "Tensor.item()", "Tensor.item()", "GB1", "f", file, line + 1)
        model.apply(carried.decode(carried.encode(broke)))
    marks = Marks()
    model.apply(marks.news(model))
