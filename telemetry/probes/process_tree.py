"""The counters of a job: a process with all its descendants, those that have ended included."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from telemetry.probes.process import ProcessCounters, ProcessSource, process_source
from telemetry.probes.reading import MIB, Reading, unknown

_FIELDS = ("job_cpu_seconds_total", "job_logical_read_bytes_total", "job_physical_read_bytes_total", "rss_mib")
# /proc/PID/stat counts in ticks of 10 ms: a child's last reading may be ahead of what its parent is told by one
_TICK_SECONDS = 0.011


@dataclass(frozen=True, kw_only=True)
class TreeTotals:
    """The sums over a process tree.

    Attributes:
        cpu_seconds_total: CPU time of all processes, living and ended.
        logical_read_bytes_total: bytes asked for, living and ended; None when the system does not tell.
        physical_read_bytes_total: bytes fetched from devices; None when the system does not tell.
        rss_bytes: resident memory of the living; pages that two of them share count twice.
        pids: the living.
    """

    cpu_seconds_total: float
    logical_read_bytes_total: int | None
    physical_read_bytes_total: int | None
    rss_bytes: int
    pids: tuple[int, ...]


class ProcessTree:
    """Follows a process and its descendants so that their totals never fall.

    A parent's counters hold those of the children that it has waited for, so a child that ends moves into its parent's
    sum by itself. A child that nobody of the tree waited for (its parent ignores SIGCHLD, or ended before it) does not:
    its last counters are kept here. Which of the two happened shows in the parent's count of reaped CPU time.

    Attributes:
        excluded_pids: processes that do not belong to the job, with all below them (the sampler).
    """

    def __init__(self, pid: int, *, excluded_pids: Collection[int] = (), source: ProcessSource | None = None):
        self.pid = pid
        self.excluded_pids = frozenset(excluded_pids)
        self._source = source if source is not None else process_source()
        self._known: dict[int, ProcessCounters] = {}
        self._departed: list[ProcessCounters] = []
        self._last: TreeTotals | None = None

    def read(self) -> TreeTotals | None:
        """Returns the sums now, or None when the process itself is gone."""
        living = self._living()
        if self.pid not in living:
            return None
        self._departed += _unclaimed(self._known, living)
        self._known = living
        totals = _sum([*living.values(), *self._departed], living, living[self.pid])
        self._last = totals if self._last is None else _never_falling(self._last, totals)
        return self._last

    def _living(self) -> dict[int, ProcessCounters]:
        # a process that was known stays in the tree when its parent ends and the system gives it another
        queue = [self.pid, *self._known]
        living: dict[int, ProcessCounters] = {}
        while queue:
            pid = queue.pop()
            if pid in living or pid in self.excluded_pids:
                continue
            counters = self._source.read(pid)
            known = self._known.get(pid)
            is_new_owner = counters is not None and known is not None and known.created != counters.created
            if counters is None or (is_new_owner and counters.parent_pid not in self._known):
                continue
            living[pid] = counters
            queue += self._source.child_pids(pid)
        return living


def _unclaimed(before: dict[int, ProcessCounters], living: dict[int, ProcessCounters]) -> list[ProcessCounters]:
    """Returns the processes that have ended without any living ancestor having taken over their counters."""
    gone = [one for pid, one in before.items() if pid not in living or living[pid].created != one.created]
    reaped_seconds = {
        pid: one.reaped_cpu_seconds_total - before[pid].reaped_cpu_seconds_total
        for pid, one in living.items()
        if pid in before and before[pid].created == one.created
    }
    unclaimed = []
    for one in sorted(gone, key=_all_cpu_seconds, reverse=True):
        heir = _living_ancestor(one, before, reaped_seconds)
        seconds = _all_cpu_seconds(one)
        if heir is not None and reaped_seconds[heir] + _TICK_SECONDS >= seconds:
            reaped_seconds[heir] -= seconds
        else:
            unclaimed.append(one)
    return unclaimed


def _living_ancestor(one: ProcessCounters, before: dict[int, ProcessCounters], living: dict[int, float]) -> int | None:
    pid = one.parent_pid
    while pid not in living:
        if pid not in before or before[pid].parent_pid == pid:
            return None
        pid = before[pid].parent_pid
    return pid


def _all_cpu_seconds(one: ProcessCounters) -> float:
    return one.cpu_seconds_total + one.reaped_cpu_seconds_total


def _sum(counted: list[ProcessCounters], living: dict[int, ProcessCounters], root: ProcessCounters) -> TreeTotals:
    logical = sum(one.logical_read_bytes_total or 0 for one in counted)
    physical = sum(one.physical_read_bytes_total or 0 for one in counted)
    return TreeTotals(
        cpu_seconds_total=sum(map(_all_cpu_seconds, counted)),
        # a system that does not tell for the process itself tells for none; one closed child is only left out
        logical_read_bytes_total=None if root.logical_read_bytes_total is None else logical,
        physical_read_bytes_total=None if root.physical_read_bytes_total is None else physical,
        rss_bytes=sum(one.rss_bytes for one in living.values()),
        pids=tuple(living),
    )


def _never_falling(before: TreeTotals, now: TreeTotals) -> TreeTotals:
    def later(old: int | None, new: int | None) -> int | None:
        return new if old is None or new is None else max(old, new)

    return TreeTotals(
        cpu_seconds_total=max(before.cpu_seconds_total, now.cpu_seconds_total),
        logical_read_bytes_total=later(before.logical_read_bytes_total, now.logical_read_bytes_total),
        physical_read_bytes_total=later(before.physical_read_bytes_total, now.physical_read_bytes_total),
        rss_bytes=now.rss_bytes,
        pids=now.pids,
    )


class JobProbe:
    """Reads the totals of the job's process tree."""

    name = "job"
    fields = _FIELDS

    def __init__(self, tree: ProcessTree):
        self.tree = tree
        self._pids: tuple[int, ...] = (tree.pid,)

    def pids(self) -> tuple[int, ...]:
        """Returns the job's living processes as of the last reading."""
        return self._pids

    def read(self) -> Reading:
        """Reads the tree; what the system does not tell is None with a reason."""
        totals = self.tree.read()
        if totals is None:
            return unknown(_FIELDS, f"process {self.tree.pid} is gone or may not be read")
        self._pids = totals.pids
        values = {
            "job_cpu_seconds_total": totals.cpu_seconds_total,
            "job_logical_read_bytes_total": totals.logical_read_bytes_total,
            "job_physical_read_bytes_total": totals.physical_read_bytes_total,
            "rss_mib": totals.rss_bytes / MIB,
        }
        reason = "this system does not tell how much a process reads, or forbids to look"
        return Reading(values=values, reasons={name: reason for name, value in values.items() if value is None})


def build_job_probe(pid: int, *, excluded_pids: Collection[int] = (), proc_root: str | Path = "/proc") -> JobProbe:
    """Returns the probe of the job that `pid` started."""
    return JobProbe(ProcessTree(pid, excluded_pids=excluded_pids, source=process_source(proc_root)))
