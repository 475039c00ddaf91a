"""The recording of the tour, which the pictures of the documents show as well: demos/tour/tour.tuimon.

    python -m tools.tour_recording [--steps N] [--raw FILE]

Runs demos/train_small_gpt.py under `tuimon record --source` in a folder of its own, with compiled code in its cache, and writes
what came of it once more without anything of this machine: paths of the demo begin with /demo, those of Python with /python,
those of packages with /packages. That the program ended is left out: on the tour it is still running.

Needs torch and a C++ compiler.
"""

from __future__ import annotations

import argparse
import dataclasses
import getpass
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from tuimon import events as ev
from tuimon.model import Model
from tuimon.sources.recording import Recording, Writer

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / "demos" / "train_small_gpt.py"
RECORDING = ROOT / "demos" / "tour" / "tour.tuimon"
MOST = 300_000
"""Bytes: it is shipped with the package."""
EACH = 2000
"""Samples of a block: large ones pack better, small ones can be gone to."""
ROOM = 40_000
"""For the block that is begun, and the end: what does not fit any more is left out."""


def neutral(value: Any, names: dict[str, str]) -> Any:
    """A value of an event with each of these texts in it replaced."""
    if isinstance(value, str):
        for name, instead in names.items():
            value = value.replace(name, instead)
        return value
    if isinstance(value, tuple):
        parts = [neutral(part, names) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, dict):
        return {neutral(key, names): neutral(part, names) for key, part in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        told = {field.name: neutral(getattr(value, field.name), names) for field in dataclasses.fields(value)}
        return dataclasses.replace(value, **told)
    return value


def record(folder: Path, steps: int) -> Path:
    """A recording of the demo in this folder, as it is."""
    shutil.copy(DEMO, folder / DEMO.name)
    raw = folder / "raw.tuimon"
    program = [sys.executable, DEMO.name, "--stall", "20", "--pace", "0.02", "--steps", str(steps)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache")}
    # once before, so that code of an earlier run is found in its cache: compiling alone would fill the file
    subprocess.run([*program[:-1], "16"], cwd=folder, env=env, check=True)
    words = [sys.executable, "-m", "tuimon", "record", "--source", "-o", str(raw), "--", *program]
    subprocess.run(words, cwd=folder, env=env, check=True)
    return raw


def names(folder: Path) -> dict[str, str]:
    """Texts that tell of this machine, the longest first -> what stands in their place."""
    found = {
        str(folder): "/demo",
        str(ROOT): "/demo",
        sysconfig.get_path("purelib"): "/packages",
        sysconfig.get_path("stdlib"): "/python",
        sys.executable: "python",
        sys.prefix: "/python",
        sys.base_prefix: "/python",
        str(Path.home()): "/home/user",
    }
    return dict(sorted(found.items(), key=lambda pair: -len(pair[0])))


def write(raw: Path, into: Path, changed: dict[str, str]) -> int:
    """The same recording with names changed, up to the end of the program or of the room. Gives its bytes."""
    writer, model, rows = Writer(into, source=True, force=True), Model(), 0
    for batch in Recording(raw).read():
        told = [neutral(event, changed) for event in batch.events if not isinstance(event, ev.TargetEnded)]
        model.apply(told)
        writer.put(batch.at_ns, told)
        rows += sum(len(event.rows) for event in told if isinstance(event, ev.Samples))
        if rows >= EACH:
            writer.flush(model.steps.n)
            rows = 0
        if writer.bytes > MOST - ROOM or any(isinstance(event, ev.TargetEnded) for event in batch.events):
            break
    writer.flush(model.steps.n)
    writer.close()
    return into.stat().st_size


def tell_tales(path: Path) -> list[str]:
    """What is in a recording that it must not tell: this machine's name, its user's, and folders that are only here."""
    told = [os.uname().nodename, str(ROOT), str(Path.home()) + "/", tempfile.gettempdir(), "/home/", "/root/"]
    told += [f"{getpass.getuser()}@", f"/{getpass.getuser()}/"]
    text = "\n".join(
        repr(event) for batch in Recording(path).read() for event in batch.events if not isinstance(event, ev.Samples)
    )
    return [name for name in told if len(name) > 2 and name in text]


def main() -> int:
    """Record, rewrite, look."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=105, help="of the demo (default: %(default)s)")
    parser.add_argument("--raw", type=Path, metavar="FILE", help="keep the recording as it was made, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tour-") as name:
        folder = Path(name).resolve()
        made = folder / "tour.tuimon"
        raw = record(folder, options.steps)
        if options.raw is not None:
            shutil.copy(raw, options.raw)
        size = write(raw, made, names(folder))
        told = tell_tales(made)
        if told or size > MOST:
            sys.stderr.write(f"not kept: {size} bytes, and it tells {told}\n")
            return 1
        RECORDING.parent.mkdir(exist_ok=True)
        shutil.copy(made, RECORDING)
        RECORDING.chmod(0o644)
    sys.stderr.write(f"{RECORDING.relative_to(ROOT)}: {size} bytes\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
