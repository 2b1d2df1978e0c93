"""Reads a `preprocess_input` function of keras.applications as plain data, by showing it a few colours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pipeline.augment.preprocess import ChannelAffine

__all__ = ["channel_affine_of"]


def channel_affine_of(preprocess_input: Callable[[Any], Any]) -> ChannelAffine | None:
    """Reads a function as a scale and an offset a channel.

    Args:
        preprocess_input: maps float32 (N, H, W, 3), RGB, 0 to 255, to the same shape; it may change its input in place,
            as those of Keras do.

    Returns:
        The same map as plain data, checked against the function on random pixels; None if the function is not a scale
        and an offset a channel, with red and blue perhaps exchanged.
    """
    colours = np.concatenate([np.zeros((1, 3)), 255 * np.eye(3)])
    black, *primaries = _preprocess_pixels(preprocess_input, colours)
    mixing = (np.stack(primaries) - black).T / 255  # [output channel, input channel]
    reverse = bool(abs(mixing[0, 2]) > abs(mixing[0, 0]))
    scale = np.diagonal(mixing[:, ::-1] if reverse else mixing)
    affine = ChannelAffine(scale=tuple(scale), offset=tuple(black), reverse_channels=reverse)

    pixels = np.random.default_rng(0).uniform(0, 255, (64, 3))
    expected = _preprocess_pixels(preprocess_input, pixels)
    tolerance = 1e-5 * max(1.0, float(np.abs(expected).max()))
    is_the_same = np.allclose(affine.apply(pixels.astype(np.float32)), expected, rtol=0, atol=tolerance)
    return affine if is_the_same else None


def _preprocess_pixels(preprocess_input: Callable[[Any], Any], pixels: np.ndarray) -> np.ndarray:
    """Float64 (n, 3) of what the function makes of n pixels, which it gets as one fresh float32 image."""
    image = np.array(pixels, np.float32).reshape(1, -1, 1, 3)
    return np.asarray(preprocess_input(image), np.float64).reshape(-1, 3)
