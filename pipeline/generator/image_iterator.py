"""Batches of images: the iterator over files or arrays on top of the tf.data pipeline."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from collections.abc import Callable
from collections.abc import Iterator as IteratorType
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import tensorflow as tf

from pipeline.allocation import keep_freed_memory
from pipeline.cache import CACHE_MODES, CacheMode
from pipeline.errors import InputError
from pipeline.generator.batch_draws import as_parameters
from pipeline.generator.batches import BatchMaker, FlowLook, Images, own_array
from pipeline.generator.functions import array_to_img
from pipeline.generator.iterators import Iterator, ReadAhead
from pipeline.loading import AUTOMATIC_PREFETCH_BATCHES, automatic_parallel_images, finished, stage_parallelism
from pipeline.steps import StepPlan

__all__ = ["Beside", "FlowConfig", "ImageIterator", "check_subset", "say"]

# further than any training goes
_ENDLESS_STEPS = 2**62
_ENDLESS_EPOCHS = range(1, _ENDLESS_STEPS)
_SAVED_HASHES = 10**7


@dataclass(frozen=True, kw_only=True)
class FlowConfig:
    """How fast a flow may work: what Keras's class does not have.

    Attributes:
        cache: `off` decodes every file in every epoch, `ram` keeps decoded pixels in memory, as far as they fit; the
            other modes are those of `CacheConfig`.
        prefetch: batches that are made ahead; 0 makes each only when it is asked for, `auto` is 2.
        parallel: images that are read and decoded at once; `auto` is four times the usable cores.
        decode: `exact` for Pillow's pixels, `fast` for a few grey levels off.
    """

    cache: CacheMode = "off"
    prefetch: int | Literal["auto"] = "auto"
    parallel: int | Literal["auto"] = "auto"
    decode: Literal["exact", "fast"] = "exact"

    def __post_init__(self) -> None:
        problems = [
            f"{name}={value!r}: choose one of {', '.join(map(repr, choices))}"
            for name, value, choices in (
                ("cache", self.cache, CACHE_MODES),
                ("decode", self.decode, ("exact", "fast")),
            )
            if value not in choices
        ]
        problems += [
            f"{name}={value!r}: give 'auto' or a whole number of {least} or more"
            for name, value, least in (("prefetch", self.prefetch, 0), ("parallel", self.parallel, 1))
            if value != "auto" and not (type(value) is int and value >= least)
        ]
        if problems:
            raise ValueError("; ".join(problems))

    @property
    def prefetch_batches(self) -> int:
        """Batches made ahead."""
        return AUTOMATIC_PREFETCH_BATCHES if self.prefetch == "auto" else self.prefetch

    @property
    def parallel_images(self) -> int:
        """Images decoded at once."""
        return automatic_parallel_images() if self.parallel == "auto" else self.parallel


def check_subset(subset: str) -> None:
    """Refuses any other name than Keras's two.

    Raises:
        ValueError: if it is one.
    """
    if subset not in ("training", "validation"):
        raise ValueError(f'Invalid subset name: {subset}; expected "training" or "validation".')


def say(message: str) -> None:
    """Prints what was found, as Keras's class does; silent where Keras's own messages are switched off."""
    if tf.keras.utils.is_interactive_logging_enabled():
        sys.stdout.write(f"{message}\n")


@dataclass(frozen=True, kw_only=True, eq=False)
class Beside:
    """What stands beside the images of a batch.

    Attributes:
        inputs: further inputs of the model, an array each.
        labels: an array, a list of arrays for several outputs, or None.
        weights: float (N,), or None.
        are_labels_the_images: the labels are a copy of the images.
    """

    inputs: tuple[np.ndarray, ...] = ()
    labels: np.ndarray | list[np.ndarray] | None = None
    weights: np.ndarray | None = None
    are_labels_the_images: bool = False

    def arrays(self) -> list[np.ndarray]:
        """All arrays, inputs first, weights last."""
        labels = self.labels if isinstance(self.labels, list) else [self.labels]
        return [array for array in (*self.inputs, *labels, self.weights) if array is not None]

    def packed(self, images: tf.Tensor, tensors: list[tf.Tensor]) -> Any:
        """A dataset's batch of the images and of tensors in the order of `arrays`."""
        rest = list(tensors)
        inputs = (images, *(rest.pop(0) for _ in self.inputs)) if self.inputs else images
        if self.are_labels_the_images:
            labels = images
        elif isinstance(self.labels, list):
            labels = tuple(rest.pop(0) for _ in self.labels)
        elif self.labels is None:
            return inputs
        else:
            labels = rest.pop(0)
        return (inputs, labels, rest.pop(0)) if self.weights is not None else (inputs, labels)


class ImageIterator(Iterator):
    """What the iterators over directories, dataframes and arrays share.

    A subclass calls `_start` last in its constructor, and says in `_beside` what stands beside the images. What Keras's
    class has as attributes (`save_to_dir`, `data_format`, `dtype`, `image_shape`) is set by then.
    """

    def _start(
        self,
        images: Images,
        look: Callable[[], FlowLook],
        flow: FlowConfig,
        *,
        n: int,
        batch_size: int,
        shuffle: bool,
        seed: int | None,
    ) -> None:
        super().__init__(n, batch_size, shuffle, seed)
        if self.save_to_dir and not os.path.isdir(self.save_to_dir):
            raise FileNotFoundError(f"save_to_dir={str(self.save_to_dir)!r} is no folder; make it first")
        keep_freed_memory()
        self._images = images
        self._look = look
        self._flow = flow
        self._process = os.getpid()
        self._made: BatchMaker | None = None
        self._read_ahead = ReadAhead(self._batches_from)
        self._names = np.random.RandomState(None if seed is None else int(seed) % 2**32)

    def __next__(self) -> Any:
        with self.lock:
            first = self.batch_index
            indices = next(self.index_generator)
            maker, epoch = self._maker(), self._epoch
            step = (epoch - 1) * len(self) + first
            images = self._foreseen(step, indices)
        if images is None:
            images = self._made_now(maker, epoch, indices)
        return self._assembled(images, indices)

    @property
    def is_compiled(self) -> bool:
        """Whether the whole pixel work is compiled, with no Python in it."""
        return self._maker().is_compiled

    def parameters(self, epoch: int) -> list[dict[str, Any]]:
        """What is done to each sample in an epoch, counted from 1, as `apply_transform` takes it."""
        maker = self._maker()
        return [as_parameters(row, maker.look.settings) for row in maker.parameters(epoch, np.arange(self.n))]

    @property
    def dataset(self) -> tf.data.Dataset:
        """The flow as a tf.data.Dataset of `len(self)` batches; each iteration over it is the next epoch.

        It counts its own epochs, from 1, whatever else is taken from this iterator, so that a training from it can be
        repeated. A batch has the structure of `self[0]`, with tuples in place of lists.
        """
        batches = self._finished_images(self._steps_of_an_epoch(), self._maker())
        return finished(batches.map(self._with_the_rest), self._flow.prefetch_batches)

    def on_device(self) -> tuple[tf.data.Dataset, Callable[[tf.Tensor, tf.Tensor], tf.Tensor]]:
        """Raw batches, and the function that a compiled train step has to put them through.

        Returns:
            A dataset as `dataset`, with (raw images (N, H, W, C), rows float32 (N, 8)) in place of the images, and the
            function of these two that gives the finished images.

        Raises:
            InputError: if a part of the pixel work can run in Python only, or the batches are not plain images.
        """
        maker = self._maker()
        function = maker.device_function()
        none = self._beside(np.zeros(0, np.int64))
        if none.inputs or none.are_labels_the_images or self.save_to_dir:
            raise InputError(
                "this flow cannot run in the train step: it has further inputs, images for labels, or save_to_dir"
            )
        batches = self._raw_images(self._steps_of_an_epoch(), maker).map(
            lambda images, draws, indices: self._with_the_rest((images, draws), indices)
        )
        return finished(batches, self._flow.prefetch_batches), function

    def _get_batches_of_transformed_samples(self, index_array: np.ndarray) -> Any:
        with self.lock:
            maker, epoch = self._maker(), max(self._epoch, 1)
        indices = np.asarray(index_array, np.int64)
        return self._assembled(self._made_now(maker, epoch, indices), indices)

    # -- images

    def _maker(self) -> BatchMaker:
        """What makes batches; made anew if the generator was changed or fitted meanwhile."""
        look = self._look()
        if self._made is None or not self._made.look.is_like(look):
            self._read_ahead.stop()
            self._made = BatchMaker(self._images, look, seed=self._draw_seed, count=self.n, batch_size=self.batch_size)
        return self._made

    def _made_now(self, maker: BatchMaker, epoch: int, indices: np.ndarray) -> np.ndarray:
        if len(indices) == 0:
            return np.zeros((0, *self.image_shape), self.dtype)
        if os.getpid() != self._process:
            # a worker forked from here, in which TensorFlow's threads do not exist
            return maker.batch_in_python(epoch, indices)
        keep_freed_memory()  # Keras puts its generator dataset around these calls
        with self._failures_named(indices):
            return maker.batch(epoch, indices)

    def _foreseen(self, step: int, indices: np.ndarray) -> np.ndarray | None:
        if not self._flow.prefetch_batches or len(indices) == 0 or os.getpid() != self._process:
            return None
        with self._failures_named(indices):
            images = self._read_ahead.batch(step)
        return None if images is None else own_array(images)

    def _batches_from(self, step: int) -> IteratorType[tf.Tensor]:
        steps = tf.data.Dataset.range(step, _ENDLESS_STEPS)
        images = self._finished_images(steps, self._maker()).map(lambda images, indices: images)
        return iter(finished(images, self._flow.prefetch_batches))

    def _steps_of_an_epoch(self) -> tf.data.Dataset:
        """The steps of another epoch each time it is iterated over, counted from 0 over all epochs."""
        epochs = itertools.count()

        def next_epoch(_: tf.Tensor) -> tf.Tensor:
            return tf.ensure_shape(tf.numpy_function(lambda: np.int64(next(epochs)), [], tf.int64), ())

        def steps(epoch: tf.Tensor) -> tf.data.Dataset:
            return tf.data.Dataset.range(epoch * len(self), (epoch + 1) * len(self))

        one_epoch = tf.data.Dataset.range(1).map(next_epoch).flat_map(steps)
        return one_epoch.apply(tf.data.experimental.assert_cardinality(len(self)))

    def _raw_images(self, steps: tf.data.Dataset, maker: BatchMaker) -> tf.data.Dataset:
        """Steps to (images as they were loaded, draws, indices)."""

        def epoch_of(epoch: int) -> tuple[np.ndarray, np.ndarray]:
            return self._order(epoch), maker.draws(epoch, np.arange(self.n))

        plan = StepPlan(_ENDLESS_EPOCHS, len(self), self.batch_size, epoch_of, (maker.draws_spec,))
        return steps.map(plan.batch).map(
            lambda indices, draws: (maker.load(indices), draws, indices),
            num_parallel_calls=stage_parallelism(self._flow.parallel_images > 1),
        )

    def _finished_images(self, steps: tf.data.Dataset, maker: BatchMaker) -> tf.data.Dataset:
        """Steps to (finished images, indices)."""
        return self._raw_images(steps, maker).map(
            lambda images, draws, indices: (maker.finish(images, draws), indices),
            # without prefetch the consumer itself does the work, so that nothing runs ahead of it
            num_parallel_calls=stage_parallelism(self._flow.prefetch_batches > 0),
        )

    # -- what stands beside them

    def _beside(self, indices: np.ndarray) -> Beside:
        """Further inputs, labels and weights of these samples."""
        raise NotImplementedError

    def _assembled(self, images: np.ndarray, indices: np.ndarray) -> Any:
        """Keras's form of a batch: images, (inputs, labels) or (inputs, labels, weights)."""
        if self.save_to_dir:
            self._save(images, indices)
        beside = self._beside(indices)
        inputs = [images, *beside.inputs] if beside.inputs else images
        labels = images.copy() if beside.are_labels_the_images else beside.labels
        if labels is None:
            return inputs
        return (inputs, labels) if beside.weights is None else (inputs, labels, beside.weights)

    def _with_the_rest(self, images: Any, indices: tf.Tensor) -> Any:
        """The same for a dataset, where lists are tuples."""
        none = self._beside(np.zeros(0, np.int64))
        arrays = none.arrays()
        types = [tf.as_dtype(array.dtype) for array in arrays]

        def look_up(images: np.ndarray, indices: np.ndarray) -> list[np.ndarray]:
            if self.save_to_dir:
                self._save(images, indices)
            return self._beside(indices).arrays()

        given = [images if self.save_to_dir else tf.zeros(0), indices]
        found = iter(tf.numpy_function(look_up, given, types) if types or self.save_to_dir else ())
        rest = [tf.ensure_shape(tensor, (None, *array.shape[1:])) for tensor, array in zip(found, arrays, strict=True)]
        return none.packed(images, rest)

    def _save(self, images: np.ndarray, indices: np.ndarray) -> None:
        for image, index in zip(images, indices, strict=True):
            name = f"{self.save_prefix}_{index}_{self._names.randint(_SAVED_HASHES)}.{self.save_format}"
            array_to_img(image, self.data_format, scale=True).save(os.path.join(self.save_to_dir, name))

    @contextlib.contextmanager
    def _failures_named(self, indices: np.ndarray) -> IteratorType[None]:
        """Lets an error of reading say which file it was."""
        yield
