"""Images per second of the pipeline alone, no model, against Keras's ImageDataGenerator in one process run.

    python benchmarks/pipeline_against_keras.py --data DIR

Both read the same folder (one sub-folder a class), with the recipe of `AugmentRanges` on the host, nearest, exact
decoding. Keras runs first. Then the pipeline: one warm-up (compilation), then, round by round, one epoch cold (page
cache evicted, pixel cache empty, as far as the system allows) and one epoch with every image in the pixel cache. The
medians and the ratios to Keras's figure of the same process are printed, or written as one JSON line with `--json`.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

import click

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pandas as pd
import tensorflow as tf

from pipeline import (
    AugmentRanges,
    ChannelAffine,
    DecodeConfig,
    Feed,
    FeedConfig,
    PixelCache,
    Samples,
    plan_pixel_cache,
    samples_from_folder,
)
from telemetry import evict_files

_SCALE = ChannelAffine(scale=(1 / 127.5,) * 3, offset=(-1.0,) * 3)


def keras_images_per_second(samples: Samples, size: int, batch: int, images: int) -> float:
    """One thread, as `model.fit(generator)` runs it by default on Keras 3."""
    ranges = AugmentRanges()
    generator = tf.keras.preprocessing.image.ImageDataGenerator(
        rotation_range=ranges.rotation_degrees,
        width_shift_range=ranges.width_shift,
        height_shift_range=ranges.height_shift,
        shear_range=ranges.shear_degrees,
        zoom_range=list(ranges.zoom),
        horizontal_flip=ranges.horizontal_flip,
        brightness_range=ranges.brightness,
        preprocessing_function=lambda x: x / 127.5 - 1.0,
    )
    names = [samples.class_names[target] for target in samples.targets]
    table = pd.DataFrame({"path": samples.paths, "class": names})
    flow = generator.flow_from_dataframe(
        table, x_col="path", y_col="class", class_mode="binary", target_size=(size, size), batch_size=batch, seed=42
    )
    next(flow)
    start, seen = time.perf_counter(), 0
    while seen < images:
        seen += len(next(flow)[1])
    return seen / (time.perf_counter() - start)


def images_per_second(dataset: tf.data.Dataset) -> float:
    start, seen = time.perf_counter(), 0
    for _, labels in dataset:
        seen += int(labels.shape[0])
    return seen / (time.perf_counter() - start)


def measure(samples: Samples, config: FeedConfig, rounds: int) -> dict[str, list[float]]:
    """Images per second of each round: cold, warm (page cache full, pixel cache empty) and cached."""
    row_shape = (config.decode.height, config.decode.width, 3)
    figures: dict[str, list[float]] = {"cold": [], "warm": [], "cached": []}
    images_per_second(Feed(samples.take(range(config.batch_size)), config).training(range(1, 2)))
    for _ in range(rounds):
        evict_files(samples.paths)
        figures["cold"].append(images_per_second(Feed(samples, config).training(range(1, 2))))
        figures["warm"].append(images_per_second(Feed(samples, config).training(range(1, 2))))
        cache = PixelCache(plan_pixel_cache(len(samples), row_shape, 2**40))
        feed = Feed(samples, config, cache)
        images_per_second(feed.training(range(1, 2)))
        figures["cached"].append(images_per_second(feed.training(range(2, 3))))
    return figures


@click.command()
@click.option("--data", type=click.Path(exists=True, file_okay=False), required=True, help="One sub-folder a class.")
@click.option("--size", default=299, show_default=True)
@click.option("--batch-size", default=32, show_default=True)
@click.option("--rounds", default=3, show_default=True)
@click.option(
    "--keras-images", default=640, show_default=True, help="Images that Keras's generator makes for its figure."
)
@click.option("--json", "as_json", is_flag=True)
def main(data: str, size: int, batch_size: int, rounds: int, keras_images: int, as_json: bool) -> None:
    """Prints the pipeline's images/s beside Keras's generator's."""
    samples = samples_from_folder(data)
    config = FeedConfig(decode=DecodeConfig(height=size, width=size), batch_size=batch_size, preprocess=_SCALE)
    keras = keras_images_per_second(samples, size, batch_size, keras_images)
    figures = measure(samples, config, rounds)
    row = {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "tensorflow": tf.__version__,
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "images": len(samples),
        "size": size,
        "batch_size": batch_size,
        "keras_images_per_second": round(keras, 1),
    }
    for name, values in figures.items():
        row[f"{name}_images_per_second"] = [round(value) for value in values]
        row[f"{name}_ratio"] = round(statistics.median(values) / keras, 1)
    print(json.dumps(row) if as_json else "\n".join(f"{key:28} {value}" for key, value in row.items()))


if __name__ == "__main__":
    main()
