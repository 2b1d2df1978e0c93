"""What a run was made with: versions of the software, and the hardware."""

import importlib.metadata
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import psutil

from telemetry.probes.cpu import usable_cores
from telemetry.probes.disk import BlockDevice
from telemetry.probes.gpu import GpuFacts
from telemetry.probes.reading import MIB

_PACKAGES = (
    "feedline",
    "tensorflow",
    "keras",
    "tensorflow-addons",
    "numpy",
    "pandas",
    "pillow",
    "psutil",
    "nvidia-ml-py",
)


def describe_machine(gpus: Sequence[GpuFacts], device: BlockDevice) -> dict[str, Any]:
    """Returns the fields `versions` and `hardware` of run.json."""
    return {"versions": software_versions(), "hardware": hardware_facts(gpus=gpus, device=device)}


def software_versions() -> dict[str, str]:
    """Returns Python's version and those of the packages that are installed, without importing any of them."""
    versions = {"python": platform.python_version(), "system": platform.platform()}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def hardware_facts(*, gpus: Sequence[GpuFacts], device: BlockDevice) -> dict[str, Any]:
    """Returns what the machine is made of, as plain data.

    `usable_cores` counts what affinity and control group leave of `cores`.
    """
    return {
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "usable_cores": usable_cores(os.getpid()),
        "memory_mib": _memory_mib(),
        "gpus": [asdict(gpu) for gpu in gpus],
        "data_device": device.name,
    }


def _memory_mib() -> int | None:
    try:
        return round(psutil.virtual_memory().total / MIB)
    except (psutil.Error, OSError):  # a Linux without /proc
        return None


def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()
