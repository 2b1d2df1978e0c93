"""Which samples each step of a run sees, with what stands beside them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

__all__ = ["StepPlan"]


class StepPlan:
    """Steps to indices and rows; what belongs to the epoch under way is kept.

    Args:
        epochs: numbers of the epochs, in their order.
        steps_per_epoch: batches an epoch, the last, smaller one included.
        batch_size: samples a batch.
        epoch: gives the order of an epoch, int64 (count,), and then arrays with a row a sample, by sample index.
        rows: shape and dtype of a batch of each of those arrays.
    """

    def __init__(
        self,
        epochs: range,
        steps_per_epoch: int,
        batch_size: int,
        epoch: Callable[[int], tuple[np.ndarray, ...]],
        rows: Sequence[tf.TensorSpec],
    ) -> None:
        self._epochs = epochs
        self._steps_per_epoch = steps_per_epoch
        self._batch_size = batch_size
        self._epoch = epoch
        self._specs = (tf.TensorSpec((None,), tf.int64), *rows)
        self._lock = threading.Lock()
        self._current: tuple[int, tuple[np.ndarray, ...]] | None = None

    def batch(self, step: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The indices int64 (N,) of a step, counted from 0 over all epochs, and their rows."""
        found = tf.numpy_function(self._batch, [step], [spec.dtype for spec in self._specs])
        return tuple(tf.ensure_shape(part, spec.shape) for part, spec in zip(found, self._specs, strict=True))

    def _batch(self, step: np.ndarray) -> tuple[np.ndarray, ...]:
        position, within = divmod(int(step), self._steps_per_epoch)
        order, *arrays = self._of_epoch(self._epochs[position])
        indices = order[within * self._batch_size : (within + 1) * self._batch_size]
        return indices, *(array[indices] for array in arrays)

    def _of_epoch(self, number: int) -> tuple[np.ndarray, ...]:
        with self._lock:
            if self._current is None or self._current[0] != number:
                self._current = number, self._epoch(number)
            return self._current[1]
