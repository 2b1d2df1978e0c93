"""How much memory this process may still take: of the machine, its control groups and its own limits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import psutil

try:
    import resource
except ImportError:  # Windows
    resource = None

__all__ = ["usable_memory_bytes"]

# What is taken to be available where the system does not tell.
_UNTOLD_MEMORY_BYTES = 2**30
# A control group of version 1 without a limit says so with a number near 2**63.
_NO_LIMIT_BYTES = 2**60


def usable_memory_bytes(root: Path = Path("/")) -> int:
    """What this process may still allocate before the system swaps, kills or refuses.

    The least of: what the machine has available; what each control group (version 1 or 2) above this process has left
    below its limit, its inactive file pages counted as free, for the kernel drops those first; and what the process's
    own limits on address space and data leave.

    Args:
        root: where /proc and /sys stand.

    Returns:
        Bytes, 0 or more.
    """
    try:
        available = psutil.virtual_memory().available
    except (psutil.Error, OSError):  # a Linux without /proc
        available = _UNTOLD_MEMORY_BYTES
    return max(0, min([available, *_left_in_control_groups(root), *_left_of_own_limits()]))


def _left_in_control_groups(root: Path) -> Iterator[int]:
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers == "":
            names, place = ("memory.max", "memory.current", "inactive_file"), root / "sys/fs/cgroup"
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            place = root / "sys/fs/cgroup/memory"
        else:
            continue
        # inside a container the name may be that of the host, of which only the container's own part is mounted
        path = PurePosixPath(name)
        for group in (path, *path.parents):
            left = _left_in(place / str(group).lstrip("/"), *names)
            if left is not None:
                yield left


def _left_in(group: Path, limit_name: str, usage_name: str, droppable_name: str) -> int | None:
    try:
        limit = (group / limit_name).read_text().strip()
        if limit == "max" or int(limit) >= _NO_LIMIT_BYTES:
            return None
        statistics = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        return int(limit) - int((group / usage_name).read_text()) + int(statistics.get(droppable_name, 0))
    except (OSError, ValueError):
        return None


def _left_of_own_limits() -> Iterator[int]:
    if resource is None:
        return
    try:
        used = psutil.Process().memory_info()
    except (psutil.Error, OSError):
        return
    for limit, taken in (("RLIMIT_AS", used.vms), ("RLIMIT_DATA", getattr(used, "data", used.rss))):
        most, _ = resource.getrlimit(getattr(resource, limit))
        if most != resource.RLIM_INFINITY:
            yield most - taken
