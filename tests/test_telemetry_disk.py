import os
import sys
from pathlib import Path

import pytest

from telemetry.probes.disk import (
    BlockDevice,
    DiskCounters,
    DiskProbe,
    find_block_device,
    parse_diskstats,
    parse_mountinfo,
)

DISKSTATS = """\
   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0
 259       0 nvme0n1 10747 4814 1568706 15995 9703 144275 16086344 111249 0 14040 131053 36906 51 5935624 3789 374 20
 259       1 nvme0n1p1 100 0 2048 7 0 0 0 0 0 9 7
"""

linux_only = pytest.mark.skipif(not Path("/proc/diskstats").exists(), reason="needs /proc/diskstats")


def test_sectors_become_bytes_and_io_milliseconds_busy_seconds():
    assert parse_diskstats(DISKSTATS)["nvme0n1"] == DiskCounters(
        read_bytes_total=1568706 * 512, write_bytes_total=16086344 * 512, busy_seconds_total=14.04
    )


def test_a_line_of_an_old_kernel_with_fewer_fields_is_read():
    assert parse_diskstats(DISKSTATS)["nvme0n1p1"].read_bytes_total == 2**20


def test_lines_too_short_to_hold_counters_are_left_out():
    assert parse_diskstats("8 0 sda 1 2 3\n\n") == {}


def test_mounts_with_blanks_in_their_names_are_read():
    text = "36 35 98:0 /root /mnt/my\\040data rw,noatime master:1 - ext3 /dev/mapper/a\\040b rw,errors=continue\n"
    (mount,) = parse_mountinfo(text)
    assert (mount.mount_point, mount.filesystem, mount.source) == ("/mnt/my data", "ext3", "/dev/mapper/a b")


def fake_roots(tmp_path: Path, path: Path, *, partition: bool) -> dict[str, Path]:
    """A /proc and a /sys in which the path's own device is a disk, or a partition of one."""
    number = os.stat(path).st_dev
    proc, system = tmp_path / "proc", tmp_path / "sys"
    proc.mkdir()
    (proc / "diskstats").write_text(DISKSTATS)
    disk = system / "devices" / "nvme0n1"
    folder = disk / "nvme0n1p1" if partition else disk
    folder.mkdir(parents=True)
    if partition:
        (folder / "partition").write_text("1\n")
    (system / "dev" / "block").mkdir(parents=True)
    (system / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}").symlink_to(folder)
    return {"proc_root": proc, "sys_root": system}


@pytest.mark.skipif(os.name != "posix", reason="device numbers are POSIX")
@pytest.mark.parametrize("partition", [False, True])
def test_the_whole_disk_is_watched_also_when_the_data_is_on_a_partition(tmp_path, partition):
    if os.major(os.stat(tmp_path).st_dev) == 0:
        pytest.skip("the temporary folder is on no block device")
    assert find_block_device(tmp_path, **fake_roots(tmp_path, tmp_path, partition=partition)).name == "nvme0n1"


@linux_only
def test_a_memory_file_system_has_no_device_and_says_so():
    if not Path("/dev/shm").exists() or os.major(os.stat("/dev/shm").st_dev) != 0:
        pytest.skip("no memory file system at /dev/shm")
    device = find_block_device("/dev/shm")
    assert device.name is None
    assert "tmpfs, which is not a block device" in device.reason


def test_without_diskstats_the_reason_names_the_system(tmp_path):
    device = find_block_device(tmp_path, proc_root=tmp_path / "none")
    assert device == BlockDevice(
        reason=f"the counters of disks are not readable here ({sys.platform}: no /proc/diskstats)"
    )


def test_a_missing_path_and_no_path_have_reasons(tmp_path):
    (tmp_path / "diskstats").write_text(DISKSTATS)
    missing = find_block_device(tmp_path / "gone", proc_root=tmp_path)
    assert "No such file" in missing.reason
    assert find_block_device(None).reason == "no data path was named"


def test_the_probe_reads_the_totals_of_its_device_alone(tmp_path):
    (tmp_path / "diskstats").write_text(DISKSTATS)
    reading = DiskProbe(BlockDevice(name="nvme0n1p1"), proc_root=tmp_path).read()
    assert reading.values["disk_read_bytes_total"] == 2**20
    assert reading.values["disk_busy_seconds_total"] == 0.009


def test_a_device_that_is_gone_gives_null_with_a_reason(tmp_path):
    (tmp_path / "diskstats").write_text(DISKSTATS)
    reading = DiskProbe(BlockDevice(name="sdz"), proc_root=tmp_path).read()
    assert set(reading.values.values()) == {None}
    assert "sdz has no line" in reading.reasons["disk_busy_seconds_total"]


@linux_only
def test_the_live_device_counts_what_is_read_from_it(tmp_path):
    device = find_block_device(tmp_path)
    if device.name is None:
        pytest.skip(device.reason)
    probe = DiskProbe(device)
    path = tmp_path / "data"
    path.write_bytes(os.urandom(8 * 2**20))
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    before = probe.read().values["disk_read_bytes_total"]
    while os.read(descriptor, 2**20):
        pass
    os.close(descriptor)
    assert probe.read().values["disk_read_bytes_total"] - before >= 8 * 2**20
