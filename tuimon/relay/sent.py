"""The far end for a host that has no tuimon: our own sources, packed, and the few lines that take them in over there.

The pack is a zip archive that Python imports from as it is. Over there it lies in a file without a name: in memory (memfd), or
where Python was built without that, in a file that is unlinked before anything is written into it. The kernel takes either away
with the last process that has it open, however that ends, so nothing of it can stay. The process that traces imports from the
same file, through /proc/PID/fd.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
FILES = ("__init__.py", "plain.py")
FOLDERS = ("events", "attach", "hook", "sources", "model", "relay")
OLDEST = (3, 10)
"""The oldest Python that this code runs on."""

LOADER = """\
import os, sys, tempfile
mark, size = os.environ["TUIMON_RELAY"], int(sys.argv[1])
try:
    fd = os.memfd_create("tuimon")
    file = os.fdopen(fd, "w+b")
except (AttributeError, OSError):
    file = tempfile.TemporaryFile(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
os.write(1, ("\\n%s ready\\n" % mark).encode())
while size:
    data = os.read(0, min(size, 65536))
    if not data:
        sys.exit(1)
    file.write(data)
    size -= len(data)
file.flush()
sys.argv[1:] = []
sys.path[0] = "/proc/%d/fd/%d" % (os.getpid(), file.fileno())
from tuimon.relay.far import main
sys.exit(main())
"""
"""Run by `python3 -c`, with the size as its argument and the pack on standard input."""


def pack() -> bytes:
    """The archive: what the far end needs of this very tuimon, sources only."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in _files():
            # no date of its own: the same sources give the same bytes
            entry = zipfile.ZipInfo(f"tuimon/{path.relative_to(PACKAGE).as_posix()}")
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, _source(path))
    return held.getvalue()


def _files() -> list[Path]:
    folders = [path for folder in FOLDERS for path in sorted((PACKAGE / folder).rglob("*.py"))]
    return [PACKAGE / name for name in FILES] + folders


def _source(path: Path) -> bytes:
    return path.read_bytes()
