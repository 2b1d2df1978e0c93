"""The functions that stand beside ImageDataGenerator in `tf.keras.preprocessing.image`.

They are those of the installed Keras where it has them, and the ones below, `OWN`, where it has not (Keras 3 keeps
them among its legacy). Images are numpy arrays, by default channels first, as in Keras.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline.generator.settings import make_settings
from pipeline.generator.transforms import affine, scale_brightness_exact, shift_channels

__all__ = [
    "OWN",
    "apply_affine_transform",
    "apply_brightness_shift",
    "apply_channel_shift",
    "array_to_img",
    "img_to_array",
    "load_img",
    "random_brightness",
    "random_channel_shift",
    "random_rotation",
    "random_shear",
    "random_shift",
    "random_zoom",
    "save_img",
    "smart_resize",
]


def _apply_affine_transform(
    x: np.ndarray,
    theta: float = 0,
    tx: float = 0,
    ty: float = 0,
    shear: float = 0,
    zx: float = 1,
    zy: float = 1,
    row_axis: int = 1,
    col_axis: int = 2,
    channel_axis: int = 0,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    order: int = 1,
) -> np.ndarray:
    """Rotates, shifts, shears and zooms one image, about Keras's pivot.

    Raises:
        ValueError: for axes that are not 0, 1 and 2 with the channels first or last, or an image that is not 3-D.
    """
    if len({row_axis, col_axis, channel_axis}) != 3:
        raise ValueError("'row_axis', 'col_axis', and 'channel_axis' must be distinct")
    if {row_axis, col_axis, channel_axis} != {0, 1, 2}:
        raise ValueError(f"Invalid axis' indices: { ({row_axis, col_axis, channel_axis} - {0, 1, 2}) }")
    if x.ndim != 3:
        raise ValueError("Input arrays must be multi-channel 2D images.")
    if channel_axis == 1:
        raise ValueError("Channels are allowed and the first and last dimensions.")
    return affine(
        x,
        theta=theta,
        tx=tx,
        ty=ty,
        shear=shear,
        zx=zx,
        zy=zy,
        row_axis=row_axis,
        col_axis=col_axis,
        channel_axis=channel_axis,
        fill_mode=fill_mode,
        cval=cval,
        order=order,
        exact_pivot=True,
    )


def _drawn(bound: float) -> float:
    return np.random.RandomState().uniform(-bound, bound)


def _random_rotation(x: np.ndarray, rg: float, *axes: int, interpolation_order: int = 1, **how: Any) -> np.ndarray:
    """Rotates by an angle in [-rg, rg] degrees."""
    return _apply_affine_transform(x, theta=_drawn(rg), order=interpolation_order, **_axes(axes), **how)


def _random_shift(
    x: np.ndarray, wrg: float, hrg: float, *axes: int, interpolation_order: int = 1, **how: Any
) -> np.ndarray:
    """Shifts by shares of the sides: in Keras's terms tx by the height's range, ty by the width's."""
    places = _axes(axes, how)
    tx = _drawn(hrg) * x.shape[places["row_axis"]]
    ty = _drawn(wrg) * x.shape[places["col_axis"]]
    return _apply_affine_transform(x, tx=tx, ty=ty, order=interpolation_order, **places, **how)


def _random_shear(x: np.ndarray, intensity: float, *axes: int, interpolation_order: int = 1, **how: Any) -> np.ndarray:
    """Shears by an angle in [-intensity, intensity] degrees."""
    return _apply_affine_transform(x, shear=_drawn(intensity), order=interpolation_order, **_axes(axes), **how)


def _random_zoom(
    x: np.ndarray, zoom_range: Sequence[float], *axes: int, interpolation_order: int = 1, **how: Any
) -> np.ndarray:
    """Zooms both sides by factors in zoom_range, a pair.

    Raises:
        ValueError: if it is not a pair.
    """
    if len(zoom_range) != 2:
        raise ValueError(f"`zoom_range` should be a tuple or list of two floats. Received: {zoom_range}")
    low, high = make_settings(zoom_range=tuple(zoom_range)).zoom_range
    zx, zy = (1, 1) if low == high == 1 else np.random.RandomState().uniform(low, high, 2)
    return _apply_affine_transform(x, zx=zx, zy=zy, order=interpolation_order, **_axes(axes), **how)


def _axes(given: tuple[int, ...], how: dict[str, Any] | None = None) -> dict[str, int]:
    """Axes given by position, or out of the keywords, which are taken from there."""
    names = ("row_axis", "col_axis", "channel_axis")
    places = dict(zip(names, given, strict=False))
    if how is None:
        return places
    defaults = dict(zip(names, (1, 2, 0), strict=True))
    return {**defaults, **places, **{name: how.pop(name) for name in names if name in how}}


def _apply_channel_shift(x: np.ndarray, intensity: float, channel_axis: int = 0) -> np.ndarray:
    """Adds one level to all channels, clipped to the image's own range."""
    return shift_channels(x, intensity)


def _random_channel_shift(x: np.ndarray, intensity_range: float, channel_axis: int = 0) -> np.ndarray:
    """Adds a level in [-intensity_range, intensity_range]."""
    return shift_channels(x, _drawn(intensity_range))


def _apply_brightness_shift(x: np.ndarray, brightness: float, scale: bool = True) -> np.ndarray:
    """Multiplies the levels by way of 8 bits."""
    return scale_brightness_exact(x, brightness, scale=scale)


def _random_brightness(x: np.ndarray, brightness_range: Sequence[float], scale: bool = True) -> np.ndarray:
    """Multiplies the levels by a factor in brightness_range, a pair.

    Raises:
        ValueError: if it is not a pair.
    """
    if len(brightness_range) != 2:
        raise ValueError(f"`brightness_range` should be tuple or list of two floats. Received: {brightness_range}")
    return scale_brightness_exact(x, np.random.RandomState().uniform(*brightness_range), scale=scale)


OWN: dict[str, Callable[..., Any]] = {
    "apply_affine_transform": _apply_affine_transform,
    "apply_brightness_shift": _apply_brightness_shift,
    "apply_channel_shift": _apply_channel_shift,
    "array_to_img": tf.keras.utils.array_to_img,
    "img_to_array": tf.keras.utils.img_to_array,
    "load_img": tf.keras.utils.load_img,
    "random_brightness": _random_brightness,
    "random_channel_shift": _random_channel_shift,
    "random_rotation": _random_rotation,
    "random_shear": _random_shear,
    "random_shift": _random_shift,
    "random_zoom": _random_zoom,
    "save_img": tf.keras.utils.save_img,
}


def _installed(name: str) -> Callable[..., Any]:
    return getattr(tf.keras.preprocessing.image, name, OWN[name])


apply_affine_transform = _installed("apply_affine_transform")
apply_brightness_shift = _installed("apply_brightness_shift")
apply_channel_shift = _installed("apply_channel_shift")
array_to_img = _installed("array_to_img")
img_to_array = _installed("img_to_array")
load_img = _installed("load_img")
random_brightness = _installed("random_brightness")
random_channel_shift = _installed("random_channel_shift")
random_rotation = _installed("random_rotation")
random_shear = _installed("random_shear")
random_shift = _installed("random_shift")
random_zoom = _installed("random_zoom")
save_img = _installed("save_img")
smart_resize = tf.keras.preprocessing.image.smart_resize
