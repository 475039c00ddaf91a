"""What is loaded behind the first picture, and pictures that are held until they have something in them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from textual._compositor import ChopsUpdate

from tests.support.fake_feed import FakeFeed
from tests.support.monitor import Driven, drive
from tuimon.app import later
from tuimon.app.later import Figures, Later
from tuimon.app.tty import terminal


def run(figures: Figures | None) -> Later:
    found = Later(None if figures is None else lambda: figures)
    found.begin()
    assert found._thread is not None
    found._thread.join()
    return found


def test_it_comes_once_whatever_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(later, "MODULES", ("tuimon.is_not_there", "tuimon.app.details.opening"))
    assert Later(None).take() == (False, None)
    figures = Figures(problems=("a",))
    found = run(figures)
    assert [found.take(), found.take()] == [(True, figures), (False, None)]
    assert run(None).take() == (True, None)


def test_figures_that_cannot_be_read_are_a_sentence() -> None:
    def read() -> Figures:
        raise RuntimeError("odd")

    found = Later(read)
    found.begin()
    assert found._thread is not None
    found._thread.join()
    assert found.take() == (True, Figures(problems=("the figures of machines cannot be read: odd",)))


def test_a_picture_that_was_held_is_painted_whole_though_its_time_came_when_nothing_could_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    painted: list[Any] = []
    can_draw = [True]

    async def body(on: Driven) -> None:
        app, screen = on.app, on.app.screen
        monkeypatch.setattr(terminal, "can_draw", lambda _app: can_draw[0])
        monkeypatch.setattr(app.painter, "paint", lambda rows=None: painted.append(rows))
        widget = SimpleNamespace(display=True, size=SimpleNamespace(area=80), drawn=False)
        app._painted, app._lines_of, app._lines = screen, screen, [widget]  # type: ignore[list-item]
        picture = ChopsUpdate([], [(3, 0, 9)], [])
        app._display(screen, picture)
        assert painted == [] and app._held_s is not None  # held
        app._held_s -= 2.0
        can_draw[0] = False
        app._held_long_enough(app._held_s)
        assert painted == []
        can_draw[0] = True
        app._display(screen, picture)
        app._display(screen, picture)
        can_draw[0] = False

    drive(FakeFeed(), (80, 24), body)
    assert painted == [None, {3}]
