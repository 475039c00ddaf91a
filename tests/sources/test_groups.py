"""Limits of control groups: both versions and the mixture of them as folders of files, and this machine's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tuimon.sources.groups import Cpu, Groups, Memory, cpu, folders, memory


def put(folder: Path, **files: str) -> Path:
    """A group with these files; "__" in a name stands for a dot."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


class TestSecondVersion:
    def test_the_least_of_all_levels_counts(self, tmp_path: Path) -> None:
        put(tmp_path, cpu__stat="usage_usec 5\n")  # the root of a host has no limits
        put(
            tmp_path / "slice",
            cpu__max="150000 100000\n",
            cpu__stat="usage_usec 9\nnr_periods 100\nnr_throttled 7\nthrottled_usec 1500000\n",
            memory__max="8000\n",
            memory__current="7000\n",
            memory__events="low 0\noom 3\noom_kill 3\n",
        )
        put(
            tmp_path / "slice" / "job",
            cpu__max="400000 100000\n",
            cpu__stat="nr_periods 50\nnr_throttled 1\nthrottled_usec 500000\n",
            memory__max="max\n",
            memory__current="6000\n",
            memory__events="oom_kill 1\n",
        )
        of = folders("0::/slice/job\n", "cpu", tmp_path)
        assert of.version == "v2" and [path.name for path in of.paths[:2]] == ["job", "slice"]
        # two levels that hold back for the same cause are not two causes: no sum
        assert cpu(of) == Cpu(1.5, 100, 7, 1.5)
        # the kills are those in the job's own group
        assert memory(folders("0::/slice/job\n", "memory", tmp_path)) == Memory(8000, 7000, 1)

    def test_of_equal_limits_the_fuller_group_counts(self, tmp_path: Path) -> None:
        put(tmp_path / "a", memory__max="500\n", memory__current="400\n")
        put(tmp_path / "a" / "b", memory__max="500\n", memory__current="100\n")
        assert memory(folders("0::/a/b\n", "memory", tmp_path)) == Memory(500, 400, None)

    def test_no_limit_is_none_and_not_a_number(self, tmp_path: Path) -> None:
        put(tmp_path / "a", cpu__max="max 100000\n", memory__max="max\n", memory__current="400\n")
        assert cpu(folders("0::/a\n", "cpu", tmp_path)) == Cpu()
        assert memory(folders("0::/a\n", "memory", tmp_path)) == Memory()

    def test_in_a_container_the_root_is_its_group_whatever_path_is_told(self, tmp_path: Path) -> None:
        put(tmp_path, cpu__max="200000 100000\n")
        assert cpu(folders("0::/\n", "cpu", tmp_path)).quota_cores == 2.0
        assert cpu(folders("0::/kubepods/pod12/abc\n", "cpu", tmp_path)).quota_cores == 2.0

    def test_a_group_outside_of_what_is_mounted_is_not_guessed(self, tmp_path: Path) -> None:
        put(tmp_path, cpu__max="200000 100000\n")
        assert folders("0::/../elsewhere\n", "cpu", tmp_path).paths == ()

    @pytest.mark.parametrize("text", ["", "max", "what is this", "-5 100000", "100000 0", "100000"])
    def test_a_file_of_another_form_tells_nothing(self, tmp_path: Path, text: str) -> None:
        put(tmp_path, cpu__max=text, cpu__stat="nr_periods many\n\nthrottled_usec\n", memory__max=text)
        assert cpu(folders("0::/\n", "cpu", tmp_path)) == Cpu()
        assert memory(folders("0::/\n", "memory", tmp_path)).used_bytes is None


class TestFirstVersion:
    def test_quota_and_limit(self, tmp_path: Path) -> None:
        put(
            tmp_path / "cpu,cpuacct" / "job",
            cpu__cfs_quota_us="50000\n",
            cpu__cfs_period_us="100000\n",
            cpu__stat="nr_periods 3\nnr_throttled 2\nthrottled_time 250000000\n",
        )
        put(
            tmp_path / "memory" / "job",
            memory__limit_in_bytes="1000\n",
            memory__usage_in_bytes="900\n",
            memory__oom_control="oom_kill_disable 0\nunder_oom 0\noom_kill 4\n",
        )
        put(tmp_path / "memory", memory__limit_in_bytes="9223372036854771712\n", memory__usage_in_bytes="5000\n")
        membership = "4:memory:/job\n3:cpu,cpuacct:/job\n0::/job\n"
        of = folders(membership, "cpu", tmp_path)
        assert of.version == "v1" and cpu(of) == Cpu(0.5, 3, 2, 0.25)
        assert memory(folders(membership, "memory", tmp_path)) == Memory(1000, 900, 4)

    def test_no_quota_is_minus_one_and_no_limit_the_largest_number(self, tmp_path: Path) -> None:
        put(tmp_path / "cpu", cpu__cfs_quota_us="-1\n", cpu__cfs_period_us="100000\n")
        put(tmp_path / "memory", memory__limit_in_bytes="9223372036854771712\n", memory__usage_in_bytes="5000\n")
        membership = "2:memory:/\n1:cpu:/\n"
        assert cpu(folders(membership, "cpu", tmp_path)) == Cpu()
        assert memory(folders(membership, "memory", tmp_path)) == Memory()

    def test_a_mixture_reads_each_controller_where_it_is(self, tmp_path: Path) -> None:
        put(tmp_path / "memory" / "job", memory__limit_in_bytes="1000\n", memory__usage_in_bytes="900\n")
        put(tmp_path / "job", cpu__max="100000 100000\n")
        membership = "4:memory:/job\n0::/job\n"
        assert memory(folders(membership, "memory", tmp_path)).limit_bytes == 1000
        assert folders(membership, "cpu", tmp_path).version == "v2"


def test_counters_go_on_where_they_are_of_another_group(tmp_path: Path) -> None:
    """What a group had counted before it became the worst, or the process came into it, has not held this process back now."""

    def stat(name: str, periods: int, throttled: int, us: int) -> None:
        text = f"nr_periods {periods}\nnr_throttled {throttled}\nthrottled_usec {us}\n"
        put(tmp_path / "mounted" / name, cpu__stat=text, cpu__max="100000 100000\n")

    def told() -> tuple[int | None, int | None, float | None]:
        now = groups.now()[1]
        return now.periods, now.throttled_periods, now.throttled_s

    put(tmp_path / "proc" / "7", cgroup="0::/a/b\n")
    stat("a", 9000, 800, 1_000_000)
    stat("a/b", 100, 20, 2_000_000)
    groups = Groups(7, tmp_path / "proc", tmp_path / "mounted", again=1)
    assert told() == (100, 20, 2.0)
    stat("a", 9010, 810, 3_000_000)  # it is the worst now
    assert told() == (100, 20, 2.0)
    stat("a", 9020, 815, 3_500_000)
    assert told() == (110, 25, 2.5)
    put(tmp_path / "proc" / "7", cgroup="0::/c\n")
    stat("c", 70_000, 60_000, 90_000_000)
    assert told() == (110, 25, 2.5)
    stat("c", 70_001, 60_001, 91_000_000)
    assert told() == (111, 26, 3.5)


def test_the_groups_of_a_process_and_why_there_are_none(tmp_path: Path) -> None:
    found = Groups(7, tmp_path / "proc", tmp_path / "mounted")
    assert found.now() == ("", Cpu(), Memory())
    assert found.why is not None and "does not tell" in found.why
    put(tmp_path / "proc" / "7", cgroup="0::/a\n")
    again = Groups(7, tmp_path / "proc", tmp_path / "mounted")
    assert again.now()[0] == "" and again.why is not None and "not mounted" in again.why
    put(tmp_path / "mounted" / "a", cpu__max="100000 100000\n")
    third = Groups(7, tmp_path / "proc", tmp_path / "mounted")
    assert third.now() == ("v2", Cpu(1.0), Memory()) and third.why is None


def test_this_machines_own() -> None:
    """Whatever is there: it is read, and what it says can be."""
    found = Groups(os.getpid())
    version, quota, limit = found.now()
    assert bool(version) == (found.why is None)
    assert quota.quota_cores is None or quota.quota_cores > 0
    assert limit.limit_bytes is None or limit.limit_bytes > 0
