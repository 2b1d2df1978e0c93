"""How an encoded image becomes pixels: the settings, and the names that they go by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

ColorMode = Literal["rgb", "rgba", "grayscale"]
Interpolation = Literal["nearest", "bilinear", "bicubic", "lanczos", "box", "hamming"]
Method = Literal["exact", "fast"]

CHANNELS: dict[str, int] = {"rgb": 3, "rgba": 4, "grayscale": 1}
INTERPOLATIONS: tuple[str, ...] = get_args(Interpolation)
METHODS: tuple[str, ...] = get_args(Method)


@dataclass(frozen=True, kw_only=True)
class DecodeConfig:
    """How an encoded image becomes pixels.

    Attributes:
        height: rows of the result, pixels, at least 1.
        width: columns of the result, pixels, at least 1.
        interpolation: the filter of the resize, by Pillow's name; all but nearest are antialiased under `exact`.
        method: `exact` (Pillow's pixels) or `fast` (JPEG scaled while it is decoded, no antialiasing).
        color_mode: `rgb`, `rgba` (opaque where the file has no transparency) or `grayscale`.
        keep_aspect_ratio: True crops the middle of the image to the target's shape before the resize.
        saturate_sixteen_bit: True cuts 16-bit grey off at 255, as Pillow's `convert` does, in place of its high byte.
    """

    height: int
    width: int
    interpolation: Interpolation = "nearest"
    method: Method = "exact"
    color_mode: ColorMode = "rgb"
    keep_aspect_ratio: bool = False
    saturate_sixteen_bit: bool = False

    @property
    def channels(self) -> int:
        """Values a pixel."""
        return CHANNELS[self.color_mode]

    @property
    def scales_jpegs(self) -> bool:
        """Whether JPEGs may be decoded at a fraction of their size; a part of one could not be cropped as the whole."""
        return self.method == "fast" and not self.keep_aspect_ratio

    def __post_init__(self) -> None:
        problems = [
            f"{name}: {value!r} is not a whole number of pixels from 1; give one such as 128"
            for name, value in (("height", self.height), ("width", self.width))
            if isinstance(value, bool) or not isinstance(value, int) or value < 1
        ]
        problems += [
            f"{name}: {value!r} is unknown; choose one of {', '.join(choices)}"
            for name, value, choices in (
                ("interpolation", self.interpolation, INTERPOLATIONS),
                ("method", self.method, METHODS),
                ("color_mode", self.color_mode, tuple(CHANNELS)),
            )
            if value not in choices
        ]
        if problems:
            raise ValueError("; ".join(problems))
