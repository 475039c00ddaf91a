"""The handler on torch's trace, without torch."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any

from tuimon.hook.compile_log import LOGGER, CompileLog
from tuimon.hook.undo import Undo


class Hook:
    """What the handler needs of a session."""

    def __init__(self) -> None:
        self.here = [True]
        self.undo = Undo()

    def falls_silent(self) -> None:
        self.here[0] = False

    def guarded(self, name: str, function: Callable[..., Any], otherwise: Any, *args: Any) -> Any:
        return function(*args)

    def instrument(self, name: str, state: str) -> None:
        pass


def test_a_forked_child_has_no_handler_and_no_hook() -> None:
    hook, logger = Hook(), logging.getLogger(LOGGER)
    before = list(logger.handlers)
    CompileLog(hook).watch()
    try:
        child = os.fork()
        if child == 0:
            os._exit(0 if logger.handlers == before and hook.here == [False] else 1)
        status = os.waitpid(child, 0)[1]
        assert len(logger.handlers) == len(before) + 1 and hook.here == [True]
    finally:
        assert hook.undo.run() == []
    assert status == 0 and logger.handlers == before
