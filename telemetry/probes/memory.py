"""The memory of the machine: what is still available, and how much of it holds file pages."""

import sys

import psutil

from telemetry.probes.reading import MIB, Reading

_FIELDS = ("memory_available_mib", "page_cache_mib")


class MemoryProbe:
    """Reads the machine's memory; the job's own is read with its processes."""

    name = "memory"
    fields = _FIELDS

    def read(self) -> Reading:
        """Reads what is available without swapping, and the page cache where the system counts it (Linux)."""
        memory = psutil.virtual_memory()
        cached = getattr(memory, "cached", None)
        values = {
            "memory_available_mib": memory.available / MIB,
            "page_cache_mib": None if cached is None else cached / MIB,
        }
        reasons = {} if cached is not None else {"page_cache_mib": f"{sys.platform} does not tell its page cache"}
        return Reading(values=values, reasons=reasons)
