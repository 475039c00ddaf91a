# ruff: noqa: BLE001, SIM105 - the program must run whatever fails here, and nothing be imported that need not be
"""Attaches tuimon to a program that `tuimon run` starts, before the program's first line.

First it takes itself out of the environment and of the path, so that nothing which this program starts inherits it; then the
user's own sitecustomize, if there is one, runs as it would have; then the hook comes in. Whatever fails here, the program
runs. A launcher of others (torchrun) is not what the user wants to see: it passes the environment on and is left alone.
"""


def _take_out():
    """What tuimon wants of this process, or None; the environment and the path are as the user had them afterwards."""
    import json
    import os
    import sys

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    text = os.environ.get("TUIMON_CONNECT")
    if text is None:
        return None
    wish = json.loads(text)
    if _is_launcher(sys.orig_argv):
        return None
    del os.environ["TUIMON_CONNECT"]
    # a script that started this program may have added to the variable: only our own part of it goes
    users = wish.get("pythonpath")
    ours = here + os.pathsep + users if users else here
    left = os.environ.get("PYTHONPATH", "").replace(ours, users or "", 1)
    if left or users is not None:
        os.environ["PYTHONPATH"] = left
    else:
        os.environ.pop("PYTHONPATH", None)
    if os.environ.get("RANK", "0") != "0":
        return None
    return wish


def _is_launcher(argv):
    """Whether this process only starts the ones that train."""
    import os

    programs = ("torchrun", "accelerate", "deepspeed")
    modules = (
        "torch.distributed.run",
        "torch.distributed.launch",
        "accelerate.commands.launch",
        "accelerate.commands.accelerate_cli",
    )
    for at, word in enumerate(argv[1:4], 1):
        if word == "-m":
            return argv[at + 1 : at + 2] != [] and argv[at + 1] in modules
        if not word.startswith("-"):
            return os.path.basename(word) in programs
    return False


def _users_own():
    """Run the sitecustomize that would have been found without ours."""
    import importlib.machinery
    import importlib.util
    import sys

    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _attach(wish):
    """Run the bootstrap that lies beside this directory."""
    import os

    beside = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    names = {"__name__": "_tuimon_boot"}
    for part in ("boot_line.py", "boot.py"):
        with open(os.path.join(beside, part), encoding="utf-8") as file:
            exec(compile(file.read(), "<tuimon>", "exec"), names)
    names["boot_here"](wish["path"], wish["token"])


try:
    _wish = _take_out()
except Exception:
    _wish = None
try:
    _users_own()
finally:
    if _wish is not None:
        try:
            _attach(_wish)
        except Exception:
            pass
    for _name in ("_take_out", "_is_launcher", "_users_own", "_attach", "_wish", "_name"):
        globals().pop(_name, None)
