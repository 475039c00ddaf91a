"""Commands: every action of the table as a thing to find by its name, and whether it can be done here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from textual.dom import DOMNode
from textual.screen import Screen

from tuimon.app.action import Action, Scope
from tuimon.app.keymap import TABLES

if TYPE_CHECKING:
    from tuimon.app.everywhere import Everywhere


LEAVE = "app.quit"
"""Not first where nothing was typed: enter at once must do no more than a look at a list may."""


class Command(NamedTuple):
    """One row of the list."""

    title: str
    keys: str
    help: str
    run: Callable[[], None] | str
    """A function, or the call of an action."""
    on: DOMNode | None = None
    """The screen (or the app) that the action is one of: what lies over it is left first. None: the screen on top."""
    why_not: str = ""
    """Why it cannot be done here; "": it can."""


class Place(NamedTuple):
    """A scope as seen from the screen on top."""

    scope: Scope
    on: DOMNode | None = None
    why_not: str = ""
    """Why none of its actions can be done here."""


def listed(app: Everywhere[Any], places: Sequence[Place], several: bool = False) -> Iterator[Command]:
    """The actions of these scopes; of two with one call the first. Those of the first scope go by their name alone."""
    seen: set[tuple[str, DOMNode | None]] = set()
    for number, place in enumerate(places):
        for action in TABLES[place.scope]:
            known = (action.call, None if action.call.startswith("app.") else place.on)
            if known in seen:
                continue
            seen.add(known)
            title = action.label if number == 0 or place.scope == "main" else f"{place.scope}: {action.label}"
            why_not = place.why_not or _why_not(app, action, several)
            yield Command(title, action.shown, action.help, action.call, place.on, why_not)
    if app.colour_off:
        return
    for name, theme in app.themes.themes.items():
        yield Command(f"theme: {name}", "", theme.title, lambda name=name: app.use_theme(name))  # type: ignore[misc]


def _why_not(app: Everywhere[Any], action: Action, several: bool) -> str:
    if action.several and not several:
        return "one process is watched"
    return app.why_not(action.why_not)


def do(app: Everywhere[Any], chosen: Command | None, below: Screen[Any]) -> None:
    """Do what was chosen, on its screen."""
    if chosen is None:
        return
    if callable(chosen.run):
        chosen.run()
        return
    app.call_next(_do, app, chosen.run, chosen.on or below)


async def _do(app: Everywhere[Any], call: str, on: DOMNode) -> None:
    bottom = app.screen_stack[0] if on is app else on
    while app.screen is not bottom and bottom in app.screen_stack:
        await app.pop_screen()
    await app.run_action(call, on)


def found(commands: Sequence[Command], wanted: str) -> list[Command]:
    """The commands that what was typed may mean, the likeliest first; those that cannot be done here last of all."""
    scored = [(score, command) for command in commands if (score := likeness(command, wanted)) is not None]
    scored.sort(key=lambda one: (bool(one[1].why_not), one[0], one[1].run == LEAVE))
    return [command for _, command in scored]


def likeness(command: Command, wanted: str) -> int | None:
    """How well it fits what was typed, 0 the best; None: not at all. Beginnings of words are better than letters."""
    typed = wanted.casefold().strip()
    title, text = command.title.casefold(), command.help.casefold()
    if not typed or title == typed or command.keys == wanted.strip():
        return 0
    words = title.replace("(", "").replace(":", " ").split()
    if title.startswith(typed):
        return 1
    if all(any(word.startswith(part) for word in words) for part in typed.split()):
        return 2
    if _begins(typed.replace(" ", ""), words):
        return 3
    if typed in title:
        return 4
    if all(part in text for part in typed.split()):
        return 5
    return 6 if _in_order(typed.replace(" ", ""), title) else None


def _begins(typed: str, words: Sequence[str]) -> bool:
    """Whether it is made of beginnings of some of the words, in their order: `nex ra` or `nr` of `next rank`."""
    if not typed:
        return True
    for at, word in enumerate(words):
        for length in range(min(len(word), len(typed)), 0, -1):
            if word[:length] == typed[:length] and _begins(typed[length:], words[at + 1 :]):
                return True
    return False


def _in_order(typed: str, text: str) -> bool:
    letters = iter(text)
    return all(letter in letters for letter in typed)
