"""Grain's dataset with OpenCV's decoder, resize and warp, read ahead by threads."""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import grain
import numpy as np
from opencv_recipe import augmented, decoded
from protocol import Job, run


def batches(job: Job) -> Iterator[int]:
    cv2.setNumThreads(1)  # Grain's threads are the parallelism

    def load(path: str, numbers: np.random.Generator) -> np.ndarray:
        with open(path, "rb") as file:
            image = decoded(file.read(), job.size)
        return image if job.work == "decode" else augmented(image, numbers)

    dataset = grain.MapDataset.source(job.paths).seed(0).random_map(load)
    reading = grain.ReadOptions(num_threads=job.workers, prefetch_buffer_size=2 * job.batch_size)
    for batch in dataset.to_iter_dataset(reading).batch(job.batch_size):
        yield len(batch)


if __name__ == "__main__":
    run(batches)
