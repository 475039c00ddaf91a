"""One target in a process of its own: `python -m tests.fuzz.worker TARGET SECONDS FOLDER`.

With atheris the inputs are guided by coverage; without it they are made at random. Each input at which something is wrong lies
in FOLDER/found then, and the last line of stdout is {"runs":, "edges":, "found": [names]}.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import subprocess
import sys
import time
import traceback
import zlib
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from tests.fuzz.made import LONGEST, inputs, shortest

THOROUGH = 8
"""One input in so many is looked at in all that can be made of it."""
SLOW_S = 30
MOST_MB = 3000
MOST_FOUND = 20

_GUIDED = """
import faulthandler, sys
import atheris
with atheris.instrument_imports(include=["tuimon", "tomllib"], enable_loader_override=False):
    from tests.fuzz.targets import TARGETS
from tests.fuzz.worker import SLOW_S, is_thorough
target, now = TARGETS[sys.argv.pop(1)], sys.argv.pop(1)


def run(data):
    with open(now, "wb") as file:
        file.write(data)
    faulthandler.dump_traceback_later(SLOW_S, exit=True)
    target.run(data, is_thorough(data))


atheris.Setup(sys.argv, run)
atheris.Fuzz()
"""


def is_thorough(data: bytes) -> bool:
    """Whether an input is looked at in all that can be made of it: by the input alone, so that it is so again."""
    return zlib.crc32(data) % THOROUGH == 0


def main(name: str, seconds: float, folder: Path) -> None:
    """Fuzz one target."""
    (folder / "found").mkdir(parents=True, exist_ok=True)
    told = _guided(name, seconds, folder) if find_spec("atheris") is not None else _random(name, seconds, folder)
    sys.stdout.write(json.dumps(told) + "\n")


def _guided(name: str, seconds: float, folder: Path) -> dict[str, object]:
    """libFuzzer ends at what it finds: it is begun again, until the time is over."""
    from tests.fuzz.targets import TARGETS

    seeds, corpus = folder / "seeds" / name, folder / "corpus" / name
    for place in (seeds, corpus):
        place.mkdir(parents=True, exist_ok=True)
    for at, data in enumerate(TARGETS[name].seeds()):
        (seeds / str(at)).write_bytes(data)
    if not any(seeds.iterdir()):
        rnd = random.Random(name)
        for at in range(40):
            (seeds / str(at)).write_bytes(rnd.randbytes(8 + 8 * at))
    deadline = time.monotonic() + seconds
    runs = edges = 0
    found: list[str] = []
    log, now = folder / f"{name}.log", folder / f"{name}.now"
    while (left := int(deadline - time.monotonic())) > 1 and len(found) < MOST_FOUND:
        known = set((folder / "found").iterdir())
        limits = (f"-max_total_time={left}", f"-max_len={LONGEST}", f"-timeout={2 * SLOW_S}", f"-rss_limit_mb={MOST_MB}")
        where = f"-artifact_prefix={folder}/found/{name}-"
        command = [
            sys.executable,
            "-c",
            _GUIDED,
            name,
            str(now),
            str(corpus),
            str(seeds),
            *limits,
            where,
            "-print_final_stats=1",
        ]
        with log.open("wb") as file:
            subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, timeout=left + 10 * SLOW_S, check=False)
        told = log.read_text(errors="replace")
        if "Timeout (" in told:  # libFuzzer's own alarm is not heard within one call into C
            (folder / "found" / f"{name}-hang-{hashlib.sha1(now.read_bytes()).hexdigest()}").write_bytes(now.read_bytes())
        counts = re.findall(r"number_of_executed_units: *(\d+)", told) or re.findall(r"^#(\d+)\s", told, re.M) or ["0"]
        runs += int(counts[-1])
        edges = max([edges, *map(int, re.findall(r"cov: (\d+)", told))])
        fresh = set((folder / "found").iterdir()) - known
        for one in fresh:
            found.append(one.name)
            (folder / "found" / f"{one.name}.why").write_text("\n".join(told.splitlines()[-60:]), "utf-8", "replace")
        if not fresh and "DONE" not in told and "Done " not in told:
            return {"runs": runs, "edges": edges, "found": found, "trouble": told[-2000:]}
    return {"runs": runs, "edges": edges, "found": found}


def _random(name: str, seconds: float, folder: Path) -> dict[str, object]:
    from tests.fuzz.targets import TARGETS

    target = TARGETS[name]
    deadline = time.monotonic() + seconds
    runs, known = 0, dict[str, str]()
    for data in inputs(target.seeds(), random.randrange(2**32)):
        if time.monotonic() > deadline or len(known) >= MOST_FOUND:
            break
        runs += 1
        why = wrong(target.run, data)
        if why and why not in known:
            data = shortest(data, lambda less, why=why: wrong(target.run, less) == why)
            known[why] = f"{name}-{hashlib.sha1(data).hexdigest()[:12]}"
            (folder / "found" / known[why]).write_bytes(data)
            (folder / "found" / f"{known[why]}.why").write_text(why, "utf-8", "replace")
    return {"runs": runs, "edges": 0, "found": list(known.values())}


def wrong(run: Callable[[bytes, bool], None], data: bytes) -> str:
    """What is wrong at an input, by where it was raised; "" where nothing is."""
    try:
        run(data, is_thorough(data))
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} at {os.path.basename(last.filename)}:{last.lineno}"
    return ""


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), Path(sys.argv[3]))
