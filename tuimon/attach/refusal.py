"""The one way in which attaching says no."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the helper, which starts anew for each attach, needs none of it
    import subprocess


class Refused(Exception):
    """Attaching is not possible, or did not work; the target is as it was.

    `code` is short and stable (scripts and tests rely on it), `sentence` says what is the matter and what to do next.
    `process` is set by `launch` alone: the program that was started and runs on without tuimon.
    """

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
        self.process: subprocess.Popen[bytes] | None = None
