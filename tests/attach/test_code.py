"""The machine code is what its sources say, and a stopped thread goes on where it has to."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tuimon.attach import code_x86_64 as code
from tuimon.attach import room

ASM = Path(code.__file__).parent / "asm"


def assemble(name: str, directory: Path) -> tuple[bytes, dict[str, int]]:
    """The bytes of a source, and its labels."""
    subprocess.run(["as", "--64", "-o", directory / "o", ASM / f"{name}.s"], check=True)
    subprocess.run(["objcopy", "-O", "binary", "-j", ".text", directory / "o", directory / "b"], check=True)
    listing = subprocess.run(["nm", directory / "o"], check=True, capture_output=True, text=True).stdout
    labels = {line.split()[2]: int(line.split()[0], 16) for line in listing.splitlines()}
    return (directory / "b").read_bytes(), labels


@pytest.fixture(scope="module")
def assembled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[bytes, dict[str, int]]]:
    """All three sources."""
    missing = [tool for tool in ("as", "objcopy", "nm") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"no assembler here ({', '.join(missing)} of binutils)")
    directory = tmp_path_factory.mktemp("asm")
    return {name: assemble(name, directory) for name in ("syscalls", "call", "stubs")}


@pytest.mark.parametrize(
    ("name", "ours", "first"),
    [
        ("syscalls", code.SYSCALLS, "first_nr"),
        ("call", code.CALL, "vector_area"),
        ("stubs", code.STUBS, "Py_IsInitialized"),
    ],
)
def test_bytes_are_those_of_the_sources(assembled, name, ours, first) -> None:
    data, labels = assembled[name]
    assert ours == data[: labels[first]]
    assert not any(data[labels[first] :])  # literals follow, to be filled in


def test_literals_stand_in_the_order_of_the_sources(assembled) -> None:
    _, labels = assembled["stubs"]
    start = labels["Py_IsInitialized"]
    assert [labels[name] - start for name in code.STUB_SYMBOLS] == [8 * n for n in range(len(code.STUB_SYMBOLS))]
    assert labels["enter_pending"] == code.ENTER_PENDING
    assert labels["enter_thread"] == code.ENTER_THREAD
    for name, size in (("syscalls", code.SYSCALLS_SIZE), ("call", code.CALL_SIZE)):
        assert len(assembled[name][0]) == size


def test_header_offsets_are_those_of_the_sources(assembled) -> None:
    _, labels = assembled["stubs"]
    for name in ("STATE", "CANCEL", "RC", "PID", "THREAD_STATE", "QUEUED", "RAN", "TID", "RAN_BY", "SCRIPT"):
        assert labels[name] == getattr(code, name), name


def test_code_page_has_room_for_everything() -> None:
    assert len(code.STUBS) + 8 * len(code.STUB_SYMBOLS) <= room.CALL_AT
    assert room.CALL_AT + code.CALL_SIZE <= room.PAGE


def registers(**given: int) -> code.Registers:
    """A thread's registers, numbered so that a mix-up shows."""
    return {**{name: 1000 + at for at, name in enumerate(code.REGISTERS)}, "orig_rax": (1 << 64) - 1, **given}


def negative(error: int) -> int:
    """-error as a register holds it."""
    return (1 << 64) - error


def test_thread_in_user_code_goes_on_where_it_was() -> None:
    before = registers()
    assert code.resume_point(before) == before


@pytest.mark.parametrize("error", [512, 513, 514])
def test_interrupted_call_is_made_again(error: int) -> None:
    after = code.resume_point(registers(orig_rax=202, rax=negative(error), rip=500))
    assert (after["rax"], after["rip"], after["orig_rax"]) == (202, 498, (1 << 64) - 1)


def test_interrupted_sleep_goes_on_with_the_rest_of_it() -> None:
    after = code.resume_point(registers(orig_rax=230, rax=negative(516), rip=500))
    assert (after["rax"], after["rip"]) == (code.NR_RESTART, 498)


def test_wait_that_our_stop_broke_is_made_again_but_no_other_call() -> None:
    assert code.resume_point(registers(orig_rax=232, rax=negative(4), rip=500))["rip"] == 498
    other = code.resume_point(registers(orig_rax=3, rax=negative(4), rip=500))  # close must not be made twice
    assert (other["rax"], other["rip"]) == (negative(4), 500)


def test_finished_call_keeps_its_result() -> None:
    after = code.resume_point(registers(orig_rax=0, rax=17, rip=500))
    assert (after["rax"], after["rip"]) == (17, 500)


def test_trap_flag_is_not_carried_over() -> None:
    data = code.call_code(1, 2, 3, 4, registers(eflags=0x346))
    assert int.from_bytes(data[len(code.CALL) + 32 : len(code.CALL) + 40], "little") == 0x246
