"""All probes of one job, read together."""

from collections.abc import Collection

from telemetry.probes.cpu import CpuProbe
from telemetry.probes.disk import BlockDevice, DiskProbe
from telemetry.probes.gpu import GpuProbe
from telemetry.probes.memory import MemoryProbe
from telemetry.probes.process_tree import build_job_probe
from telemetry.probes.reading import Probe, Reading, read_probes


class ProbeSet:
    """Reads disk, job, CPU, memory and GPUs at one moment.

    Args:
        pid: the process that is the job; its descendants belong to it.
        device: the block device that holds the data.
        excluded_pids: descendants that do not belong to the job.
    """

    def __init__(self, *, pid: int, device: BlockDevice, excluded_pids: Collection[int] = ()):
        job = build_job_probe(pid, excluded_pids=excluded_pids)
        self._tree = job.tree
        self.gpu = GpuProbe(job.pids)
        # the job before the GPUs: their share of the job is found by the job's processes
        self._probes: tuple[Probe, ...] = (DiskProbe(device), job, CpuProbe(), MemoryProbe(), self.gpu)

    def exclude(self, pid: int) -> None:
        """Leaves one more descendant, and all below it, out of the job."""
        self._tree.excluded_pids |= {pid}

    def read(self) -> Reading:
        """Reads every field; a probe that fails leaves the others as they are."""
        return read_probes(self._probes)

    def close(self) -> None:
        """Gives back what the probes hold."""
        self.gpu.close()
