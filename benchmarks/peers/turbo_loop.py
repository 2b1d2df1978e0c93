"""The limit: libjpeg-turbo and OpenCV in a hand-written loop, one batch of files at a time over a pool of threads."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import simplejpeg
from opencv_recipe import augmented
from protocol import Job, run


def batches(job: Job) -> Iterator[int]:
    cv2.setNumThreads(1)  # the pool's threads are the parallelism
    size = job.size

    def load(path: str) -> np.ndarray:
        with open(path, "rb") as file:
            image = simplejpeg.decode_jpeg(file.read(), "RGB", fastdct=True, fastupsample=True)
        return cv2.resize(image, (size, size), interpolation=cv2.INTER_LINEAR)

    with ThreadPoolExecutor(job.workers) as pool:
        kept = list(pool.map(load, job.paths)) if job.work == "cached" else None

        def fill(batch: np.ndarray, row: int, number: int) -> None:
            image = load(job.paths[number]) if kept is None else kept[number]
            batch[row] = image if job.work == "decode" else augmented(image, np.random.default_rng(number))

        for start in range(0, len(job.paths), job.batch_size):
            numbers = range(start, min(start + job.batch_size, len(job.paths)))
            batch = np.empty((len(numbers), size, size, 3), np.uint8 if job.work == "decode" else np.float32)
            list(pool.map(fill, [batch] * len(numbers), range(len(numbers)), numbers))
            yield len(batch)


if __name__ == "__main__":
    run(batches)
