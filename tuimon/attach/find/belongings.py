"""What a process has about it, read without stopping it: the GPUs it uses, its container, its torch."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from tuimon import plain
from tuimon.attach import procfs
from tuimon.attach.find.ranks import number

_DEVICE = re.compile(r"/dev/nvidia(\d+)")
_CGROUP_NAMES = (
    re.compile(r"(?:docker|libpod|crio|cri-containerd|podman|nerdctl|containerd)-([0-9a-f]{12,64})(?:\.scope)?"),
    re.compile(r"/(?:docker|podman|containerd|kubepods[^/]*)/(?:.*/)?([0-9a-f]{32,64})(?:/|$)"),
    re.compile(r"/lxc(?:\.payload)?[./]([^/]+)"),
    re.compile(r"/machine-([^/]+)\.scope"),
    re.compile(r"/kubepods.*/([0-9a-f]{64})(?:/|$)"),
)
SHORT = 12
"""Characters of a container's id, as its tools show it."""


def gpus(fds: Iterable[str] | None, mapped: str | None, environment: Mapping[str, str]) -> list[int] | None:
    """The NVIDIA devices that a process uses, by number; [] for none, None where it may not be seen.

    CUDA opens every device that it may use, and maps the memory of those that it does use; the latter are given where there are
    any. A process with libcuda whose descriptors tell nothing is taken at the word of its CUDA_VISIBLE_DEVICES.
    """
    if fds is None or mapped is None:
        return None
    used = {int(number) for number in _DEVICE.findall(mapped)}
    if not used:
        used = {int(found[1]) for found in map(_DEVICE.fullmatch, fds) if found}
    if used:
        return sorted(used)
    if "/libcuda.so" not in mapped:
        return []
    words = [word.strip() for word in environment.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    numbers = [number(word) for word in words]  # whatever the job has written there
    return None if None in numbers else sorted(one for one in numbers if one is not None)


def container(pid: int, facts: Mapping[str, str], environment: Mapping[str, str]) -> str | None:
    """The container in which a process is and we are not: its name or short id, "yes" where none is to be found, None for none.

    `facts` is /proc/PID/status.
    """
    name = _container_of(pid)
    own = _container_of(os.getpid())
    apart = _other_namespace(pid, facts)
    if (name is None or name == own) and not apart:
        return None
    pod = environment.get("HOSTNAME") if "KUBERNETES_SERVICE_HOST" in environment else None
    image = environment.get("APPTAINER_NAME") or environment.get("SINGULARITY_NAME")
    return pod or image or (name if name != own else None) or "yes"


def _container_of(pid: int) -> str | None:
    try:
        with open(f"/proc/{pid}/cgroup", encoding="utf-8", errors="replace") as file:
            return container_in_cgroup(file.read())
    except OSError:
        return None


def container_in_cgroup(text: str) -> str | None:
    """The container's name or short id in the text of a /proc/PID/cgroup."""
    for line in text.splitlines():
        path = line.partition(":")[2].partition(":")[2]
        for known in _CGROUP_NAMES:
            found = known.search(path)
            if found:
                name = found[1]
                return name[:SHORT] if re.fullmatch(r"[0-9a-f]{32,}", name) else name
    return None


def _other_namespace(pid: int, facts: Mapping[str, str]) -> bool:
    for kind in ("pid", "mnt"):
        try:
            if os.readlink(f"/proc/{pid}/ns/{kind}") != os.readlink(f"/proc/self/ns/{kind}"):
                return True
        except OSError:
            # not ours to read; that it has more than one number can be seen by everybody
            return len(facts.get("NSpid", "").split()) > 1
    return False


def torch_library(mapped: str) -> str | None:
    """The path of libtorch in the text of a memory map, as the process sees it; None where it is not loaded."""
    found = re.search(r"(/\S*/libtorch(?:_cpu|_python|_cuda)?\.so\S*)", mapped)
    return found[1] if found else None


def torch_version(pid: int, library: str) -> str | None:
    """The version of the torch with that library, from its files as the process sees them; None if it cannot be had."""
    package = os.path.dirname(os.path.dirname(library))
    try:
        root = os.readlink(f"/proc/{pid}/root")
        if root != "/" and package.startswith(f"{root}/"):
            package = package[len(root) :]  # the map names files as we see them where its root lies within ours
        # the process chooses where that is, and what: any user's, when root lists them
        with os.fdopen(plain.JobFiles(pid).open(f"{package}/version.py"), encoding="utf-8", errors="replace") as file:
            found = re.search(r"^__version__ *= *['\"]([^'\"]{1,60})['\"]", file.read(20_000), re.MULTILINE)
    except OSError:
        return None
    return found[1] if found else None


def at_least(version: str | None, needed: tuple[int, int]) -> bool:
    """Whether a version is known and not older."""
    found = re.match(r"(\d+)\.(\d+)", version or "")
    return found is not None and (int(found[1]), int(found[2])) >= needed


def descriptors(pid: int) -> dict[int, str] | None:
    """The open files of a process by number, each as the kernel names it; None where they may not be seen."""
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return None
    found = {}
    for name in names:
        try:
            found[int(name)] = os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue  # closed meanwhile
    return found


def thread_names(pid: int) -> list[str]:
    """The names of the threads of a process; anybody may see them."""
    found = []
    for tid in procfs.thread_ids(pid):
        try:
            with open(f"/proc/{pid}/task/{tid}/comm", encoding="utf-8", errors="replace") as file:
                found.append(file.read().rstrip("\n"))
        except OSError:
            continue
    return found
