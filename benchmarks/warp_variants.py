"""CPU time an image of the augmentation's warp, written in several ways, each compiled by XLA.

    python benchmarks/warp_variants.py

All variants give the same pixels (checked); they differ in how XLA is asked for the four taps of the bilinear
interpolation. The time is the process's CPU time, which a busy machine disturbs less than the wall clock; the minimum
and the median of the rounds are printed.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import tensorflow as tf

from pipeline import AugmentRanges, draw_parameters, draw_rows
from pipeline.allocation import keep_freed_memory
from pipeline.augment.resample import _positions, _taps, resample_bilinear

Tap = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
Taps = Callable[[tf.Tensor, int], tuple[tf.Tensor, int, tf.Tensor]]


def _warp(make_tap: Callable[[tf.Tensor], Tap], taps: Taps = _taps) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """The warp with clamped borders, its taps taken by `make_tap(images)` and blended along the rows first."""

    def warp(images: tf.Tensor, draws: tf.Tensor) -> tf.Tensor:
        height, width = images.shape[1], images.shape[2]
        column, row = _positions(draws, height, width)
        x, right, weight_x = taps(column, width)
        y, down, weight_y = taps(row, height)
        tap = make_tap(images)
        top, bottom = tap(y, x), tap(y + down, x)
        top += (tap(y, x + right) - top) * weight_x
        bottom += (tap(y + down, x + right) - bottom) * weight_x
        return top + (bottom - top) * weight_y

    return warp


def taps_by_cast(position: tf.Tensor, size: int) -> tuple[tf.Tensor, int, tf.Tensor]:
    """The same taps with an integer cast."""
    clamped = tf.clip_by_value(position, 0.0, size - 1.0)
    first = tf.minimum(tf.cast(clamped, tf.int32), size - 2)
    return first, 1, (clamped - tf.cast(first, tf.float32))[..., tf.newaxis]


def gather_by_row_and_column(images: tf.Tensor) -> Tap:
    """A gather by (row, column), which clamps both: the form that is used on TensorFlow 2.15."""
    return lambda y, x: tf.cast(tf.gather_nd(images, tf.stack([y, x], -1), batch_dims=1), tf.float32)


def flat_gather(images: tf.Tensor) -> Tap:
    """One gather of pixels from the whole batch laid out flat."""
    count, height, width = tf.shape(images)[0], images.shape[1], images.shape[2]
    flat = tf.reshape(images, [-1, 3])
    start = (tf.range(count) * (height * width))[:, tf.newaxis, tf.newaxis]
    return lambda y, x: tf.cast(tf.gather(flat, start + y * width + x), tf.float32)


def batch_gather(images: tf.Tensor) -> Tap:
    """A gather with a batch dimension from each image laid out flat: the form that is used elsewhere."""
    height, width = images.shape[1], images.shape[2]
    flat = tf.reshape(images, [-1, height * width, 3])
    return lambda y, x: tf.cast(tf.gather(flat, y * width + x, batch_dims=1), tf.float32)


def float_gather(images: tf.Tensor) -> Tap:
    """The same from a float32 copy of the images."""
    return batch_gather(tf.cast(images, tf.float32))


def packed_gather(images: tf.Tensor) -> Tap:
    """Three channels packed into one int32, unpacked by shifts."""
    channels = [tf.cast(images[..., channel], tf.int32) for channel in range(3)]
    packed = channels[0] + channels[1] * 2**8 + channels[2] * 2**16
    shifts = tf.constant([0, 8, 16])

    def tap(y: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
        pixels = tf.gather_nd(packed, tf.stack([y, x], -1), batch_dims=1)[..., tf.newaxis]
        return tf.cast(tf.bitwise.bitwise_and(tf.bitwise.right_shift(pixels, shifts), 255), tf.float32)

    return tap


def packed_taps(images: tf.Tensor, draws: tf.Tensor) -> tf.Tensor:
    """The four taps of every place packed into one int32 beforehand, so that one gather fetches them."""
    height, width = images.shape[1], images.shape[2]
    x, _, weight_x = _taps(_positions(draws, height, width)[0], width)
    y, _, weight_y = _taps(_positions(draws, height, width)[1], height)
    parts = tf.cast(images, tf.int32)
    packed = parts[:, :-1, :-1] + parts[:, :-1, 1:] * 2**8 + parts[:, 1:, :-1] * 2**16 + parts[:, 1:, 1:] * 2**24
    found = tf.gather_nd(packed, tf.stack([y, x], -1), batch_dims=1)
    first, second, third, fourth = (
        tf.cast(tf.bitwise.bitwise_and(tf.bitwise.right_shift(found, shift), 255), tf.float32)
        for shift in (0, 8, 16, 24)
    )
    top, bottom = first + (second - first) * weight_x, third + (fourth - third) * weight_x
    return top + (bottom - top) * weight_y


VARIANTS = {
    "as used": lambda images, draws: resample_bilinear(images, draws, fill_mode="nearest", cval=0.0),
    "blended by differences": _warp(batch_gather),
    "blended so, with an integer cast": _warp(batch_gather, taps_by_cast),
    "gather_nd by (row, column)": _warp(gather_by_row_and_column),
    "one gather from the flat batch": _warp(flat_gather),
    "gather from float32": _warp(float_gather),
    "three channels packed into int32": _warp(packed_gather),
    "four taps packed into int32": packed_taps,
}


@click.command()
@click.option("--size", default=299, show_default=True)
@click.option("--batch-size", default=32, show_default=True)
@click.option("--rounds", default=5, show_default=True)
def main(size: int, batch_size: int, rounds: int) -> None:
    """Prints microseconds of CPU time an image for each variant."""
    keep_freed_memory()  # as in the pipeline: else half of the time goes into the result's page faults
    images = tf.constant(np.random.default_rng(0).integers(0, 256, (batch_size, size, size, 3), dtype=np.uint8))
    drawn = draw_parameters(AugmentRanges(), seed=1, epoch=1, count=batch_size, height=size, width=size)
    draws = tf.constant(draw_rows(drawn))
    compiled = {name: tf.function(variant, jit_compile=True) for name, variant in VARIANTS.items()}
    results = [function(images, draws).numpy() for function in compiled.values()]
    assert all(np.abs(result - results[0]).max() < 0.05 for result in results), "the variants differ"
    times: dict[str, list[float]] = {name: [] for name in compiled}
    for _ in range(rounds):
        for name, function in compiled.items():
            start = time.process_time()
            function(images, draws).numpy()
            times[name].append((time.process_time() - start) / batch_size * 1e6)
    print(f"TensorFlow {tf.__version__}, {size}x{size}, batch {batch_size}, {rounds} rounds")
    for name, values in times.items():
        print(f"{name:38} min {min(values):6,.0f}  median {statistics.median(values):6,.0f} us CPU/image")


if __name__ == "__main__":
    main()
