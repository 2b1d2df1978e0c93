"""Keras's ImageDataGenerator, in one thread or in processes of Keras's own queue."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import pandas as pd
import tensorflow as tf
from protocol import RECIPE, Job, run


def batches(job: Job) -> Iterator[int]:
    generator = tf.keras.preprocessing.image.ImageDataGenerator(
        rotation_range=RECIPE["rotation"],
        width_shift_range=RECIPE["shift"],
        height_shift_range=RECIPE["shift"],
        shear_range=RECIPE["shear"],
        zoom_range=RECIPE["zoom"],
        brightness_range=RECIPE["brightness"],
        horizontal_flip=True,
        rescale=1 / 255,
    )
    frame = pd.DataFrame({"path": job.paths, "label": [str(label) for label in job.labels]})
    flow = generator.flow_from_dataframe(
        frame,
        x_col="path",
        y_col="label",
        target_size=(job.size, job.size),
        batch_size=job.batch_size,
        interpolation="bilinear",
        validate_filenames=False,
        seed=0,
    )
    steps = math.ceil(len(job.paths) / job.batch_size)
    if job.workers == 1:
        for step in range(steps):
            yield len(flow[step][0])
        return
    queue = _queue(flow, job.workers)
    try:
        ready = queue.get()
        for _ in range(steps):
            yield len(next(ready)[0])
    finally:
        queue.stop()


def _queue(flow: object, workers: int) -> object:
    """Keras's own queue of processes, as `fit` makes it of a generator with workers."""
    if hasattr(tf.keras.utils, "OrderedEnqueuer"):  # Keras 2
        queue = tf.keras.utils.OrderedEnqueuer(flow, use_multiprocessing=True)
        queue.start(workers=workers, max_queue_size=10)
        return queue
    from keras.src.trainers.data_adapters.py_dataset_adapter import OrderedEnqueuer

    queue = OrderedEnqueuer(flow, workers=workers, use_multiprocessing=True, max_queue_size=10)
    queue.start()
    return queue


if __name__ == "__main__":
    run(batches)
