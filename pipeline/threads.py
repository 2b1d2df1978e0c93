"""Threads for work that runs outside of Python's lock: how many there may be, and who gets what."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

__all__ = ["available_cores", "over_cores"]


def available_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def over_cores(work: Callable[[int, int], None], count: int) -> None:
    """Does `work(start, stop)` for all of range(count), a part on each core, and returns when it is done."""
    parts = max(1, min(available_cores(), count))
    bounds = [count * part // parts for part in range(parts + 1)]
    *others, own = itertools.pairwise(bounds)
    under_way = []
    for start, stop in others:
        try:
            under_way.append(_pool().submit(work, start, stop))
        except RuntimeError:  # Python is about to end and lets nobody start anything
            work(start, stop)
    work(*own)  # in this thread, which would have to wait anyway
    for part in under_way:
        part.result()


@functools.cache
def _pool() -> ThreadPoolExecutor:
    # one a process however many pipelines there are; its threads start as they are needed
    return ThreadPoolExecutor(max(1, available_cores()), thread_name_prefix="feedline")
