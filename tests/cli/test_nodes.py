"""Where a command looks: the nodes that are named, or the one place that a command leads to."""

from __future__ import annotations

import contextlib

import pytest

from tuimon.attach.refusal import Refused
from tuimon.commands.attach import Wanted, _ways
from tuimon.commands.nodes import places_of
from tuimon.commands.options import Far, Options


def test_a_command_without_nodes_needs_no_place_for_their_name() -> None:
    assert places_of([], "kubectl exec -i pod --") == []
    assert [one.name for one in places_of(["a", "b"], "srun -w {}")] == ["a", "b"]
    with pytest.raises(ValueError, match="--nodes with --via"):
        places_of(["a"], "srun")


def test_one_process_behind_a_command_is_reached_by_it() -> None:
    with contextlib.ExitStack() as links, pytest.raises(Refused):
        _ways(Wanted([1], {}), Far(via="false"), links, Options(), everybody=False, patience=1.0)
