"""Pixels of any size to the target size."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from PIL import Image

from pipeline.decode_config import DecodeConfig

try:
    import cykooz_resizer
except ImportError:  # there is none for this machine
    cykooz_resizer = None

__all__ = ["NARROWS_BILINEAR", "resize", "resize_in_python"]

# whether bilinear is a level off Pillow's here and there, and twice as fast
NARROWS_BILINEAR = cykooz_resizer is not None

_PILLOW_FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
    "box": Image.Resampling.BOX,
    "hamming": Image.Resampling.HAMMING,
}
# TensorFlow has no box and no hamming filter: `fast` uses Pillow's for them
_TENSORFLOW_FILTERS = {
    "bilinear": tf.image.ResizeMethod.BILINEAR,
    "bicubic": tf.image.ResizeMethod.BICUBIC,
    "lanczos": tf.image.ResizeMethod.LANCZOS3,
}


@tf.autograph.experimental.do_not_convert
def resize(image: tf.Tensor, config: DecodeConfig) -> tf.Tensor:
    """The image at the target size, in a TensorFlow graph.

    Args:
        image: uint8 (H, W, 3, 4 or 1).
        config: size, filter and method.

    Returns:
        uint8 (height, width, 3, 4 or 1): Pillow's pixels, but for `fast`, which does not antialias.
    """
    if config.interpolation == "nearest":
        # also the faster of the two: TensorFlow's own nearest takes half as long again
        return _resize_nearest(image, config)
    if config.scales_jpegs and config.color_mode == "rgb" and config.interpolation in _TENSORFLOW_FILTERS:
        return _resize_without_antialias(image, config)
    return tf.numpy_function(lambda pixels: resize_in_python(pixels, config), [image], tf.uint8, stateful=False)


def _resize_nearest(image: tf.Tensor, config: DecodeConfig) -> tf.Tensor:
    """Pillow's nearest: output i takes input floor(x_i), where x_0 = scale / 2 and x_i = x_(i-1) + scale in float64.

    The sum is taken step by step as Pillow does: where (i + 1/2) * scale is whole, its rounding decides.
    """
    steps = np.ones(max(config.height, config.width))
    steps[0] = 0.5
    size = tf.shape(image)[:2]
    start, used = _crop(size, config) if config.keep_aspect_ratio else (None, size)
    # a plain division by constants would be optimized into a product with their reciprocals, off in the last bit
    scale = tf.math.divide_no_nan(tf.cast(used, tf.float64), np.array([config.height, config.width], np.float64))
    positions = scale[:, tf.newaxis] * steps
    if start is not None:  # the sum starts there
        first = tf.cast(start, tf.float64)[:, tf.newaxis] + positions[:, :1]
        positions = tf.concat([first, positions[:, 1:]], axis=1)
    # one table for both axes, and no floor (the sums are positive): every op here is paid once an image
    source = tf.cast(tf.cumsum(positions, axis=1), tf.int32)
    rows, columns = source[0, : config.height, tf.newaxis], source[1, tf.newaxis, : config.width]
    # pixel by pixel from the flat image: gathering rows and then columns takes about twice as long
    places = tf.reshape(rows * size[1] + columns, [-1, 1])
    pixels = tf.gather_nd(tf.reshape(image, [-1, config.channels]), places)
    return tf.reshape(pixels, (config.height, config.width, config.channels))


def _crop(size: Any, config: DecodeConfig) -> tuple[Any, Any]:
    """The part of an image that has the target's shape: its (row, column) and its (height, width), as Keras takes it.

    Args:
        size: (height, width) of the image, a numpy array or a tensor of integers.
        config: the target.
    """
    target = np.array([config.height, config.width])
    used = _minimum(size, size[::-1] * target // target[::-1])
    return (size - used) // 2, used


def _minimum(first: Any, second: Any) -> Any:
    return tf.minimum(first, second) if tf.is_tensor(first) else np.minimum(first, second)


def resize_in_python(pixels: np.ndarray, config: DecodeConfig) -> np.ndarray:
    """The image at the target size, without TensorFlow.

    Args:
        pixels: uint8 (H, W, 3, 4 or 1).
        config: size and filter; `fast` is not followed.

    Returns:
        uint8 (height, width, 3, 4 or 1): Pillow's pixels, within one level under bilinear.
    """
    size = np.array(pixels.shape[:2])
    if tuple(size) == (config.height, config.width):
        return pixels
    image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    box = None
    if config.keep_aspect_ratio:
        start, used = _crop(size, config)
        box = (*start[::-1], *(start + used)[::-1])
    elif NARROWS_BILINEAR and config.interpolation == "bilinear" and image.mode == "RGB":
        image = _narrowed(image, config.width)
    resized = image.resize((config.width, config.height), _PILLOW_FILTERS[config.interpolation], box)
    pixels = np.asarray(resized)
    return pixels[:, :, np.newaxis] if pixels.ndim == 2 else pixels


def _narrowed(image: Image.Image, width: int) -> Image.Image:
    """The image at the target's width: the first of the two passes of Pillow's bilinear resize, by vectorized code.

    Its weights have 16 bits and Pillow's 23, so a value is at most one level off. The second pass is left to Pillow: a
    mean of values that are at most one off is at most one off, which that of a second pass of 16 bits is not.
    """
    narrow = Image.new("RGB", (width, image.height))
    algorithm = cykooz_resizer.ResizeAlg.convolution(cykooz_resizer.FilterType.bilinear)
    cykooz_resizer.Resizer().resize_pil(image, narrow, cykooz_resizer.ResizeOptions(resize_alg=algorithm))
    return narrow


def _resize_without_antialias(image: tf.Tensor, config: DecodeConfig) -> tf.Tensor:
    method = _TENSORFLOW_FILTERS[config.interpolation]
    resized = tf.image.resize(image, (config.height, config.width), method=method, antialias=False)
    # bicubic and lanczos overshoot 0 to 255; the cast cuts, so a half is added to round
    return tf.cast(tf.clip_by_value(resized, 0.0, 255.0) + 0.5, tf.uint8)
