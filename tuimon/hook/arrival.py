"""Noticing, on the thread that imports it, that torch has come."""

import sys

from .remains import Mortal


class Arrival(metaclass=Mortal):
    """A finder that finds nothing and notices that torch is being imported."""

    def __init__(self, session):
        self._session = session

    def find_spec(self, name, path=None, target=None):
        """Nothing, ever."""
        if name.startswith("torch.") and hasattr(sys.modules.get("torch.autograd.profiler"), "record_function"):
            self._session.guarded("import watch", self._session.torch_is_there, None)
            self.leave()

    def leave(self):
        """Take it off the import path, by a new list: an import that is under way goes through the old one to its end.

        To shorten that list under it would make it pass a finder over and fail to find what is there.
        """
        if self in sys.meta_path:
            sys.meta_path = [finder for finder in sys.meta_path if finder is not self]
        return self not in sys.meta_path
