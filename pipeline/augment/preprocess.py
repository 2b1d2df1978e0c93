"""What a backbone wants its pixels to be, as plain data: one affine map a channel.

Every `preprocess_input` of keras.applications is such a map, so it can be fused into the augmentation, written to
run.json and applied by whoever loads the saved model.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

__all__ = ["IDENTITY", "ChannelAffine"]


@dataclass(frozen=True, kw_only=True)
class ChannelAffine:
    """A scale and an offset for each output channel, after an optional exchange of red and blue.

    `out[..., c] = x[..., 2 - c if reverse_channels else c] * scale[c] + offset[c]`

    Attributes:
        scale: factor of each output channel.
        offset: summand of each output channel, added after the scale.
        reverse_channels: True for backbones that were trained on BGR.
    """

    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    reverse_channels: bool = False

    def __post_init__(self) -> None:
        for name in ("scale", "offset"):
            values = tuple(float(value) for value in getattr(self, name))
            if len(values) != 3 or not np.isfinite(values).all():
                raise ValueError(f"ChannelAffine.{name} must be three finite numbers, not {getattr(self, name)!r}")
            object.__setattr__(self, name, values)

    @property
    def is_uniform(self) -> bool:
        """Whether all channels are treated alike, so that images of any number of channels can be."""
        return not self.reverse_channels and len(set(self.scale)) == len(set(self.offset)) == 1

    def scaled(self, factor: float) -> ChannelAffine:
        """This map, and what it gives multiplied by a factor."""
        scale, offset = (tuple(factor * value for value in values) for values in (self.scale, self.offset))
        return replace(self, scale=scale, offset=offset)

    def apply(self, images: Any) -> Any:
        """Maps RGB values, 0 to 255, to what the backbone expects.

        Args:
            images: float32 (..., 3), or any number of channels if `is_uniform`; an array or a tensor, never changed.

        Returns:
            float32 (..., 3), of the same kind.
        """
        if self.reverse_channels:
            images = images[..., ::-1]
        if self.is_uniform:
            return images * np.float32(self.scale[0]) + np.float32(self.offset[0])
        return images * np.asarray(self.scale, np.float32) + np.asarray(self.offset, np.float32)

    def to_json(self) -> dict[str, Any]:
        """Plain data for run.json; `ChannelAffine(**data)` makes it again."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}


IDENTITY = ChannelAffine()
