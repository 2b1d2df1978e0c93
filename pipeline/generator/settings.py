"""The arguments of `ImageDataGenerator`, normalised and refused as Keras does."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

__all__ = ["KNOWN_CHANNELS", "GeneratorSettings", "make_settings"]

# grey, RGB, RGBA
KNOWN_CHANNELS = (1, 3, 4)

Shift = float | int | tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class GeneratorSettings:
    """What a generator does to its images; every attribute has the name and meaning of Keras's argument.

    Made by `make_settings`, which normalises: `zoom_range` is (lowest, highest) factor, lists are tuples, `data_format`
    and `dtype` are never None, and what one argument switches on in another one is on.

    Attributes:
        keras_exact: as Keras's class to the pixel, its faults included; otherwise as its documentation says.
    """

    featurewise_center: bool = False
    samplewise_center: bool = False
    featurewise_std_normalization: bool = False
    samplewise_std_normalization: bool = False
    zca_whitening: bool = False
    zca_epsilon: float = 1e-6
    rotation_range: float = 0
    width_shift_range: Shift = 0.0
    height_shift_range: Shift = 0.0
    brightness_range: tuple[float, float] | None = None
    shear_range: float = 0.0
    zoom_range: tuple[float, float] = (1, 1)
    channel_shift_range: float = 0.0
    fill_mode: str = "nearest"
    cval: float = 0.0
    horizontal_flip: bool = False
    vertical_flip: bool = False
    rescale: float | None = None
    preprocessing_function: Any = None
    data_format: str = "channels_last"
    validation_split: float = 0.0
    interpolation_order: int = 1
    dtype: str = "float32"
    keras_exact: bool = False

    @property
    def channel_axis(self) -> int:
        """Axis of the channels in a batch."""
        return 1 if self.data_format == "channels_first" else 3

    @property
    def row_axis(self) -> int:
        """Axis of the rows in a batch."""
        return 2 if self.data_format == "channels_first" else 1

    @property
    def col_axis(self) -> int:
        """Axis of the columns in a batch."""
        return 3 if self.data_format == "channels_first" else 2

    @property
    def moves_pixels(self) -> bool:
        """Whether any image may be rotated, shifted, sheared, zoomed or flipped."""
        return bool(
            self.rotation_range
            or self.shear_range
            or self.horizontal_flip
            or self.vertical_flip
            or self.zoom_range != (1, 1)
            or np.any(self.width_shift_range)
            or np.any(self.height_shift_range)
        )

    @property
    def changes_images(self) -> bool:
        """Whether any image may be changed at random."""
        return self.moves_pixels or self.brightness_range is not None or self.channel_shift_range != 0


def make_settings(**arguments: Any) -> GeneratorSettings:
    """Normalises a generator's arguments.

    Args:
        **arguments: by Keras's names, and `keras_exact`; what is left out has Keras's default.

    Returns:
        The settings.

    Raises:
        ValueError, TypeError: for what Keras's class refuses.
    """
    given = {"zoom_range": 0.0, **arguments}
    given["data_format"] = _data_format(given.get("data_format"))
    given["dtype"] = _dtype(given.get("dtype"))
    given["zoom_range"] = _zoom(given["zoom_range"])
    given["brightness_range"] = _brightness(given.get("brightness_range"))
    _check_split(given.get("validation_split", 0.0))
    for name in ("width_shift_range", "height_shift_range"):
        given[name] = _shift(given.get(name, 0.0))
    _switch_on(given)
    _warn_of_small_numbers(given)
    return GeneratorSettings(**given)


def _data_format(value: str | None) -> str:
    value = tf.keras.backend.image_data_format() if value is None else value
    if value not in ("channels_last", "channels_first"):
        raise ValueError(
            '`data_format` should be `"channels_last"` (channel after row and column) or `"channels_first"` '
            f"(channel before row and column). Received: {value}"
        )
    return value


def _dtype(value: Any) -> str:
    return tf.keras.backend.floatx() if value is None else np.dtype(value).name


def _zoom(value: Any) -> tuple[float, float]:
    if isinstance(value, float | int):
        return 1 - value, 1 + value
    if len(value) == 2 and all(isinstance(bound, float | int) for bound in value):
        return value[0], value[1]
    raise ValueError(f"`zoom_range` should be a float or a tuple or list of two floats. Received: {value}")


def _brightness(value: Any) -> tuple[float, float] | None:
    if value is None:
        return None
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ValueError(f"`brightness_range` should be tuple or list of two floats. Received: {value}")
    return value[0], value[1]


def _check_split(value: float) -> None:
    if value and not 0 < value < 1:
        raise ValueError(f"`validation_split` must be strictly between 0 and 1. Received: {value}")


def _shift(value: Any) -> Shift:
    if isinstance(value, Sequence | np.ndarray):
        return tuple(np.asarray(value).tolist())
    return value.item() if isinstance(value, np.generic) else value


def _switch_on(given: dict[str, Any]) -> None:
    """Does what one setting does to another, with Keras's warnings."""

    def warn(text: str) -> None:
        warnings.warn(f"This ImageDataGenerator specifies {text}", stacklevel=5)

    asked = dict(given)  # each rule goes by what was asked, not by what another rule made of it
    if asked.get("zca_whitening"):
        if not asked.get("featurewise_center"):
            given["featurewise_center"] = True
            warn("`zca_whitening`, which overrides setting of `featurewise_center`.")
        if asked.get("featurewise_std_normalization"):
            given["featurewise_std_normalization"] = False
            warn("`zca_whitening` which overrides setting of `featurewise_std_normalization`.")
    for kind in ("featurewise", "samplewise"):
        if asked.get(f"{kind}_std_normalization") and not asked.get(f"{kind}_center"):
            given[f"{kind}_center"] = True
            warn(f"`{kind}_std_normalization`, which overrides setting of `{kind}_center`.")


def _warn_of_small_numbers(given: dict[str, Any]) -> None:
    """Says what a few usual numbers mean in Keras and here, which is not what they look like."""
    for name in ("width_shift_range", "height_shift_range"):
        value = given[name]
        if type(value) in (int, float) and value == 1:
            meaning = "no shift at all" if type(value) is int else "one pixel"
            warnings.warn(
                f"{name}={value!r} means {meaning}, as in Keras; for a share of the image give a number below 1",
                stacklevel=4,
            )
    shear = given.get("shear_range", 0.0)
    if 0 < abs(shear) < 1:
        warnings.warn(
            f"shear_range={shear!r} means {shear!r} degrees, as in Keras, which next to nothing is; "
            "for radians give the angle times 57.3",
            stacklevel=4,
        )
