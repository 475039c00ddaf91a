"""The door to what differs between machines: registers, system calls, code to inject.

`code` is the module for this machine. It describes threads of targets, which are of the same kind: a target of another kind
is refused. Both modules can be imported everywhere, for their tests.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol

from tuimon.attach.machine import code_aarch64, code_x86_64
from tuimon.attach.machine.layout import Registers, Sleeping, Stopped, Way
from tuimon.attach.procfs import Memory


class Machine(Protocol):
    """What a code_* module has to give."""

    @property
    def NAME(self) -> str:
        """For sentences: "a .. program"."""

    @property
    def ELF_MACHINE(self) -> int:
        """e_machine of its programs."""

    @property
    def PAGE_SIZES(self) -> tuple[int, ...]:
        """Those of the kernels that all this has been run on, in bytes."""

    @property
    def OLDEST_KERNEL(self) -> tuple[int, int]:
        """Older ones lack something that is relied upon."""

    @property
    def HIGHEST(self) -> int:
        """No mapping is made above this address."""

    @property
    def SYSCALLS(self) -> bytes:
        """The trampoline for system calls, without literals; its first 16 bytes are our mark."""

    @property
    def STUBS(self) -> bytes:
        """What the target calls, without literals."""

    @property
    def ENTER_PENDING(self) -> int:
        """Where that entry lies in STUBS."""

    @property
    def ENTER_THREAD(self) -> int:
        """Where that entry lies in STUBS."""

    @property
    def PENDING_TAIL(self) -> tuple[int, int]:
        """Offsets in STUBS: what a queued call may have yet to run when it has counted itself."""

    @property
    def LEAST_ROOM(self) -> int:
        """Bytes that the place for `system_calls` has to have."""

    @property
    def MOST_ROOM(self) -> int:
        """More than that is never used."""

    @property
    def CALL_SIZE(self) -> int:
        """Bytes that `call` writes at its place."""

    @property
    def VECTOR_AREA(self) -> int:
        """Room for the vector state during `call`, in bytes: whole pages on every kernel."""

    @property
    def REGISTERS(self) -> tuple[str, ...]:
        """The names in the order of NT_PRSTATUS."""

    @property
    def SETS(self) -> dict[int, int]:
        """Further register sets to be read at a stop, by NT_* number, with the most bytes each can have."""

    @property
    def LOOK_BEFORE_A_STOP(self) -> bool:
        """Whether `Stopped.before` is needed."""

    @property
    def WAITS(self) -> frozenset[int]:
        """System calls in which a thread waits without holding a lock of malloc or of the loader, and which can be made again
        as if nothing had been: when a stop makes one give EINTR, nothing has been consumed."""

    @property
    def FUTEX(self) -> int:
        """Number of a system call."""

    @property
    def NR_MMAP(self) -> int:
        """Number of a system call."""

    @property
    def NR_MPROTECT(self) -> int:
        """Number of a system call."""

    @property
    def NR_MUNMAP(self) -> int:
        """Number of a system call."""

    def call_number(self, registers: Registers, memory: Memory) -> int | None:
        """The system call in which a thread was stopped."""

    def is_native(self, registers: Registers) -> bool:
        """Whether they are those of 64-bit code."""

    def pc(self, registers: Registers) -> int:
        """The program counter."""

    def sp(self, registers: Registers) -> int:
        """The stack pointer."""

    def at_call(self, stopped: Stopped, number: int | None, pc: int, sp: int) -> bool:
        """Whether it was stopped in that call, which /proc/PID/task/TID/syscall shows with that pc and sp."""

    def can_be_made_again(self, number: int | None, arguments: Sequence[int]) -> bool:
        """Whether a thread can be sent away from this blocked system call without the call noticing."""

    def usable(self, stopped: Stopped) -> bool:
        """Whether a stopped thread can be sent away from where it is without anything noticing."""

    def broken_by_stop(self, stopped: Stopped) -> bool:
        """Whether it is in a wait that gives EINTR, with no reason but our stop if no signal waits."""

    def lost_its_poller(self, stopped: Stopped) -> bool:
        """Whether its epoll_wait gives EINTR, and nobody knows any more for which file descriptor it was."""

    def in_poller(self, stopped: Stopped, poller: int) -> Stopped:
        """The same thread, with that file descriptor known."""

    def call_to_come(self, stopped: Stopped) -> Sleeping | None:
        """The wait that it makes again when it goes on, as it will be seen in it; None where it makes none, or nobody asks."""

    def resume_point(self, stopped: Stopped) -> Registers:
        """The registers with which it has to go on, where not the kernel but we decide about making a call again."""

    def system_calls(
        self, stopped: Stopped, at: int, room: int, first: tuple[int, ...], expected: int, second: tuple[int, ...]
    ) -> Way:
        """Make one or two system calls (number, arguments..) with code at `at`, which has `room` bytes, and come back.

        `second` is made only where the first one gives `expected`. Raises layout.Unusable.
        """

    def call(
        self, stopped: Stopped, at: int, stack_top: int, vector_area: int, function: int, argument: int, result: int
    ) -> Way:
        """Call function(argument) with code at `at` on the stack below `stack_top`, store its result at `result`, come back.

        Raises layout.Unusable.
        """


MACHINES: dict[str, Machine] = {"x86_64": code_x86_64, "aarch64": code_aarch64}
code: Machine = MACHINES.get(os.uname().machine, code_x86_64)
