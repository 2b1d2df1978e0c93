"""The pixel work of a batch on the host's cores, for what most people ask: colour, bilinear, one pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from pipeline.allocation import aligned_empty
from pipeline.augment.preprocess import IDENTITY, ChannelAffine
from pipeline.threads import over_cores

__all__ = ["HostWarp"]

_SMALLEST_SIDE = 2  # two taps of their own


@dataclass(frozen=True, kw_only=True)
class HostWarp:
    """A bilinear warp, a brightness and an affine map a channel: the same as one XLA function, within float32 rounding.

    Attributes:
        fill_mode: one of `FILL_MODES`.
        cval: value of the outside for `constant`.
        value_range: lowest and highest level after the brightness; None for no brightness.
        affine: what follows.
    """

    fill_mode: str = "nearest"
    cval: float = 0.0
    value_range: tuple[float, float] | None = (0.0, 255.0)
    affine: ChannelAffine = IDENTITY

    @staticmethod
    def takes(height: int, width: int, channels: int) -> bool:
        """Whether images of this shape can be warped."""
        return channels == 3 and min(height, width) >= _SMALLEST_SIDE

    def in_graph(self, images: tf.Tensor, draws: tf.Tensor) -> tf.Tensor:
        """In a graph: uint8 (N, H, W, 3) and float32 (N, 8), the columns of `DRAW_COLUMNS`, to float32 (N, H, W, 3)."""
        finished = tf.numpy_function(self, [images, draws], tf.float32, stateful=False)
        return tf.ensure_shape(finished, images.shape)

    def __call__(self, images: np.ndarray, draws: np.ndarray) -> np.ndarray:
        """The same in numpy, over all cores."""
        # numba takes half a second to import
        from pipeline.augment.host_loops import FILL_CODES, warp_images

        images = np.ascontiguousarray(images)
        low, high = self.value_range or (-np.inf, np.inf)
        if self.value_range is None:
            draws = np.concatenate([draws[:, :7], np.ones_like(draws[:, 7:])], 1)
        finished = aligned_empty(images.shape, np.float32)
        how = (FILL_CODES[self.fill_mode], self.cval, low, high)
        scale, offset = np.array(self.affine.scale, np.float32), np.array(self.affine.offset, np.float32)

        def work(start: int, stop: int) -> None:
            warp_images(images, draws, *how, scale, offset, self.affine.reverse_channels, start, stop, finished)

        over_cores(work, len(images))
        return finished
