"""The block device that holds a path, and its counters from /proc/diskstats.

/proc/diskstats counts sectors of 512 bytes whatever the device's own sector size (Linux, admin-guide/iostats).
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from telemetry.probes.reading import Reading, unknown

SECTOR_BYTES = 512
_FIELDS = ("disk_read_bytes_total", "disk_write_bytes_total", "disk_busy_seconds_total")


@dataclass(frozen=True, kw_only=True)
class BlockDevice:
    """The device behind a path.

    Attributes:
        name: as in /proc/diskstats, for example "nvme0n1"; None when there is no block device to read.
        reason: why there is none; None when there is one.
    """

    name: str | None = None
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class DiskCounters:
    """Running totals of one block device since the system started.

    Attributes:
        read_bytes_total: bytes read from the device, by anybody.
        write_bytes_total: bytes written to the device, by anybody.
        busy_seconds_total: time in which at least one request was under way.
    """

    read_bytes_total: int
    write_bytes_total: int
    busy_seconds_total: float


def parse_diskstats(text: str) -> dict[str, DiskCounters]:
    """Returns the counters of each device in the text of /proc/diskstats.

    A line reads `major minor name reads merged sectors_read read_ms writes merged sectors_written write_ms in_flight
    io_ms weighted_ms ...`; io_ms is the busy time. Short lines (old kernels, partitions) are left out.
    """
    counters = {}
    for line in text.splitlines():
        parts = line.split()
        if len(parts) < 14:
            continue
        counters[parts[2]] = DiskCounters(
            read_bytes_total=int(parts[5]) * SECTOR_BYTES,
            write_bytes_total=int(parts[9]) * SECTOR_BYTES,
            busy_seconds_total=int(parts[12]) / 1000,
        )
    return counters


@dataclass(frozen=True, kw_only=True)
class Mount:
    """One line of /proc/PID/mountinfo: where something is mounted, its file system and its source."""

    mount_point: str
    filesystem: str
    source: str


def parse_mountinfo(text: str) -> list[Mount]:
    """Returns the mounts in the text of /proc/self/mountinfo, in order.

    A line reads `id parent major:minor root mount_point options [tags ...] - filesystem source super_options`; blanks
    in names are written as octal escapes.
    """
    mounts = []
    for line in text.splitlines():
        before, separator, after = line.partition(" - ")
        left, right = before.split(), after.split()
        if separator and len(left) >= 5 and len(right) >= 2:
            mounts.append(Mount(mount_point=_unescape(left[4]), filesystem=right[0], source=_unescape(right[1])))
    return mounts


def _unescape(name: str) -> str:
    for escaped, plain in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        name = name.replace(escaped, plain)
    return name


def find_block_device(
    path: str | os.PathLike | None, *, proc_root: str | Path = "/proc", sys_root: str | Path = "/sys"
) -> BlockDevice:
    """Returns the whole disk that holds a path, or why none can be told.

    Args:
        path: a file or folder; None when the data is not on a disk.
        proc_root: where the process file system is mounted.
        sys_root: where sysfs is mounted.
    """
    if path is None:
        return BlockDevice(reason="no data path was named")
    if not Path(proc_root, "diskstats").exists():
        return BlockDevice(reason=f"the counters of disks are not readable here ({sys.platform}: no /proc/diskstats)")
    try:
        device_number = os.stat(path).st_dev
    except OSError as error:
        return BlockDevice(reason=f"{path}: {error.strerror}")
    if os.major(device_number) == 0:  # no device of its own: btrfs, overlay, tmpfs, network
        return _device_of_mount(Path(path), Path(proc_root), Path(sys_root))
    return _device_of_number(device_number, Path(sys_root))


def _device_of_number(device_number: int, sys_root: Path) -> BlockDevice:
    number = f"{os.major(device_number)}:{os.minor(device_number)}"
    link = sys_root / "dev" / "block" / number
    if not link.exists():
        return BlockDevice(reason=f"block device {number} is not shown in {sys_root}")
    folder = link.resolve()
    # a partition's folder lies inside its disk's: the disk is what is busy
    return BlockDevice(name=folder.parent.name if (folder / "partition").exists() else folder.name)


def _device_of_mount(path: Path, proc_root: Path, sys_root: Path) -> BlockDevice:
    try:
        mounts = parse_mountinfo((proc_root / "self" / "mountinfo").read_text(errors="replace"))
    except OSError as error:
        return BlockDevice(reason=f"the mounts are not readable: {error.strerror}")
    resolved = path.resolve()
    holding = [mount for mount in mounts if resolved.is_relative_to(mount.mount_point)]
    if not holding:
        return BlockDevice(reason=f"{path} is on no known mount")
    mount = max(holding, key=lambda candidate: len(candidate.mount_point))  # of equal ones max keeps the first
    if not mount.source.startswith("/dev/"):
        return BlockDevice(reason=f"{path} is on {mount.filesystem}, which is not a block device")
    try:
        return _device_of_number(os.stat(mount.source).st_rdev, sys_root)
    except OSError as error:
        return BlockDevice(reason=f"{mount.source}: {error.strerror}")


class DiskProbe:
    """Reads the totals of the device that holds the data."""

    name = "disk"
    fields = _FIELDS

    def __init__(self, device: BlockDevice, *, proc_root: str | Path = "/proc"):
        self._device = device
        self._path = Path(proc_root, "diskstats")

    def read(self) -> Reading:
        """Reads the device's counters; None with a reason when it has none."""
        if self._device.name is None:
            return unknown(_FIELDS, self._device.reason or "no device")
        counters = parse_diskstats(self._path.read_text()).get(self._device.name)
        if counters is None:
            return unknown(_FIELDS, f"{self._device.name} has no line in {self._path}")
        return Reading(
            values={
                "disk_read_bytes_total": counters.read_bytes_total,
                "disk_write_bytes_total": counters.write_bytes_total,
                "disk_busy_seconds_total": counters.busy_seconds_total,
            }
        )
