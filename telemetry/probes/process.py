"""The counters of one process, from /proc or from psutil.

Logical reads are what the process asked for (rchar), physical reads what had to come from a device for it
(read_bytes): the difference was served by the page cache. Reads through a memory map are physical without being
logical.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil


@dataclass(frozen=True, kw_only=True)
class ProcessCounters:
    """The totals of one process at one moment.

    Attributes:
        pid: the process number.
        parent_pid: the number of its parent now.
        created: a value that tells apart two processes with one number (start time, in the source's own unit).
        cpu_seconds_total: user and system time of its own threads.
        reaped_cpu_seconds_total: the same of its ended children that it has waited for (with theirs).
        logical_read_bytes_total: bytes read by calls; on Linux with those of reaped children; None where not told.
        physical_read_bytes_total: bytes fetched from a device; on Linux with those of reaped children; None where not
            told.
        rss_bytes: resident memory now.
    """

    pid: int
    parent_pid: int
    created: float
    cpu_seconds_total: float
    reaped_cpu_seconds_total: float
    logical_read_bytes_total: int | None
    physical_read_bytes_total: int | None
    rss_bytes: int


class ProcessSource(Protocol):
    """Where the counters of processes come from."""

    def read(self, pid: int) -> ProcessCounters | None:
        """Returns the counters of a process, or None when there is no such process."""

    def child_pids(self, pid: int) -> list[int]:
        """Returns the numbers of the living children of a process."""


@dataclass(frozen=True, kw_only=True)
class ProcessStat:
    """What /proc/PID/stat tells: times in clock ticks, resident memory in pages."""

    parent_pid: int
    user_ticks: int
    system_ticks: int
    reaped_user_ticks: int
    reaped_system_ticks: int
    start_ticks: int
    rss_pages: int


def parse_stat(text: str) -> ProcessStat:
    """Returns the fields of /proc/PID/stat (man proc_pid_stat).

    The second field is the command in parentheses and may itself hold blanks and parentheses, so the fields are
    counted from the last closing one: `123 (my (odd) name) S 1 ...`.
    """
    fields = text.rpartition(")")[2].split()
    return ProcessStat(
        parent_pid=int(fields[1]),
        user_ticks=int(fields[11]),
        system_ticks=int(fields[12]),
        reaped_user_ticks=int(fields[13]),
        reaped_system_ticks=int(fields[14]),
        start_ticks=int(fields[19]),
        rss_pages=int(fields[21]),
    )


def parse_io(text: str) -> dict[str, int]:
    """Returns the lines `name: number` of /proc/PID/io, in bytes or calls."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): int(value) for name, separator, value in pairs if separator}


class ProcfsSource:
    """Reads the process file system of Linux."""

    def __init__(self, proc_root: str | Path = "/proc"):
        self._root = str(proc_root)
        self._ticks_per_second = os.sysconf("SC_CLK_TCK")
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")
        own = os.getpid()
        self._lists_children = Path(proc_root, f"{own}/task/{own}/children").exists()  # CONFIG_PROC_CHILDREN

    def read(self, pid: int) -> ProcessCounters | None:
        """Returns the counters of a process, or None when it is gone or hidden."""
        try:
            stat = parse_stat(self._text(pid, "stat"))
            io = self._read_io(pid)
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            return None
        own_ticks = stat.user_ticks + stat.system_ticks
        return ProcessCounters(
            pid=pid,
            parent_pid=stat.parent_pid,
            created=stat.start_ticks,
            # the kernel tells a process its own time in nanoseconds, others only in ticks of 10 ms
            cpu_seconds_total=time.process_time() if pid == os.getpid() else own_ticks / self._ticks_per_second,
            reaped_cpu_seconds_total=(stat.reaped_user_ticks + stat.reaped_system_ticks) / self._ticks_per_second,
            logical_read_bytes_total=io.get("rchar"),
            physical_read_bytes_total=io.get("read_bytes"),
            rss_bytes=stat.rss_pages * self._page_bytes,
        )

    def child_pids(self, pid: int) -> list[int]:
        """Returns the living children, which the kernel lists under the thread that started them."""
        if not self._lists_children:
            return PsutilSource().child_pids(pid)
        try:
            threads = os.listdir(f"{self._root}/{pid}/task")
        except (FileNotFoundError, ProcessLookupError):
            return []
        children: list[int] = []
        for thread in threads:
            try:
                children += map(int, self._text(pid, f"task/{thread}/children").split())
            except (FileNotFoundError, ProcessLookupError):  # the thread has ended meanwhile
                continue
        return children

    def _read_io(self, pid: int) -> dict[str, int]:
        try:
            return parse_io(self._text(pid, "io"))
        except PermissionError:  # another user's process, such as one that changed its user
            return {}

    def _text(self, pid: int, name: str) -> str:
        with open(f"{self._root}/{pid}/{name}", encoding="utf-8", errors="replace") as file:
            return file.read()


class PsutilSource:
    """Reads what psutil tells on systems without /proc."""

    def read(self, pid: int) -> ProcessCounters | None:
        """Returns the counters of a process, or None when it is gone or may not be seen."""
        try:
            process = psutil.Process(pid)
            times = process.cpu_times()
            logical, physical = _psutil_reads(process)
            return ProcessCounters(
                pid=pid,
                parent_pid=process.ppid(),
                created=process.create_time(),
                cpu_seconds_total=times.user + times.system,
                reaped_cpu_seconds_total=getattr(times, "children_user", 0) + getattr(times, "children_system", 0),
                logical_read_bytes_total=logical,
                physical_read_bytes_total=physical,
                rss_bytes=process.memory_info().rss,
            )
        except psutil.Error:
            return None

    def child_pids(self, pid: int) -> list[int]:
        """Returns the living children."""
        try:
            return [child.pid for child in psutil.Process(pid).children()]
        except psutil.Error:
            return []


def _psutil_reads(process: psutil.Process) -> tuple[int | None, int | None]:
    """Returns logical and physical bytes read, as far as this system tells them apart.

    macOS tells neither. Windows counts what the calls asked for under the name `read_bytes`; Linux calls that
    `read_chars` and keeps `read_bytes` for the device.
    """
    if not hasattr(process, "io_counters"):
        return None, None
    try:
        io = process.io_counters()
    except psutil.AccessDenied:
        return None, None
    if hasattr(io, "read_chars"):
        return io.read_chars, io.read_bytes
    return io.read_bytes, None


def process_source(proc_root: str | Path = "/proc") -> ProcessSource:
    """Returns /proc as the source where it is mounted and tells of this process, else psutil."""
    if Path(proc_root, str(os.getpid()), "stat").exists():
        return ProcfsSource(proc_root)
    return PsutilSource()
