"""Changes of level: brightness and channel shift, on float32 batches."""

from __future__ import annotations

import tensorflow as tf

__all__ = ["scale_brightness", "shift_channels"]


def shift_channels(images: tf.Tensor, levels: tf.Tensor) -> tf.Tensor:
    """Adds one level to all channels of an image, clipped to that image's own range.

    Args:
        images: float32 (N, H, W, C).
        levels: float32 (N,).

    Returns:
        float32 (N, H, W, C), as Keras's `apply_channel_shift`.
    """
    low = tf.reduce_min(images, axis=[1, 2, 3], keepdims=True)
    high = tf.reduce_max(images, axis=[1, 2, 3], keepdims=True)
    return tf.minimum(tf.maximum(images + _per_image(levels), low), high)


def scale_brightness(images: tf.Tensor, factors: tf.Tensor) -> tf.Tensor:
    """Multiplies each image by its factor and clips to 0 to 255, without Keras's rounding to 8 bits in between.

    Args:
        images: float32 (N, H, W, C), 0 to 255.
        factors: float32 (N,).

    Returns:
        float32 (N, H, W, C), 0 to 255.
    """
    return tf.clip_by_value(images * _per_image(factors), 0.0, 255.0)


def _per_image(values: tf.Tensor) -> tf.Tensor:
    return values[:, tf.newaxis, tf.newaxis, tf.newaxis]
