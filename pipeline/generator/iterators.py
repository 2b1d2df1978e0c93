"""Endless, indexable sequences of batches, as Keras's iterators are: order, positions, read-ahead.

The order of an epoch and each image's draws are functions of (seed, epoch, index): `it[k]` is batch k of the epoch that
the iterator is in, whoever asks and how often. An epoch ends where `next` starts over and at `on_epoch_end`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline.randomness import epoch_order

__all__ = ["Iterator", "ReadAhead"]


class Iterator(tf.keras.utils.Sequence):  # Keras 3 knows PyDataset by this name as well
    """Base class: the order, the positions and the protocol, for any kind of batch.

    A subclass says in `_get_batches_of_transformed_samples` what a batch is.

    Args:
        n: number of samples.
        batch_size: samples a batch; the last one of an epoch may be smaller.
        shuffle: a new order in each epoch.
        seed: of the order; None for another one in each iterator.
        **kwargs: Keras 3's `workers`, `use_multiprocessing` and `max_queue_size`.
    """

    white_list_formats = ("png", "jpg", "jpeg", "bmp", "ppm", "tif", "tiff")

    def __init__(self, n: int, batch_size: int, shuffle: bool, seed: int | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.n = n
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.batch_index = 0
        self.total_batches_seen = 0
        self.lock = threading.Lock()
        self.index_array: np.ndarray | None = None
        self.index_generator = self._flow_index()
        self._epoch = 0
        self._draw_seed = (int.from_bytes(os.urandom(4), "little") if seed is None else int(seed)) % 2**64

    def __len__(self) -> int:
        return -(-self.n // self.batch_size)

    def __getitem__(self, idx: int) -> Any:
        if idx >= len(self):
            raise ValueError(
                f"Asked to retrieve element {idx}, but the Sequence has length {len(self)}; "
                f"give a number from 0 to {len(self) - 1}"
            )
        with self.lock:
            self.total_batches_seen += 1
            if self.index_array is None:
                self._set_index_array()
            indices = self.index_array[self.batch_size * idx : self.batch_size * (idx + 1)]
        return self._get_batches_of_transformed_samples(indices)

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        with self.lock:
            indices = next(self.index_generator)
        return self._get_batches_of_transformed_samples(indices)

    def next(self) -> Any:
        """The next batch, as `next(iterator)` gives it."""
        return self.__next__()

    def reset(self) -> None:
        """Lets `next` start over with the first batch of a new epoch."""
        self.batch_index = 0

    def on_epoch_end(self) -> None:
        """Goes on to the next epoch: another order and other draws."""
        with self.lock:
            self._set_index_array()

    def _order(self, epoch: int) -> np.ndarray:
        return epoch_order(self._draw_seed, epoch, self.n) if self.shuffle else np.arange(self.n)

    def _set_index_array(self) -> None:
        self._epoch += 1
        self.index_array = self._order(self._epoch)

    def _flow_index(self) -> Iterable[np.ndarray]:
        """The indices of one batch after the other, without end."""
        self.reset()
        while True:
            if self.batch_index == 0:
                self._set_index_array()
            first = self.batch_index * self.batch_size
            self.batch_index = self.batch_index + 1 if first + self.batch_size < self.n else 0
            self.total_batches_seen += 1
            yield self.index_array[first : first + self.batch_size]

    def _get_batches_of_transformed_samples(self, index_array: np.ndarray) -> Any:
        """What a batch of these samples is."""
        raise NotImplementedError(f"{type(self).__name__} does not say what a batch is")


class ReadAhead:
    """Batches of consecutive steps, made before they are asked for.

    A first step, or one that does not follow the last, is not read ahead: who takes a single batch pays for one.

    Args:
        open_at: makes an iterator over the batches from a step on.
    """

    def __init__(self, open_at: Callable[[int], Any]) -> None:
        self._open_at = open_at
        self._batches: Any = None
        self._next_step: int | None = None

    def batch(self, step: int) -> Any | None:
        """The batch of a step, or None if it was not foreseen."""
        is_foreseen = step == self._next_step
        self._next_step = step + 1
        if not is_foreseen:
            self._batches = None
            return None
        if self._batches is None:
            self._batches = self._open_at(step)
        return next(self._batches)

    def stop(self) -> None:
        """Forgets what was read ahead."""
        self._batches = self._next_step = None
