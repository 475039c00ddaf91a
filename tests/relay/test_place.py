"""Addresses: what they become, and what is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuimon.relay import place


@pytest.fixture(autouse=True)
def plain_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    """No ssh of the user's."""
    monkeypatch.delenv(place.SSH_VARIABLE, raising=False)


@pytest.mark.parametrize(
    ("address", "name", "end", "pid"),
    [
        ("ssh://gpu7/12345", "gpu7", ["--", "gpu7"], 12345),
        ("ssh://gpu7", "gpu7", ["--", "gpu7"], None),
        ("ssh://gpu7/", "gpu7", ["--", "gpu7"], None),
        ("ssh://kim@gpu7.lab.example:2222/1", "gpu7.lab.example", ["-p", "2222", "-l", "kim", "--", "gpu7.lab.example"], 1),
        ("ssh://kim@10.0.0.7/9", "10.0.0.7", ["-l", "kim", "--", "10.0.0.7"], 9),
        ("ssh://[::1]/7", "::1", ["--", "::1"], 7),
        ("ssh://kim@[fe80::1%eth0]:22/7", "fe80::1%eth0", ["-p", "22", "-l", "kim", "--", "fe80::1%eth0"], 7),
    ],
)
def test_address(address: str, name: str, end: list[str], pid: int | None) -> None:
    found, number = place.parse(address)
    assert (found.name, number) == (name, pid)
    assert found.command[0] == "ssh" and list(found.command)[-len(end) :] == end
    assert found.shell == [*found.command, "sh"]


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("gpu7/1", "no address"),
        ("http://gpu7/1", "no address"),
        ("ssh://", "no host name"),
        ("ssh:///1", "no host name"),
        ("ssh://-oProxyCommand=reboot/1", "no host name"),
        ("ssh://kim@-oProxyCommand=reboot/1", "no host name"),
        ("ssh://-l@gpu7/1", "no user name"),
        ("ssh://kim:secret@gpu7/1", "no address"),
        ("ssh://kim@you@gpu7/1", "no address"),
        ("ssh://gpu7:0/1", "no port"),
        ("ssh://gpu7:65536/1", "no port"),
        ("ssh://gpu7:/1", "no port"),
        ("ssh://gpu7:22x/1", "no port"),
        ("ssh://gpu7/0", "no process id"),
        ("ssh://gpu7/-1", "no process id"),
        ("ssh://gpu7/12a", "no process id"),
        ("ssh://gpu7/٣", "no process id"),
        ("ssh://gpu7/99999999999", "no process id"),
        ("ssh://gpu7/1/2", "no address"),
        ("ssh://gpu7;reboot/1", "no host name"),
        ("ssh://gpu 7/1", "no address"),
        ("ssh://[::1/1", "no address"),
        ("ssh://[gpu7]/1", "no IPv6 address"),
        ("ssh://::1/1", "no address"),
    ],
)
def test_no_address(address: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        place.parse(address)


@given(st.text(alphabet=st.sampled_from("ssh:/@[]%-.ab12 \n'\"$;٣"), max_size=30))
def test_no_text_becomes_an_option_of_ssh(rest: str) -> None:
    try:
        found, pid = place.parse(f"ssh://{rest}")
    except ValueError:
        return
    *_, dashes, host = found.command
    assert dashes == "--" and not host.startswith("-") and host == found.name
    assert not any(mark in host for mark in " \n'\"$;/@")
    assert pid is None or pid > 0
    if "-l" in found.command:
        assert not found.command[found.command.index("-l") + 1].startswith("-")


def test_ssh_of_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(place.SSH_VARIABLE, "ssh -F '/tmp/my config'")
    assert place.parse("ssh://gpu7/1")[0].command[:3] == ("ssh", "-F", "/tmp/my config")
    monkeypatch.setenv(place.SSH_VARIABLE, "ssh 'open")
    with pytest.raises(ValueError, match="TUIMON_SSH"):
        place.parse("ssh://gpu7/1")


def test_via() -> None:
    found = place.via("kubectl exec -i 'my pod' -- ")
    assert found.command == ("kubectl", "exec", "-i", "my pod", "--")
    assert found.name == "kubectl exec -i my pod" and found.there == "`kubectl exec -i my pod`" and not found.ssh
    assert len(place.via("env " + "x" * 500).name) < 70
    for wrong in ("", "  ", "docker 'exec"):
        with pytest.raises(ValueError, match="--via"):
            place.via(wrong)
