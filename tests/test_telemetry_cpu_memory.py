import os
import sys
from pathlib import Path

import psutil
import pytest

from telemetry.probes.cpu import (
    CpuProbe,
    cgroup_quota_cores,
    machine_cpu_seconds,
    parse_cfs_quota,
    parse_cpu_max,
    usable_cores,
)
from telemetry.probes.memory import MemoryProbe


def test_waiting_for_a_disk_is_idle_and_a_guest_is_not_counted_twice():
    times = {"user": 5.0, "system": 1.0, "idle": 10.0, "iowait": 4.0, "guest": 3.0, "guest_nice": 0.0}
    assert machine_cpu_seconds(times) == (6.0, 20.0)


def test_the_live_machine_has_more_time_than_busy_time():
    values = CpuProbe().read().values
    assert 0 < values["machine_cpu_busy_seconds_total"] < values["machine_cpu_seconds_total"]


def test_quotas_of_both_kinds_are_read_as_cores():
    assert parse_cpu_max("150000 100000\n") == 1.5
    assert parse_cpu_max("max 100000\n") is None
    assert parse_cfs_quota("50000\n", "100000\n") == 0.5
    assert parse_cfs_quota("-1\n", "100000\n") is None


def proc_with_cgroup(tmp_path: Path, text: str) -> Path:
    folder = tmp_path / "proc" / "7"
    folder.mkdir(parents=True)
    (folder / "cgroup").write_text(text)
    return tmp_path / "proc"


def test_the_narrowest_group_above_the_process_decides_under_v2(tmp_path):
    proc = proc_with_cgroup(tmp_path, "0::/a/b\n")
    (tmp_path / "cgroup" / "a" / "b").mkdir(parents=True)
    (tmp_path / "cgroup" / "a" / "cpu.max").write_text("100000 100000")
    (tmp_path / "cgroup" / "a" / "b" / "cpu.max").write_text("400000 100000")
    assert cgroup_quota_cores(7, proc_root=proc, cgroup_root=tmp_path / "cgroup") == 1.0


def test_a_path_that_only_the_host_knows_falls_back_to_the_mount(tmp_path):
    proc = proc_with_cgroup(tmp_path, "0::/kubepods/x\n")
    (tmp_path / "cgroup").mkdir()
    (tmp_path / "cgroup" / "cpu.max").write_text("250000 100000")
    assert cgroup_quota_cores(7, proc_root=proc, cgroup_root=tmp_path / "cgroup") == 2.5


def test_a_quota_of_v1_is_found_under_its_controllers(tmp_path):
    proc = proc_with_cgroup(tmp_path, "5:memory:/x\n4:cpu,cpuacct:/job\n")
    group = tmp_path / "cgroup" / "cpu,cpuacct" / "job"
    group.mkdir(parents=True)
    (group / "cpu.cfs_quota_us").write_text("75000")
    (group / "cpu.cfs_period_us").write_text("50000")
    assert cgroup_quota_cores(7, proc_root=proc, cgroup_root=tmp_path / "cgroup") == 1.5


@pytest.mark.parametrize("text", ["", "0::/\n", "garbage\n", "4:cpu:/\n"])
def test_without_a_quota_there_is_none(tmp_path, text):
    proc = proc_with_cgroup(tmp_path, text)
    assert cgroup_quota_cores(7, proc_root=proc, cgroup_root=tmp_path / "cgroup") is None


def test_a_quota_below_the_affinity_limits_the_usable_cores(tmp_path):
    folder = tmp_path / "proc" / str(os.getpid())
    folder.mkdir(parents=True)
    (folder / "cgroup").write_text("0::/\n")
    (tmp_path / "cpu.max").write_text("25000 100000")
    assert usable_cores(os.getpid(), proc_root=tmp_path / "proc", cgroup_root=tmp_path) == 0.25


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system has no affinity")
def test_the_affinity_limits_the_usable_cores(tmp_path):
    assert usable_cores(os.getpid(), proc_root=tmp_path) == len(os.sched_getaffinity(0))


def test_without_affinity_the_machines_cores_count(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delattr(psutil.Process, "cpu_affinity", raising=False)
    assert usable_cores(os.getpid(), proc_root=tmp_path) == os.cpu_count()


def test_live_memory_is_below_what_the_machine_has():
    values = MemoryProbe().read().values
    assert 0 < values["memory_available_mib"] < psutil.virtual_memory().total / 2**20
    if sys.platform == "linux":
        assert values["page_cache_mib"] > 0
