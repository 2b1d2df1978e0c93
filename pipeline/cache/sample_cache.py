"""A cache by sample index, filled while the first epoch runs.

Places are addressed by sample, so any order of an epoch reads them directly and no shuffle buffer exists. Each kept
sample is made once: a batch that finds one being made by another batch waits for it.
"""

from __future__ import annotations

import threading
import time

import numpy as np

from pipeline.allocation import aligned_empty
from pipeline.cache.plan import CachePlan
from pipeline.cache.stores import Store

__all__ = ["SampleCache"]

# After this long a sample is taken to have been given up by the batch that was to make it: a run that is stopped, or
# meets a bad file, never hands over the batches under way.
_CLAIM_SECONDS = 2.0


class SampleCache:
    """What was made of each sample. Safe to use from several threads.

    Args:
        plan: which samples are kept.
        store: where; it has a place for each.
    """

    def __init__(self, plan: CachePlan, store: Store) -> None:
        self.plan = plan
        self._store = store
        self._slots = plan.slots()
        self._claimed_until = np.zeros(plan.kept)
        self._changed = threading.Condition()

    @property
    def holds_files(self) -> bool:
        """Whether it keeps the bytes of files, and not pixels."""
        return self._store.holds_files

    @property
    def complete(self) -> int:
        """Number of samples that are held."""
        return int(self._store.complete(np.arange(self.plan.kept)).sum())

    def missing(self, indices: np.ndarray) -> np.ndarray:
        """Which samples of a batch have to be made; the caller then makes them and calls `merge`.

        Args:
            indices: int64 (N,), sample indices.

        Returns:
            int64 (M,), positions in `indices`, ascending.
        """
        slots = self._slots[indices]
        has_place = slots < self.plan.kept
        places = slots[has_place]
        is_missing = np.ones(len(indices), bool)
        with self._changed:
            empty = places[~self._store.complete(places)]
            # all at once, so that of two batches only the later waits for the earlier
            others = empty[self._claimed_until[empty] > time.monotonic()]
            self._claimed_until[np.setdiff1d(empty, others)] = time.monotonic() + _CLAIM_SECONDS
            while len(others) and (left := self._claimed_until[others].max() - time.monotonic()) > 0:
                self._changed.wait(left)
                others = others[~self._store.complete(others)]
            self._claimed_until[others] = time.monotonic() + _CLAIM_SECONDS
            is_missing[has_place] = ~self._store.complete(places)
        return np.flatnonzero(is_missing)

    def merge(self, indices: np.ndarray, missing: np.ndarray, made: np.ndarray) -> np.ndarray:
        """Keeps what was made and adds what was held.

        Args:
            indices: int64 (N,), the batch's sample indices.
            missing: int64 (M,), what `missing` said of them.
            made: (M, ...), the samples at those positions.

        Returns:
            (N, ...), the whole batch.
        """
        slots = self._slots[indices]
        self._keep(slots[missing], made)
        if len(missing) == len(indices):
            return made
        if len(missing) == 0:
            return self._store.read(slots)
        held = np.delete(np.arange(len(indices)), missing)
        shape = (len(indices), *made.shape[1:])
        batch = np.empty(shape, object) if made.dtype == object else aligned_empty(shape, made.dtype.type)
        batch[held] = self._store.read(slots[held])
        batch[missing] = made
        return batch

    def _keep(self, slots: np.ndarray, made: np.ndarray) -> None:
        has_place = slots < self.plan.kept
        if not has_place.any():
            return
        self._store.write(slots[has_place], made[has_place])
        with self._changed:
            self._claimed_until[slots[has_place]] = 0.0
            self._changed.notify_all()
