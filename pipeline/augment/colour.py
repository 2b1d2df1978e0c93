"""Changes of level: brightness and channel shift, on float32 batches."""

from __future__ import annotations

import tensorflow as tf

__all__ = ["BRIGHTNESS_RANGE", "scale_brightness", "scale_brightness_exact", "shift_channels"]

BRIGHTNESS_RANGE = (0.0, 255.0)

_CHANNELS_WITH_ALPHA = 4


def shift_channels(images: tf.Tensor, levels: tf.Tensor) -> tf.Tensor:
    """Adds one level to all channels of an image, clipped to that image's own range.

    Args:
        images: float32 (N, H, W, C).
        levels: float32 (N,).

    Returns:
        float32 (N, H, W, C), as Keras's `apply_channel_shift`.
    """
    low, high = _range_of(images)
    return tf.minimum(tf.maximum(images + _per_image(levels), low), high)


def scale_brightness(
    images: tf.Tensor, factors: tf.Tensor, value_range: tuple[float, float] = BRIGHTNESS_RANGE
) -> tf.Tensor:
    """Multiplies each image by its factor and clips to a range, without Keras's rounding to 8 bits in between.

    Args:
        images: float32 (N, H, W, C).
        factors: float32 (N,).
        value_range: lowest and highest level of the result.

    Returns:
        float32 (N, H, W, C), in the range.
    """
    return tf.clip_by_value(images * _per_image(factors), *value_range)


def scale_brightness_exact(images: tf.Tensor, factors: tf.Tensor) -> tf.Tensor:
    """Multiplies each image by its factor in 8 bits, as Keras does by way of Pillow.

    An image that leaves 0 to 255 is first stretched from its own range to 0 to 255, and back afterwards.

    Args:
        images: float32 (N, H, W, C), C of 1, 3 or 4; of 4 the last is alpha, which is rounded but not multiplied.
        factors: float32 (N,).

    Returns:
        float32 (N, H, W, C), in each image's own range if it was stretched, otherwise 0 to 255.
    """
    low, high = _range_of(images)
    span = high - low
    is_local = (low < 0.0) | (high > 255.0)
    # a flat image has no range to stretch: it becomes 0, as in Keras
    stretched = (images - low) / tf.where(span == 0.0, tf.ones_like(span), span) * 255.0
    levels = tf.floor(tf.where(is_local, stretched, images))
    bright = tf.clip_by_value(tf.floor(_per_image(factors) * levels), 0.0, 255.0)
    if images.shape[3] == _CHANNELS_WITH_ALPHA:
        bright = tf.concat([bright[..., :3], levels[..., 3:]], -1)
    return tf.where(is_local, bright / 255.0 * span + low, bright)


def _range_of(images: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Lowest and highest value of each image over all its channels, float32 (N, 1, 1, 1) each."""
    return (
        tf.reduce_min(images, axis=[1, 2, 3], keepdims=True),
        tf.reduce_max(images, axis=[1, 2, 3], keepdims=True),
    )


def _per_image(values: tf.Tensor) -> tf.Tensor:
    return values[:, tf.newaxis, tf.newaxis, tf.newaxis]
