"""Noticing, on the thread that imports it, that torch has come."""

import sys

from .remains import Mortal


class Arrival(metaclass=Mortal):
    """A finder that finds nothing and notices that torch is being imported.

    It is asked for every module that is imported, on the importing thread: so it is there as soon as torch's profiler module is
    loaded, before any optimizer exists, for the modules that follow that one within `import torch` are many. It takes itself
    away once it has been of use.
    """

    def __init__(self, session):
        self._session = session

    def find_spec(self, name, path=None, target=None):
        """Nothing, ever."""
        if name.startswith("torch.") and hasattr(sys.modules.get("torch.autograd.profiler"), "record_function"):
            self._session.guarded("import watch", self._session.torch_is_there, None)
            self.leave()

    def enter(self):
        """Put it on the import path, and have it taken away at the end."""
        # a new list: the interpreter keeps the one that it began with (`sys` as it was), and would keep us in it for ever
        sys.meta_path = [self, *sys.meta_path]
        self._session.undo.add("import watch", self.leave)

    def leave(self):
        """Take it off the import path, by a new list: an import that is under way goes through the old one to its end.

        To shorten that list under it would make it pass a finder over and fail to find what is there.
        """
        if self in sys.meta_path:
            sys.meta_path = [finder for finder in sys.meta_path if finder is not self]
        return self not in sys.meta_path
