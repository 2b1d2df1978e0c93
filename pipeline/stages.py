"""How fast each stage of the pipeline is on a person's own data, measured by leaving out what follows it."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import tensorflow as tf

from pipeline.cache import CacheConfig, SampleCache, open_cache
from pipeline.decode import decode_before_resize
from pipeline.feed import Feed, FeedConfig
from pipeline.loading import finished, stage_parallelism
from pipeline.randomness import epoch_order
from pipeline.samples import Samples

__all__ = ["STAGES", "Occupation", "StageSpeeds", "measure_occupation", "measure_stages", "random_part"]

# each does what the one that it names does, and one thing more: `preprocess` is a validation phase, `augment` training
_FOLLOWS = {"read": None, "decode": "read", "resize": "decode", "preprocess": "resize", "augment": "resize"}
STAGES = tuple(_FOLLOWS)

Evict = Callable[[], str | None]
_MIB = 2**20


@dataclass(frozen=True, kw_only=True)
class StageSpeeds:
    """Images per second, medians over the rounds.

    Attributes:
        images: how many were measured.
        file_mib: size of their files, MiB.
        warm: by stage, the files in the page cache.
        cold: by stage, `read` and `augment`, the files read from the disk; None if they cannot be dropped from memory.
        cold_reason: why not.
        cached: `preprocess` and `augment` with decoded pixels in memory.
        fast: `augment` with decode mode `fast`, the files in the page cache; None if that is what was measured.
    """

    images: int
    file_mib: float
    warm: dict[str, float]
    cold: dict[str, float] | None
    cold_reason: str | None
    cached: dict[str, float]
    fast: float | None

    @property
    def added_ms(self) -> dict[str, float]:
        """Milliseconds an image that each stage adds, files in the page cache; 0 where noise hides it."""

        def added(stage: str) -> float:
            before = _FOLLOWS[stage]
            return 1000.0 / self.warm[stage] - (1000.0 / self.warm[before] if before else 0.0)

        return {stage: max(0.0, added(stage)) for stage in STAGES}

    @property
    def slowest(self) -> str:
        """The stage of training that adds most."""
        return max(("read", "decode", "resize", "augment"), key=self.added_ms.__getitem__)


@dataclass(frozen=True, kw_only=True)
class Occupation:
    """How busy a made-up accelerator is kept.

    Attributes:
        uncached: share of the time, 0 to 1, with the files in the page cache.
        cached: the same with decoded pixels in memory.
    """

    uncached: float
    cached: float


def random_part(samples: Samples, most: int) -> Samples:
    """A fixed random part of the samples, all if there are no more."""
    return samples.take(np.sort(epoch_order(0, 0, len(samples))[:most]))


def measure_stages(
    samples: Samples, config: FeedConfig, *, evict: Evict, rounds: int = 3, report: Callable[[str], None]
) -> StageSpeeds:
    """Runs every stage over the samples, round by round so that a change of the machine's pace meets all of them.

    Args:
        samples: what to read; each stage reads all of it.
        config: how it becomes batches.
        evict: drops the files from the page cache; returns why that failed, or None.
        rounds: how often, at least 1.
        report: takes lines about the progress.
    """
    is_fast = config.decode.method == "fast"
    fast = replace(config, decode=replace(config.decode, method="fast"))
    found: dict[tuple[str, str], list[float]] = {}

    def add(state: str, stage: str, speed: float) -> None:
        found.setdefault((state, stage), []).append(speed)

    report("compiling")
    for stage in STAGES:
        _speed(_stage(random_part(samples, 2 * config.batch_size), config, stage))
    reason = None
    for number in range(rounds):
        report(f"round {number + 1} of {rounds}")
        for stage in ("read", "augment"):
            reason = evict()
            if reason is None:
                add("cold", stage, _speed(_stage(samples, config, stage)))
        for stage in STAGES:
            add("warm", stage, _speed(_stage(samples, config, stage)))
        if not is_fast:
            add("fast", "augment", _speed(_stage(samples, fast, "augment")))
        cache = open_cache(CacheConfig(mode="ram"), samples.paths, config.decode)
        _speed(Feed(samples, config, cache).decoded())
        for stage in ("preprocess", "augment"):
            add("cached", stage, _speed(_stage(samples, config, stage, cache)))
    medians = {key: statistics.median(speeds) for key, speeds in found.items()}
    of = {state: {stage: speed for (each, stage), speed in medians.items() if each == state} for state, _ in medians}
    return StageSpeeds(
        images=len(samples),
        file_mib=sum(os.path.getsize(path) for path in samples.paths) / _MIB,
        warm=of["warm"],
        cold=of.get("cold") if reason is None else None,
        cold_reason=reason,
        cached=of["cached"],
        fast=medians.get(("fast", "augment")),
    )


def measure_occupation(samples: Samples, config: FeedConfig, step_seconds: float) -> Occupation:
    """Plays an accelerator that takes a batch, needs a fixed time for it, and asks for the next.

    Args:
        samples: what to read; two epochs are played, the second is counted.
        config: how it becomes batches.
        step_seconds: that time.
    """

    def play(cache: SampleCache | None) -> float:
        feed, begin = Feed(samples, config, cache), 0.0
        for step, _ in enumerate(feed.training(range(1, 3))):
            if step == feed.steps_per_epoch - 1:
                begin = time.perf_counter()
            time.sleep(step_seconds)
        # from the end of the first epoch's last fetch to the end of the last step
        return step_seconds * (feed.steps_per_epoch + 1) / (time.perf_counter() - begin)

    cache = open_cache(CacheConfig(mode="ram"), samples.paths, config.decode)
    return Occupation(uncached=min(1.0, play(None)), cached=min(1.0, play(cache)))


def _stage(samples: Samples, config: FeedConfig, stage: str, cache: SampleCache | None = None) -> tf.data.Dataset:
    feed = Feed(samples, config, cache)
    if stage == "augment":
        return feed.training(range(1, 2))
    if stage == "preprocess":
        return feed.evaluation()
    if stage == "resize":
        return feed.decoded()
    return _before_resize(samples, config, is_decoded=stage == "decode")


def _before_resize(samples: Samples, config: FeedConfig, *, is_decoded: bool) -> tf.data.Dataset:
    """Only the sizes of what was read or decoded: putting images of many sizes together would be work of its own."""
    paths = tf.constant(list(samples.paths), tf.string)

    def size_of(index: tf.Tensor) -> tf.Tensor:
        contents = tf.io.read_file(paths[index])
        if is_decoded:
            return tf.size(decode_before_resize(contents, config.decode))
        return tf.strings.length(contents)

    def sizes_of(indices: tf.Tensor) -> tf.Tensor:
        signature = tf.TensorSpec((), tf.int32)
        return tf.map_fn(size_of, indices, fn_output_signature=signature, parallel_iterations=config.parallel_images)

    batches = tf.data.Dataset.range(len(samples)).batch(config.batch_size)
    parallel = stage_parallelism(config.parallel_images > 1)
    return finished(batches.map(sizes_of, num_parallel_calls=parallel), config.prefetch_batches)


def _speed(batches: tf.data.Dataset) -> float:
    """Images per second of one pass, the start of the dataset included."""
    start, images = time.perf_counter(), 0
    for batch in batches:
        images += int(tf.nest.flatten(batch)[0].shape[0])
    return images / (time.perf_counter() - start)
