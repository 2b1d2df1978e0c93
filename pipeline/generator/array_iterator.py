"""The iterator over arrays that `ImageDataGenerator.flow` returns."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline.generator.image_iterator import Beside, FlowConfig, ImageIterator, check_subset
from pipeline.generator.settings import KNOWN_CHANNELS
from pipeline.generator.transforms import usual_range
from pipeline.loading import ArrayImages

__all__ = ["NumpyArrayIterator"]


class NumpyArrayIterator(ImageIterator):
    """Batches of images that are in memory; the arguments are those of Keras's class.

    Args:
        x: images (count, H, W, C) in the data format, or (images, further inputs).
        y: labels, or None.
        image_data_generator: what is done to the images.
        flow: how fast it may work; here only `prefetch` does something.
        For the rest see `ImageDataGenerator.flow`.

    Raises:
        ValueError: for arrays of unlike length, images that are not 4-D, an unknown subset, or a split whose two parts
            do not hold the same classes.
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        image_data_generator: Any,
        batch_size: int = 32,
        shuffle: bool = False,
        sample_weight: Any = None,
        seed: int | None = None,
        data_format: str | None = None,
        save_to_dir: str | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        subset: str | None = None,
        ignore_class_split: bool = False,
        dtype: str | None = None,
        *,
        flow: FlowConfig | None = None,
    ) -> None:
        self.image_data_generator = image_data_generator
        self.data_format = data_format or tf.keras.backend.image_data_format()
        self.dtype = dtype or tf.keras.backend.floatx()
        self.save_to_dir, self.save_prefix, self.save_format = save_to_dir, save_prefix, save_format
        images, misc = _inputs(x)
        weights, labels = _as_array(sample_weight), _as_array(y)
        _check_lengths(images, labels, weights)
        if subset is not None:
            kept = _subset(subset, len(images), image_data_generator.settings.validation_split)
            if labels is not None and not ignore_class_split:
                _check_classes(labels, kept)
            # Keras takes the weights from row 0 on whatever the subset is
            rows = slice(None) if image_data_generator.settings.keras_exact else kept
            images, misc = images[kept], [array[kept] for array in misc]
            labels = None if labels is None else labels[kept]
            weights = None if weights is None else weights[rows]
        self._given = images
        self.x_misc, self.y, self.sample_weight = misc, labels, weights
        self._check_images()
        self.image_shape = images.shape[1:]
        augments = image_data_generator.augments(subset)
        value_range = usual_range(images)
        self._start(
            ArrayImages(_for_the_pipeline(images, self.data_format)),
            lambda: image_data_generator.look(
                augments=augments, value_range=value_range, data_format=self.data_format, dtype=self.dtype
            ),
            flow or FlowConfig(),
            n=len(images),
            batch_size=batch_size,
            shuffle=shuffle,
            seed=seed,
        )

    @functools.cached_property
    def x(self) -> np.ndarray:
        """All images, of the iterator's dtype."""
        return np.asarray(self._given, dtype=self.dtype)

    def _beside(self, indices: np.ndarray) -> Beside:
        labels = None if self.y is None else self.y[indices]
        weights = None if self.sample_weight is None else self.sample_weight[indices]
        return Beside(inputs=tuple(array[indices] for array in self.x_misc), labels=labels, weights=weights)

    def _check_images(self) -> None:
        images = self._given
        if images.ndim != 4:
            raise ValueError(
                "Input data in `NumpyArrayIterator` should have rank 4. "
                f"You passed an array with shape {images.shape}; give (count, height, width, channels)"
            )
        axis = 3 if self.data_format == "channels_last" else 1
        if images.shape[axis] not in KNOWN_CHANNELS:
            warnings.warn(
                f'NumpyArrayIterator is set to use the data format convention "{self.data_format}" (channels on axis '
                f"{axis}), i.e. expected either 1, 3, or 4 channels on axis {axis}. However, it was passed an array "
                f"with shape {images.shape} ({images.shape[axis]} channels).",
                stacklevel=4,
            )


def _inputs(x: Any) -> tuple[np.ndarray, list[np.ndarray]]:
    """The images and the further inputs beside them."""
    if not isinstance(x, tuple | list):
        return np.asarray(x), []
    others = x[1] if isinstance(x[1], list) else [x[1]]
    images, misc = np.asarray(x[0]), [np.asarray(other) for other in others]
    for other in misc:
        if len(other) != len(images):
            raise ValueError(
                "All of the arrays in `x` should have the same length. "
                f"Found a pair with: len(x[0]) = {len(images)}, len(x[?]) = {len(other)}"
            )
    return images, misc


def _as_array(values: Any) -> np.ndarray | None:
    return None if values is None else np.asarray(values)


def _check_lengths(images: np.ndarray, labels: np.ndarray | None, weights: np.ndarray | None) -> None:
    for name, what, array in (("y", "`y` (labels)", labels), ("sample_weight", "`sample_weight`", weights)):
        if array is not None and len(array) != len(images):
            raise ValueError(
                f"`x` (images tensor) and {what} should have the same length. "
                f"Found: x.shape = {images.shape}, {name}.shape = {array.shape}"
            )


def _subset(subset: str, count: int, fraction: float) -> slice:
    check_subset(subset)
    split = int(count * (fraction or 0))
    return slice(split) if subset == "validation" else slice(split, None)


def _check_classes(labels: np.ndarray, kept: slice) -> None:
    border = kept.start if kept.start is not None else kept.stop
    if not np.array_equal(np.unique(labels[:border]), np.unique(labels[border:])):
        raise ValueError(
            "Training and validation subsets have different number of classes after the split. "
            "If your numpy arrays are sorted by the label, you might want to shuffle them."
        )


def _for_the_pipeline(images: np.ndarray, data_format: str) -> np.ndarray:
    """(count, H, W, C): uint8 as it is, all else float32."""
    kept = images if images.dtype == np.uint8 else np.asarray(images, np.float32)
    return kept.transpose(0, 2, 3, 1) if data_format == "channels_first" else kept
