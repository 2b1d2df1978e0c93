"""image_dataset_from_directory and Keras's augmentation layers, mapped over the batches."""

from __future__ import annotations

import os
from collections.abc import Iterator

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf
from protocol import RECIPE, Job, run


def batches(job: Job) -> Iterator[int]:
    layers, shift, zoom = tf.keras.layers, RECIPE["shift"], RECIPE["zoom"]
    augment = tf.keras.Sequential(
        [
            layers.RandomFlip("horizontal"),
            layers.RandomRotation(RECIPE["rotation"] / 360, fill_mode="nearest"),
            layers.RandomTranslation(shift, shift, fill_mode="nearest"),
            *([layers.RandomShear(RECIPE["shear"], 0.0)] if hasattr(layers, "RandomShear") else []),
            layers.RandomZoom(zoom, zoom, fill_mode="nearest"),
            layers.RandomBrightness((RECIPE["brightness"][0] - 1, RECIPE["brightness"][1] - 1)),
            layers.Rescaling(1 / 255),
        ]
    )
    dataset = tf.keras.utils.image_dataset_from_directory(
        job.data, image_size=(job.size, job.size), batch_size=job.batch_size, seed=0, verbose=False
    )
    if job.work == "whole":
        dataset = dataset.map(lambda images, labels: (augment(images, training=True), labels), job.workers)
    for images, _ in dataset.prefetch(2):
        yield int(images.shape[0])


if __name__ == "__main__":
    run(batches)
