"""The random parameters of each image: a pure function of (seed, epoch, sample index)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.augment.spec import AugmentRanges
from pipeline.randomness import Stream, uniforms

__all__ = ["AugmentParameters", "draw_parameters"]

_COLUMNS = 10  # uniform numbers a sample; all are drawn always, so that one range never changes another's draws


@dataclass(frozen=True, kw_only=True)
class AugmentParameters:
    """What is done to each of N images, in the units of `AugmentRanges`.

    Attributes:
        rotation_degrees: float64 (N,), counter-clockwise on the screen.
        width_shift_pixels: float64 (N,), positive moves the content to the left.
        height_shift_pixels: float64 (N,), positive moves the content up.
        shear_degrees: float64 (N,).
        zoom_width: float64 (N,), below 1 enlarges.
        zoom_height: float64 (N,), below 1 enlarges.
        horizontal_flip: bool (N,).
        vertical_flip: bool (N,).
        channel_shift: float64 (N,), levels.
        brightness: float64 (N,), a factor.
    """

    rotation_degrees: np.ndarray
    width_shift_pixels: np.ndarray
    height_shift_pixels: np.ndarray
    shear_degrees: np.ndarray
    zoom_width: np.ndarray
    zoom_height: np.ndarray
    horizontal_flip: np.ndarray
    vertical_flip: np.ndarray
    channel_shift: np.ndarray
    brightness: np.ndarray


def draw_parameters(
    ranges: AugmentRanges, *, seed: int, epoch: int, count: int, height: int, width: int
) -> AugmentParameters:
    """Draws the parameters of every sample of an epoch; row i belongs to sample i, whatever `count` is.

    Args:
        ranges: from which to draw, uniformly.
        seed: of the run.
        epoch: from 1.
        count: number of samples.
        height: of the images, in pixels, for shifts given as a share.
        width: of the images, in pixels.

    Returns:
        The parameters of samples 0 to count - 1.
    """
    u = uniforms(seed, epoch, Stream.AUGMENT, (count, _COLUMNS)).T
    low, high = ranges.zoom
    dim, bright = ranges.brightness or (1.0, 1.0)
    return AugmentParameters(
        rotation_degrees=_symmetric(u[0], ranges.rotation_degrees),
        width_shift_pixels=_symmetric(u[1], _shift_pixels(ranges.width_shift, width)),
        height_shift_pixels=_symmetric(u[2], _shift_pixels(ranges.height_shift, height)),
        shear_degrees=_symmetric(u[3], ranges.shear_degrees),
        zoom_width=low + (high - low) * u[4],
        zoom_height=low + (high - low) * u[5],
        horizontal_flip=(u[6] < 0.5) & ranges.horizontal_flip,
        vertical_flip=(u[7] < 0.5) & ranges.vertical_flip,
        channel_shift=_symmetric(u[8], ranges.channel_shift),
        brightness=dim + (bright - dim) * u[9],
    )


def _symmetric(u: np.ndarray, bound: float) -> np.ndarray:
    return (2.0 * u - 1.0) * bound


def _shift_pixels(shift: float, side: int) -> float:
    # Keras's rule: below 1 a share of the side, otherwise pixels
    return shift * side if shift < 1 else shift
