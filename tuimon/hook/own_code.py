"""The hook's own code objects: Dynamo is told to leave each of them alone."""

import sys


def all_of_it():
    """Every code object of the hook's modules, nested ones included."""
    package = __name__.rpartition(".")[0]
    found = []
    # a copy of the names alone: copying the pairs makes objects, which can start a collection, in which other threads run and
    # import things
    for name in list(sys.modules):
        if name == package or name.startswith(package + "."):
            for value in list(vars(sys.modules[name]).values()):
                holders = list(vars(value).values()) if isinstance(value, type) else (value,)
                for holder in holders:
                    function = getattr(holder, "__func__", None) or getattr(holder, "fget", None) or holder
                    code = getattr(function, "__code__", None)
                    if code is not None and getattr(function, "__module__", "") == name:
                        _walk(code, found)
    return found


def _walk(code, found):
    found.append(code)
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            _walk(constant, found)
