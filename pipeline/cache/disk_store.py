"""Decoded images in a file: one row each, found again by the next run.

A folder holds `rows` (the pixels, one row a place) and `complete` (a mark of eight bytes a place). A row is written
before its mark, so a process that is killed leaves whole rows only. A machine that goes down may lose what the system
had not written yet, marks and rows in any order; so a mark names the boot in which it was made and counts only in
that boot, until the rows are known to be on the disk. Nothing is locked: processes that fill the same rows write
the same bytes.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import threading
import warnings
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pipeline.allocation import aligned_empty

__all__ = ["MARKS_FILE", "ROWS_FILE", "DiskStore"]

ROWS_FILE = "rows"
MARKS_FILE = "complete"

# a mark of 0 stands at an empty place
_ON_DISK = 1
_MARK_BYTES = 8
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_HAS_POSITIONED_READS = hasattr(os, "preadv") and hasattr(os, "pwrite")


class DiskStore:
    """Rows in a folder that other processes may read and fill at the same time.

    Args:
        folder: exists.
        count: number of rows; those that are there already stay.
        row_shape: (H, W, C) of one uint8 image.

    Raises:
        OSError: if the folder cannot be written to, or has no room for the rows.
    """

    holds_files = False

    def __init__(self, folder: Path, count: int, row_shape: tuple[int, int, int]) -> None:
        self._folder = folder
        self._row_shape = row_shape
        self._row_bytes = int(np.prod(row_shape))
        self._mark = _mark_of_this_boot()
        # the room is taken now: a full disk is met here and not in the middle of an epoch
        self._rows = _PlacedFile(folder / ROWS_FILE, count * self._row_bytes)
        self._marks = _PlacedFile(folder / MARKS_FILE, count * _MARK_BYTES)
        found = self._marks_at(0, count)
        # what a process of this boot left when it was killed is settled together with what this one adds
        self._is_unsettled = found == self._mark
        self._complete = self._is_unsettled | (found == _ON_DISK)
        self._is_failing = False
        weakref.finalize(self, _settle, self._rows, self._marks, self._is_unsettled)

    def complete(self, slots: np.ndarray) -> np.ndarray:
        """Which of these places can be read, bool (N,); rows that another process has filled meanwhile count."""
        unknown = slots[~self._complete[slots]]
        if len(unknown):
            first = int(unknown.min())
            marks = self._marks_at(first, int(unknown.max()) + 1 - first)[unknown - first]
            self._complete[unknown] |= (marks == self._mark) | (marks == _ON_DISK)
        return self._complete[slots]

    def read(self, slots: np.ndarray) -> np.ndarray:
        """uint8 (N, H, W, C)."""
        batch = aligned_empty((len(slots), *self._row_shape), np.uint8)
        for row, slot in zip(batch, slots, strict=True):
            self._rows.read(row.reshape(-1), int(slot) * self._row_bytes)
        return batch

    def write(self, slots: np.ndarray, values: np.ndarray) -> None:
        """From uint8 (N, H, W, C). Where the disk refuses, the rows stay empty, and a warning says so once."""
        mark = np.array([self._mark], np.uint64)
        for slot, row in zip(slots, values, strict=True):
            try:
                self._rows.write(np.ascontiguousarray(row).reshape(-1), int(slot) * self._row_bytes)
                self._marks.write(mark.view(np.uint8), int(slot) * _MARK_BYTES)
            except OSError as error:
                self._warn_once(error)
                continue
            self._complete[slot] = self._is_unsettled[slot] = True

    def _marks_at(self, first: int, count: int) -> np.ndarray:
        marks = np.empty(count, np.uint64)
        self._marks.read(marks.view(np.uint8), first * _MARK_BYTES)
        return marks

    def _warn_once(self, error: OSError) -> None:
        if not self._is_failing:
            self._is_failing = True
            warnings.warn(
                f"cache folder {self._folder}: cannot be written to any more ({error.strerror}); what is not in it is "
                "decoded anew in every epoch",
                stacklevel=2,
            )


class _PlacedFile:
    """A file that is read and written at places, from several threads.

    Args:
        path: made if it is not there; one that cannot be written to can still be read.
        size: what it is lengthened to, in bytes.
    """

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._file = _open(path)
        self._lock = threading.Lock()
        weakref.finalize(self, os.close, self._file)
        if os.fstat(self._file).st_size >= size:
            return
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(self._file, 0, size)  # never shortens what another process made longer
        else:
            os.truncate(self._file, size)

    def read(self, into: np.ndarray, place: int) -> None:
        """Fills a uint8 array.

        Raises:
            OSError: if the file ends before.
        """
        view = memoryview(into)
        with self._at(place):
            while len(view):
                count = os.preadv(self._file, [view], place) if _HAS_POSITIONED_READS else self._read_here(view)
                if not count:
                    raise OSError(f"{self._path} was cut off by another program; remove its folder")
                view, place = view[count:], place + count

    def write(self, data: np.ndarray, place: int) -> None:
        view = memoryview(data)
        with self._at(place):
            while len(view):
                count = os.pwrite(self._file, view, place) if _HAS_POSITIONED_READS else os.write(self._file, view)
                view, place = view[count:], place + count

    def sync(self) -> None:
        os.fsync(self._file)

    def _read_here(self, view: memoryview) -> int:
        data = os.read(self._file, len(view))
        view[: len(data)] = data
        return len(data)

    @contextlib.contextmanager
    def _at(self, place: int) -> Iterator[None]:
        """Where a system has no reads by place, one thread after the other goes there."""
        if _HAS_POSITIONED_READS:
            yield
            return
        with self._lock:
            os.lseek(self._file, place, os.SEEK_SET)
            yield


def _open(path: Path) -> int:
    flags = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o600)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        return os.open(path, os.O_RDONLY | flags)


def _settle(rows: _PlacedFile, marks: _PlacedFile, is_unsettled: np.ndarray) -> None:
    """Makes these rows count after the machine goes down, too."""
    if not is_unsettled.any():
        return
    with contextlib.suppress(OSError):  # then it counts until then
        rows.sync()
        on_disk = np.array([_ON_DISK], np.uint64).view(np.uint8)
        for slot in np.flatnonzero(is_unsettled):
            marks.write(on_disk, int(slot) * _MARK_BYTES)
        marks.sync()


def _mark_of_this_boot() -> np.uint64:
    try:
        boot = _BOOT_ID.read_bytes()
    except OSError:  # no such name is known: what is not settled counts in this process only
        boot = secrets.token_bytes(16)
    mark = np.frombuffer(hashlib.sha256(boot).digest(), np.uint64, 1)[0]
    return np.uint64(max(int(mark), _ON_DISK + 1))
