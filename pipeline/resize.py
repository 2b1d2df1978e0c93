"""Pixels of any size to the target size."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from PIL import Image

from pipeline.allocation import aligned_empty
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
# what `fast` leaves to TensorFlow, which has no box and no hamming filter
_TENSORFLOW_FILTERS = {"bicubic": tf.image.ResizeMethod.BICUBIC, "lanczos": tf.image.ResizeMethod.LANCZOS3}
# the loops load two neighbours at a time
_SMALLEST_BILINEAR_SIDE = 2


@tf.autograph.experimental.do_not_convert
def resize(image: tf.Tensor, config: DecodeConfig) -> tf.Tensor:
    """The image at the target size, in a TensorFlow graph.

    Args:
        image: uint8 (H, W, 3, 4 or 1).
        config: size, filter and method.

    Returns:
        uint8 (height, width, 3, 4 or 1): Pillow's pixels, but for `fast`, which does not antialias.
    """
    in_python = resize_in_python
    if config.scales_jpegs and config.color_mode == "rgb":
        if config.interpolation in _TENSORFLOW_FILTERS:
            return _resize_without_antialias(image, config)
        if config.interpolation == "bilinear":
            in_python = _bilinear_without_antialias
    return tf.numpy_function(lambda pixels: in_python(pixels, config), [image], tf.uint8, stateful=False)


def _crop(size: np.ndarray, config: DecodeConfig) -> tuple[np.ndarray, np.ndarray]:
    """The part of an image that has the target's shape: its (row, column) and its (height, width), as Keras takes it.

    Args:
        size: (height, width) of the image, int (2,).
        config: the target.
    """
    target = np.array([config.height, config.width])
    used = np.minimum(size, size[::-1] * target // target[::-1])
    return (size - used) // 2, used


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
    start, used = _crop(size, config) if config.keep_aspect_ratio else (np.zeros(2, int), size)
    if config.interpolation == "nearest":
        return _nearest(pixels, start, used, config)
    image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    box = None
    if config.keep_aspect_ratio:
        box = (*start[::-1], *(start + used)[::-1])
    elif NARROWS_BILINEAR and config.interpolation == "bilinear" and image.mode == "RGB":
        image = _narrowed(image, config.width)
    resized = image.resize((config.width, config.height), _PILLOW_FILTERS[config.interpolation], box)
    pixels = np.asarray(resized)
    return pixels[:, :, np.newaxis] if pixels.ndim == 2 else pixels


def _nearest(pixels: np.ndarray, start: np.ndarray, used: np.ndarray, config: DecodeConfig) -> np.ndarray:
    # numba takes half a second to import
    from pipeline.resize_loops import resize_nearest

    resized = aligned_empty((config.height, config.width, pixels.shape[2]), np.uint8)
    resize_nearest(np.ascontiguousarray(pixels), *map(float, (*start, *used)), resized)
    return resized


def _bilinear_without_antialias(pixels: np.ndarray, config: DecodeConfig) -> np.ndarray:
    from pipeline.resize_loops import resize_bilinear

    if min(pixels.shape[:2]) < _SMALLEST_BILINEAR_SIDE:
        return resize_in_python(pixels, config)
    resized = aligned_empty((config.height, config.width, 3), np.uint8)
    resize_bilinear(np.ascontiguousarray(pixels), resized)
    return resized


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
