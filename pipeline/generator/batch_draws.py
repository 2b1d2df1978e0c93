"""What is drawn for every image of an epoch: a pure function of (seed, epoch, sample index).

The distributions are those of Keras's `get_random_transform`, for every form that its ranges take.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pipeline.generator.settings import GeneratorSettings, Shift
from pipeline.generator.transforms import inverse_maps
from pipeline.randomness import Stream, uniforms

__all__ = ["COLUMNS", "NEUTRAL", "as_parameters", "draw_batch", "kernel_rows"]

COLUMNS = (
    "theta",
    "tx",
    "ty",
    "shear",
    "zx",
    "zy",
    "flip_horizontal",
    "flip_vertical",
    "channel_shift_intensity",
    "brightness",
)
# the row of an image that is left as it is
NEUTRAL = (0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0)
# a shift's value and its sign are drawn apart; all numbers are drawn always, so that one range never changes another's
_UNIFORMS = 12


def draw_batch(
    settings: GeneratorSettings, *, seed: int, epoch: int, count: int, image_shape: Sequence[int]
) -> np.ndarray:
    """Draws an epoch.

    Args:
        settings: the ranges.
        seed: 0 to 2**64 - 1.
        epoch: from 1.
        count: number of samples.
        image_shape: of one image, in the settings' data format.

    Returns:
        float64 (count, 10), the columns of `COLUMNS`; row i belongs to sample i, whatever `count` is.
    """
    height, width = image_shape[settings.row_axis - 1], image_shape[settings.col_axis - 1]
    u = uniforms(seed, epoch, Stream.AUGMENT, (count, _UNIFORMS)).T
    by_height = _shifts(settings.height_shift_range, height, u[1], u[10])
    by_width = _shifts(settings.width_shift_range, width, u[2], u[11])
    tx, ty = (by_height, by_width) if settings.keras_exact else (by_width, by_height)
    return np.stack(
        [
            _symmetric(u[0], settings.rotation_range),
            tx,
            ty,
            _symmetric(u[3], settings.shear_range),
            _between(u[4], *settings.zoom_range),
            _between(u[5], *settings.zoom_range),
            (u[6] < 0.5) & bool(settings.horizontal_flip),
            (u[7] < 0.5) & bool(settings.vertical_flip),
            _symmetric(u[8], settings.channel_shift_range),
            _between(u[9], *(settings.brightness_range or (1.0, 1.0))),
        ],
        -1,
    ).astype(np.float64)


def as_parameters(row: np.ndarray, settings: GeneratorSettings) -> dict[str, Any]:
    """One row as `apply_transform` takes it.

    Args:
        row: float64 (10,), the columns of `COLUMNS`.
        settings: what is switched off is None.

    Returns:
        A value for each column.
    """
    parameters: dict[str, Any] = dict(zip(COLUMNS, row.tolist(), strict=True))
    for name in ("flip_horizontal", "flip_vertical"):
        parameters[name] = bool(parameters[name])
    if settings.channel_shift_range == 0:
        parameters["channel_shift_intensity"] = None
    if settings.brightness_range is None:
        parameters["brightness"] = None
    return parameters


def kernel_rows(draws: np.ndarray, settings: GeneratorSettings, height: int, width: int) -> np.ndarray:
    """The numbers that the pixel kernel needs of each image.

    Args:
        draws: float64 (N, 10), the columns of `COLUMNS`.
        settings: whose pivot is meant.
        height: of the images.
        width: of the images.

    Returns:
        float32 (N, 8), the columns of `pipeline.augment.geometry.DRAW_COLUMNS`: the output-to-input map about the
        image's centre, both flips in it, then channel shift and brightness.
    """
    maps = inverse_maps(*draws[:, :6].T, height=height, width=width, exact_pivot=settings.keras_exact)
    # the flips mirror the finished picture about its centre, so they come first on the way back to the input
    mirror = np.where(draws[:, 6:8] != 0, -1.0, 1.0)
    centre = np.array([(width - 1) / 2, (height - 1) / 2])
    linear = maps[:, :, :2]
    offset = linear @ centre + maps[:, :, 2] - centre
    rows = np.concatenate([linear * mirror[:, np.newaxis, :], offset[..., np.newaxis]], -1).reshape(-1, 6)
    return np.concatenate([rows, draws[:, 8:]], 1).astype(np.float32)


def _between(u: np.ndarray, low: float, high: float) -> np.ndarray:
    return low + (high - low) * u


def _symmetric(u: np.ndarray, bound: float | None) -> np.ndarray:
    bound = bound or 0  # None is off, as in Keras
    return _between(u, -bound, bound)


def _shifts(shift: Shift, side: int, u: np.ndarray, sign: np.ndarray) -> np.ndarray:
    """Shifts in pixels: of a float any amount, of a whole number or a list one of the values, to either side."""
    if not np.any(shift):
        return np.zeros_like(u)
    if isinstance(shift, tuple) or (not isinstance(shift, float) and shift > 0):
        choices = np.asarray(shift if isinstance(shift, tuple) else np.arange(shift), float)
        values = choices[(u * len(choices)).astype(np.int64)] * np.where(sign < 0.5, -1.0, 1.0)
    else:  # a negative whole number too: numpy has nothing to choose from, and Keras goes on as with a float
        values = _symmetric(u, shift)
    return values * side if np.max(shift) < 1 else values
