"""What the constructor's arguments do to an image, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline.generator.explain_case import Case, Finding

__all__ = ["IMAGE_RULES"]

_SAME = "The same."
_AS_KERAS = "As Keras."
_DOCUMENTED_FILLS = ("nearest", "constant", "reflect", "wrap")
_SCIPY_FILLS = ("mirror", "grid-wrap", "grid-constant", "grid-mirror")
_MOST_ORDER = 5
_USUAL_SIDE = 299


def _setting(case: Case, *names: str) -> str:
    return ", ".join(f"{name}={_spelled(getattr(case.settings, name))}" for name in names)


def _spelled(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_spelled, value))}{',' if len(value) == 1 else ''})"
    return f"{value:.6g}" if isinstance(value, float) and not value.is_integer() else repr(value)


def _warps(case: Case) -> bool:
    """Whether images are resampled; a flip alone does not."""
    settings = case.settings
    shifts = np.any(settings.width_shift_range or 0) or np.any(settings.height_shift_range or 0)
    return bool(settings.rotation_range or settings.shear_range or settings.zoom_range != (1, 1) or shifts)


def _rotation(case: Case) -> Iterator[Finding]:
    degrees = abs(case.settings.rotation_range or 0)
    if degrees:
        small = " The unit is degrees, not radians: that is next to nothing." if degrees < 1 else ""
        keras = f"Each image was turned by a random angle of up to {degrees:g} degrees to either side.{small}"
        yield Finding(_setting(case, "rotation_range"), keras, _SAME)


def _width_shift(case: Case) -> Iterator[Finding]:
    yield from _shift(case, "width", "up and down", "sideways")


def _height_shift(case: Case) -> Iterator[Finding]:
    yield from _shift(case, "height", "sideways", "up and down")


def _shift(case: Case, side: str, moved: str, expected: str) -> Iterator[Finding]:
    name = f"{side}_shift_range"
    value = getattr(case.settings, name)
    if not np.any(value or 0):
        return
    if isinstance(value, int) and value == 1:
        keras = (
            "Nothing moved: a whole number k stands for whole pixels below k, and below 1 there is only 0 (1.0 would "
            f"be up to one pixel, a number below 1 a share of the {side})."
        )
        yield Finding(_setting(case, name), keras, "The same: nothing moves. A warning says so.")
        return
    amount = _amount(value, side, case.size[side == "width"] if case.size else None)
    keras = f"Images moved {moved}, not {expected}, by {amount}."
    if case.is_square and case.settings.width_shift_range == case.settings.height_shift_range:
        keras += " With square images and two equal ranges that makes no difference on average."
    warned = " A warning says that 1.0 is one pixel." if value == 1 else ""
    yield Finding(_setting(case, name), keras, f"They move {expected}, by the same amount.{warned}", _AS_KERAS)


def _amount(value: Any, side: str, pixels: int | None) -> str:
    if isinstance(value, tuple):
        unit = f"times the image's {side}" if max(value) < 1 else "pixels"
        choice = ", ".join(f"{abs(one):g}" for one in value)
        return f"one of {choice} {unit}, to a random side (a list names single values, not a range)"
    if value < 1:  # so is every negative number
        size = f" ({abs(value) * pixels:.4g} of {pixels} pixels)" if pixels else ""
        return f"up to {abs(value):g} of the image's {side}{size} to either side"
    if isinstance(value, int):
        return f"a whole number of pixels, up to {value - 1} to either side"
    return f"up to {value:g} {'pixel' if value == 1 else 'pixels'} (not a share of the {side}) to either side"


def _shear(case: Case) -> Iterator[Finding]:
    degrees = abs(case.settings.shear_range or 0)
    if not degrees:
        return
    keras, ours = f"Each image was sheared by a random angle of up to {degrees:g} degrees to either side.", _SAME
    if degrees < 1:
        height = case.size[0] if case.size else _USUAL_SIDE
        edge = math.sin(math.radians(degrees)) * (height - 1) / 2
        keras = (
            f"{degrees:g} is {degrees:g} degrees, neither radians nor a share, and so next to nothing: in an image "
            f"{height} pixels high the outermost rows moved by at most {edge:.1f} pixels."
        )
        ours = f"The same, with a warning. For {degrees:g} radians give {math.degrees(degrees):.1f}."
    yield Finding(_setting(case, "shear_range"), keras, ours)


def _zoom(case: Case) -> Iterator[Finding]:
    low, high = sorted(case.settings.zoom_range)
    if case.settings.zoom_range == (1, 1):
        return
    if low <= 0:
        keras = (
            f"Width and height were drawn apart, each with a factor from {low:g} to {high:g}. Near 0 a few pixels "
            "fill the whole image, below 0 it is mirrored."
        )
    else:
        keras = (
            f"Width and height were drawn apart, so that shapes were stretched: each became {1 / high:.2g} to "
            f"{1 / low:.2g} times as large."
        )
    yield Finding(_setting(case, "zoom_range"), keras, _SAME)


def _pivot(case: Case) -> Iterator[Finding]:
    settings = case.settings
    on = [name for name in ("rotation_range", "shear_range") if getattr(settings, name)]
    on += ["zoom_range"] if settings.zoom_range != (1, 1) else []
    if not on or case.is_square:
        return
    keras = "Images that are not square were turned, sheared and zoomed about a point beside their centre"
    keras += ": its row came from the width and its column from the height."
    if case.size:
        row, column = ((side - 1) / 2 for side in case.size)
        keras += (
            f" At {case.size[0]} x {case.size[1]} (height x width): about row {column:g}, column {row:g} in place of "
        )
        keras += f"row {row:g}, column {column:g}."
    yield Finding(_setting(case, *on), keras, "About the image's centre.", _AS_KERAS)


def _channel_shift(case: Case) -> Iterator[Finding]:
    levels = abs(case.settings.channel_shift_range or 0)
    if not levels:
        return
    keras = (
        f"One random number of up to {levels:g} either way was added to all channels alike, and the result was cut to "
        "the image's own lowest and highest level: an offset of brightness, not a shift of colours."
    )
    if levels < 1 and case.may_be_files:
        keras += " Of a file's 255 levels that is less than one."
    yield Finding(_setting(case, "channel_shift_range"), keras, _SAME)


def _brightness(case: Case) -> Iterator[Finding]:
    if case.settings.brightness_range is None:
        return
    low, high = sorted(case.settings.brightness_range)
    keras = (
        f"Levels were multiplied by a random factor from {low:g} to {high:g}, rounded down to whole levels (8 bits, "
        "also at factor 1) and cut at 255; this came before preprocessing_function and rescale."
    )
    if low < 0:
        keras += " A factor below 0 gave a black image."
    elif high <= 1:
        keras += " No image was made brighter."
    elif low >= 1:
        keras += " No image was made darker."
    ours = "Multiplied by the same factor and cut at 255 without rounding, at the same place."
    yield Finding(_setting(case, "brightness_range"), keras, ours, _AS_KERAS)


def _brightness_of_small_levels(case: Case) -> Iterator[Finding]:
    if case.settings.brightness_range is None or not case.may_be_arrays:
        return
    later = " The generator's own rescale did no harm: it came later." if case.settings.rescale else ""
    keras = (
        "If the arrays given to flow were float images from 0 to 1 (divided by 255 beforehand), brightness turned "
        "them black: 8 bits leave nothing of them. Images from -1 to 1 were rounded to 256 levels of their own "
        f"range.{later}"
    )
    ours = "Multiplied, and cut to the range from 0 to 1, or from -1 to 1, if all the images given to flow lie in it."
    yield Finding(_setting(case, "brightness_range"), keras, ours, "Black, as in Keras.")


def _brightness_channels_first(case: Case) -> Iterator[Finding]:
    settings = case.settings
    if settings.brightness_range is None or settings.data_format == tf.keras.backend.image_data_format():
        return
    keras = (
        "Brightness went by Keras's global data format, not by the generator's, and took another axis for the "
        "channels: it failed (Unsupported channel number), or changed the wrong axis."
    )
    yield Finding(
        _setting(case, "data_format", "brightness_range"), keras, "By the generator's data format.", _AS_KERAS
    )


def _fill(case: Case) -> Iterator[Finding]:
    settings, mode = case.settings, case.settings.fill_mode
    if not _warps(case) or mode in ("nearest", "reflect"):
        return
    if mode == "constant":
        keras = (
            f"What came from outside the image was {settings.cval:g}, a level before preprocessing_function and "
            "rescale; the border was not blended with it."
        )
        yield Finding(_setting(case, "fill_mode", "cval"), keras, _SAME)
    elif mode == "wrap":
        keras = (
            "The image was repeated with a period of one pixel less than its size: its first and last row (column) "
            "lie on each other."
        )
        yield Finding(_setting(case, "fill_mode"), keras, _SAME)
    elif mode in _SCIPY_FILLS:
        keras = "SciPy's mode of that name, which Keras's documentation does not list."
        yield Finding(_setting(case, "fill_mode"), keras, "The same result, image by image through SciPy: slower.")
    else:
        keras = 'The first image that was moved failed: "boundary mode not supported".'
        yield Finding(_setting(case, "fill_mode"), keras, f"It fails as well; choose one of {_DOCUMENTED_FILLS}.")


def _cval(case: Case) -> Iterator[Finding]:
    if case.settings.cval and (case.settings.fill_mode not in ("constant", "grid-constant") or not _warps(case)):
        yield Finding(_setting(case, "cval"), 'Nothing: it counts for fill_mode="constant" only.', _SAME)


def _flips(case: Case) -> Iterator[Finding]:
    for name, done in (("horizontal_flip", "mirrored left to right"), ("vertical_flip", "turned upside down")):
        if getattr(case.settings, name):
            yield Finding(_setting(case, name), f"Every second image, at random, was {done}.", _SAME)


def _order(case: Case) -> Iterator[Finding]:
    order = case.settings.interpolation_order
    if order == 1 or not _warps(case):
        return
    if order == 0:
        keras, ours = "Moved images took the nearest pixel, without blending (right for masks of classes).", _SAME
    elif order <= _MOST_ORDER:
        keras = f"Moved images went through a spline of order {order}, whose values can leave the image's own range."
        ours = "The same result, image by image through SciPy: slower."
    else:
        keras, ours = 'The first image that was moved failed: "spline order not supported".', "It fails as well."
    yield Finding(_setting(case, "interpolation_order"), keras, ours)


IMAGE_RULES = (
    _rotation,
    _width_shift,
    _height_shift,
    _shear,
    _zoom,
    _pivot,
    _channel_shift,
    _flips,
    _brightness,
    _brightness_of_small_levels,
    _brightness_channels_first,
    _fill,
    _cval,
    _order,
)
