"""The pixel work of a generator on whole batches, as TensorFlow functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import tensorflow as tf

from pipeline.augment import FILL_MODES, ChannelAffine
from pipeline.augment.colour import scale_brightness, scale_brightness_exact, shift_channels
from pipeline.augment.host import HostWarp
from pipeline.augment.resample import resample_bilinear, resample_nearest
from pipeline.generator.settings import KNOWN_CHANNELS, GeneratorSettings
from pipeline.generator.standardize import EPSILON, Statistics

__all__ = ["KernelSpec", "augment_batch", "host_warp", "standardize_batch", "why_not_fused"]

_RESAMPLE = {0: resample_nearest, 1: resample_bilinear}


@dataclass(frozen=True, kw_only=True)
class KernelSpec:
    """Which changes the kernel makes; their amounts come with the batch.

    Attributes:
        order: of the interpolation, 0 or 1.
        fill_mode: one of `FILL_MODES`.
        cval: the value outside for `constant`.
        moves_pixels: whether there is a warp at all.
        channel_shift: whether there is a channel shift.
        brightness: none, one that clips, or Keras's, which goes through 8 bits.
        value_range: lowest and highest level that the clipping brightness leaves.
    """

    order: Literal[0, 1] = 1
    fill_mode: str = "nearest"
    cval: float = 0.0
    moves_pixels: bool = True
    channel_shift: bool = False
    brightness: Literal["off", "clip", "exact"] = "off"
    value_range: tuple[float, float] = (0.0, 255.0)


def why_not_fused(settings: GeneratorSettings, channels: int) -> str | None:
    """Why the kernel cannot do what the settings ask, in words that follow "because"; None if it can."""
    if settings.interpolation_order not in _RESAMPLE and settings.moves_pixels:
        return f"interpolation_order={settings.interpolation_order} is a spline that only SciPy has"
    if settings.fill_mode not in FILL_MODES and settings.moves_pixels:
        return f"fill_mode={settings.fill_mode!r} is one that only SciPy has"
    if settings.keras_exact and settings.brightness_range is not None:
        if settings.data_format == "channels_first":
            return "keras_exact brightness takes channels_first images for channels_last"
        if channels not in KNOWN_CHANNELS:
            return f"keras_exact brightness goes through Pillow, which has no images of {channels} channels"
    return None


# compiled once a process for each kind of work, as the feed's own augmentation
@functools.cache
def augment_batch(spec: KernelSpec) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """Makes the function that changes a batch.

    Args:
        spec: what to do.

    Returns:
        A deterministic function of (images uint8 or float32 (N, H, W, C), rows float32 (N, 8) as `kernel_rows` makes
        them) that gives float32 (N, H, W, C); one XLA function, usable eagerly, in a tf.data map and inside a compiled
        train step.
    """

    def augment(images: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
        if spec.moves_pixels:
            # in Keras the flips follow the channel shift, which does not mind where a pixel stands
            values = _RESAMPLE[spec.order](images, rows, fill_mode=spec.fill_mode, cval=spec.cval)
        else:
            values = tf.cast(images, tf.float32)
        if spec.channel_shift:
            values = shift_channels(values, rows[:, 6])
        if spec.brightness == "clip":
            values = scale_brightness(values, rows[:, 7], spec.value_range)
        elif spec.brightness == "exact":
            values = scale_brightness_exact(values, rows[:, 7])
        return values

    return tf.function(augment, jit_compile=True)


def host_warp(spec: KernelSpec, settings: GeneratorSettings, affine: ChannelAffine) -> HostWarp | None:
    """`augment_batch` and `standardize_batch` in one loop over the pixels of uint8 images of three channels.

    Args:
        spec: the random changes.
        settings: what follows.
        affine: the preprocessing function as data.

    Returns:
        None where it does not cover what is asked.
    """
    normalises = (
        settings.samplewise_center
        or settings.samplewise_std_normalization
        or settings.featurewise_center
        or settings.featurewise_std_normalization
        or settings.zca_whitening
    )
    if normalises or spec.order != 1 or not spec.moves_pixels or spec.channel_shift or spec.brightness == "exact":
        return None
    return HostWarp(
        fill_mode=spec.fill_mode,
        cval=spec.cval,
        value_range=spec.value_range if spec.brightness == "clip" else None,
        affine=affine.scaled(settings.rescale or 1.0),
    )


def standardize_batch(
    settings: GeneratorSettings, statistics: Statistics, affine: ChannelAffine | None
) -> Callable[[tf.Tensor], tf.Tensor]:
    """Makes the function that normalises a batch, each image by itself, in Keras's order.

    Args:
        settings: what to do; the preprocessing function comes as `affine`.
        statistics: of `fit`; what is not there yet is left out.
        affine: the preprocessing function as data, or None.

    Returns:
        A plain function, float32 (N, H, W, C) to float32 (N, H, W, C), to be called inside a `tf.function`.
    """
    mean, std = (_for_a_batch(value, settings.data_format) for value in (statistics.mean, statistics.std))
    # made here, not inside: as a tensor that is captured it does not become part of the graph, which ends at 2 GiB
    matrix = statistics.zca_whitening_matrix
    whitening = None if matrix is None else tf.constant(matrix, tf.float32)

    def standardized(images: tf.Tensor) -> tf.Tensor:
        if affine is not None:
            images = affine.apply(images)
        if settings.rescale:
            images = images * tf.cast(settings.rescale, tf.float32)
        if settings.samplewise_center:
            images = images - tf.reduce_mean(images, [1, 2, 3], keepdims=True)
        if settings.samplewise_std_normalization:
            images = images / (tf.math.reduce_std(images, [1, 2, 3], keepdims=True) + EPSILON)
        if settings.featurewise_center and mean is not None:
            images = images - mean
        if settings.featurewise_std_normalization and std is not None:
            images = images / (std + EPSILON)
        if settings.zca_whitening and whitening is not None:
            images = _whitened(images, whitening, settings.data_format)
        return images

    return standardized


def _for_a_batch(value: object, data_format: str) -> tf.Tensor | None:
    """A statistic of one image in the generator's layout as something that (N, H, W, C) can be combined with."""
    if value is None:
        return None
    value = tf.constant(value, tf.float32)
    return tf.transpose(value, (1, 2, 0)) if data_format == "channels_first" and value.shape.rank == 3 else value


def _whitened(images: tf.Tensor, matrix: tf.Tensor, data_format: str) -> tf.Tensor:
    # the matrix was learnt in the generator's own layout
    given = tf.transpose(images, (0, 3, 1, 2)) if data_format == "channels_first" else images
    flat = tf.reshape(given, (-1, matrix.shape[0]))
    done = tf.reshape(flat @ matrix, tf.shape(given))
    return tf.transpose(done, (0, 2, 3, 1)) if data_format == "channels_first" else done
