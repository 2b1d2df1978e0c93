"""Where a cache keeps what it holds: one place a sample, in memory."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from pipeline.allocation import aligned_empty

__all__ = ["FileStore", "RowStore", "Store", "gathered"]


class Store(Protocol):
    """Places numbered from 0, each empty until it is written.

    A place is written before it is marked complete, so that a reader never sees half a sample. Two threads that write
    the same place write the same bytes.

    Attributes:
        holds_files: whether the bytes of files stand there, and not pixels.
    """

    holds_files: bool

    def complete(self, slots: np.ndarray) -> np.ndarray:
        """Which of these places can be read, bool (N,)."""

    def read(self, slots: np.ndarray) -> np.ndarray:
        """What stands at these places, (N, ...)."""

    def write(self, slots: np.ndarray, values: np.ndarray) -> None:
        """Fills these places and marks them complete."""


def gathered(rows: np.ndarray, slots: np.ndarray) -> np.ndarray:
    """Rows by their numbers, in memory that TensorFlow takes over as it is."""
    # numpy buffers the result unless it may clip; the numbers are in range
    return np.take(rows, slots, 0, aligned_empty((len(slots), *rows.shape[1:]), rows.dtype.type), mode="clip")


class RowStore:
    """Decoded images in memory, one row each.

    Args:
        count: number of rows.
        row_shape: (H, W, C) of one uint8 image.
    """

    holds_files = False

    def __init__(self, count: int, row_shape: tuple[int, int, int]) -> None:
        # the operating system hands out the pages of an empty array only as they are written
        self._rows = np.empty((count, *row_shape), np.uint8)
        self._complete = np.zeros(count, bool)

    def complete(self, slots: np.ndarray) -> np.ndarray:
        """Which of these places can be read, bool (N,)."""
        return self._complete[slots]

    def read(self, slots: np.ndarray) -> np.ndarray:
        """uint8 (N, H, W, C)."""
        return gathered(self._rows, slots)

    def write(self, slots: np.ndarray, values: np.ndarray) -> None:
        """From uint8 (N, H, W, C)."""
        self._rows[slots] = values
        self._complete[slots] = True


class FileStore:
    """The bytes of image files in memory.

    Args:
        count: number of files.
    """

    holds_files = True

    def __init__(self, count: int) -> None:
        self._contents = np.full(count, None, object)

    def complete(self, slots: np.ndarray) -> np.ndarray:
        """Which of these places can be read, bool (N,)."""
        return np.array([content is not None for content in self._contents[slots]], bool)

    def read(self, slots: np.ndarray) -> np.ndarray:
        """The files' bytes, object (N,)."""
        return self._contents[slots]

    def write(self, slots: np.ndarray, values: np.ndarray) -> None:
        """From bytes (N,)."""
        self._contents[slots] = values
