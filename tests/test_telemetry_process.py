import os
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from telemetry.page_cache import evict_files
from telemetry.probes.process import (
    ProcessCounters,
    ProcfsSource,
    PsutilSource,
    parse_io,
    parse_stat,
    process_source,
)
from telemetry.probes.process_tree import ProcessTree, build_job_probe

linux_only = pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="needs /proc/PID/io")
MIB = 2**20


def test_a_command_with_parentheses_and_blanks_does_not_shift_the_fields():
    text = "7 (a) b (c) S 3 7 7 0 -1 4194560 1 2 3 4 150 50 30 20 20 0 9 0 12345 99 777 18446744073709551615 1\n"
    stat = parse_stat(text)
    assert (stat.parent_pid, stat.user_ticks, stat.system_ticks) == (3, 150, 50)
    assert (stat.reaped_user_ticks, stat.reaped_system_ticks, stat.start_ticks, stat.rss_pages) == (30, 20, 12345, 777)


def test_io_lines_are_read_by_name():
    assert parse_io("rchar: 6976\nwchar: 0\nread_bytes: 4096\n") == {"rchar": 6976, "wchar": 0, "read_bytes": 4096}


@linux_only
def test_this_process_agrees_with_its_own_getrusage():
    counters = ProcfsSource().read(os.getpid())
    usage = resource.getrusage(resource.RUSAGE_SELF)
    assert counters.cpu_seconds_total == pytest.approx(usage.ru_utime + usage.ru_stime, abs=0.05)
    assert counters.parent_pid == os.getppid()
    assert counters.rss_bytes > MIB


@linux_only
def test_psutil_tells_the_same_cpu_time_and_reads_as_proc():
    told, known = PsutilSource().read(os.getpid()), ProcfsSource().read(os.getpid())
    assert told.cpu_seconds_total == pytest.approx(known.cpu_seconds_total, abs=0.1)
    assert told.physical_read_bytes_total == known.physical_read_bytes_total
    assert abs(told.logical_read_bytes_total - known.logical_read_bytes_total) < MIB


def test_without_proc_psutil_takes_over_and_a_job_is_still_measured(tmp_path):
    assert isinstance(process_source(tmp_path), PsutilSource)
    values = build_job_probe(os.getpid(), proc_root=tmp_path).read().values
    assert values["job_cpu_seconds_total"] > 0
    assert values["rss_mib"] > 1


def test_a_process_that_does_not_exist_is_none():
    assert process_source().read(2**22 + 7) is None
    assert PsutilSource().read(2**22 + 7) is None


@linux_only
def test_reading_in_this_process_is_logical_to_the_byte_and_physical_only_when_cold(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(os.urandom(20 * MIB))
    tree = ProcessTree(os.getpid())
    evicted = evict_files([path])
    if evicted.reason:
        pytest.skip(evicted.reason)

    def read_once() -> tuple[int, int]:
        before = tree.read()
        path.read_bytes()
        after = tree.read()
        logical = after.logical_read_bytes_total - before.logical_read_bytes_total
        return logical, after.physical_read_bytes_total - before.physical_read_bytes_total

    cold, warm = read_once(), read_once()
    assert cold[0] == pytest.approx(20 * MIB, rel=0.02)
    assert warm[0] == pytest.approx(20 * MIB, rel=0.02)
    assert warm[1] < MIB
    if ProcessTree(os.getpid()).read().physical_read_bytes_total and cold[1]:  # a tmpfs has no disk to read from
        assert cold[1] == pytest.approx(20 * MIB, rel=0.02)


READ = "import sys; open(sys.argv[1], 'rb').read(); sys.stdout.write('read\\n'); sys.stdout.flush(); sys.stdin.read()"


@linux_only
def test_a_childs_reads_count_once_while_it_lives_and_after_it_was_waited_for(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(bytes(20 * MIB))
    tree = ProcessTree(os.getpid())
    before = tree.read().logical_read_bytes_total
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", READ, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout.readline() == b"read\n"
        living = tree.read()
        child.communicate()
    reaped = tree.read()
    assert child.pid in living.pids
    assert child.pid not in reaped.pids
    assert living.logical_read_bytes_total - before == pytest.approx(20 * MIB, rel=0.03)
    assert reaped.logical_read_bytes_total - before == pytest.approx(20 * MIB, rel=0.03)


BURN = """
import resource, sys, time
while time.process_time() < 0.6: pass
used = resource.getrusage(resource.RUSAGE_SELF)
sys.stdout.write(f"{used.ru_utime + used.ru_stime}\\n"); sys.stdout.flush(); sys.stdin.read()
"""


@linux_only
def test_a_childs_cpu_time_agrees_with_its_own_getrusage():
    tree = ProcessTree(os.getpid())
    before, own_before = tree.read().cpu_seconds_total, ProcfsSource().read(os.getpid()).cpu_seconds_total
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        used = float(child.stdout.readline())
        living = tree.read().cpu_seconds_total
        child.communicate()
    own = ProcfsSource().read(os.getpid()).cpu_seconds_total - own_before
    assert living - before - own == pytest.approx(used, abs=0.05)
    assert tree.read().cpu_seconds_total - before - own == pytest.approx(used, abs=0.08)


@linux_only
def test_an_excluded_process_and_its_children_do_not_count():
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-I', '-S', '-c', {READ!r}, sys.executable])"
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", nested], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        child.stdout.readline()
        every = set(ProcessTree(os.getpid()).read().pids)
        without = set(ProcessTree(os.getpid(), excluded_pids=[child.pid]).read().pids)
        child.communicate()
    assert child.pid in every
    assert len(every - without) == 2


class Script:
    """A source whose processes the test moves by hand."""

    def __init__(self, *processes: ProcessCounters):
        self.processes = {one.pid: one for one in processes}

    def read(self, pid: int) -> ProcessCounters | None:
        return self.processes.get(pid)

    def child_pids(self, pid: int) -> list[int]:
        return [one.pid for one in self.processes.values() if one.parent_pid == pid]


def process(
    pid: int, parent_pid: int, *, cpu: float = 0.0, reaped: float = 0.0, read: int | None = 0, created: int = 1
):
    return ProcessCounters(
        pid=pid,
        parent_pid=parent_pid,
        created=created,
        cpu_seconds_total=cpu,
        reaped_cpu_seconds_total=reaped,
        logical_read_bytes_total=read,
        physical_read_bytes_total=read,
        rss_bytes=10,
    )


def test_a_child_that_its_parent_waited_for_is_not_counted_twice():
    source = Script(process(1, 0, cpu=1.0, read=100), process(2, 1, cpu=3.0, read=50))
    tree = ProcessTree(1, source=source)
    assert tree.read().cpu_seconds_total == 4.0
    source.processes = {1: process(1, 0, cpu=1.0, reaped=3.0, read=150)}
    totals = tree.read()
    assert (totals.cpu_seconds_total, totals.logical_read_bytes_total, totals.rss_bytes) == (4.0, 150, 10)


def test_a_child_that_nobody_waited_for_keeps_its_counters():
    source = Script(process(1, 0, cpu=1.0, read=100), process(2, 1, cpu=3.0, read=50))
    tree = ProcessTree(1, source=source)
    tree.read()
    source.processes = {1: process(1, 0, cpu=2.0, read=110)}
    totals = tree.read()
    assert (totals.cpu_seconds_total, totals.logical_read_bytes_total) == (5.0, 160)


def test_a_grandchild_whose_parent_has_ended_stays_in_the_job():
    source = Script(process(1, 0), process(2, 1, cpu=1.0), process(3, 2, cpu=2.0))
    tree = ProcessTree(1, source=source)
    tree.read()
    source.processes = {1: process(1, 0, reaped=1.0), 3: process(3, 77, cpu=5.0)}
    assert tree.read().cpu_seconds_total == 6.0
    source.processes = {1: process(1, 0, reaped=1.0)}
    assert tree.read().cpu_seconds_total == 6.0


def test_a_number_given_to_a_stranger_is_not_taken_for_the_child():
    source = Script(process(1, 0), process(2, 1, cpu=1.0, created=5))
    tree = ProcessTree(1, source=source)
    tree.read()
    source.processes = {1: process(1, 0, reaped=1.0), 2: process(2, 99, cpu=500.0, created=6)}
    assert tree.read().cpu_seconds_total == 1.0


def test_totals_never_fall():
    source = Script(process(1, 0, cpu=5.0, read=100))
    tree = ProcessTree(1, source=source)
    tree.read()
    source.processes = {1: process(1, 0, cpu=4.0, read=90)}
    totals = tree.read()
    assert (totals.cpu_seconds_total, totals.logical_read_bytes_total) == (5.0, 100)


def test_reads_that_the_system_does_not_tell_are_null_with_a_reason():
    probe = build_job_probe(os.getpid())
    probe.tree = ProcessTree(1, source=Script(process(1, 0, cpu=1.0, read=None)))
    reading = probe.read()
    assert reading.values["job_logical_read_bytes_total"] is None
    assert "does not tell" in reading.reasons["job_physical_read_bytes_total"]
    assert reading.values["job_cpu_seconds_total"] == 1.0


def test_one_child_that_may_not_be_looked_at_does_not_hide_the_job():
    closed = replace(process(2, 1), logical_read_bytes_total=None, physical_read_bytes_total=None)
    assert ProcessTree(1, source=Script(process(1, 0, read=7), closed)).read().logical_read_bytes_total == 7


def test_a_job_that_is_gone_gives_null_with_a_reason():
    reading = build_job_probe(2**22 + 7).read()
    assert set(reading.values.values()) == {None}
    assert "is gone" in reading.reasons["rss_mib"]
