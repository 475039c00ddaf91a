"""Text of a job's in Markdown, with nothing in it that CommonMark, or GitHub and GitLab beyond it, would act on.

A backslash is not enough: @names, #numbers, web addresses, :names: and $formulas$ are looked for in the text that comes out. So
words of letters, digits and the punctuation of prose stand as they are; every other word stands in a code span, where nothing
means anything, and names of code are set as such on the way.
"""

from __future__ import annotations

import re

from tuimon.draw.text import clean

_NUMBER = r"[-+]?\d+(?:[.,]\d+)*(?:[^\W\d_]+|%)?"
_TIME = r"\d\d:\d\d(?::\d\d)?"
# each character fits one branch only: where two fit the same, a long word that fits in the end not at all takes for ever
_LETTERS = r"[^\W_](?:[^\W_]|[-'/+=,()](?=[^\W_(])|(?![^\W_])[^\x00-\x7f])*"
_PROSE = re.compile(
    rf"""(?:\(|\[|["'])* (?: (?:{_NUMBER}) (?:[-/]{_NUMBER})* (?:\+[^\W_]+)? | {_LETTERS} | [^\x00-\x7f]+ )
    %? (?:\)|\]|["'])* (?:[,;.!?]+|:)?""",
    re.VERBOSE,
)
_CLOCK = re.compile(rf"[(\[]?{_TIME}[)\],;]?")
_LINKED = re.compile(r"//|gh-\d|(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b", re.IGNORECASE)
"""What GitHub makes links of though it looks like prose: addresses, numbers of issues, commits."""
_IN_BRACKETS = re.compile(r"\([^()]+\)")
_TICKED = re.compile(r"`[^`\s](?:[^`]*[^`\s])?`")
MOST_WORDS = 8
"""So far behind a bracket that is opened in code its end is looked for."""
_SIGN = re.compile(r"[-+=/x<>!*%&|^]+")
"""Between two words: an operator."""
_ALONE = frozenset({"-", "+", "=", "==", "/", "--"})
"""Signs that mean nothing but at the begin of a line."""
_BEGINS = re.compile(r"\d{1,9}[.)]|[-+=/]+")
"""Words with which a list, a rule or a heading begins."""


def plain(text: object, *, cell: bool = False) -> str:
    """One line of Markdown that reads as the text does; `cell`: for a cell of a table."""
    words = clean(str(text)).split()
    coded = [not _is_prose(word) for word in words]
    if words and not cell and _BEGINS.fullmatch(words[0]):
        coded[0] = True
    ticked = [at for at, word in enumerate(words) if word.count("`") == 1]
    for begin, end in zip(ticked[::2], ticked[1::2], strict=False):  # `tuimon run`, as our own sentences have it
        if end - begin <= MOST_WORDS:
            coded[begin:end] = [True] * (end - begin)
    for at in range(1, len(words) - 1):  # an operator between two names belongs to them
        coded[at] = coded[at] or (coded[at - 1] and coded[at + 1] and _SIGN.fullmatch(words[at]) is not None)
    told, at = [], 0
    while at < len(words):
        if not coded[at]:
            told.append(re.sub(r"([\[\]])", r"\\\1", words[at]))
            at += 1
            continue
        end = _end(words, coded, at)
        told.append(_code(" ".join(words[at:end]), cell))
        at = end
    return " ".join(told)


def table_row(*cells: object) -> str:
    """A row of a table."""
    return f"| {' | '.join(plain(one, cell=True) for one in cells)} |"


def _is_prose(word: str) -> bool:
    if word in _ALONE or _CLOCK.fullmatch(word):
        return True
    return _PROSE.fullmatch(word) is not None and _LINKED.search(word) is None


def _end(words: list[str], coded: list[bool], at: int) -> int:
    """Where the run of code that begins at `at` ends: no sooner than the brackets do that it opens, if that is near."""
    opened, end = 0, at
    while end < len(words):
        separate = end > at and (words[end - 1][-1] in ",;:" or words[end][0] == "(")
        if opened <= 0 and (not coded[end] or separate) and end > at:
            return end
        if opened > 0 and not coded[end] and not _closes(words[end : end + MOST_WORDS], opened):
            return end
        word = words[end] if end > at else words[end].lstrip("(")
        opened += word.count("(") - word.count(")")
        end += 1
    return end


def _closes(words: list[str], opened: int) -> bool:
    """Whether so many brackets are closed in these."""
    for word in words:
        opened += word.count("(") - word.count(")")
        if opened <= 0:
            return True
    return False


def _code(text: str, cell: bool) -> str:
    """A code span, with the brackets and the punctuation of prose around it left outside."""
    before = after = ""
    while len(text) > 1 and text[0] == "(" and text.count("(") > text.count(")"):
        before, text = before + "(", text[1:]
    if _IN_BRACKETS.fullmatch(text):
        before, text, after = before + "(", text[1:-1], ")"
    while len(text) > 1 and (text[-1] in ",;:" or (text[-1] == ")" and text.count(")") > text.count("("))):
        after, text = text[-1] + after, text[:-1]
    if _TICKED.fullmatch(text):
        text = text[1:-1]
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    if text[0] == "`" or text[-1] == "`":
        text = f" {text} "
    if cell:  # the bar is looked for before the span is; a backslash before it would be counted too
        text = re.sub(r"\\(?=\|)", r"\\ ", text).replace("|", r"\|")
    fence = "`" * (longest + 1)
    return f"{before}{fence}{text}{fence}{after}"
