"""Feedline's own pipeline, measured as its peers are."""

from __future__ import annotations

import os
from collections.abc import Iterator

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from protocol import Job, run

from pipeline import CacheConfig, ChannelAffine, DecodeConfig, Feed, FeedConfig, Samples, open_cache


def batches(job: Job) -> Iterator[int]:
    samples = Samples(paths=tuple(job.paths), targets=np.array(job.labels), class_names=("0", "1"))
    config = FeedConfig(
        decode=DecodeConfig(height=job.size, width=job.size, interpolation="bilinear", method="fast"),
        batch_size=job.batch_size,
        # the batches for a train step that augments on the device are the decoded pixels
        augment_on="device" if job.work == "decode" else "host",
        preprocess=ChannelAffine(scale=(1 / 255,) * 3),
    )
    cache = open_cache(CacheConfig(mode="ram"), samples.paths, config.decode) if job.work == "cached" else None
    feed = Feed(samples, config, cache)
    if cache is None:
        for batch in feed.training(range(1, 2)):
            yield len(batch[1])
        return
    for step, batch in enumerate(feed.training(range(1, 4))):  # filled in the first epoch, settled in the second
        if step >= 2 * feed.steps_per_epoch:
            yield len(batch[1])


if __name__ == "__main__":
    run(batches)
