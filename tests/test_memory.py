"""How much memory a process may still take, from made-up control groups and real limits."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pipeline.memory import usable_memory_bytes

ROOT = Path(__file__).resolve().parents[1]
MIB = 2**20
linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="control groups are Linux's")


def group(folder: Path, limit: object, used: int, droppable: int, *, version: int = 2) -> None:
    """A control group's files as the kernel lays them out."""
    folder.mkdir(parents=True, exist_ok=True)
    limit_name, used_name, droppable_name = {
        2: ("memory.max", "memory.current", "inactive_file"),
        1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    }[version]
    (folder / limit_name).write_text(f"{limit}\n")
    (folder / used_name).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 5\n{droppable_name} {droppable}\nshmem 0\n")


def machine(root: Path, cgroup: str) -> Path:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(cgroup)
    return root


def test_without_control_groups_it_is_what_the_machine_has(tmp_path):
    assert usable_memory_bytes(tmp_path) == pytest.approx(psutil.virtual_memory().available, rel=0.1)


def test_the_tightest_group_above_the_process_decides_and_its_droppable_pages_are_free(tmp_path):
    root = machine(tmp_path, "0::/user.slice/job\n")
    group(root / "sys/fs/cgroup/user.slice/job", "max", 70 * MIB, 0)
    group(root / "sys/fs/cgroup/user.slice", 100 * MIB, 80 * MIB, 30 * MIB)
    assert usable_memory_bytes(root) == (100 - 80 + 30) * MIB
    group(root / "sys/fs/cgroup/user.slice/job", 64 * MIB, 60 * MIB, 0)
    assert usable_memory_bytes(root) == 4 * MIB


def test_a_container_sees_its_own_group_as_the_root(tmp_path):
    root = machine(tmp_path, "0::/../../docker/0123\n")
    group(root / "sys/fs/cgroup", 32 * MIB, 2 * MIB, MIB)
    assert usable_memory_bytes(root) == 31 * MIB


def test_version_1_and_its_way_to_say_no_limit(tmp_path):
    root = machine(tmp_path, "5:cpu:/a\n4:memory:/docker/0123\n0::/\n")
    group(root / "sys/fs/cgroup/memory", 48 * MIB, 8 * MIB, 0, version=1)
    group(root / "sys/fs/cgroup/memory/docker/0123", 0x7FFFFFFFFFFFF000, 8 * MIB, 0, version=1)
    assert usable_memory_bytes(root) == 40 * MIB


def test_an_overdrawn_group_leaves_nothing(tmp_path):
    root = machine(tmp_path, "0::/job\n")
    group(root / "sys/fs/cgroup/job", 10 * MIB, 12 * MIB, 0)
    assert usable_memory_bytes(root) == 0


def test_what_cannot_be_read_sets_no_limit(tmp_path):
    root = machine(tmp_path, "0::/job\n")
    group(root / "sys/fs/cgroup/job", "soon", 0, 0)
    assert usable_memory_bytes(root) == pytest.approx(psutil.virtual_memory().available, rel=0.1)


@linux_only
@pytest.mark.parametrize("name", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_a_real_limit_of_the_process_counts(name):
    script = f"""
import resource, psutil
from pipeline.memory import usable_memory_bytes
used = psutil.Process().memory_info()
taken = used.vms if {name!r} == "RLIMIT_AS" else used.data
resource.setrlimit(resource.{name}, (taken + 300 * 2**20, resource.RLIM_INFINITY))
print(usable_memory_bytes())
"""
    printed = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True, text=True)
    assert 200 * MIB < int(printed.stdout.split()[-1]) <= 300 * MIB


@pytest.fixture
def limited_group() -> Iterator[Path]:
    """A real control group, of either version, that may hold 500 MiB."""
    name = f"feedline-test-{os.getpid()}"
    made = None
    for place, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        with contextlib.suppress(OSError):
            made = Path(place, name)
            made.mkdir()
            # the kernel has made the file, if this is a control group
            with open(made / limit, "r+") as file:
                file.write(str(500 * MIB))
            break
        if made.exists():
            made.rmdir()
        made = None
    if made is None:
        pytest.skip("no control group with a limit on memory can be made here")
    yield made
    made.rmdir()


@linux_only
def test_a_real_control_group_counts(limited_group):
    script = f"""
import os
with open({str(limited_group / "cgroup.procs")!r}, "w") as file:
    file.write(str(os.getpid()))
from pipeline.memory import usable_memory_bytes
before = usable_memory_bytes()
held = bytearray(b"x" * (100 * 2**20))
print(before, usable_memory_bytes())
"""
    ended = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True, text=True)
    before, after = map(int, ended.stdout.split()[-2:])
    assert 0 < before < 500 * MIB
    assert 80 * MIB < before - after < 130 * MIB
