"""The text that is executed in the target: the bootstrap, and the line that starts it."""

from __future__ import annotations


def boot_source() -> str:
    """The bootstrap's source: its two files as one text, for one namespace."""
    from tuimon.hook import bundle  # tuimon's own process asks; the helper, which has to be quick to start, does not

    return bundle.boot_source()


# A job's own Python: what it runs is compared there, with all of its kind (`hook.bundle.kind`), and where it differs by
# anything, the source is compiled. Code is executed in the namespace of this text.
_COMPILED = """\
import sys, marshal, _frozen_importlib_external
if "%s %s" % (sys.implementation.cache_tag, _frozen_importlib_external.MAGIC_NUMBER.hex()) == {kind!r}:
    for code in marshal.loads({code!r}):
        exec(code)
else:
    exec(compile({boot!r}, "<tuimon boot>", "exec"))
"""


# A program that has just begun imports, and one that ends right then frees the lock of imports under whoever waits for it
# (3.11 crashes): so nothing is imported before its start is over and that lock is free. No sleep of `time`, as that may not
# be imported yet. Not even the bootstrap's functions stay: they and their namespace would wait for the job's garbage collector.
_AND_GO = """
def let_it_start():
    import sys, _imp
    alarm = __import__('_thread').allocate_lock()
    alarm.acquire()
    for _ in range(1000):
        site = sys.modules.get('site')
        ready = sys.flags.no_site or site is not None and not getattr(site.__spec__, '_initializing', False)
        if ready and not _imp.lock_held():
            return
        alarm.acquire(True, 0.002)

def boot_and_go(*words):
    try:
        let_it_start()
        boot(*words)
    finally:
        globals().clear()
"""


def script(boot: str, path: str, token: str, code: bytes | None = None, kind: str = "") -> bytes:
    """The bootstrap for the injected thread: define it in a fresh namespace, then run it on a thread that Python made.

    The thread that the stub runs on has a thread state made elsewhere; a thread of Python's own is complete. `code` is the
    same bootstrap compiled, for a Python of that `kind`.
    """
    text = boot if code is None else _COMPILED.format(kind=kind, code=code, boot=boot)
    return _encoded(f"{text}{_AND_GO}__import__('_thread').start_new_thread(boot_and_go, ({path!r}, {token!r}))\n")


def script_file(boot: str, path: str, token: str, own: str) -> bytes:
    """The same for a script that CPython runs on the main thread: nothing of it is executed there but the start of a thread.

    `own` is the script's own path: the thread removes it first, so that it goes even where nobody of ours lives by then. A
    thread that cannot be had is no message on the job's stderr; Ctrl-C stays the job's.
    """
    text = f"import os\ntry: os.unlink({own!r})\nexcept OSError: pass\n{boot}{_AND_GO}\nboot_and_go({path!r}, {token!r})\n"
    start = f"__import__('_thread').start_new_thread(exec, ({text!r}, {{'__name__': '_tuimon_boot'}}))"
    return _encoded(f"try: {start}\nexcept (RuntimeError, MemoryError): pass\n")


def _encoded(text: str) -> bytes:
    encoded = text.encode("utf-8")
    if b"\0" in encoded:
        raise ValueError("a NUL would end the script")
    return encoded
