"""What this Python and this torch offer to the hook, by name. Looks only at what the job has loaded; imports nothing.

torch's names here are private: each is looked for, and one that is missing is told by its name, so that the screen can say
"not available in torch X" instead of showing nothing.
"""

import sys

from .torch_names import NAMES, has, loaded

# (instrument, module, names in it, of which one has to be there)
WANTED = tuple((instrument, module, names) for _, instrument, module, names, _, _ in NAMES if instrument)


def gather():
    """{"python": [..], "torch": {instrument: whether it can be put in}, "missing": [names]}.

    None stands for an instrument whose part of torch is not loaded yet.
    """
    found = {}
    missing = []
    for instrument, module, names in WANTED:
        owner = loaded(module)
        if owner is None:
            found.setdefault(instrument, None)
            continue
        there = any(has(owner, name) for name in names)
        if not there:
            missing.append(f"{module}.{names[0]}")
        if found.get(instrument, True) is not False:
            found[instrument] = there
    return {"python": _python(), "torch": found, "missing": missing}


def _python():
    found = [name for name in ("monitoring", "remote_exec") if hasattr(sys, name)]
    gil = getattr(sys, "_is_gil_enabled", None)
    if gil is not None and not gil():
        found.append("free-threaded")
    return found
