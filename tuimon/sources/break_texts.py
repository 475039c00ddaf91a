"""Dynamo's texts about graph breaks, taken apart. They are written for people and change from release to release.

What is read here is the form that torch 2.9 to 2.14 write: a place, a sentence about what Dynamo did, the type of the break,
explanation and hints, and the user's traceback. What is not found is empty, and a text in which nothing is found is a break of
unknown kind: never none, and never an error.
"""

from __future__ import annotations

import re

from tuimon import events as ev

Stack = tuple[tuple[str, int, str], ...]

LONGEST = 256 * 1024
"""Characters of a text that are looked at: torch's texts about one graph break take a tenth of it."""

LONGEST_LINE = 2000
"""Characters of a line that are looked at."""

DEEPEST = 200
"""Lines of a stack that are kept: the innermost."""

MOST_HINTS = 20

UNKNOWN = "unknown"

_PLACE = re.compile(r"^Graph [Bb]reak in user code at (?P<file>.+):(?P<line>\d+)\s*$")
_REASON = re.compile(r"^(?:Graph Break )?Reason: (?P<reason>.*)$")
_GB_ID = re.compile(r"/gb/gb(?P<number>\d+)\.html")
_STACK_LINE = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d{1,9}), in (?P<function>.+)$')
_RESUME = re.compile(r"^torch_dynamo_resume_in_(?P<function>.+)_at_\d+$")

# reasons that the code itself asked for; everything else is Dynamo's limitation
_REQUESTED = (
    "Skip calling `torch.compiler.disable()`d function",
    "Call to `torch._dynamo.graph_break()`",
    "Skip inlining `torch.compiler.disable()`d function",
)
_SECOND = "*** While handling this graph break"
_USER_PARTS = ("User code traceback:", "The graph break occurred in the following user code:")
_TRACEBACK = "Traceback (most recent call last)"
_FIELDS = ("Explanation:", "Hint:", "Developer debug context:")


def graph_broke(
    t_ns: int,
    compile_id: str | None,
    attempt: int,
    text: str,
    stack: Stack = (),
    *,
    before_attach: bool = False,
    skipped: bool = False,
    at: tuple[int | None, int | None] = (None, None),
) -> ev.GraphBroke:
    """Dynamo's text about a graph break as an event.

    `stack` is given where the text does not contain it; `at` is the instruction, (code object's number, offset), where that is
    known; `skipped` says that the frame is known to be skipped whole, where the text does not.
    """
    lines = [line[:LONGEST_LINE] for line in text[:LONGEST].splitlines()]
    user_part = _user_part(lines)
    stack = (stack or _stack(user_part))[-DEEPEST:]
    place = next((match for match in map(_PLACE.match, lines) if match), None)
    file, line, function = stack[-1] if stack else ("", 0, "?")
    if place is not None:
        file, line = place["file"], _number(place["line"])
        function = next((name for at_file, number, name in reversed(stack) if (at_file, number) == (file, line)), function)
    named = _RESUME.match(function)
    first = lines[0] if lines else ""
    says_so = "results in a skip" in first or any("torch.compile will skip tracing the frame" in one for one in lines)
    kinds = _kinds(lines)
    headline = first if says_so else _headline(lines, kinds[0])
    kind = kinds[0] or _without_fields(lines, says_so)
    gb_id = next((match for match in map(_GB_ID.search, lines) if match), None)
    return ev.GraphBroke(
        t_ns=t_ns,
        compile_id=compile_id,
        attempt=attempt,
        reason=first if says_so else kind,
        kind=kind,
        gb_id=f"GB{gb_id['number']}" if gb_id else None,
        function=named["function"] if named else function,
        file=file,
        line=line,
        explanation=next(iter(_fields(lines, "Explanation:")), ""),
        hints=tuple(_fields(lines, "Hint:")[:MOST_HINTS]),
        requested=kind.startswith(_REQUESTED),
        skipped_frame=says_so or skipped,
        stack=stack,
        before_attach=before_attach,
        headline=headline,
        also=kinds[1],
        code=at[0],
        offset=at[1],
        source=_source(user_part, file, line),
    )


def _number(digits: str) -> int:
    return int(digits) if len(digits) < 10 else 0


def _user_part(lines: list[str]) -> list[str]:
    """The user's traceback: what lies between its heading and the traceback of Dynamo's own exception."""
    begin = next((at + 1 for at, line in enumerate(lines) if line.strip().startswith(_USER_PARTS)), 0)
    end = next((at for at in range(begin, len(lines)) if lines[at].startswith(_TRACEBACK)), len(lines))
    return lines[begin:end]


def _stack(user_part: list[str]) -> Stack:
    found = [match for match in map(_STACK_LINE.match, user_part) if match]
    return tuple((match["file"], int(match["line"]), match["function"].rstrip()) for match in found)


def _source(user_part: list[str], file: str, line: int) -> str:
    """The line of code that the traceback quotes for a place, as its innermost frame has it."""
    for at in range(len(user_part) - 2, -1, -1):
        match = _STACK_LINE.match(user_part[at])
        if match and (match["file"], int(match["line"])) == (file, line):
            quoted = user_part[at + 1].strip()
            return "" if _STACK_LINE.match(user_part[at + 1]) or not quoted.strip("~^ ") else quoted
    return ""


def _kinds(lines: list[str]) -> tuple[str, str]:
    """The type of the break, and that of a second one that came up while Dynamo handled it; "" where there is none.

    A type stands on the line before "Explanation:".
    """
    second = next((at for at, line in enumerate(lines) if line.startswith(_SECOND)), len(lines))
    return _type_in(lines[:second]), _type_in(lines[second + 1 :])


def _type_in(lines: list[str]) -> str:
    for number, line in enumerate(lines):
        if line.strip().startswith("Explanation:"):
            before = next((one.strip() for one in reversed(lines[:number]) if one.strip()), "")
            return _REASON.sub(r"\g<reason>", before)
    return ""


def _headline(lines: list[str], kind: str) -> str:
    """The sentence behind "Graph Break Reason:", where the type stands on a line of its own."""
    found = next((match["reason"].strip() for match in map(_REASON.match, lines) if match), "")
    return "" if not kind or found == kind else found


def _without_fields(lines: list[str], skipped: bool) -> str:
    """What to call a break whose text has no type."""
    found = next((match["reason"].strip() for match in map(_REASON.match, lines) if match), "")
    if found:
        return found
    if skipped:
        return "the frame cannot be resumed and is skipped"
    return next((line.strip() for line in lines if line.strip()), UNKNOWN)


def _fields(lines: list[str], name: str) -> list[str]:
    """The texts behind `name`, each with its continuation lines, up to the next field or an empty line."""
    found: list[str] = []
    taking = False
    for raw in lines:
        line = raw.strip()
        if line.startswith(name):
            found.append(line[len(name) :].strip())
            taking = True
        elif not line or line.startswith(_FIELDS):
            taking = False
        elif taking and len(found[-1]) < LONGEST_LINE:
            found[-1] += " " + line
    return found
