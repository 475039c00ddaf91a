"""Everything is put back, in reverse order, whatever fails, and what is not put back is named."""

from __future__ import annotations

from tuimon.hook.undo import Undo


def test_reverse_order_and_failures_named() -> None:
    undo = Undo()
    done: list[str] = []
    undo.add("a", lambda: done.append("a"))
    undo.add("b", lambda: 1 / 0)
    undo.add("c", lambda: False)
    undo.add("d", lambda: done.append("d"))
    left = undo.run()
    assert done == ["d", "a"]
    assert [name.split()[0] for name in left] == ["c", "b"]
    assert undo.run() == []


def test_an_attribute_that_somebody_else_wrapped_since_stays_theirs() -> None:
    class Owner:
        def method(self) -> str:
            return "original"

    original = Owner.__dict__["method"]
    undo = Undo()
    ours = lambda self: "ours"  # noqa: E731
    Owner.method = ours  # type: ignore[assignment]
    undo.attribute(Owner, "method", ours, original)
    theirs = lambda self: "theirs"  # noqa: E731
    Owner.method = theirs  # type: ignore[assignment]
    assert undo.run() == ["Owner.method"]
    assert Owner().method() == "theirs"


def test_an_attribute_is_the_very_object_again() -> None:
    class Base:
        def method(self) -> str:
            return "base"

    class Owner(Base):
        pass

    undo = Undo()
    ours = lambda self: "ours"  # noqa: E731
    Owner.method = ours  # type: ignore[assignment]
    undo.attribute(Owner, "method", ours, None)
    assert undo.run() == []
    assert "method" not in vars(Owner)


def test_what_comes_late_is_put_back_at_once_and_once() -> None:
    undo = Undo()
    done: list[str] = []

    def during() -> None:
        undo.add("late", lambda: done.append("late"))
        done.append("early")

    undo.add("early", during)
    undo.add("fault", lambda: undo.add("late fault", lambda: 1 / 0))
    assert undo.run() == []
    assert done == ["late", "early"]
    undo.add("later", lambda: done.append("later"))
    assert done == ["late", "early", "later"] and undo.run() == []
