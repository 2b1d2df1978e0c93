"""Where augmentation runs, found out by trying both places.

Moving it into the train step pays where the accelerator has time to spare, and costs where it has none; which it is
depends on the model, the cores and the card.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import tensorflow as tf

from model.device_fit import augment_on_device
from model.errors import one_line
from pipeline import CacheConfig, Feed, FeedConfig, Samples, augment_function, open_cache

__all__ = ["Placement", "measure_placement"]

# Few enough that nobody waits, and enough that what the queues held at the start is a small part of them.
_STEPS = 16


@dataclass(frozen=True, kw_only=True)
class Placement:
    """What a training step took with augmentation in each place.

    Attributes:
        host_ms: milliseconds a batch, its input included, with augmentation in the pipeline.
        device_ms: the same with augmentation in the compiled step; None if that failed.
        steps: batches that were timed in each place.
        reason: why device_ms is None.
    """

    host_ms: float
    device_ms: float | None
    steps: int
    reason: str | None = None

    @property
    def chosen(self) -> Literal["host", "device"]:
        """The faster place."""
        return "host" if self.device_ms is None or self.host_ms <= self.device_ms else "device"

    def __str__(self) -> str:
        device = f"failed ({self.reason})" if self.device_ms is None else f"{self.device_ms:.1f} ms"
        return (
            f"augmentation on the {self.chosen}: a batch took {self.host_ms:.1f} ms with it on the host, on the device "
            f"{device} ({self.steps} batches each)"
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data, for run.json."""
        return {**asdict(self), "chosen": self.chosen}


def measure_placement(model: tf.keras.Model, samples: Samples, config: FeedConfig, *, cached: bool) -> Placement:
    """Trains a few batches with augmentation on the host, then on the device, and undoes the training.

    A device that cannot do it (out of memory, an operation it lacks) leaves its reason and loses.

    Args:
        model: compiled; its weights, optimizer and random state are put back.
        samples: the training images, of which the first few batches are read.
        config: how they become batches; `augment` is not None.
        cached: whether pixels come from memory, as in most epochs of a run with a cache of decoded images.
    """
    part = samples.take(np.arange(min(len(samples), _STEPS * config.batch_size)))
    cache = open_cache(CacheConfig(mode="ram"), part.paths, config.decode) if cached else None
    augment = augment_function(config.augment, config.preprocess, resampler=config.resampler)
    device_ms = reason = None
    with _put_back(model):
        host_ms = _milliseconds_a_step(model, Feed(part, replace(config, augment_on="host"), cache))
        try:
            with augment_on_device(model, augment):
                device_ms = _milliseconds_a_step(model, Feed(part, replace(config, augment_on="device"), cache))
        except tf.errors.OpError as error:
            reason = one_line(error)
    return Placement(host_ms=host_ms, device_ms=device_ms, steps=_STEPS, reason=reason)


def _milliseconds_a_step(model: tf.keras.Model, feed: Feed) -> float:
    """Between the ends of two passes: the first compiles and fills the queues and the cache."""
    ends: list[float] = []

    class Ends(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            ends.append(time.perf_counter())  # Keras has fetched the loss by now: the steps are done

    # more than is used, so that as much is read ahead at the second end as at the first
    passes = 2 + -(-2 * _STEPS // feed.steps_per_epoch)
    batches = feed.training(range(1, passes + 1)).take_while(lambda *batch: True)  # Keras is not told its length
    model.fit(batches, steps_per_epoch=_STEPS, epochs=2, shuffle=False, verbose=0, callbacks=[Ends()])
    return 1000.0 * (ends[1] - ends[0]) / _STEPS


@contextlib.contextmanager
def _put_back(model: tf.keras.Model) -> Iterator[None]:
    model.optimizer.build(model.trainable_variables)
    variables = [*model.variables, *model.optimizer.variables]
    values = [np.array(variable) for variable in variables]
    try:
        yield
    finally:
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
