"""Where another tuimon is to run, and the command that gets there."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass

from tuimon.draw.text import clean, cut

SSH_VARIABLE = "TUIMON_SSH"
"""Replaces `ssh` for ssh:// addresses: "ssh -F file", another program that takes the same options."""

# alive: a cut line is noticed after 15 s. None of the user's forwardings, of no use here, may fail or stand in the way.
_SSH_OPTIONS = ("-T", "-a", "-x", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3",
                "-o", "ClearAllForwardings=yes", "-o", "RemoteCommand=none")  # fmt: skip

LONGEST_NAME = 60

_ADDRESS = re.compile(
    r"(?:(?P<user>[^@/\s]*)@)?(?:\[(?P<six>[^\]/@\s]*)\]|(?P<host>[^:/@\s\[\]]*))(?::(?P<port>[^/@]*))?(?:/(?P<pid>[^/]*))?"
)
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*\Z")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-+\\$]*\Z")
_SIX = re.compile(r"[0-9A-Fa-f:.]+(?:%[A-Za-z0-9_.\-]+)?\Z")


@dataclass(frozen=True, slots=True)
class Place:
    """Another host or container."""

    name: str
    """What to call it in front of a person."""
    command: tuple[str, ...]
    """A program and its arguments; with `sh` behind them, it runs a shell over there whose standard streams are its own."""
    ssh: bool
    """Whether the command is an ssh of ours: then its words go into what is said about a failure."""

    @property
    def there(self) -> str:
        """Its name, for the middle of a sentence."""
        return self.name if self.ssh else f"`{self.name}`"

    @property
    def shell(self) -> list[str]:
        """The command that is started: a shell over there.

        One plain word is all that is asked to run. Everything else goes over its standard input, so that no quoting on
        the way (ssh hands its arguments to the user's login shell, whichever that is) has a say in it.
        """
        return [*self.command, "sh"]

    @property
    def program(self) -> str:
        """The program's name."""
        return os.path.basename(self.command[0])


def parse(address: str) -> tuple[Place, int | None]:
    """`ssh://[user@]host[:port][/PID]` as a place and the PID. Raises ValueError with a sentence when it is none."""
    wrong = f"{address!r} is no address of the form ssh://[user@]host[:port]/PID"
    scheme, separator, rest = address.partition("://")
    found = _ADDRESS.fullmatch(rest) if separator and scheme == "ssh" else None
    if found is None:
        raise ValueError(wrong)
    user, host = found["user"], found["six"] if found["six"] is not None else found["host"]
    if found["six"] is not None:
        if not _SIX.match(host) or ":" not in host:
            raise ValueError(f"{wrong}: [{host}] is no IPv6 address")
    elif not _NAME.match(host):
        # also what begins with a hyphen: ssh would take it for an option
        raise ValueError(f"{wrong}: {host!r} is no host name")
    if user is not None and ":" in user:
        raise ValueError(f"{wrong}: a password is not taken here; ssh asks for it")
    if user is not None and not _USER.match(user):
        raise ValueError(f"{wrong}: {user!r} is no user name")
    port = None if found["port"] is None else _number(found["port"], f"{wrong}: {found['port']!r} is no port", 65535)
    pid = None if not found["pid"] else _number(found["pid"], f"{wrong}: {found['pid']!r} is no process id", 2**31 - 1)
    command = [*_ssh(), *_SSH_OPTIONS]
    if port is not None:
        command += ["-p", str(port)]
    if user is not None:
        command += ["-l", user]
    return Place(host, (*command, "--", host), ssh=True), pid


def via(command: str) -> Place:
    """A command to which another one can be appended, as in `kubectl exec -i pod --`. Raises ValueError with a sentence."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"--via {command!r} cannot be read: {error}") from None
    if not words:
        raise ValueError("--via wants a command that runs another one elsewhere, for instance 'kubectl exec -i POD --'")
    # without what only ends the options of the command
    name = clean(" ".join(words[:-1] if words[-1] == "--" and len(words) > 1 else words))
    return Place(cut(name, LONGEST_NAME, ".."), tuple(words), ssh=False)


def _ssh() -> list[str]:
    given = os.environ.get(SSH_VARIABLE, "")
    try:
        return shlex.split(given) or ["ssh"]
    except ValueError as error:
        raise ValueError(f"{SSH_VARIABLE}={given!r} cannot be read: {error}") from None


def _number(text: str, wrong: str, most: int) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:12]) <= most and len(text) <= 12):
        raise ValueError(wrong)
    return int(text)
