"""Every NVIDIA GPU of the machine, through the driver's management library (NVML).

Each query stands alone: one that the device does not support leaves the others as they are.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

from telemetry.probes.reading import MIB, Reading, UnknownValueError, guarded, unknown

_WHAT = ("util_percent", "memory_used_mib", "job_memory_mib", "power_watts", "temperature_celsius")


@dataclass(frozen=True, kw_only=True)
class GpuFacts:
    """What stays the same of one GPU.

    Attributes:
        name: the product's name.
        memory_mib: its whole memory; None where the driver does not tell.
        driver: the driver's version.
    """

    name: str
    memory_mib: float | None
    driver: str


def gpu_fields(count: int) -> tuple[str, ...]:
    """Returns the names of the fields of the first `count` GPUs; a machine without one keeps those of gpu0."""
    return tuple(f"gpu{index}_{what}" for index in range(max(count, 1)) for what in _WHAT)


class GpuProbe:
    """Reads all GPUs; without a driver every field is None with the reason.

    Args:
        job_pids: returns the processes of the job, whose memory on each GPU is summed.
    """

    name = "gpu"

    def __init__(self, job_pids: Callable[[], Collection[int]]):
        self._job_pids = job_pids
        self._nvml, self.reason = _open_nvml()
        self.count = 0
        if self._nvml is not None:
            self.count, self.reason = _count_devices(self._nvml)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of each reading: five a GPU."""
        return gpu_fields(self.count)

    def read(self) -> Reading:
        """Reads each GPU now."""
        if self.reason is not None:
            return unknown(self.fields, self.reason)
        values: dict[str, float | None] = {}
        reasons: dict[str, str] = {}
        for index in range(self.count):
            for what, query in _queries(self._nvml, self._job_pids).items():
                guarded(partial(_ask_device, self._nvml, index, query), f"gpu{index}_{what}", values, reasons)
        return Reading(values=values, reasons=reasons)

    def facts(self) -> tuple[GpuFacts, ...]:
        """Returns what the driver tells of each GPU; empty without one."""
        return tuple(_facts(self._nvml, index) for index in range(self.count))

    def close(self) -> None:
        """Gives the library back."""
        if self._nvml is not None:
            self._nvml.nvmlShutdown()
            self._nvml, self.count, self.reason = None, 0, "the GPU probe is closed"


def smallest_gpu_memory_bytes() -> int | None:
    """Returns the whole memory of the machine's smallest GPU; None where the driver does not tell, or there is none."""
    probe = GpuProbe(job_pids=tuple)
    try:
        sizes = [gpu.memory_mib for gpu in probe.facts()]
    finally:
        probe.close()
    return int(min(sizes) * MIB) if sizes and None not in sizes else None


def _ask_device(nvml: ModuleType, index: int, query: Callable[[Any], float]) -> float:
    # the handle is asked for each time: it goes stale when a device falls off the bus, and one lost device leaves
    # the others readable
    return query(nvml.nvmlDeviceGetHandleByIndex(index))


def _queries(nvml: ModuleType, job_pids: Callable[[], Collection[int]]) -> dict[str, Callable[[Any], float]]:
    return {
        "util_percent": lambda device: float(nvml.nvmlDeviceGetUtilizationRates(device).gpu),
        "memory_used_mib": lambda device: nvml.nvmlDeviceGetMemoryInfo(device).used / MIB,
        "job_memory_mib": lambda device: _job_memory_mib(nvml.nvmlDeviceGetComputeRunningProcesses(device), job_pids()),
        "power_watts": lambda device: nvml.nvmlDeviceGetPowerUsage(device) / 1000,  # milliwatts
        "temperature_celsius": lambda device: float(nvml.nvmlDeviceGetTemperature(device, nvml.NVML_TEMPERATURE_GPU)),
    }


def _job_memory_mib(processes: list[Any], job_pids: Collection[int]) -> float:
    """Returns the memory that the job's processes hold on one GPU; 0 when no process at all uses it."""
    own = [process for process in processes if process.pid in job_pids]
    if processes and not own:
        raise UnknownValueError(
            f"none of the {len(processes)} processes on the GPU is known as the job's (not started yet, or numbered "
            "otherwise outside this container)"
        )
    # the binding turns NVML's "not available" (2^64 - 1) into None; a driver's other struct may keep the number
    if any(process.usedGpuMemory is None or process.usedGpuMemory >= 2**64 - 1 for process in own):
        raise UnknownValueError("the driver does not tell the memory of single processes")
    return sum(process.usedGpuMemory for process in own) / MIB


def _open_nvml() -> tuple[ModuleType | None, str | None]:
    """Returns the initialised binding, or None and the reason."""
    try:
        import pynvml
    except ImportError as error:
        return None, f"nvidia-ml-py is not installed ({error})"
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError_LibraryNotFound:
        return None, "no NVIDIA driver on this machine (its library libnvidia-ml was not found)"
    except pynvml.NVMLError as error:
        return None, f"the NVIDIA driver cannot be used: {error}"
    return pynvml, None


def _count_devices(nvml: ModuleType) -> tuple[int, str | None]:
    try:
        count = nvml.nvmlDeviceGetCount()
    except nvml.NVMLError as error:
        return 0, f"the NVIDIA driver does not list its GPUs: {error}"
    return count, None if count else "the NVIDIA driver lists no GPU"


def _facts(nvml: ModuleType, index: int) -> GpuFacts:
    def told(query: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return query()
        except nvml.NVMLError:
            return otherwise

    return GpuFacts(
        name=_text(told(lambda: nvml.nvmlDeviceGetName(nvml.nvmlDeviceGetHandleByIndex(index)), "unknown")),
        memory_mib=told(lambda: nvml.nvmlDeviceGetMemoryInfo(nvml.nvmlDeviceGetHandleByIndex(index)).total / MIB, None),
        driver=_text(told(nvml.nvmlSystemGetDriverVersion, "unknown")),
    )


def _text(value: str | bytes) -> str:
    """Returns text: older bindings give bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value
