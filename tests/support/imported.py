"""Python processes that have done their long imports already: forks of one that did them once.

For programs that import torch before anything happens that matters to the test; what is about the import starts a Python.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import subprocess
import sys
from pathlib import Path

_SERVER = """
import importlib, json, os, sys, types
for name in sys.argv[1:]:
    importlib.import_module(name)
threads = os.listdir("/proc/self/task")
if len(threads) > 1:
    sys.exit(f"a fork would lack {len(threads) - 1} threads of these imports")
print("ready", flush=True)
for line in sys.stdin:
    script, out, err = json.loads(line)
    child = os.fork()
    if child == 0:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()  # whoever asked is done, or gone
for path, number in ((os.devnull, 0), (out, 1), (err, 2)):
    os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
sys.argv, sys.path[0] = [script], os.path.dirname(script)
main = sys.modules["__main__"] = types.ModuleType("__main__")
main.__file__ = script
with open(script, encoding="utf-8") as file:
    text = compile(file.read(), script, "exec")
exec(text, vars(main))  # at the top, so that the process ends as one that was started with the script
"""


class Imported:
    """A process with some modules imported that runs scripts, one at a time, in forks of it."""

    def __init__(self, modules: tuple[str, ...], python: str, seconds: float) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        self._process = subprocess.Popen(
            [python, "-c", _SERVER, *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        assert self._hear(seconds) == "ready"

    def run(self, script: Path, seconds: float) -> subprocess.CompletedProcess[str]:
        """Run a script to its end. Raises AssertionError when it takes longer."""
        out, err = script.with_suffix(".out"), script.with_suffix(".err")
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([str(script), str(out), str(err)]).encode() + b"\n")
        self._process.stdin.flush()
        status = int(self._hear(seconds))
        return subprocess.CompletedProcess([str(script)], status, out.read_text("utf-8"), err.read_text("utf-8"))

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _hear(self, seconds: float) -> str:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], seconds)[0]:
            os.killpg(self._process.pid, 9)
            imported.cache_clear()  # the next one to ask gets another
            raise AssertionError(f"it took more than {seconds:g} s")
        return self._process.stdout.readline().decode().strip()


@functools.cache
def imported(*modules: str, python: str = sys.executable, seconds: float = 120.0) -> Imported:
    """The process of this Python that has these modules, for the whole of a test run; started when first asked for."""
    made = Imported(modules, python, seconds)
    atexit.register(made.close)
    return made
