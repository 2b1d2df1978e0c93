"""Images per second of this ImageDataGenerator against Keras's own, in one process run.

    python benchmarks/generator_against_keras.py --data DIR

Both flow from one dataframe (the files below DIR, one sub-folder a class) with a usual recipe, 299 x 299, batch 32,
nearest, and give numpy arrays to `next`. Keras runs first, its first batch uncounted. Then, after one warm-up batch
(compilation), round by round: an epoch cold (page cache evicted, no cache) and, with `cache="ram"`, the second epoch
after one that filled it. The medians are printed with their ratio to Keras's figure.

Then, for the same flow with `cache="ram"` and a model of one unit, `model.fit(flow)` against `model.fit(flow.dataset)`,
alternating, each after an epoch that filled the cache: with the recipe, and with no augmentation at all, where nothing
hides what Keras adds.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import click

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pandas as pd
import tensorflow as tf
from run_facts import run_facts

from pipeline import ImageDataGenerator, samples_from_folder
from telemetry import evict_files

RECIPE = {
    "rotation_range": 30,
    "width_shift_range": 0.4,
    "height_shift_range": 0.4,
    "shear_range": 0.4,
    "zoom_range": 0.25,
    "horizontal_flip": True,
    "brightness_range": (0.5, 1.5),
}


def flow_of(kind: Any, recipe: dict[str, Any], frame: pd.DataFrame, size: int, batch_size: int, **extras: Any) -> Any:
    """The same flow of either class, with the preprocessing of many backbones."""
    generator = kind(**recipe, preprocessing_function=tf.keras.applications.mobilenet_v2.preprocess_input)
    columns = {"x_col": "path", "y_col": "class", "class_mode": "sparse"}
    return generator.flow_from_dataframe(
        frame, **columns, target_size=(size, size), batch_size=batch_size, seed=42, **extras
    )


def images_per_second(flow: Any, images: int) -> float:
    """Over so many images taken by `next`."""
    start, seen = time.perf_counter(), 0
    while seen < images:
        seen += len(next(flow)[1])
    return seen / (time.perf_counter() - start)


def iterate(frame: pd.DataFrame, size: int, batch_size: int, rounds: int, keras_images: int) -> dict[str, list[float]]:
    """Figures by what made the batches."""
    keras = flow_of(tf.keras.preprocessing.image.ImageDataGenerator, RECIPE, frame, size, batch_size)
    next(keras)
    figures = {"keras": [images_per_second(keras, keras_images)], "cold": [], "cached": []}
    next(flow_of(ImageDataGenerator, RECIPE, frame, size, batch_size))
    cached = flow_of(ImageDataGenerator, RECIPE, frame, size, batch_size, cache="ram")
    images_per_second(cached, len(frame))
    for _ in range(rounds):
        evict_files(frame["path"])
        figures["cold"].append(
            images_per_second(flow_of(ImageDataGenerator, RECIPE, frame, size, batch_size), len(frame))
        )
        figures["cached"].append(images_per_second(cached, len(frame)))
    return figures


class EpochTimes(tf.keras.callbacks.Callback):
    """Seconds of each epoch but the first, which fills the cache and compiles."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._start = time.perf_counter()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if epoch:
            self.seconds.append(time.perf_counter() - self._start)


def fit(frame: pd.DataFrame, recipe: dict[str, Any], size: int, batch_size: int, rounds: int) -> dict[str, list[float]]:
    """Images per second of `fit` by what it was given."""
    model = tf.keras.Sequential([tf.keras.layers.GlobalMaxPooling2D(), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    figures: dict[str, list[float]] = {"fit(flow.dataset)": [], "fit(flow)": []}
    flow = flow_of(ImageDataGenerator, recipe, frame, size, batch_size, cache="ram")
    for _ in range(rounds):
        for name, given in (("fit(flow.dataset)", flow.dataset), ("fit(flow)", flow)):
            times = EpochTimes()
            model.fit(given, epochs=3, verbose=0, callbacks=[times])
            figures[name] += [len(frame) / seconds for seconds in times.seconds]
    return figures


def format_figures(figures: dict[str, list[float]]) -> str:
    """A line each: median images/s, the range, and the ratio to the first."""
    first = statistics.median(next(iter(figures.values())))
    lines = []
    for name, values in figures.items():
        spread = f"({min(values):,.0f}-{max(values):,.0f})" if len(values) > 1 else ""
        median = statistics.median(values)
        lines.append(f"{name:18}{median:>8,.0f} {spread:>15} {median / first:>6.2f}x")
    return "\n".join(lines)


@click.command()
@click.option("--data", type=click.Path(exists=True, file_okay=False), required=True, help="One sub-folder a class.")
@click.option("--size", default=299, show_default=True)
@click.option("--batch-size", default=32, show_default=True)
@click.option("--rounds", default=3, show_default=True)
@click.option("--keras-images", default=640, show_default=True, help="Images that Keras's generator makes.")
@click.option("--json", "as_json", is_flag=True)
def main(data: str, size: int, batch_size: int, rounds: int, keras_images: int, as_json: bool) -> None:
    """Prints the images/s of both classes, and of the two ways to fit."""
    samples = samples_from_folder(data)
    names = [samples.class_names[target] for target in samples.targets]
    frame = pd.DataFrame({"path": samples.paths, "class": names})
    parts = {
        "iterated": iterate(frame, size, batch_size, rounds, keras_images),
        "trained, the recipe": fit(frame, RECIPE, size, batch_size, rounds),
        "trained, no augmentation": fit(frame, {}, size, batch_size, rounds),
    }
    about = run_facts(images=len(frame), size=size, batch_size=batch_size, rounds=rounds)
    if as_json:
        print(json.dumps({**about, "images_per_second": parts}))
        return
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    for name, figures in parts.items():
        print(f"{name}, images/s\n{format_figures(figures)}")


if __name__ == "__main__":
    main()
