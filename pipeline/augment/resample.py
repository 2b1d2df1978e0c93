"""The warp: one resampling pass over a batch, bilinear or nearest, written so that XLA fuses it into one loop.

XLA folds a gather of whole pixels of the uint8 batch into the loop over the output, which it does not for repacked
copies. What is left is mostly index arithmetic, so the form that needs the least of it is used
(benchmarks/warp_variants.py compares them).
"""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

__all__ = ["resample_bilinear", "resample_nearest"]

# XLA clamps each index of a gather, so one into the image laid out flat is the less work of the two. The XLA of
# TensorFlow 2.15 to 2.20 takes a sixth longer for it all the same.
_GATHERS_PAIRS_FASTER = tuple(map(int, tf.__version__.split(".")[:2])) < (2, 21)


def _nearest(position: tf.Tensor, size: int) -> tf.Tensor:
    return position  # the clamp that follows is the fill


def _reflect(position: tf.Tensor, size: int) -> tf.Tensor:
    # half-sample mirror, period 2n: bilinear taps mirrored about an edge equal the clamped taps of the mirrored
    # position
    folded = tf.math.floormod(position + 0.5, 2.0 * size)
    return tf.minimum(folded, 2.0 * size - folded) - 0.5


def _wrap(position: tf.Tensor, size: int) -> tf.Tensor:
    # period n - 1 as scipy's `wrap`, which Keras uses; positions inside stay as they are
    period = float(max(size - 1, 1))
    outside = (position < 0.0) | (position > period)
    return tf.where(outside, tf.math.floormod(position, period), position)


_FILL: dict[str, Callable[[tf.Tensor, int], tf.Tensor]] = {
    "nearest": _nearest,
    "constant": _nearest,
    "reflect": _reflect,
    "wrap": _wrap,
}


def resample_bilinear(images: tf.Tensor, draws: tf.Tensor, *, fill_mode: str, cval: float) -> tf.Tensor:
    """Samples each image at the positions its matrix names.

    Args:
        images: uint8 or float32 (N, H, W, C); H, W and C static.
        draws: float32 (N, 8), the columns of `geometry.DRAW_COLUMNS`.
        fill_mode: one of `spec.FILL_MODES`, as scipy's `affine_transform` understands them.
        cval: value of the outside for `constant`.

    Returns:
        float32 (N, H, W, C), in the range of `images` (and `cval`).
    """
    height, width = images.shape[1], images.shape[2]
    column, row = _positions(draws, height, width)
    fill = _FILL[fill_mode]
    x, right, weight_x = _taps(fill(column, width), width)
    y, down, weight_y = _taps(fill(row, height), height)
    pixels = _pixel_reader(images)

    # one weight a tap, made once a pixel and not once a channel
    weight_right_down = weight_x * weight_y
    weight_down, weight_right = weight_y - weight_right_down, weight_x - weight_right_down
    values = pixels(y, x) * (1.0 - weight_x - weight_down)
    values += pixels(y, x + right) * weight_right
    values += pixels(y + down, x) * weight_down
    values += pixels(y + down, x + right) * weight_right_down
    return _with_outside(values, column, row, cval) if fill_mode == "constant" else values


def resample_nearest(images: tf.Tensor, draws: tf.Tensor, *, fill_mode: str, cval: float) -> tf.Tensor:
    """Takes for each output pixel the input pixel nearest to the position that its matrix names.

    The arguments and the result are those of `resample_bilinear`; halves go to the higher index, as in SciPy.
    """
    height, width = images.shape[1], images.shape[2]
    column, row = _positions(draws, height, width)
    fill = _FILL[fill_mode]
    rows, columns = _nearest_index(fill(row, height), height), _nearest_index(fill(column, width), width)
    values = _pixel_reader(images)(rows, columns)
    return _with_outside(values, column, row, cval) if fill_mode == "constant" else values


def _pixel_reader(images: tf.Tensor) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """What gives the pixels at places named by rows and columns, int32 (N, H, W) each, as float32 (N, H, W, C)."""
    height, width = images.shape[1], images.shape[2]
    if _GATHERS_PAIRS_FASTER:
        return lambda y, x: tf.cast(tf.gather_nd(images, tf.stack([y, x], -1), batch_dims=1), tf.float32)
    flat = tf.reshape(images, [-1, height * width, images.shape[3]])
    return lambda y, x: tf.cast(tf.gather(flat, y * width + x, batch_dims=1), tf.float32)


def _nearest_index(position: tf.Tensor, size: int) -> tf.Tensor:
    return tf.cast(tf.clip_by_value(tf.floor(position + 0.5), 0.0, size - 1.0), tf.int32)


def _with_outside(values: tf.Tensor, column: tf.Tensor, row: tf.Tensor, cval: float) -> tf.Tensor:
    """The values, and `cval` where the position lies outside the image."""
    height, width = values.shape[1], values.shape[2]
    inside = (column >= 0.0) & (column <= width - 1.0) & (row >= 0.0) & (row <= height - 1.0)
    return tf.where(inside[..., tf.newaxis], values, tf.constant(cval, tf.float32))


def _positions(draws: tf.Tensor, height: int, width: int) -> tuple[tf.Tensor, tf.Tensor]:
    """The input (column, row) of every output pixel, float32 (N, H, W) each."""
    centre_column, centre_row = (width - 1) / 2, (height - 1) / 2
    x = (tf.range(width, dtype=tf.float32) - centre_column)[tf.newaxis, tf.newaxis, :]
    y = (tf.range(height, dtype=tf.float32) - centre_row)[tf.newaxis, :, tf.newaxis]
    a, b, c, d, e, f = (draws[:, k, tf.newaxis, tf.newaxis] for k in range(6))
    # what is the same along a row stands in brackets: float sums are not put in another order by the compiler
    return a * x + (b * y + (c + centre_column)), d * x + (e * y + (f + centre_row))


def _taps(position: tf.Tensor, size: int) -> tuple[tf.Tensor, int, tf.Tensor]:
    """The first tap's index, the step to the second and the second's weight, along one axis."""
    # Starting at size - 2 at most lets the last pixel be the second tap with weight 1, which the clamp of the weight
    # also gives to all that lies beyond it.
    below = tf.clip_by_value(position - 0.5, 0.0, max(size - 2.0, 0.0))
    # Rounding it is flooring the position, but for whole ones, where either neighbour has the right tap. Adding 2**23
    # rounds a float32 and leaves the integer in its low bits: an integer cast would be guarded against overflow and
    # NaN in every pixel, and of the masked bits the compiler sees that they are not negative.
    low_bits = (1 << (size - 1).bit_length()) - 1
    first = tf.bitwise.bitwise_and(tf.bitcast(below + 2.0**23, tf.int32), low_bits)
    weight = tf.clip_by_value(position - tf.cast(first, tf.float32), 0.0, 1.0)
    return first, min(1, size - 1), weight[..., tf.newaxis]
