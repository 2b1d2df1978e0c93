"""Batches of pixels by sample index, from files through the cache or from an array."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from pipeline.cache import SampleCache
from pipeline.decode import decode_image, decode_whole_in_python
from pipeline.decode_config import DecodeConfig
from pipeline.iterator_exit import release_iterators_at_exit
from pipeline.threads import available_cores

__all__ = [
    "AUTOMATIC_PREFETCH_BATCHES",
    "ArrayImages",
    "FileImages",
    "KerasImages",
    "at_full_batch",
    "automatic_parallel_images",
    "finished",
    "stage_parallelism",
]

AUTOMATIC_PREFETCH_BATCHES = 2

# Batches under way in a stage: the second hides the tail of the first; within a batch the images are parallel.
_BATCHES_UNDER_WAY = 2


class FileImages:
    """Decoded files.

    Args:
        paths: one file a sample.
        decode: size, filter, colours.
        parallel_images: images of a batch that are read and decoded at once.
        cache: keeps files or decoded pixels from the first visit on; None reads and decodes anew each time.
    """

    def __init__(
        self, paths: Sequence[str], decode: DecodeConfig, *, parallel_images: int, cache: SampleCache | None
    ) -> None:
        self.shape = (decode.height, decode.width, decode.channels)
        self.dtype = np.dtype(np.uint8)
        self._paths = tf.constant([os.fsencode(path) for path in paths], tf.string)  # names need not be text
        self._paths_in_python = paths
        self._decode = decode
        self._parallel_images = parallel_images
        self._cache = cache
        self._image = tf.TensorSpec(self.shape, tf.uint8)

    def load(self, indices: tf.Tensor) -> tf.Tensor:
        """The pixels of the samples, in a graph or eagerly: int64 (N,) to uint8 (N, H, W, C)."""
        if self._cache is None:
            return self._read_and_decode(indices)
        if self._cache.holds_files:
            contents = self._from_cache(self._cache, indices, self._read, tf.TensorSpec((), tf.string))
            return self._each(lambda content: decode_image(content, self._decode), contents, self._image)
        return self._from_cache(self._cache, indices, self._read_and_decode, self._image)

    def load_in_python(self, indices: np.ndarray) -> np.ndarray:
        """The same by Pillow alone, for processes in which TensorFlow must not run."""
        paths = [self._paths_in_python[index] for index in indices]
        return np.stack([decode_whole_in_python(Path(path).read_bytes(), self._decode) for path in paths])

    def _from_cache(
        self, cache: SampleCache, indices: tf.Tensor, make: Callable[[tf.Tensor], tf.Tensor], one: tf.TensorSpec
    ) -> tf.Tensor:
        missing = tf.ensure_shape(tf.numpy_function(cache.missing, [indices], tf.int64), [None])
        made = make(tf.gather(indices, missing))
        merged = tf.numpy_function(cache.merge, [indices, missing, made], one.dtype)
        return tf.ensure_shape(merged, (None, *one.shape))

    def _read(self, indices: tf.Tensor) -> tf.Tensor:
        return self._each(lambda index: tf.io.read_file(self._paths[index]), indices, tf.TensorSpec((), tf.string))

    def _read_and_decode(self, indices: tf.Tensor) -> tf.Tensor:
        def read_and_decode(index: tf.Tensor) -> tf.Tensor:
            return decode_image(tf.io.read_file(self._paths[index]), self._decode)

        return self._each(read_and_decode, indices, self._image)

    def _each(self, function: Callable[[tf.Tensor], tf.Tensor], values: tf.Tensor, one: tf.TensorSpec) -> tf.Tensor:
        return tf.map_fn(function, values, fn_output_signature=one, parallel_iterations=self._parallel_images)


class ArrayImages:
    """Images that are in memory already.

    Args:
        images: any real dtype (count, H, W, C).
    """

    def __init__(self, images: np.ndarray) -> None:
        self.shape = images.shape[1:]
        self.dtype = images.dtype
        self._images = images

    def load(self, indices: tf.Tensor) -> tf.Tensor:
        """The samples, in a graph or eagerly: int64 (N,) to (N, H, W, C) of the array's dtype."""
        # not a constant of the graph, which would hold the array a second time
        images = tf.numpy_function(self.load_in_python, [indices], self._images.dtype)
        return tf.ensure_shape(images, (None, *self.shape))

    def load_in_python(self, indices: np.ndarray) -> np.ndarray:
        """The same without TensorFlow."""
        return self._images[indices]


class KerasImages:
    """Files as Keras's `load_img` reads them, float32: for 16-bit greys, which are more than a uint8 holds.

    Args:
        paths: one file a sample.
        decode: size, filter, colours.
    """

    def __init__(self, paths: Sequence[str], decode: DecodeConfig) -> None:
        self.shape = (decode.height, decode.width, decode.channels)
        self.dtype = np.dtype(np.float32)
        self._paths = paths
        self._decode = decode

    def load(self, indices: tf.Tensor) -> tf.Tensor:
        """The pixels of the samples, in a graph or eagerly: int64 (N,) to float32 (N, H, W, C)."""
        images = tf.numpy_function(self.load_in_python, [indices], tf.float32)
        return tf.ensure_shape(images, (None, *self.shape))

    def load_in_python(self, indices: np.ndarray) -> np.ndarray:
        """The same without TensorFlow."""
        return np.stack([self._load(self._paths[index]) for index in indices])

    def _load(self, path: str) -> np.ndarray:
        decode = self._decode
        image = tf.keras.utils.load_img(
            path,
            color_mode=decode.color_mode,
            target_size=(decode.height, decode.width),
            interpolation=decode.interpolation,
            keep_aspect_ratio=decode.keep_aspect_ratio,
        )
        return tf.keras.utils.img_to_array(image, data_format="channels_last", dtype="float32")


def automatic_parallel_images() -> int:
    """Images to read and decode at once where nobody said: four times the cores that the process may use."""
    return 4 * available_cores()


def stage_parallelism(is_parallel: bool) -> int | None:
    """How many batches a `map` makes at once; None makes each only when it is asked for."""
    return _BATCHES_UNDER_WAY if is_parallel else None


def finished(batches: tf.data.Dataset, prefetch_batches: int) -> tf.data.Dataset:
    """The dataset with its batches held ready and every choice of tf.data's own switched off."""
    release_iterators_at_exit()
    options = tf.data.Options()
    options.deterministic = True
    # every degree of parallelism is set by us; tuning would also add a prefetch that was switched off
    options.autotune.enabled = False
    # nor is there anything to fuse; searching for it takes a tenth of a second at each start of an iterator
    options.experimental_optimization.apply_default_optimizations = False
    options.experimental_optimization.inject_prefetch = False
    return (batches.prefetch(prefetch_batches) if prefetch_batches else batches).with_options(options)


def at_full_batch(function: Callable[..., tf.Tensor], batch_size: int) -> Callable[..., tf.Tensor]:
    """Runs an XLA function at one batch size only, so that an epoch's last batch does not compile it again."""

    def run(*tensors: tf.Tensor) -> tf.Tensor:
        count = tf.shape(tensors[0])[0]

        def pad(tensor: tf.Tensor) -> tf.Tensor:
            rest = [[0, batch_size - count]] + [[0, 0]] * (tensor.shape.rank - 1)
            return tf.pad(tensor, rest)

        full = [tf.cond(count < batch_size, lambda t=tensor: pad(t), lambda t=tensor: t) for tensor in tensors]
        full = [tf.ensure_shape(tensor, (batch_size, *tensor.shape[1:])) for tensor in full]
        return function(*full)[:count]

    return run
