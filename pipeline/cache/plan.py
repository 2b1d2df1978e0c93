"""Which samples a cache keeps, decided before the first epoch from their sizes and the budget.

What does not fit is never put in: a fixed random part of the samples is kept and the rest streamed, because a cache
that evicts serves nothing to a reader that visits every sample once an epoch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.randomness import Stream, random_words

__all__ = ["CachePlan", "plan_cache"]


@dataclass(frozen=True, kw_only=True, eq=False)
class CachePlan:
    """How much of a data set a cache keeps.

    Attributes:
        sizes: int64 (N,), bytes that each sample takes.
        kept: number of samples that are kept.
        kept_bytes: what these take once they are all there.
        budget_bytes: what they may take.
    """

    sizes: np.ndarray
    kept: int
    kept_bytes: int
    budget_bytes: int

    def slots(self) -> np.ndarray:
        """int64 (N,): where each sample is kept, from 0; a number of `kept` or more is not.

        The order depends on the number of samples alone, so that a greater budget only adds slots.
        """
        return np.argsort(_keeping_order(len(self.sizes)))


def plan_cache(sizes: np.ndarray, budget_bytes: int) -> CachePlan:
    """Decides how many samples a cache may keep.

    Args:
        sizes: int64 (N,), bytes that each sample takes.
        budget_bytes: what the kept ones may take together.

    Returns:
        The plan; all samples if they fit.
    """
    sizes = np.asarray(sizes, np.int64)
    filled = np.cumsum(sizes[_keeping_order(len(sizes))])
    kept = int(np.searchsorted(filled, budget_bytes, "right"))
    return CachePlan(
        sizes=sizes, kept=kept, kept_bytes=int(filled[kept - 1]) if kept else 0, budget_bytes=max(budget_bytes, 0)
    )


def _keeping_order(count: int) -> np.ndarray:
    """int64 (N,), samples in the order in which they get a place."""
    return np.argsort(random_words(0, 0, Stream.CACHE, count), kind="stable")
