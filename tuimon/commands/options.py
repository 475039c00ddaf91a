"""What a command is told beside its own arguments, and how it speaks."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tuimon import plain
from tuimon.draw.text import harmless, wrap

if TYPE_CHECKING:
    from tuimon.commands.phases import PhasePlan
    from tuimon.config import Config
    from tuimon.model import Model

DONE, FAILED, USAGE, CANNOT_ATTACH = 0, 1, 2, 3
"""The exit statuses of the contract."""


@dataclass(frozen=True)
class Record:
    """What `tuimon record` is to write."""

    path: Path
    """A file; a folder, with one file for each, where several processes are meant."""
    most: int = 512 << 20
    """Bytes on the disk, of each process; beyond it the oldest are dropped, but for the begin."""
    source: bool = False
    """Whether lines of the job's source, and what it prints, may be in it."""
    force: bool = False
    """Whether a file that is there is replaced."""


@dataclass(frozen=True)
class Options:
    """The options that every command takes."""

    headless: bool = False
    duration: float | None = None
    """Seconds, from the attach."""
    steps: int | None = None
    format: str = "text"
    output: Path | None = None
    interval: float | None = None
    """Seconds between two updates of the screen; without a screen, between two lines on stderr."""
    theme: str | None = None
    ascii: bool = False
    no_color: bool = False
    background: str = "auto"
    """Of the terminal: "dark", "light", or it is asked."""
    mouse: bool | None = None
    """Whether the screen takes the mouse; None: as is usual here."""
    clipboard: bool = True
    """Whether `y` may set the terminal's clipboard."""
    ceilings: Path | None = None
    """A user's own ceilings and machines, beside those of his folder."""
    step: str | None = None
    """"module:function" of what a step of the job begins with."""
    slow_over_ms: float | None = None
    """How much longer than the usual a slow step takes at least; None: as the rule has it."""
    stacks: bool = True
    """Whether the job's stack may be looked at while nothing else tells what it does."""
    pcie: bool = False
    """Whether to read what the GPUs move over PCIe, for which the driver holds up the reading thread."""
    record: Record | None = None
    """Where all that is seen goes, too."""
    phases: tuple[PhasePlan, ...] = ()
    """The phases of an experiment that are marked in what is watched."""
    prometheus: Path | None = None
    """The file that always has the latest of everything, for a node exporter's textfile folder."""
    reported: bool = True
    """Whether there is a report at the end of watching without a screen."""
    config: Config | None = None
    """The settings that these options were made of, for whoever tells where they come from."""

    @property
    def problems(self) -> tuple[str, ...]:
        """Sentences on settings that cannot be used."""
        return () if self.config is None else self.config.problems

    @property
    def hook(self) -> dict[str, object]:
        """What goes to the hook: only what is not as usual."""
        told: dict[str, object] = {} if self.step is None else {"step": self.step}
        return told if self.stacks else {**told, "stacks": False}

    def judge(self, model: Model) -> None:
        """Have this model judge slow steps as was asked for."""
        if self.slow_over_ns is not None:
            model.slowness.set_over(self.slow_over_ns)

    @property
    def slow_over_ns(self) -> int | None:
        """How much longer than the usual a slow step takes at least, in ns; None: as the rule has it."""
        return None if self.slow_over_ms is None else round(self.slow_over_ms * 1e6)

    @property
    def screen(self) -> bool:
        """Whether to show the monitor: there is a terminal at both ends that can, and nobody asked for a report instead."""
        return not self.headless and not is_dumb() and sys.stdin.isatty() and sys.stdout.isatty()


def is_dumb() -> bool:
    """Whether the terminal says that it can show lines only."""
    return os.environ.get("TERM", "").lower() == "dumb"


@dataclass(frozen=True)
class Far:
    """Where a command is to look, if not here."""

    place: str | None = None
    """ssh://[user@]host[:port]"""
    via: str | None = None
    """A command that runs its arguments over there."""
    send: bool = False
    """Whether tuimon may be sent along without asking."""
    nodes: tuple[str, ...] = ()
    """Hosts, beside those that are named as ssh:// addresses."""
    fold: bool | None = None
    """Whether the calls of jobs on other hosts are folded there; None: where the jobs are many."""


def say(text: str) -> None:
    """Narrate on stderr, whatever the text is made of; broken between words where that is a terminal. Data never goes there."""
    line = f"tuimon: {harmless(text)}"
    try:
        if sys.stderr.isatty():
            line = "\n  ".join(wrap(line, max(20, shutil.get_terminal_size().columns - 2)))
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
    except OSError:
        pass  # nobody listens


def _print(text: str) -> None:
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError:  # of a locale without UTF-8; nothing has been written
        encoding = sys.stdout.encoding
        if text.startswith("{"):  # JSON: UTF-8 by contract, whatever the locale
            sys.stdout.flush()
            sys.stdout.buffer.write(text.encode())
        else:
            sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
    sys.stdout.flush()


def deliver(text: str, output: Path | None, *, coloured: bool = False) -> int:
    """Data to stdout, or to the file that -o names. Gives the exit status: 1, with a sentence, where it cannot be written.

    Nothing in it acts on a terminal, unless it is `coloured`: then whoever made it has seen to that.
    """
    if not coloured:
        text = harmless(text)
    if output is None:
        try:
            _print(text)
        except BrokenPipeError:
            # whoever read has had enough; without this, the interpreter complains once more when it closes stdout
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except OSError as error:
            say(f"the report could not be written to stdout: {error.strerror}")
            return FAILED
        return DONE
    try:
        plain.put(output, text.encode("utf-8"))
    except OSError as error:
        say(f"the report could not be written: {error.strerror}: {output}")
        return FAILED
    say(f"report written to {output}")
    return DONE
