"""The pixel work as one function of (images, draws): the one place where the order of the changes is written."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from pipeline.augment.colour import BRIGHTNESS_RANGE, scale_brightness, shift_channels
from pipeline.augment.host import HostWarp
from pipeline.augment.preprocess import ChannelAffine
from pipeline.augment.resample import resample_bilinear
from pipeline.augment.spec import AugmentRanges
from pipeline.errors import MissingPackageError

__all__ = ["RESAMPLERS", "augment_function", "host_augment_function", "preprocess_function"]

AugmentFunction = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]


# compiled once a process for each set of arguments: a second feed with the same recipe starts at once
@functools.cache
def augment_function(ranges: AugmentRanges, preprocess: ChannelAffine, *, resampler: str = "fused") -> AugmentFunction:
    """Makes the function that augments and preprocesses a batch.

    Args:
        ranges: which changes there are (the amounts come with the batch).
        preprocess: what the backbone wants.
        resampler: `fused`, one XLA function on host or device, or `addons`, `tfa.image.transform`.

    Returns:
        A deterministic function of (images uint8 (N, H, W, 3), draws float32 (N, 8)) that gives float32 (N, H, W, 3),
        usable eagerly, in a tf.data map and inside a compiled train step.

    Raises:
        MissingPackageError: for `addons` where tensorflow-addons cannot be imported.
        ValueError: for an unknown resampler.
    """
    if resampler not in RESAMPLERS:
        raise ValueError(f"resampler must be one of {', '.join(RESAMPLERS)}, not {resampler!r}")
    resample, compiled = RESAMPLERS[resampler](ranges)

    def augment(images: tf.Tensor, draws: tf.Tensor) -> tf.Tensor:
        values = resample(images, draws)  # flip, rotation, shear, zoom and shifts in one pass
        if ranges.channel_shift:
            values = shift_channels(values, draws[:, 6])
        if ranges.brightness is not None:
            values = scale_brightness(values, draws[:, 7])
        return preprocess.apply(values)  # last, as in Keras: augmentation works on 0 to 255

    # traced for each image size: relaxed shapes would take the static height and width away
    return tf.function(augment, jit_compile=compiled)


def host_augment_function(
    ranges: AugmentRanges, preprocess: ChannelAffine, *, resampler: str = "fused", height: int, width: int
) -> AugmentFunction | None:
    """The same for the host alone, in a third of the time, where it covers what is asked.

    Returns:
        As `augment_function`, for a tf.data map only and at any batch size, equal within float32 rounding; None for
        the channel shift, which needs each image's own range, for another resampler, and for images of one pixel a
        side.
    """
    if resampler != "fused" or ranges.channel_shift or not HostWarp.takes(height, width, channels=3):
        return None
    value_range = None if ranges.brightness is None else BRIGHTNESS_RANGE
    warp = HostWarp(fill_mode=ranges.fill_mode, cval=ranges.cval, value_range=value_range, affine=preprocess)
    return warp.in_graph


@functools.cache
def preprocess_function(preprocess: ChannelAffine) -> Callable[[tf.Tensor], tf.Tensor]:
    """Makes the function for images that are not augmented: uint8 (N, H, W, 3) to float32 (N, H, W, 3)."""

    @tf.function(jit_compile=True)
    def prepare(images: tf.Tensor) -> tf.Tensor:
        return preprocess.apply(tf.cast(images, tf.float32))

    return prepare


def _fused(ranges: AugmentRanges) -> tuple[AugmentFunction, bool]:
    def resample(images: tf.Tensor, draws: tf.Tensor) -> tf.Tensor:
        return resample_bilinear(images, draws, fill_mode=ranges.fill_mode, cval=ranges.cval)

    return resample, True


def _addons(ranges: AugmentRanges) -> tuple[AugmentFunction, bool]:
    transform = _import_addons().image.transform

    def resample(images: tf.Tensor, draws: tf.Tensor) -> tf.Tensor:
        # near the edges `constant` blends with cval and `wrap` has period n here: TensorFlow's own rules
        maps = _about_corner(draws, images.shape[1], images.shape[2])
        return transform(tf.cast(images, tf.float32), maps, "bilinear", ranges.fill_mode, None, ranges.cval)

    return resample, False  # its op has no XLA kernel


def _about_corner(draws: tf.Tensor, height: int, width: int) -> tf.Tensor:
    """Matrices about the top left pixel, float32 (N, 8), the last two (perspective) zero."""
    x, y = (width - 1) / 2, (height - 1) / 2
    a, b, c, d, e, f = (draws[:, k] for k in range(6))
    zero = tf.zeros_like(a)
    return tf.stack([a, b, c + x - a * x - b * y, d, e, f + y - d * x - e * y, zero, zero], 1)


def _import_addons() -> Any:
    try:
        return importlib.import_module("tensorflow_addons")
    except Exception as error:  # on a newer TensorFlow it is installed but fails inside Keras's internals
        raise MissingPackageError(
            f"--resampler addons: tensorflow-addons cannot be imported ({error}); it works with TensorFlow 2.15 on "
            "Python 3.10 or 3.11: pip install 'feedline[addons]', or pass --resampler fused"
        ) from error


RESAMPLERS: dict[str, Callable[[AugmentRanges], tuple[AugmentFunction, bool]]] = {"fused": _fused, "addons": _addons}
