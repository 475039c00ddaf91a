"""The machine code is what its sources say, and a stopped thread goes on where it has to."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from tuimon.attach.inject import room
from tuimon.attach.machine import code_aarch64, code_x86_64, frame_aarch64, layout
from tuimon.attach.machine.layout import Sleeping, Stopped, negative

ASM = Path(layout.__file__).parent / "asm"
SOURCES = ("syscalls", "call", "stubs")
MACHINES = {"x86_64": code_x86_64, "aarch64": code_aarch64}
FIRST_LITERAL = {
    "x86_64": {"syscalls": "first_nr", "call": "vector_area", "stubs": "Py_IsInitialized"},
    "aarch64": {"syscalls": "first_nr", "call": "argument", "stubs": "Py_IsInitialized"},
}


class Assembled:
    """What the assembler makes of the sources of one machine: bytes and labels."""

    def __init__(self, machine: str, directory: Path) -> None:
        self.machine, self.code = machine, MACHINES[machine]
        prefix = "" if machine == "x86_64" and shutil.which("as") else f"{machine}-linux-gnu-"
        missing = [prefix + tool for tool in ("as", "objcopy", "nm") if shutil.which(prefix + tool) is None]
        if missing:
            pytest.skip(f"no assembler for {machine} here ({', '.join(missing)} of binutils)")
        self.bytes: dict[str, bytes] = {}
        self.labels: dict[str, dict[str, int]] = {}
        for name in SOURCES:
            wide = ["--64"] if machine == "x86_64" else []
            subprocess.run([f"{prefix}as", *wide, "-o", directory / "o", ASM / machine / f"{name}.s"], check=True)
            subprocess.run([f"{prefix}objcopy", "-O", "binary", "-j", ".text", directory / "o", directory / "b"], check=True)
            done = subprocess.run([f"{prefix}nm", directory / "o"], check=True, capture_output=True, text=True)
            self.labels[name] = {line.split()[2]: int(line.split()[0], 16) for line in done.stdout.splitlines()}
            self.bytes[name] = (directory / "b").read_bytes()


@pytest.fixture(scope="module", params=list(MACHINES))
def assembled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Assembled:
    """All three sources of a machine."""
    return Assembled(request.param, tmp_path_factory.mktemp("asm"))


@pytest.mark.parametrize("name", SOURCES)
def test_bytes_are_those_of_the_sources(assembled, name) -> None:
    data, first = assembled.bytes[name], assembled.labels[name][FIRST_LITERAL[assembled.machine][name]]
    assert getattr(assembled.code, name.upper()) == data[:first]
    assert not any(data[first:])  # literals follow, to be filled in


def test_literals_stand_in_the_order_of_the_sources(assembled) -> None:
    labels = assembled.labels["stubs"]
    start = labels["Py_IsInitialized"]
    assert [labels[name] - start for name in layout.STUB_SYMBOLS] == [8 * n for n in range(len(layout.STUB_SYMBOLS))]
    assert labels["enter_pending"] == assembled.code.ENTER_PENDING
    assert labels["enter_thread"] == assembled.code.ENTER_THREAD
    for name, size in (("syscalls", assembled.code.SYSCALLS_SIZE), ("call", assembled.code.CALL_SIZE)):
        assert len(assembled.bytes[name]) == size


def test_header_offsets_are_those_of_the_sources(assembled) -> None:
    for name in ("STATE", "CANCEL", "RC", "PID", "THREAD_STATE", "QUEUED", "RAN", "TID", "RAN_BY", "SCRIPT"):
        assert assembled.labels["stubs"][name] == getattr(layout, name), name


@pytest.mark.parametrize("code", MACHINES.values(), ids=list(MACHINES))
def test_code_page_has_room_for_everything(code: ModuleType) -> None:
    assert len(code.STUBS) + 8 * len(layout.STUB_SYMBOLS) <= room.CALL_AT
    assert room.CALL_AT + code.CALL_SIZE <= 4096


# ---------------------------------------------------------------------------------------------------------------- x86_64


def stopped(number: int | None = None, **given: int) -> Stopped:
    """A thread of x86_64, its registers numbered so that a mix-up shows."""
    names = enumerate(code_x86_64.REGISTERS)
    orig_rax = negative(1) if number is None else number
    return Stopped(1, {**{name: 1000 + at for at, name in names}, "orig_rax": orig_rax, **given}, number=number)


def test_thread_in_user_code_goes_on_where_it_was() -> None:
    before = stopped()
    assert code_x86_64.resume_point(before) == before.registers


@pytest.mark.parametrize("error", [512, 513, 514])
def test_interrupted_call_is_made_again(error: int) -> None:
    after = code_x86_64.resume_point(stopped(202, rax=negative(error), rip=500))
    assert (after["rax"], after["rip"], after["orig_rax"]) == (202, 498, (1 << 64) - 1)


def test_interrupted_sleep_goes_on_with_the_rest_of_it() -> None:
    after = code_x86_64.resume_point(stopped(230, rax=negative(516), rip=500))
    assert (after["rax"], after["rip"]) == (code_x86_64.NR_RESTART, 498)


def test_wait_that_our_stop_broke_is_made_again_but_no_other_call() -> None:
    assert code_x86_64.resume_point(stopped(232, rax=negative(4), rip=500))["rip"] == 498
    other = code_x86_64.resume_point(stopped(3, rax=negative(4), rip=500))  # close must not be made twice
    assert (other["rax"], other["rip"]) == (negative(4), 500)


def test_finished_call_keeps_its_result() -> None:
    after = code_x86_64.resume_point(stopped(0, rax=17, rip=500))
    assert (after["rax"], after["rip"]) == (17, 500)


def test_trap_flag_is_not_carried_over() -> None:
    way = code_x86_64.call(stopped(eflags=0x346), 0x5000, 0x9000, 1, 2, 3, 4)
    ((address, data),) = way.writes
    assert int.from_bytes(data[len(code_x86_64.CALL) + 32 : len(code_x86_64.CALL) + 40], "little") == 0x246
    assert (address, way.registers["rip"], way.registers["rsp"]) == (0x5000, 0x5000, 0x9000)


# --------------------------------------------------------------------------------------------------------------- aarch64

SVC = struct.pack("<I", 0xD4000001)
VECTORS = bytes(range(256)) * 2 + b"FPSR" + b"FPCR" + bytes(8)
EPOLL, FUTEX, SLEEP = 22, 98, 115


def arm(
    number: int | None = None, before: Sleeping | None = None, sets: dict[int, bytes] | None = None, **given: int
) -> Stopped:
    """A thread of aarch64."""
    names = enumerate(code_aarch64.REGISTERS)
    registers = {**{name: 1000 + at for at, name in names}, "sp": 0x8000_0000, "pc": 504, "pstate": 0x6000_0000, **given}
    sets = {frame_aarch64.NT_PRFPREG: VECTORS, **(sets or {})}
    return Stopped(1, registers, b"MASKMASK", number, sets, before)


def sve(vector: int, *, live: bool = True) -> bytes:
    """The register set of a thread with vectors of so many bytes."""
    length = 32 * vector + 17 * (vector // 8)
    body = bytes(at % 251 for at in range(length))
    return struct.pack("<IIHHHH", 16 + length, 9000, vector, 256, int(live), 0) + (body if live else VECTORS[:512])


def records(frame: bytes, at: int) -> dict[int, bytes]:
    """The records of a frame as the kernel finds them: by the number that each begins with."""
    found: dict[int, bytes] = {}
    place, limit = 592, 592 + 4096
    while True:
        magic, size = struct.unpack_from("<II", frame, place)
        assert place % 16 == 0
        if not magic:
            assert not size
            return found
        found[magic] = frame[place : place + size]
        place += size
        assert place + 8 <= limit
        if magic == 0x45585401:
            behind, extra = struct.unpack_from("<QI", found[magic], 8)
            assert struct.unpack_from("<II", frame, place) == (0, 0)
            assert behind == at + place + 16
            place, limit = behind - at, behind - at + extra
            assert limit == len(frame)


@pytest.mark.parametrize("vector", [16, 32, 64, 96, 112, 128, 256])
def test_frame_holds_every_vector_length(vector: int) -> None:
    thread = arm(sets={frame_aarch64.NT_ARM_SVE: sve(vector)})
    way = code_aarch64.call(thread, 0x5000, 0x90000, 0, 2, 3, 4)
    (_, (at, frame)) = way.writes
    assert (way.registers["pc"], way.registers["sp"]) == (0x5000, at)
    found = records(frame, at)
    assert found[0x53564501][16:].startswith(sve(vector)[16:])
    assert struct.unpack_from("<H", found[0x53564501], 8)[0] == vector
    assert (0x45585401 in found) == (vector > 96)
    assert len(frame) <= frame_aarch64.LARGE


def test_frame_holds_the_thread() -> None:
    thread = arm(pstate=0x6000_0000 | 1 << 21)
    (_, (at, frame)) = code_aarch64.call(thread, 0x5000, 0x90000, 0, 2, 3, 4).writes
    assert len(frame) == frame_aarch64.SMALL
    values = struct.unpack_from("<34Q", frame, 312)
    assert values == (*range(1000, 1031), 0x8000_0000, 504, 0x6000_0000)  # without the single step
    assert frame[168:176] == b"MASKMASK"
    assert records(frame, at) == {0x46508001: struct.pack("<II", 0x46508001, 528) + b"FPSRFPCR" + VECTORS[:512]}


def test_wide_registers_go_to_the_threads_own_stack_where_the_place_is_small() -> None:
    thread = arm(sets={frame_aarch64.NT_ARM_SVE: sve(256)})
    way = code_aarch64.system_calls(thread, 0x5000, 4000, (1,), 2, (3,))
    (_, (at, frame)) = way.writes
    assert way.own_stack == (at, 0x8000_0000)
    assert at + len(frame) <= 0x8000_0000
    assert way.registers["sp"] == at
    records(frame, at)
    small = code_aarch64.system_calls(arm(), 0x5000, code_aarch64.LEAST_ROOM, (1,), 2, (3,))
    assert small.own_stack is None
    assert small.registers["sp"] == 0x8000_0000
    assert sum(len(data) for _, data in small.writes) <= code_aarch64.LEAST_ROOM


def test_thread_without_live_vectors_needs_no_record_for_them() -> None:
    thread = arm(sets={frame_aarch64.NT_ARM_SVE: sve(256, live=False)})
    (_, (_, frame)) = code_aarch64.call(thread, 0x5000, 0x90000, 0, 2, 3, 4).writes
    assert len(frame) == frame_aarch64.SMALL


@pytest.mark.parametrize(
    "sets",
    [
        {frame_aarch64.NT_ARM_ZA: struct.pack("<IIHHHH", 4096, 0, 0, 0, 0, 0)},
        {frame_aarch64.NT_ARM_SSVE: struct.pack("<IIHHHH", 4096, 0, 0, 0, 0, 0)},
        {frame_aarch64.NT_ARM_GCS: struct.pack("<QQQ", 1, 0, 0)},
        {frame_aarch64.NT_PRFPREG: b""},
        {frame_aarch64.NT_ARM_SVE: sve(256)[:1000]},
    ],
    ids=["matrix", "streaming", "shadow stack", "no vectors", "cut off"],
)
def test_thread_with_state_that_no_frame_holds_is_left_alone(sets: dict[int, bytes]) -> None:
    with pytest.raises(layout.Unusable):
        code_aarch64.call(arm(sets=sets), 0x5000, 0x90000, 0, 2, 3, 4)


def test_landing_pad_is_asked_for_again_when_the_thread_goes_on() -> None:
    way = code_aarch64.call(arm(pstate=2 << 10), 0x5000, 0x90000, 0, 2, 3, 4)
    assert way.registers["pstate"] == 0
    assert struct.unpack_from("<Q", way.writes[1][1], 312 + 33 * 8)[0] == 2 << 10


class Text:
    """Memory with instructions in it."""

    def __init__(self, **at: bytes) -> None:
        self.at = {int(name[1:]): data for name, data in at.items()}

    def read(self, address: int, length: int) -> bytes:
        return self.at.get(address, bytes(length))


@pytest.mark.parametrize(("place", "number"), [("_504", 98), ("_500", 98), ("_496", None)])
def test_number_of_a_call_is_that_of_the_instruction(place: str, number: int | None) -> None:
    assert code_aarch64.call_number(arm(x8=98).registers, Text(**{place: SVC})) == number


def test_broken_wait_gets_its_first_argument_back() -> None:
    arguments = (7, *range(1001, 1006))
    before = Sleeping(EPOLL, arguments, 504, 0x8000_0000)
    thread = arm(EPOLL, before, x0=negative(4))
    assert code_aarch64.broken_by_stop(thread)
    assert code_aarch64.at_call(thread, EPOLL, 504, 0x8000_0000)
    after = code_aarch64.resume_point(thread)
    assert (after["x0"], after["pc"]) == (7, 500)
    for other in (
        arm(EPOLL, None, x0=negative(4)),  # it has slept since, or nobody knows
        arm(EPOLL, before._replace(pc=508), x0=negative(4)),
        arm(EPOLL, before._replace(arguments=(7, 1, 2, 3, 4, 5)), x0=negative(4)),
        arm(57, before._replace(number=57), x0=negative(4)),  # close must not be made twice
    ):
        assert code_aarch64.resume_point(other) == other.registers


def test_lost_poller_can_be_put_back() -> None:
    thread = arm(EPOLL, None, x0=negative(4))
    assert code_aarch64.lost_its_poller(thread)
    after = code_aarch64.resume_point(code_aarch64.in_poller(thread, 7))
    assert (after["x0"], after["x1"], after["pc"]) == (7, 1001, 500)
    for other in (arm(EPOLL, None, x0=1), arm(63, None, x0=negative(4)), arm()):
        assert not code_aarch64.lost_its_poller(other)


def test_call_to_come_is_the_one_that_is_made_again() -> None:
    arguments = (7, *range(1001, 1006))
    before = Sleeping(EPOLL, arguments, 504, 0x8000_0000)
    assert code_aarch64.call_to_come(arm(EPOLL, before, x0=negative(4))) == before
    assert code_aarch64.call_to_come(arm(EPOLL, before, x0=7, pc=500)) == before  # the kernel has gone back already
    assert code_aarch64.call_to_come(arm(EPOLL, before, x0=3)) is None  # it has come back with a result
    assert code_aarch64.call_to_come(arm(57, x0=3)) is None
    assert code_aarch64.call_to_come(arm()) is None


def test_call_that_the_kernel_makes_again_is_one_the_thread_is_still_in() -> None:
    before = Sleeping(FUTEX, (1000, 0, 2, 0, 4, 5), 508, 0x8000_0000)
    thread = arm(FUTEX, before, x1=0, x3=0)
    assert code_aarch64.at_call(thread, FUTEX, 508, 0x8000_0000)
    assert code_aarch64.usable(thread)
    assert not code_aarch64.at_call(thread._replace(before=None), FUTEX, 508, 0x8000_0000)
    assert not code_aarch64.at_call(arm(FUTEX, before, pc=508), FUTEX, 508, 0x8000_0000)  # it has come back with a result


@pytest.mark.parametrize(
    ("number", "arguments", "can"),
    [
        (FUTEX, (0, 128, 2, 0), True),  # FUTEX_WAIT without a limit
        (FUTEX, (0, 128, 2, 99), False),  # with one that counts from now
        (FUTEX, (0, 137, 2, 99), True),  # FUTEX_WAIT_BITSET: a moment
        (SLEEP, (1, 1, 99, 0), True),
        (SLEEP, (1, 0, 99, 0), False),
        (101, (99, 0, 0, 0), False),
        (128, (0, 0, 0, 0), False),
        (63, (0, 0, 0, 0), True),
        (64, (0, 0, 0, 0), False),  # write
        (None, (), False),
    ],
)
def test_wait_of_which_only_the_kernel_knows_the_rest_is_left_alone(number, arguments, can: bool) -> None:
    assert code_aarch64.can_be_made_again(number, arguments) == can
    if number is not None:
        given = {f"x{at}": value for at, value in enumerate(arguments)}
        assert code_aarch64.usable(arm(number, **given)) == can
