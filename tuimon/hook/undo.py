"""What has to be put back, and proof that it was.

Each instrument adds one entry per thing it changed: how to put it back and how to see that it is back. They run in reverse
order; one that fails does not keep the others from running, and is named.
"""

import contextlib

from .remains import Mortal


class Undo(metaclass=Mortal):
    """A list of (name, put_back); `put_back()` raises or gives False where it did not succeed."""

    def __init__(self):
        self._entries = []
        self._over = False

    def add(self, name, put_back):
        """Remember one thing that was changed; what comes after `run` has begun is put back by it, or at once."""
        entry = (name, put_back)
        self._entries.append(entry)
        if self._over:
            with contextlib.suppress(ValueError):  # `run` has come by
                self._entries.remove(entry)
                _done(put_back)

    def attribute(self, owner, name, ours, original):
        """Remember that `owner.name` was `original` (None: it had none of its own) and is now `ours`.

        It is put back only where it still is ours: somebody else may have wrapped it since, and then theirs stays.
        """

        def put_back():
            if vars(owner).get(name) is not ours:
                return False
            if original is None:
                delattr(owner, name)
                return name not in vars(owner)
            setattr(owner, name, original)
            return vars(owner).get(name) is original

        self.add(f"{getattr(owner, '__name__', owner)}.{name}", put_back)

    def run(self):
        """Put everything back; gives the names of what could not be."""
        self._over = True
        left = []
        while True:
            try:
                name, put_back = self._entries.pop()
            except IndexError:
                return left
            fault = _done(put_back)
            if fault is not None:
                left.append(name + fault)


def _done(put_back):
    """None where it has been put back; otherwise what is to be said after its name."""
    try:
        return "" if put_back() is False else None
    except Exception as error:  # noqa: BLE001 - the rest must still be put back
        return f" ({error!r})"
