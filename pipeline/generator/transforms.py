"""One image in numpy: what is drawn for it and how that is applied.

The formulas are those of Keras's `ImageDataGenerator`, of which two faults are only kept on request (`keras_exact`):
the centre of non-square images with its axes exchanged, and brightness that rounds to 8 bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from PIL import ImageEnhance
from scipy import ndimage

from pipeline.augment import maps_about_pivot
from pipeline.generator.settings import GeneratorSettings, Shift

__all__ = [
    "affine",
    "apply_transform",
    "draw_transform",
    "inverse_maps",
    "scale_brightness",
    "scale_brightness_exact",
    "shift_channels",
    "usual_range",
]

Range = tuple[float, float]


def draw_transform(
    settings: GeneratorSettings, image_shape: Sequence[int], random_state: np.random.RandomState
) -> dict[str, Any]:
    """Draws one image's parameters in Keras's order, from a private generator.

    Args:
        settings: the ranges.
        image_shape: (H, W, C) or (C, H, W), as the settings' data format says.
        random_state: what to draw from; a range that is switched off takes nothing from it.

    Returns:
        theta and shear in degrees, tx (sideways) and ty (up and down) in pixels, zx (width) and zy (height), both
        flips, channel_shift_intensity and brightness (None where switched off).
    """
    height, width = image_shape[settings.row_axis - 1], image_shape[settings.col_axis - 1]
    theta = _uniform(settings.rotation_range, random_state)
    by_height = _draw_shift(settings.height_shift_range, height, random_state)
    by_width = _draw_shift(settings.width_shift_range, width, random_state)
    # Keras's class moves the image sideways by the height's range, and up and down by the width's
    tx, ty = (by_height, by_width) if settings.keras_exact else (by_width, by_height)
    shear = _uniform(settings.shear_range, random_state)
    zx, zy = (1, 1) if settings.zoom_range == (1, 1) else random_state.uniform(*settings.zoom_range, 2)
    flip_horizontal = (random_state.random_sample() < 0.5) * settings.horizontal_flip
    flip_vertical = (random_state.random_sample() < 0.5) * settings.vertical_flip
    channel_shift = _uniform(settings.channel_shift_range, random_state) if settings.channel_shift_range != 0 else None
    brightness = None if settings.brightness_range is None else random_state.uniform(*settings.brightness_range)
    return {
        "theta": theta,
        "tx": tx,
        "ty": ty,
        "shear": shear,
        "zx": zx,
        "zy": zy,
        "flip_horizontal": flip_horizontal,
        "flip_vertical": flip_vertical,
        "channel_shift_intensity": channel_shift,
        "brightness": brightness,
    }


def apply_transform(
    image: np.ndarray,
    parameters: Mapping[str, Any],
    settings: GeneratorSettings,
    *,
    value_range: Range | None = None,
) -> np.ndarray:
    """Does to one image what the parameters say: warp, channel shift, flips, brightness.

    Args:
        image: (H, W, C) or (C, H, W), any real dtype; never changed.
        parameters: by the names of `draw_transform`; what is missing leaves the image as it is.
        settings: data format, fill mode, order of interpolation, and whether Keras's faults are wanted.
        value_range: lowest and highest level that brightness leaves; None for `usual_range(image)`.

    Returns:
        The same shape; the image itself if nothing is to be done.
    """
    row, column, channel = settings.row_axis - 1, settings.col_axis - 1, settings.channel_axis - 1
    changed = affine(
        image,
        **{name: parameters.get(name, neutral) for name, neutral in _NEUTRAL.items()},
        row_axis=row,
        col_axis=column,
        channel_axis=channel,
        fill_mode=settings.fill_mode,
        cval=settings.cval,
        order=settings.interpolation_order,
        exact_pivot=settings.keras_exact,
    )
    if parameters.get("channel_shift_intensity") is not None:
        changed = shift_channels(changed, parameters["channel_shift_intensity"])
    if parameters.get("flip_horizontal", False):
        changed = np.flip(changed, column)
    if parameters.get("flip_vertical", False):
        changed = np.flip(changed, row)
    factor = parameters.get("brightness")
    if factor is None:
        return changed
    if settings.keras_exact:
        return scale_brightness_exact(changed, factor)
    return scale_brightness(changed, factor, value_range or usual_range(image))


def inverse_maps(
    theta: Any, tx: Any, ty: Any, shear: Any, zx: Any, zy: Any, *, height: int, width: int, exact_pivot: bool
) -> np.ndarray:
    """The output-to-input maps: rotation · shift · shear · zoom about the pivot, in pixels.

    Args:
        theta: degrees, counter-clockwise on the screen, (N,) or one number, as are all that follow.
        tx: pixels; positive moves the content to the left.
        ty: pixels; positive moves the content up.
        shear: degrees.
        zx: factor of the width, below 1 enlarges.
        zy: factor of the height.
        height: of the image.
        width: of the image.
        exact_pivot: Keras's pivot, whose row comes from the width and whose column from the height.

    Returns:
        float64 (N, 2, 3): input (column, row) = map · (column, row, 1) of the output, counted from the middle of the
        top left pixel.
    """
    numbers = (np.atleast_1d(value).astype(np.float64) for value in (theta, tx, ty, shear, zx, zy))
    maps = maps_about_pivot(*np.broadcast_arrays(*numbers))
    column, row = (height, width) if exact_pivot else (width, height)
    pivot = np.array([column / 2 - 0.5, row / 2 - 0.5])
    maps[:, :, 2] += pivot - maps[:, :, :2] @ pivot
    return maps


def affine(
    image: np.ndarray,
    *,
    theta: float = 0,
    tx: float = 0,
    ty: float = 0,
    shear: float = 0,
    zx: float = 1,
    zy: float = 1,
    row_axis: int,
    col_axis: int,
    channel_axis: int,
    fill_mode: str,
    cval: float,
    order: int,
    exact_pivot: bool,
) -> np.ndarray:
    """One image through one resampling, in float64 inside.

    Args:
        image: 3-D, channels first or last.
        theta: degrees; this and the next five as in `inverse_maps`.
        tx: pixels.
        ty: pixels.
        shear: degrees.
        zx: factor.
        zy: factor.
        row_axis: 0, 1 or 2.
        col_axis: 0, 1 or 2.
        channel_axis: 0 or 2.
        fill_mode: SciPy's mode of `affine_transform`.
        cval: value outside for `constant`.
        order: of the spline, 0 to 5.
        exact_pivot: Keras's pivot of non-square images.

    Returns:
        The same shape and dtype; the image itself if there is nothing to do.
    """
    if theta == tx == ty == shear == 0 and zx == zy == 1:
        return image
    height, width = image.shape[row_axis], image.shape[col_axis]
    (matrix,) = inverse_maps(theta, tx, ty, shear, zx, zy, height=height, width=width, exact_pivot=exact_pivot)
    if col_axis > row_axis:  # SciPy counts along the axes: rows first
        matrix = matrix[::-1, [1, 0, 2]]
    planes = [
        ndimage.affine_transform(plane, matrix[:, :2], matrix[:, 2], order=order, mode=fill_mode, cval=cval)
        for plane in np.moveaxis(image, channel_axis, 0)
    ]
    return np.moveaxis(np.stack(planes), 0, channel_axis)


def shift_channels(image: np.ndarray, intensity: float) -> np.ndarray:
    """Adds one level to all channels, clipped to the image's own range."""
    return np.clip(image + intensity, image.min(), image.max()).astype(image.dtype, copy=False)


def usual_range(images: np.ndarray) -> Range:
    """The range that levels are taken to have, by their dtype and values.

    Args:
        images: one or several, any shape.

    Returns:
        (0, 1) or (-1, 1) for floats that all lie within it, otherwise (0, 255).
    """
    if not np.issubdtype(images.dtype, np.floating) or images.size == 0:
        return 0.0, 255.0
    low, high = images.min(), images.max()
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    return (-1.0, 1.0) if low >= -1 and high <= 1 else (0.0, 255.0)


def scale_brightness(image: np.ndarray, factor: float, value_range: Range) -> np.ndarray:
    """Multiplies and clips, without rounding to 8 bits in between."""
    kind = image.dtype if np.issubdtype(image.dtype, np.floating) else np.dtype(tf.keras.backend.floatx())
    return np.clip(image.astype(kind) * kind.type(factor), *value_range)


def scale_brightness_exact(image: np.ndarray, factor: float, *, scale: bool = False) -> np.ndarray:
    """Keras's brightness, which goes through an 8-bit Pillow image of the global data format.

    Args:
        image: 3-D with 1, 3 or 4 channels; of 4 the last is left alone.
        factor: of the levels.
        scale: stretch the image's own range to 0 to 255 first; done in any case if it leaves 0 to 255.

    Returns:
        Of Keras's float type, the same shape.

    Raises:
        ValueError: for another number of channels.
    """
    low, high = image.min(), image.max()
    is_local = low < 0 or high > 255
    picture = tf.keras.utils.array_to_img(image, scale=is_local or scale)
    bright = tf.keras.utils.img_to_array(ImageEnhance.Brightness(picture).enhance(factor))
    return bright / 255 * (high - low) + low if is_local and not scale else bright


_NEUTRAL = {"theta": 0, "tx": 0, "ty": 0, "shear": 0, "zx": 1, "zy": 1}


def _uniform(bound: float, random_state: np.random.RandomState) -> float:
    return random_state.uniform(-bound, bound) if bound else 0


def _draw_shift(shift: Shift, side: int, random_state: np.random.RandomState) -> float:
    """A shift in pixels: of a float any amount, of a whole number or a list one of the values, to either side."""
    if not shift:
        return 0
    if isinstance(shift, tuple) or (not isinstance(shift, float) and shift > 0):
        value = random_state.choice(shift) * random_state.choice([-1, 1])
    else:
        value = random_state.uniform(-shift, shift)
    return value * side if np.max(shift) < 1 else value
