"""NVIDIA DALI with its CPU operators."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from nvidia.dali import fn, pipeline_def, types
from protocol import RECIPE, Job, run


@pipeline_def
def photos(job: Job):
    contents, labels = fn.readers.file(files=job.paths, labels=job.labels, name="reader", pad_last_batch=False)
    images = fn.decoders.image(contents, device="cpu", output_type=types.RGB)
    images = fn.resize(images, size=(job.size, job.size), interp_type=types.INTERP_LINEAR, antialias=False)
    if job.work == "whole":
        centre, size = (job.size - 1) / 2, job.size
        shift, zoom = RECIPE["shift"] * size, RECIPE["zoom"]
        shear = float(np.degrees(np.arctan(RECIPE["shear"])))
        matrix = fn.transforms.scale(
            scale=fn.random.uniform(range=(1 - zoom, 1 + zoom), shape=(2,)), center=(centre, centre)
        )
        matrix = fn.transforms.shear(
            matrix,
            angles=fn.stack(fn.random.uniform(range=(-shear, shear)), np.float32(0)),
            center=(centre, centre),
        )
        angle = fn.random.uniform(range=(-RECIPE["rotation"], RECIPE["rotation"]))
        matrix = fn.transforms.rotation(matrix, angle=angle, center=(centre, centre))
        matrix = fn.transforms.translation(matrix, offset=fn.random.uniform(range=(-shift, shift), shape=(2,)))
        images = fn.warp_affine(images, matrix=matrix, inverse_map=True, interp_type=types.INTERP_LINEAR)
        images = fn.flip(images, horizontal=fn.random.coin_flip())
        images = fn.brightness(images, brightness=fn.random.uniform(range=RECIPE["brightness"]), dtype=types.FLOAT)
        images = images * np.float32(1 / 255)
    return images, labels


def batches(job: Job) -> Iterator[int]:
    pipe = photos(
        job, batch_size=job.batch_size, num_threads=job.workers, device_id=None, seed=0, prefetch_queue_depth=2
    )
    pipe.build()
    left = len(job.paths)
    while left:
        images, _ = pipe.run()
        count = min(len(images), left)  # the reader goes on into the next epoch
        left -= count
        yield count


if __name__ == "__main__":
    run(batches)
