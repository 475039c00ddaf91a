"""The end of a process that multiprocessing has forked: it leaves by `os._exit`, and what atexit holds does not run.

What multiprocessing itself runs at the end of its processes does: there the hook has the rest sent.
"""

import sys
import weakref

LAST = -1000
"""Its priority among multiprocessing's finalizers: the job's own come first."""


def tell_the_end(hook, ends):
    """Have `ends(hook)` called at the end of this process, if multiprocessing has made it."""
    process, util = (sys.modules.get(f"multiprocessing.{name}") for name in ("process", "util"))
    parent = getattr(process, "parent_process", None)
    if util is None or parent is None or parent() is None:
        return
    held = weakref.ref(hook)

    def over():
        found = held()
        if found is not None:
            ends(found)

    finalizer = util.Finalize(None, over, exitpriority=LAST)
    hook.undo.add("multiprocessing", lambda: (finalizer.cancel(), not finalizer.still_active())[1])
