"""What augmentation may do: the ranges from which each image's parameters are drawn."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["FILL_MODES", "AugmentRanges"]

FILL_MODES = ("nearest", "constant", "reflect", "wrap")


@dataclass(frozen=True, kw_only=True)
class AugmentRanges:
    """Ranges with the meaning of ImageDataGenerator's documentation; the defaults are a usual recipe.

    A shift below 1 is a share of the side, from 1 on it is in pixels, as in Keras; width shift moves the image sideways
    and height shift up and down. Example: `AugmentRanges(rotation_degrees=30)` turns each image by an angle in [-30,
    30].

    Attributes:
        rotation_degrees: angle in [-r, r].
        width_shift: sideways shift in [-w, w], share of the width or pixels.
        height_shift: vertical shift in [-h, h], share of the height or pixels.
        shear_degrees: shear angle in [-s, s]; in degrees as in Keras, so that 0.4 does next to nothing.
        zoom: lower and upper bound of the zoom factor, drawn for each axis; below 1 enlarges.
        horizontal_flip: mirror left and right with probability one half.
        vertical_flip: mirror top and bottom with probability one half.
        channel_shift: a level in [-c, c] added to all channels, clipped to the image's own range.
        brightness: lower and upper bound of a factor, or None for no change.
        fill_mode: where a sample falls outside the image: nearest, constant, reflect or wrap.
        cval: the value outside for `constant`, 0 to 255.
    """

    rotation_degrees: float = 30.0
    width_shift: float = 0.4
    height_shift: float = 0.4
    shear_degrees: float = 0.4
    zoom: tuple[float, float] = (0.75, 1.25)
    horizontal_flip: bool = True
    vertical_flip: bool = False
    channel_shift: float = 0.0
    brightness: tuple[float, float] | None = (0.5, 1.5)
    fill_mode: str = "nearest"
    cval: float = 0.0

    def __post_init__(self) -> None:
        problems = [
            f"{name} must be a finite number of 0 or more, not {getattr(self, name)!r}"
            for name in ("rotation_degrees", "width_shift", "height_shift", "shear_degrees", "channel_shift")
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) >= 0)
        ]
        if not (_is_range(self.zoom) and self.zoom[0] > 0):
            problems.append(f"zoom must be two finite numbers above 0, the lower first, not {self.zoom!r}")
        if self.brightness is not None and not _is_range(self.brightness):
            problems.append(
                f"brightness must be two finite numbers of 0 or more, the lower first, not {self.brightness!r}"
            )
        if self.fill_mode not in FILL_MODES:
            problems.append(f"fill_mode must be one of {', '.join(FILL_MODES)}, not {self.fill_mode!r}")
        if not 0 <= self.cval <= 255:
            problems.append(f"cval must be a level from 0 to 255, not {self.cval!r}")
        if problems:
            raise ValueError("; ".join(problems))

    def to_json(self) -> dict[str, Any]:
        """Plain data for run.json."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}


def _is_range(pair: tuple[float, float]) -> bool:
    return len(pair) == 2 and all(math.isfinite(value) for value in pair) and 0 <= pair[0] <= pair[1]
