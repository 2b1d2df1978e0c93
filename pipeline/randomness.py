"""Random numbers as pure functions of (seed, epoch, stream): the same on every machine, numpy version and batch size.

Only the raw words of the Philox counter generator are used, because numpy promises that bit stream for good, while the
methods of `numpy.random.Generator` may change between versions (NEP 19). Global random state is never touched.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

__all__ = ["Stream", "epoch_order", "random_words", "uniforms"]


class Stream(IntEnum):
    """What the numbers are for; streams of one (seed, epoch) never overlap."""

    ORDER = 0
    AUGMENT = 1
    CACHE = 2
    SPLIT = 3


def random_words(seed: int, epoch: int, stream: Stream, count: int) -> np.ndarray:
    """The first `count` random words of a stream.

    Args:
        seed: 0 to 2**64 - 1.
        epoch: 0 to 2**64 - 1.
        stream: what the numbers are for.
        count: number of words; a longer request starts with the words of a shorter one.

    Returns:
        uint64 (count,), uniform over all 64 bits.
    """
    key = np.array([seed, epoch], np.uint64)
    # the stream stands in the counter's top word, which no request is long enough to reach
    return np.random.Philox(key=key, counter=np.array([0, 0, 0, int(stream)], np.uint64)).random_raw(count)


def uniforms(seed: int, epoch: int, stream: Stream, shape: tuple[int, int]) -> np.ndarray:
    """Uniform numbers whose row i does not depend on the number of rows.

    Returns:
        float64 `shape`, in [0, 1), with 53 random bits.
    """
    words = random_words(seed, epoch, stream, shape[0] * shape[1])
    return (words >> np.uint64(11)).reshape(shape) * 2.0**-53


def epoch_order(seed: int, epoch: int, count: int) -> np.ndarray:
    """The order in which an epoch visits the samples.

    Args:
        seed: of the run.
        epoch: from 1.
        count: number of samples.

    Returns:
        int64 (count,), a permutation of 0 to count - 1, uniform over all of them.
    """
    # a stable sort of random keys: the result is defined by the keys alone
    return np.argsort(random_words(seed, epoch, Stream.ORDER, count), kind="stable")
