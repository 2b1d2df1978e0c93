"""From samples to batches: the one place where the order of the stages is written.

    step -> indices, draws, labels -> [cache] <- read and decode -> augment and preprocess (host) -> prefetch

The pipeline moves whole batches: which samples a step sees is known from (seed, epoch, step) alone, so what the cache
holds is gathered in one copy, only what it lacks is decoded, and one dataset runs over all epochs without a pause
between them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import tensorflow as tf

from pipeline.allocation import keep_freed_memory
from pipeline.augment import (
    DRAW_COLUMNS,
    IDENTITY,
    RESAMPLERS,
    AugmentRanges,
    ChannelAffine,
    augment_function,
    draw_parameters,
    draw_rows,
    host_augment_function,
    preprocess_function,
)
from pipeline.cache import SampleCache
from pipeline.decode_config import DecodeConfig
from pipeline.loading import FileImages, at_full_batch, finished, stage_parallelism
from pipeline.randomness import epoch_order
from pipeline.samples import Samples
from pipeline.steps import StepPlan

__all__ = ["Feed", "FeedConfig"]


@dataclass(frozen=True, kw_only=True)
class FeedConfig:
    """How samples become batches.

    Attributes:
        decode: target size, filter and method.
        batch_size: images a batch; the last of an epoch may be smaller.
        parallel_images: images of a batch that are read and decoded at once.
        prefetch_batches: finished batches held ready; 0 makes each batch only when it is asked for.
        seed: of the order and the augmentation.
        augment: ranges, or None for no augmentation.
        augment_on: `host` gives augmented float32 images; `device` gives (uint8 images, draws) for the compiled train
            step.
        resampler: `fused` or `addons`, see `augment_function`.
        preprocess: what the backbone wants of its pixels.
    """

    decode: DecodeConfig
    batch_size: int = 32
    parallel_images: int = 8
    prefetch_batches: int = 2
    seed: int = 42
    augment: AugmentRanges | None = field(default_factory=AugmentRanges)
    augment_on: Literal["host", "device"] = "host"
    resampler: str = "fused"
    preprocess: ChannelAffine = IDENTITY

    def __post_init__(self) -> None:
        problems = [
            f"{name} must be a whole number of {least} or more, not {getattr(self, name)!r}"
            for name, least in (("batch_size", 1), ("parallel_images", 1), ("prefetch_batches", 0), ("seed", 0))
            if not (isinstance(getattr(self, name), int) and getattr(self, name) >= least)
        ]
        if self.augment_on not in ("host", "device"):
            problems.append(f"augment_on must be host or device, not {self.augment_on!r}")
        if self.resampler not in RESAMPLERS:
            problems.append(f"resampler must be one of {', '.join(RESAMPLERS)}, not {self.resampler!r}")
        if problems:
            raise ValueError("; ".join(problems))


class Feed:
    """The batches of one data set, for training over any epochs and for evaluation.

    Args:
        samples: what to read.
        config: how.
        cache: keeps files or decoded pixels from the first visit on, see `open_cache`; None keeps nothing.
    """

    def __init__(self, samples: Samples, config: FeedConfig, cache: SampleCache | None = None) -> None:
        keep_freed_memory()
        self.samples = samples
        self.config = config
        self.cache = cache
        self._labels = samples.targets.astype(np.float32)

    @property
    def steps_per_epoch(self) -> int:
        """Batches in one epoch, the last, smaller one included."""
        return -(-len(self.samples) // self.config.batch_size)

    def training(self, epochs: range) -> tf.data.Dataset:
        """Shuffled, augmented batches of consecutive epochs, `steps_per_epoch` each.

        Args:
            epochs: which, from 1; `range(3, 11)` continues a run after its second epoch just as if it had not stopped.

        Returns:
            (images float32 (N, H, W, 3), labels float32 (N,)), or ((images uint8 (N, H, W, 3), draws float32 (N, 8)),
            labels) where augmentation is on the device.
        """
        config = self.config
        rows = (tf.TensorSpec((None, len(DRAW_COLUMNS)), tf.float32), tf.TensorSpec((None,), tf.float32))
        plan = StepPlan(epochs, self.steps_per_epoch, config.batch_size, self._epoch, rows)
        steps = tf.data.Dataset.range(len(epochs) * self.steps_per_epoch)
        batches = self._load(steps.map(plan.batch))
        if config.augment is None:
            prepare = at_full_batch(preprocess_function(config.preprocess), config.batch_size)
            batches = self._map(batches, lambda images, draws, labels: (prepare(images), labels))
        elif config.augment_on == "host":
            augment = self._host_augment(config.augment)
            batches = self._map(batches, lambda images, draws, labels: (augment(images, draws), labels))
        else:
            batches = batches.map(lambda images, draws, labels: ((images, draws), labels))
        return self._finish(batches)

    def evaluation(self) -> tf.data.Dataset:
        """One pass over the samples in their own order, preprocessed but never augmented.

        Returns:
            (images float32 (N, H, W, 3), labels float32 (N,)).
        """
        prepare = at_full_batch(preprocess_function(self.config.preprocess), self.config.batch_size)
        in_order = tf.data.Dataset.range(len(self.samples)).batch(self.config.batch_size)
        labels = tf.constant(self._labels)
        batches = self._load(in_order.map(lambda indices: (indices, (), tf.gather(labels, indices))))
        return self._finish(self._map(batches, lambda images, draws, labels: (prepare(images), labels)))

    def decoded(self) -> tf.data.Dataset:
        """One pass in order without labels: uint8 (N, H, W, 3) as they come from the decoder or the cache."""
        in_order = tf.data.Dataset.range(len(self.samples)).batch(self.config.batch_size)
        return self._finish(self._load(in_order.map(lambda indices: (indices, (), ()))).map(lambda images, *_: images))

    def _host_augment(self, ranges: AugmentRanges) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
        config = self.config
        how = (ranges, config.preprocess)
        size = {"height": config.decode.height, "width": config.decode.width}
        compiled = host_augment_function(*how, resampler=config.resampler, **size)
        if compiled is not None:
            return compiled
        return at_full_batch(augment_function(*how, resampler=config.resampler), config.batch_size)

    def _epoch(self, epoch: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The order of an epoch, and the draws and labels by sample index."""
        config, count = self.config, len(self.samples)
        parameters = draw_parameters(
            config.augment or AugmentRanges(),
            seed=config.seed,
            epoch=epoch,
            count=count,
            height=config.decode.height,
            width=config.decode.width,
        )
        return epoch_order(config.seed, epoch, count), draw_rows(parameters), self._labels

    def _load(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        """(indices, draws, labels) to (images uint8, draws, labels)."""
        config = self.config
        images = FileImages(self.samples.paths, config.decode, parallel_images=config.parallel_images, cache=self.cache)

        def load(indices: tf.Tensor, draws: Any, labels: Any) -> tuple[tf.Tensor, Any, Any]:
            return images.load(indices), draws, labels

        # one image at a time means one batch at a time too
        return batches.map(load, num_parallel_calls=stage_parallelism(config.parallel_images > 1))

    def _map(self, batches: tf.data.Dataset, function: Callable[..., Any]) -> tf.data.Dataset:
        # without prefetch the consumer itself does the work, so that nothing runs ahead of it
        return batches.map(function, num_parallel_calls=stage_parallelism(self.config.prefetch_batches > 0))

    def _finish(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        return finished(batches, self.config.prefetch_batches)
