"""The hook, as it travels into the job: as source, or as the code that this Python has compiled it to.

Compiling the hook takes some 15 ms of a processor, and in a job that has to be wrung from its main thread 5 ms at a time: the
GIL changes hands no sooner. So where the job's Python has the very byte code of this one, it is sent compiled.
"""

from __future__ import annotations

import importlib.util
import marshal
import os
import pkgutil
import re
import sys
from functools import cache
from types import CodeType

NOT_SENT = {"__init__", "boot", "boot_line", "bundle"}
"""The package's own docstring, the bootstrap (already there by then) and this file."""
BOOT = ("boot_line", "boot")
"""The bootstrap's two files, which run as one text: see `boot.py`."""


def bundle() -> dict[str, str]:
    """Module name -> source of everything in this directory that runs in the job, in the order to execute it in."""
    return dict(_sources())


@cache
def _sources() -> dict[str, str]:
    here = os.path.dirname(__file__)  # which may lie in an archive: see `relay/sent.py`
    names = sorted(module.name for module in pkgutil.iter_modules([here]) if not module.ispkg)
    return in_order({name: _source(name) for name in names if name not in NOT_SENT})


def in_order(sources: dict[str, str]) -> dict[str, str]:
    """The same modules, each behind those that it imports: `from . import x` takes x from the package."""
    found: dict[str, str] = {}
    waiting = dict(sources)

    def take(name: str) -> None:
        source = waiting.pop(name, None)
        if source is not None:
            for other in _wanted(source):
                take(other)
            found[name] = source

    for name in sources:
        take(name)
    return found


def _wanted(source: str) -> list[str]:
    """The names behind `from . import a, b` and `from .a import c` at the left margin."""
    found: list[str] = []
    for module, names in re.findall(r"^from \.(\w*) import (\([^)]*\)|[^\n(#]*)", source, re.MULTILINE):
        found += [module] if module else re.findall(r"(\w+)(?:\s+as\s+\w+)?", re.sub("#.*", "", names))
    return found


def boot_source() -> str:
    """The bootstrap's source: its two files as one text, for one namespace."""
    return "\n".join(map(_source, BOOT))


def _source(name: str) -> str:
    # read in a way that works where the package lies in an archive too
    return (pkgutil.get_data("tuimon.hook", f"{name}.py") or b"").decode()


# ---------------------------------------------------------------------------------------------------------- compiled


def kind() -> str:
    """Which byte code this Python runs; `boot.py` has the same on its side."""
    return f"{sys.implementation.cache_tag} {importlib.util.MAGIC_NUMBER.hex()}"


@cache
def compiled() -> bytes:
    """What `bundle` gives as marshalled [(module name, code)], of this Python's `kind`."""
    return marshal.dumps([(name, _code(name, f"<tuimon hook>/{name}.py")) for name in bundle()])


@cache
def compiled_boot() -> bytes:
    """What `boot_source` gives as marshalled code objects, to be executed one after the other in one namespace."""
    return marshal.dumps([_code(name, f"<tuimon {name}>") for name in BOOT])


def _code(name: str, file: str) -> CodeType:
    """From the .pyc where there is one, as for any module that is imported; under a file name that says whose it is."""
    whole = f"tuimon.hook.{name}"
    spec = importlib.util.find_spec(whole)
    get_code = getattr(spec.loader if spec is not None else None, "get_code", None)
    code = get_code(whole) if get_code is not None else None
    if not isinstance(code, CodeType):
        code = compile(_source(name), file, "exec", dont_inherit=True)
    return _renamed(code, file)


def _renamed(code: CodeType, file: str) -> CodeType:
    inner = tuple(_renamed(one, file) if isinstance(one, CodeType) else one for one in code.co_consts)
    return code.replace(co_filename=file, co_consts=inner)
