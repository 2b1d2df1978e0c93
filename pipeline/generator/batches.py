"""The images of one flow: finished batches from sample indices and draws, in a graph or eagerly."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline.augment import IDENTITY, ChannelAffine
from pipeline.augment.host import HostWarp
from pipeline.errors import InputError
from pipeline.generator.batch_draws import COLUMNS, NEUTRAL, as_parameters, draw_batch, kernel_rows
from pipeline.generator.batch_kernel import KernelSpec, augment_batch, host_warp, standardize_batch, why_not_fused
from pipeline.generator.recognise import recognise
from pipeline.generator.settings import GeneratorSettings, make_settings
from pipeline.generator.standardize import Statistics, standardize, warn_of_missing
from pipeline.generator.transforms import apply_transform
from pipeline.loading import ArrayImages, FileImages, KerasImages, at_full_batch

__all__ = ["BatchMaker", "FlowLook", "Unchanged", "kernel_spec", "own_array"]

Images = FileImages | ArrayImages | KerasImages
OneImage = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, kw_only=True, eq=False)
class FlowLook:
    """What a flow's batches look like.

    Attributes:
        settings: of the generator.
        statistics: of its `fit`.
        augments: whether images are changed at random.
        value_range: lowest and highest level that brightness leaves.
        data_format: `channels_last` or `channels_first`, of the finished batch.
        dtype: of the finished batch.
        one_image: a person's own transform and standardizing in place of ours (a subclass's methods), or None.
    """

    settings: GeneratorSettings
    statistics: Statistics
    augments: bool
    value_range: tuple[float, float]
    data_format: str
    dtype: str
    one_image: OneImage | None = None

    def is_like(self, other: FlowLook) -> bool:
        """Whether both make the same of an image."""
        mine = (self.settings, self.augments, self.value_range)
        return mine == (other.settings, other.augments, other.value_range) and self.statistics.is_same(other.statistics)

    @property
    def channels_first(self) -> bool:
        """Whether the finished batch is (N, C, H, W)."""
        return self.data_format == "channels_first"


class Unchanged:
    """Stands where no generator was given: images as they are."""

    def __init__(self, data_format: str) -> None:
        self.settings = make_settings(data_format=data_format)

    def augments(self, subset: str | None) -> bool:
        """Never."""
        return False

    def look(self, **shape: Any) -> FlowLook:
        """No change at all."""
        return FlowLook(settings=self.settings, statistics=Statistics(), **shape)


class BatchMaker:
    """Makes finished batches of one flow.

    Args:
        images: where pixels come from, (N, H, W, C).
        look: what is done to them.
        seed: of the draws.
        count: number of samples.
        batch_size: images a batch.
    """

    def __init__(self, images: Images, look: FlowLook, *, seed: int, count: int, batch_size: int) -> None:
        self.look = look
        self._images = images
        self._seed = seed
        self._count = count
        self._batch_size = max(1, min(batch_size, count))
        self.is_fused = look.one_image is None and why_not_fused(look.settings, images.shape[-1]) is None
        self._affine = _recognised(look, images.shape[-1])
        self._finish = self._fused() if self.is_fused else self._in_python
        self._drawn: tuple[int, np.ndarray] | None = None
        shape, dtype = ((None, 8), tf.float32) if self.is_fused else ((None, len(COLUMNS)), tf.float64)
        self.draws_spec = tf.TensorSpec(shape, dtype)

    def parameters(self, epoch: int, indices: np.ndarray) -> np.ndarray:
        """What is done to each image: float64 (N, 10), the columns of `batch_draws.COLUMNS`."""
        drawn = self._drawn  # a tuple is replaced whole, so that threads see one epoch or the other
        if drawn is None or drawn[0] != epoch:
            drawn = self._drawn = epoch, self._draw(epoch)
        return drawn[1][indices]

    def draws(self, epoch: int, indices: np.ndarray) -> np.ndarray:
        """What `make` needs beside the indices, as `draws_spec` says."""
        parameters = self.parameters(epoch, indices)
        return kernel_rows(parameters, self.look.settings, *self._images.shape[:2]) if self.is_fused else parameters

    def load(self, indices: tf.Tensor) -> tf.Tensor:
        """Pixels as they come from the file, the cache or the array: int64 (N,) to (N, H, W, C)."""
        return self._images.load(indices)

    def finish(self, images: tf.Tensor, draws: tf.Tensor) -> tf.Tensor:
        """Augmented and standardized: (N, H, W, C) to the flow's data format and dtype."""
        finished = self._finish(images, draws)
        shape = self._images.shape
        return tf.ensure_shape(finished, (None, *((shape[2], *shape[:2]) if self.look.channels_first else shape)))

    def make(self, indices: tf.Tensor, draws: tf.Tensor) -> tf.Tensor:
        """A whole batch, in a graph."""
        return self.finish(self.load(indices), draws)

    def batch(self, epoch: int, indices: np.ndarray) -> np.ndarray:
        """A whole batch at once, on all cores.

        Args:
            epoch: from 1, for the draws.
            indices: int64 (N,), N at least 1.

        Returns:
            (N, H, W, C) or (N, C, H, W) of the flow's dtype, the caller's own.
        """
        with tf.device("/CPU:0"):
            images = self._traced(tf.constant(indices, tf.int64), tf.constant(self.draws(epoch, indices)))
        return own_array(images)

    def batch_in_python(self, epoch: int, indices: np.ndarray) -> np.ndarray:
        """The same as `batch` without TensorFlow, whose threads do not survive a fork."""
        return self._in_numpy(self._images.load_in_python(indices), self.parameters(epoch, indices))

    @functools.cached_property
    def _traced(self) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
        # concrete: TensorFlow takes the functions of all flows for one, and warns of the sixth as of a retracing
        signature = (tf.TensorSpec((None,), tf.int64), self.draws_spec)
        return tf.function(self.make).get_concrete_function(*signature)

    def _draw(self, epoch: int) -> np.ndarray:
        shape, settings = self._images.shape, self.look.settings
        if not self.look.augments:
            return np.tile(np.array(NEUTRAL), (self._count, 1))
        image_shape = (shape[2], *shape[:2]) if settings.data_format == "channels_first" else shape
        return draw_batch(settings, seed=self._seed, epoch=epoch, count=self._count, image_shape=image_shape)

    @property
    def is_compiled(self) -> bool:
        """Whether no part of the pixel work is left to Python."""
        return self.is_fused and (self.look.settings.preprocessing_function is None or self._affine is not None)

    def device_function(self) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
        """The whole pixel work for a compiled train step: (images, rows float32 (N, 8)) to the finished batch.

        Raises:
            InputError: if a part of it can run in Python only.
        """
        if not self.is_fused:
            raise InputError(f"this flow cannot run in the train step: {self._why_in_python()}")
        if not self.is_compiled:
            function = self.look.settings.preprocessing_function
            raise InputError(
                f"this flow cannot run in the train step: preprocessing_function={function!r} is Python; "
                "use one of keras.applications, or put it into the model as a layer"
            )
        return self._finishing(self._kernel)

    def _why_in_python(self) -> str:
        if self.look.one_image is not None:
            return "its generator is of a class with methods of its own"
        return why_not_fused(self.look.settings, self._images.shape[-1]) or ""

    @property
    def _kernel(self) -> KernelSpec | None:
        return kernel_spec(self.look) if self.look.augments else None

    def _fused(self) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
        warn_of_missing(self.look.settings, self.look.statistics)
        if self.is_compiled:
            warp = self._host_warp()
            if warp is not None:
                return warp.in_graph
            return at_full_batch(self._finishing(self._kernel), self._batch_size)
        # a person's own function stands between augmentation and the rest
        last = at_full_batch(self._finishing(None), self._batch_size)
        if self._kernel is None:
            return lambda images, rows: last(self._preprocessed(tf.cast(images, tf.float32)), rows)
        first = at_full_batch(augment_batch(self._kernel), self._batch_size)
        return lambda images, rows: last(self._preprocessed(first(images, rows)), rows)

    def _host_warp(self) -> HostWarp | None:
        """What does the whole pixel work on the host in a third of the time; None where it does not cover it."""
        look, images = self.look, self._images
        is_plain = not look.channels_first and look.dtype == "float32" and images.dtype == np.uint8
        if self._kernel is None or not is_plain or not HostWarp.takes(*images.shape):
            return None
        return host_warp(self._kernel, look.settings, self._affine or IDENTITY)

    def _finishing(self, kernel: KernelSpec | None) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
        """One XLA function: (images, rows) through the kernel, standardized, in the flow's data format and dtype."""
        look = self.look
        # the function itself is in `affine` or was called already
        settings = replace(look.settings, preprocessing_function=None)
        how = (kernel, settings, self._affine, look.channels_first, look.dtype)
        if look.statistics.is_same(Statistics()):
            return _shared_finishing(*how)
        return _finishing_function(*how, look.statistics)

    def _preprocessed(self, images: tf.Tensor) -> tf.Tensor:
        """Through a person's own function, image by image, in the layout that they chose."""
        function, settings = self.look.settings.preprocessing_function, self.look.settings
        is_first = settings.data_format == "channels_first"

        def run(batch: np.ndarray) -> np.ndarray:
            given = np.array(batch.transpose(0, 3, 1, 2) if is_first else batch, settings.dtype)
            done = np.stack([function(image) for image in given]).astype(np.float32)
            return done.transpose(0, 2, 3, 1) if is_first else done

        return tf.ensure_shape(tf.numpy_function(run, [images], tf.float32), images.shape)

    def _in_python(self, images: tf.Tensor, draws: tf.Tensor) -> tf.Tensor:
        """What the kernel does not cover: one image after the other, in float64 inside."""
        return tf.numpy_function(self._in_numpy, [images, draws], self.look.dtype)

    def _in_numpy(self, images: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """The same as `finish` without TensorFlow: (N, H, W, C) and float64 (N, 10)."""
        look = self.look
        is_first = look.settings.data_format == "channels_first"
        finished = [
            self._one_in_python(image.transpose(2, 0, 1) if is_first else image, row)
            for image, row in zip(images, parameters, strict=True)
        ]
        batch = np.stack(finished).astype(look.dtype)
        if is_first == look.channels_first:
            return batch
        return batch.transpose(0, 2, 3, 1) if is_first else batch.transpose(0, 3, 1, 2)

    def _one_in_python(self, image: np.ndarray, row: np.ndarray) -> np.ndarray:
        look = self.look
        image = np.array(image, look.settings.dtype)
        if look.one_image is not None:
            return look.one_image(image)
        if look.augments:
            parameters = as_parameters(row, look.settings)
            image = apply_transform(image, parameters, look.settings, value_range=look.value_range)
        return standardize(image, look.settings, look.statistics)


def own_array(tensor: tf.Tensor) -> np.ndarray:
    """A batch that nobody else holds as a numpy array over the same memory, which the caller may change.

    A copy would cost a quarter of a cached batch, most of it for the pages of its memory.
    """
    view = np.asarray(memoryview(tensor))
    return np.asarray(_Memory(tensor, {**view.__array_interface__, "data": (view.ctypes.data, False)}))


class _Memory:
    """Keeps a tensor alive for as long as an array stands on its memory."""

    def __init__(self, tensor: tf.Tensor, interface: dict[str, Any]) -> None:
        self._tensor = tensor
        self.__array_interface__ = interface


def _recognised(look: FlowLook, channels: int) -> ChannelAffine | None:
    """The preprocessing function as data, if it is one of keras.applications that takes these images."""
    function = look.settings.preprocessing_function
    return recognise(function, channels) if function and look.settings.data_format == "channels_last" else None


# compiled once a process for each kind of work: a second flow with the same recipe starts at once
@functools.lru_cache(maxsize=64)
def _shared_finishing(
    kernel: KernelSpec | None,
    settings: GeneratorSettings,
    affine: ChannelAffine | None,
    channels_first: bool,
    dtype: str,
) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    return _finishing_function(kernel, settings, affine, channels_first, dtype, Statistics())


def _finishing_function(
    kernel: KernelSpec | None,
    settings: GeneratorSettings,
    affine: ChannelAffine | None,
    channels_first: bool,
    dtype: str,
    statistics: Statistics,
) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    standardized = standardize_batch(settings, statistics, affine)

    def finish(images: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
        images = tf.cast(images, tf.float32) if kernel is None else augment_batch(kernel)(images, rows)
        images = standardized(images)
        return tf.cast(tf.transpose(images, (0, 3, 1, 2)) if channels_first else images, dtype)

    return tf.function(finish, jit_compile=True)


def kernel_spec(look: FlowLook) -> KernelSpec:
    """What the kernel has to do for a flow."""
    settings = look.settings
    brightness = "off" if settings.brightness_range is None else "exact" if settings.keras_exact else "clip"
    return KernelSpec(
        order=settings.interpolation_order,
        fill_mode=settings.fill_mode,
        cval=settings.cval,
        moves_pixels=settings.moves_pixels,
        channel_shift=settings.channel_shift_range != 0,
        brightness=brightness,
        value_range=look.value_range,
    )
