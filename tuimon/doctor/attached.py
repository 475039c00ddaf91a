"""Who is at the other end of a process's sockets: the kernel knows the pairs (NETLINK_SOCK_DIAG), of this network namespace."""

from __future__ import annotations

import os
import socket
import struct

from tuimon.attach.find import belongings, command_lines
from tuimon.attach.find.family import Machine, Process

_NETLINK_SOCK_DIAG = 4
_BY_FAMILY, _DONE, _ERROR = 20, 3, 2
_DUMP = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_SHOW_PEER = 0x4
_PEER = 2
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBHIIIII")
_ANSWER = struct.Struct("=BBBBIII")
_ATTRIBUTE = struct.Struct("=HH")


def tuimon_of(pid: int) -> int | None:
    """The pid of a tuimon that is connected to a process; None where none is seen. Raises OSError where that cannot be told."""
    sockets = _sockets(pid)
    if sockets is None:
        raise PermissionError(f"the descriptors of {pid} may not be seen")
    pairs = peers()
    wanted = {pairs[inode] for inode in sockets if inode in pairs}
    if not wanted:
        return None
    for process in Machine().processes.values():
        if process.pid != pid and _is_tuimon(process) and wanted & (_sockets(process.pid) or set()):
            return process.pid
    return None


def _is_tuimon(process: Process) -> bool:
    return process.pid != os.getpid() and command_lines.is_tuimon(process.argv)


def _sockets(pid: int) -> set[int] | None:
    files = belongings.descriptors(pid)
    if files is None:
        return None
    return {int(name[8:-1]) for name in files.values() if name.startswith("socket:[")}


def peers() -> dict[int, int]:
    """Inode -> the peer's inode, of all connected unix sockets here. Raises OSError where the kernel has no such answer."""
    found: dict[int, int] = {}
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG) as line:
        line.settimeout(2.0)
        body = _REQUEST.pack(socket.AF_UNIX, 0, 0, 0xFFFFFFFF, 0, _SHOW_PEER, 0, 0)
        line.send(_HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _DUMP, 1, 0) + body)
        while True:
            data = line.recv(1 << 18)
            while len(data) >= _HEADER.size:
                length, kind, *_ = _HEADER.unpack_from(data)
                if kind == _DONE or length < _HEADER.size:
                    return found
                if kind == _ERROR:
                    number = -struct.unpack_from("=i", data, _HEADER.size)[0]
                    raise OSError(number, os.strerror(number))
                _take(data[_HEADER.size : length], found)
                data = data[(length + 3) & ~3 :]


def _take(message: bytes, found: dict[int, int]) -> None:
    inode = _ANSWER.unpack_from(message)[4]
    at = _ANSWER.size
    while at + _ATTRIBUTE.size <= len(message):
        length, kind = _ATTRIBUTE.unpack_from(message, at)
        if length < _ATTRIBUTE.size:
            return
        if kind == _PEER:
            found[inode] = struct.unpack_from("=I", message, at + _ATTRIBUTE.size)[0]
        at += (length + 3) & ~3
