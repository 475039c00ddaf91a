"""Boot a machine in emulation, run `guest` in it, print its table: python -m tests.vm.run [IMAGE] [GROUP..].

IMAGE is one of image.RECIPES ("bookworm" unless given), GROUP one of guest.GROUPS or MODES (all groups unless given). Needs
qemu-system-arm and binutils-aarch64-linux-gnu of Debian, its apt and dpkg, half an hour for everything on two idle cores, and
150 MB for an image in TUIMON_VM_CACHE (~/.cache/tuimon-vm).
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.vm import guest, image

REPOSITORY = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("TUIMON_VM_CACHE", Path.home() / ".cache" / "tuimon-vm"))
CARRIED = (
    "tuimon/__init__.py",
    "tuimon/attach",
    "tuimon/hook",
    "tests/__init__.py",
    "tests/vm",
    "tests/attach/target_program.py",
)
INIT = """#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root PYTHONDONTWRITEBYTECODE=1
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp
chmod 1777 /tmp
cd /repository && python3 -m tests.vm.guest {words}
echo o > /proc/sysrq-trigger
sleep 60
"""


def overlay(place: Path, words: list[str]) -> Path:
    """A second archive behind the image's: the repository, the vector code, and what is to be run."""
    tree = place / "tree"
    for name in CARRIED:
        source, to = REPOSITORY / name, tree / "repository" / name
        to.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, to, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, to)
    (tree / "repository/tests/attach/__init__.py").touch()
    assemble = ["aarch64-linux-gnu-as", "-o", place / "o", REPOSITORY / "tests/vm/vectors.s"]
    subprocess.run(assemble, check=True)
    binary = tree / "repository/tests/vm/vectors.bin"
    subprocess.run(["aarch64-linux-gnu-objcopy", "-O", "binary", "-j", ".text", place / "o", binary], check=True)
    (tree / "init").write_text(INIT.format(words=" ".join(words)), encoding="utf-8")
    (tree / "init").chmod(0o755)
    archive = place / "overlay.cpio.gz"
    with gzip.open(archive, "wb", compresslevel=1) as file:
        file.writelines(image.archive(tree))
    return archive


def boot(found: image.Image, archive: Path, place: Path, seconds: float, processor: str) -> int:
    """Run the machine to its end, its console on ours; gives the number of lines that say FAILED, -1 where it did not end."""
    root = place / "root.cpio.gz"
    with open(root, "wb") as file:
        for part in (found.root, archive):
            with open(part, "rb") as source:
                shutil.copyfileobj(source, file)
            file.write(bytes(-file.tell() % 4))
    command = ["qemu-system-aarch64", "-machine", "virt", "-cpu", processor, "-smp", "2", "-m", "2500", "-nographic",
               "-no-reboot", "-kernel", found.kernel, "-initrd", root, "-append", "console=ttyAMA0 quiet panic=-1"]  # fmt: skip
    machine = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace")
    assert machine.stdout is not None
    failed, ended = 0, False
    try:
        # the guest gives itself less time than that
        killer = subprocess.Popen(["sleep", str(seconds)])
        for line in machine.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            failed += "FAILED" in line
            ended |= guest.END in line
            if killer.poll() is not None:
                break
    finally:
        for process in (machine, killer):
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()
    return failed if ended else -1


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("image", nargs="?", default="bookworm", choices=list(image.RECIPES))
    parser.add_argument("groups", nargs="*")
    parser.add_argument("--cycles", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=3000.0)
    parser.add_argument("--cpu", default="max,pauth-impdef=on,sme=off")
    given = parser.parse_args()
    found = image.make(given.image, CACHE)
    with tempfile.TemporaryDirectory() as name:
        archive = overlay(Path(name), ["--cycles", str(given.cycles), *given.groups])
        failed = boot(found, archive, Path(name), given.seconds, given.cpu)
    sys.stdout.write(f"{failed} failed\n" if failed >= 0 else "the machine did not come to its end\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
