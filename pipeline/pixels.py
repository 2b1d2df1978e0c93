"""The pixel cache: decoded uint8 images in RAM, one row a sample, filled while the first epoch runs.

Rows are addressed by sample, so any order of an epoch reads them directly and no shuffle buffer of images exists. What
does not fit is never put in: a fixed random part of the samples is kept and the rest streamed, because a cache that
evicts serves nothing to a reader that visits every sample once an epoch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import psutil

from pipeline.randomness import Stream, random_words

__all__ = ["CachePlan", "PixelCache", "plan_pixel_cache", "ram_budget_bytes"]


# The share of the available memory that decoded images may take.
_CACHE_MEMORY_FRACTION = 0.6
# What is taken to be available where the system does not tell.
_UNTOLD_MEMORY_BYTES = 2**30


@dataclass(frozen=True, kw_only=True)
class CachePlan:
    """How much of a data set a cache keeps.

    Attributes:
        samples: number of samples in the data set.
        kept: number of them whose pixels are kept.
        row_shape: (H, W, C) of one image.
    """

    samples: int
    kept: int
    row_shape: tuple[int, int, int]

    @property
    def kept_bytes(self) -> int:
        """Size of the kept rows once they are filled."""
        return self.kept * int(np.prod(self.row_shape))


def ram_budget_bytes() -> int:
    """What decoded images may take of the memory that is available now; the rest is for the model and its batches."""
    try:
        available = psutil.virtual_memory().available
    except (psutil.Error, OSError):  # a Linux without /proc
        available = _UNTOLD_MEMORY_BYTES
    return int(available * _CACHE_MEMORY_FRACTION)


def plan_pixel_cache(samples: int, row_shape: tuple[int, int, int], budget_bytes: int) -> CachePlan:
    """Decides how many samples a cache may keep.

    Args:
        samples: number of samples.
        row_shape: (H, W, C) of one uint8 image.
        budget_bytes: what the rows may take at most.

    Returns:
        The plan; all samples if they fit.
    """
    return CachePlan(
        samples=samples, kept=min(samples, max(budget_bytes, 0) // int(np.prod(row_shape))), row_shape=row_shape
    )


class PixelCache:
    """Decoded images by sample index. Safe to use from several threads.

    A row is written before it is marked complete, so that a reader never sees half an image. Two threads that decode
    the same sample at once write the same bytes.
    """

    def __init__(self, plan: CachePlan, *, seed: int = 0) -> None:
        # the operating system hands out the pages of an empty array only as they are written
        self._rows = np.empty((plan.kept, *plan.row_shape), np.uint8)
        self._slots = np.full(plan.samples, -1, np.int64)
        kept = np.argsort(random_words(seed, 0, Stream.CACHE, plan.samples), kind="stable")[: plan.kept]
        self._slots[np.sort(kept)] = np.arange(plan.kept)
        self._complete = np.zeros(plan.samples, bool)
        self.plan = plan

    @property
    def complete(self) -> int:
        """Number of samples whose pixels are held."""
        return int(self._complete.sum())

    def missing(self, indices: np.ndarray) -> np.ndarray:
        """Which samples of a batch have to be decoded.

        Args:
            indices: int64 (N,), sample indices.

        Returns:
            int64 (M,), positions in `indices`, ascending.
        """
        return np.flatnonzero(~self._complete[indices])

    def merge(self, indices: np.ndarray, missing: np.ndarray, decoded: np.ndarray) -> np.ndarray:
        """Keeps what was decoded and adds what was held.

        Args:
            indices: int64 (N,), the batch's sample indices.
            missing: int64 (M,), what `missing` said of them.
            decoded: uint8 (M, H, W, C), the images at those positions.

        Returns:
            uint8 (N, H, W, C), the whole batch.
        """
        self._keep(indices[missing], decoded)
        if len(missing) == len(indices):
            return decoded
        if len(missing) == 0:
            return self._rows[self._slots[indices]]
        held = np.delete(np.arange(len(indices)), missing)
        batch = np.empty((len(indices), *self.plan.row_shape), np.uint8)
        batch[held] = self._rows[self._slots[indices[held]]]
        batch[missing] = decoded
        return batch

    def _keep(self, samples: np.ndarray, decoded: np.ndarray) -> None:
        slots = self._slots[samples]
        has_slot = slots >= 0
        self._rows[slots[has_slot]] = decoded[has_slot]
        self._complete[samples[has_slot]] = True
