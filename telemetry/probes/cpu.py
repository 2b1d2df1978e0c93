"""The CPU time of the machine, and how many cores a process may use."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import psutil

from telemetry.probes.reading import Reading

_FIELDS = ("machine_cpu_busy_seconds_total", "machine_cpu_seconds_total")
# the kernel counts a guest's time in `user` and `nice` as well, so it is not added again
_COUNTED_TWICE = ("guest", "guest_nice")
# waiting for a disk leaves the core free for others
_IDLE = ("idle", "iowait")


def machine_cpu_seconds(times: Mapping[str, float]) -> tuple[float, float]:
    """Returns the busy and the whole CPU time of all cores since the system started, in seconds.

    Args:
        times: mode (`user`, `system`, `idle`, `iowait`, ...) -> seconds, as psutil.cpu_times() names them.
    """
    whole = sum(seconds for mode, seconds in times.items() if mode not in _COUNTED_TWICE)
    return whole - sum(times.get(mode, 0.0) for mode in _IDLE), whole


class CpuProbe:
    """Reads the machine's CPU time."""

    name = "cpu"
    fields = _FIELDS

    def read(self) -> Reading:
        """Reads the totals of all cores together."""
        busy, whole = machine_cpu_seconds(psutil.cpu_times()._asdict())
        return Reading(values={"machine_cpu_busy_seconds_total": busy, "machine_cpu_seconds_total": whole})


def usable_cores(pid: int, *, proc_root: str | Path = "/proc", cgroup_root: str | Path = "/sys/fs/cgroup") -> float:
    """Returns how many cores a process may use: the fewest of machine, affinity and cgroup quota.

    Args:
        pid: the process.
        proc_root: where the process file system is mounted.
        cgroup_root: where the control groups are mounted.

    Returns:
        a number above 0, not always whole: a quota of 150 ms each 100 ms is 1.5 cores.
    """
    quota = cgroup_quota_cores(pid, proc_root=proc_root, cgroup_root=cgroup_root)
    cores = float(_affinity_cores(pid))
    return cores if quota is None else min(cores, quota)


def _affinity_cores(pid: int) -> int:
    try:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(pid))
        return len(psutil.Process(pid).cpu_affinity())
    except (AttributeError, OSError, psutil.Error):  # macOS has no affinity; the process may be gone
        return os.cpu_count() or 1


def parse_cpu_max(text: str) -> float | None:
    """Returns the cores that cgroup v2's cpu.max allows; None without a limit.

    The text is `quota period` in microseconds, or `max period`.
    """
    quota, _, period = text.strip().partition(" ")
    return None if quota == "max" else int(quota) / int(period or 100_000)


def parse_cfs_quota(quota_text: str, period_text: str) -> float | None:
    """Returns the cores that cgroup v1's cpu.cfs_quota_us and cpu.cfs_period_us allow; None without a limit (-1)."""
    quota = int(quota_text)
    return None if quota <= 0 else quota / int(period_text)


def cgroup_quota_cores(pid: int, *, proc_root: str | Path, cgroup_root: str | Path) -> float | None:
    """Returns the smallest quota of the process's control group and the groups above it; None without one."""
    try:
        lines = Path(proc_root, str(pid), "cgroup").read_text().splitlines()
    except OSError:
        return None
    quotas = [quota for folder in _cgroup_folders(lines, Path(cgroup_root)) if (quota := _read_quota(folder))]
    return min(quotas, default=None)


def _cgroup_folders(lines: Iterable[str], root: Path) -> Iterable[Path]:
    """Yields the folders that may hold a quota.

    A line reads `id:controllers:/path`; v2 has the id 0 and no controllers. In a container the path may be one that
    only the host knows, so the mount itself is always among them.
    """
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            mounts = [root, root / "unified"]
        elif "cpu" in controllers.split(","):
            mounts = [root / controllers, root / "cpu"]
        else:
            continue
        group = Path(path.lstrip("/"))
        for mount in mounts:
            yield from (mount / part for part in (group, *group.parents))


def _read_quota(folder: Path) -> float | None:
    try:
        if (folder / "cpu.max").exists():
            return parse_cpu_max((folder / "cpu.max").read_text())
        return parse_cfs_quota((folder / "cpu.cfs_quota_us").read_text(), (folder / "cpu.cfs_period_us").read_text())
    except (OSError, ValueError):
        return None
