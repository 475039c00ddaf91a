"""A profiler window's file lies on the job's host: the far end reads it, and what was in it goes over the line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.sources.test_graph_messages import TRACE, window
from tuimon import events as ev
from tuimon.hook import wire
from tuimon.relay.attachment import Attachment
from tuimon.sources.live import LiveDecoder


class Line:
    """Keeps the frames that would go out, as what they say at the near end."""

    def __init__(self) -> None:
        self.told: list[ev.Event] = []
        self._near = LiveDecoder(1, "", "injected")

    def frame(self, session: int, kind: int, body: bytes) -> None:
        """A frame of session 1."""
        assert session == 1
        self.told += self._near.frame(kind, body)


@pytest.fixture
def far(tmp_path: Path) -> Attachment:
    """An attachment whose session is this process."""
    found = Attachment.__new__(Attachment)
    found.number, found._folding, found._whole = 1, None, False
    there = SimpleNamespace(pid=os.getpid(), trace_folder=lambda: os.open(tmp_path, os.O_RDONLY))
    found._out, found._session = Line(), there  # type: ignore[assignment]
    return found


def test_the_far_end_reads_it(far: Attachment, tmp_path: Path) -> None:
    path = tmp_path / "tuimon-window-1-3.json"
    path.write_text(json.dumps(TRACE))
    far._frame(wire.JSON_FRAME, wire.json_frame(window(str(path)))[wire.HEADER.size :])
    changed, seen = far._out.told  # type: ignore[attr-defined]
    assert isinstance(changed, ev.WindowChanged) and changed.state == "closed"
    assert isinstance(seen, ev.KernelsSeen) and seen.rows[0][1] == "aten::mm"
    assert not path.exists()


def test_a_message_that_is_malformed_is_for_the_near_end_to_tell(far: Attachment) -> None:
    broken = {"k": "window", "t": 1, "window": "x", "state": "open"}
    with pytest.raises(wire.WireError, match=r"WindowChanged\.window"):
        far._frame(wire.JSON_FRAME, wire.json_frame(broken)[wire.HEADER.size :])
