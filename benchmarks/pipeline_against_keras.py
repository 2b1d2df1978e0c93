"""Images per second of the pipeline alone, no model, against Keras's ImageDataGenerator in one process run.

    python benchmarks/pipeline_against_keras.py --data DIR

Both read the same folder (one sub-folder a class) with the recipe of `AugmentRanges` on the host, nearest, exact
decoding, and once more only preprocessed, as a validation phase does. Keras runs first, its first batch uncounted.
Then, after one warm-up batch (compilation), round by round: an epoch cold (page cache evicted, pixel cache empty) and
one warm (page cache full, pixel cache empty), each with the start of its dataset; then one dataset over three epochs as
a training has it, which fills the pixel cache in the first and is counted in the third, from the last batch of the
second on. The medians are printed with their ratio to Keras's figure of the same process, and the figures of each round
with `--json`.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path

import click

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import tensorflow as tf
from run_facts import run_facts

from pipeline import (
    INTERPOLATIONS,
    METHODS,
    CacheConfig,
    ChannelAffine,
    DecodeConfig,
    Feed,
    FeedConfig,
    Samples,
    keras_flow,
    open_cache,
    samples_from_folder,
)
from telemetry import evict_files

_SCALE = ChannelAffine(scale=(1 / 127.5,) * 3, offset=(-1.0,) * 3)
_STATES = ("cold", "warm", "cached")


def keras_images_per_second(samples: Samples, config: FeedConfig, images: int) -> float:
    """One thread, as `model.fit(generator)` runs it by default on Keras 3; its first batch is the warm-up."""
    flow = keras_flow(samples, config, training=True)
    next(flow)
    start, seen = time.perf_counter(), 0
    while seen < images:
        seen += len(next(flow)[1])
    return seen / (time.perf_counter() - start)


def images_per_second(dataset: tf.data.Dataset) -> float:
    """Over one whole pass, its start included."""
    start, seen = time.perf_counter(), 0
    for _, labels in dataset:
        seen += int(labels.shape[0])
    return seen / (time.perf_counter() - start)


def pipeline_round(samples: Samples, config: FeedConfig) -> dict[str, float]:
    """Images per second of one epoch in each state."""
    figures = {}
    evict_files(samples.paths)
    figures["cold"] = images_per_second(Feed(samples, config).training(range(1, 2)))
    figures["warm"] = images_per_second(Feed(samples, config).training(range(1, 2)))
    feed = Feed(samples, config, open_cache(CacheConfig(mode="ram"), samples.paths, config.decode))
    ends = [
        time.perf_counter()
        for step, _ in enumerate(feed.training(range(1, 4)), start=1)
        if step % feed.steps_per_epoch == 0
    ]
    figures["cached"] = len(samples) / (ends[2] - ends[1])
    return figures


def measure(samples: Samples, config: FeedConfig, rounds: int, keras_images: int) -> dict[str, dict[str, list[float]]]:
    """Figures by recipe (augmented, preprocessed only) and by what made the batches, one a round (Keras: one)."""
    recipes = {"augmented": config, "preprocessed only": replace(config, augment=None)}
    figures = {
        name: {"keras": [keras_images_per_second(samples, recipe, keras_images)]} for name, recipe in recipes.items()
    }
    for recipe in recipes.values():
        images_per_second(Feed(samples.take(range(min(config.batch_size, len(samples)))), recipe).training(range(1, 2)))
    for _ in range(rounds):
        for name, recipe in recipes.items():
            for state, figure in pipeline_round(samples, recipe).items():
                figures[name].setdefault(state, []).append(figure)
    return figures


def format_figures(figures: dict[str, dict[str, list[float]]]) -> str:
    """A line a state: median images/s, the range over the rounds and the ratio to Keras, for each recipe."""
    lines = [f"{'images/s':10}" + "".join(f"{recipe:>34}" for recipe in figures)]
    for state in ("keras", *_STATES):
        cells = []
        for by_state in figures.values():
            values = by_state[state]
            spread = f"({min(values):,.0f}-{max(values):,.0f})" if len(values) > 1 else ""
            ratio = statistics.median(values) / by_state["keras"][0]
            cells.append(f"{statistics.median(values):>12,.0f} {spread:>13} {ratio:>6.1f}x")
        lines.append(f"{state:10}" + "".join(cells))
    return "\n".join(lines)


@click.command()
@click.option("--data", type=click.Path(exists=True, file_okay=False), required=True, help="One sub-folder a class.")
@click.option("--size", default=299, show_default=True)
@click.option("--batch-size", default=32, show_default=True)
@click.option("--rounds", default=3, show_default=True)
@click.option("--interpolation", type=click.Choice(INTERPOLATIONS), default="nearest", show_default=True)
@click.option("--decode", "method", type=click.Choice(METHODS), default="exact", show_default=True)
@click.option("--keras-images", default=640, show_default=True, help="Images that Keras's generator makes a figure.")
@click.option("--json", "as_json", is_flag=True)
def main(
    data: str,
    size: int,
    batch_size: int,
    rounds: int,
    interpolation: str,
    method: str,
    keras_images: int,
    as_json: bool,
) -> None:
    """Prints the pipeline's images/s beside Keras's generator's."""
    samples = samples_from_folder(data)
    decode = DecodeConfig(height=size, width=size, interpolation=interpolation, method=method)
    config = FeedConfig(decode=decode, batch_size=batch_size, preprocess=_SCALE)
    figures = measure(samples, config, rounds, keras_images)
    asked = {"size": size, "batch_size": batch_size, "interpolation": interpolation, "decode": method, "rounds": rounds}
    about = run_facts(images=len(samples), **asked)
    if as_json:
        print(json.dumps({**about, "images_per_second": figures}))
    else:
        print(", ".join(f"{name} {value}" for name, value in about.items()))
        print(format_figures(figures))


if __name__ == "__main__":
    main()
