"""Dropping files from the page cache, so that their next reading comes from the disk."""

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class EvictResult:
    """What was dropped.

    Attributes:
        evicted_files: how many files the system was asked to drop.
        reason: why some or all were not; None when all were.
    """

    evicted_files: int
    reason: str | None = None


def evict_files(paths: Iterable[str | os.PathLike]) -> EvictResult:
    """Asks the system to drop the pages of files from memory; needs no rights beyond reading them.

    Pages that another process has mapped stay. Pages not yet written are written first: only clean ones can be dropped.

    Args:
        paths: the files; one that cannot be opened is left out and named in the reason.
    """
    if not hasattr(os, "posix_fadvise"):
        return EvictResult(evicted_files=0, reason=f"{sys.platform} has no posix_fadvise to drop a file's pages with")
    evicted = 0
    failures: list[str] = []
    for path in paths:
        try:
            _evict_file(path)
            evicted += 1
        except OSError as error:
            failures.append(f"{path}: {error.strerror}")
    more = f" and {len(failures) - 1} more" if len(failures) > 1 else ""
    return EvictResult(evicted_files=evicted, reason=f"{failures[0]}{more}" if failures else None)


def _evict_file(path: str | os.PathLike) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if hasattr(os, "fdatasync"):
            os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
