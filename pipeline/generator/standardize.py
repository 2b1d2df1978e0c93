"""Preprocessing and normalising in numpy, and the statistics that `fit` learns."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.generator.settings import KNOWN_CHANNELS, GeneratorSettings
from pipeline.generator.transforms import apply_transform, draw_transform

__all__ = ["EPSILON", "Statistics", "fit_statistics", "standardize", "warn_of_missing"]

# what Keras adds to every deviation before it divides
EPSILON = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class Statistics:
    """What `fit` learnt; None where it was not asked for.

    Attributes:
        mean: of each channel, (1, 1, C) or (C, 1, 1).
        std: of each channel, the same shape.
        zca_whitening_matrix: (H·W·C, H·W·C).
    """

    mean: np.ndarray | None = None
    std: np.ndarray | None = None
    zca_whitening_matrix: np.ndarray | None = None

    def is_same(self, other: Statistics) -> bool:
        """Whether both hold the very same arrays."""
        names = ("mean", "std", "zca_whitening_matrix")
        return all(getattr(self, name) is getattr(other, name) for name in names)


def standardize(x: np.ndarray, settings: GeneratorSettings, statistics: Statistics) -> np.ndarray:
    """Preprocesses and normalises one image, or a batch by the statistics of the whole batch, as Keras does.

    Args:
        x: float image or batch in the settings' data format; changed in place where numpy can.
        settings: what to do.
        statistics: of `fit`; what is not there yet is left out with a warning.

    Returns:
        The result, which may be x itself.
    """
    if settings.preprocessing_function:
        x = settings.preprocessing_function(x)
    if settings.rescale:
        x *= settings.rescale
    if settings.samplewise_center:
        x -= np.mean(x, keepdims=True)
    if settings.samplewise_std_normalization:
        x /= np.std(x, keepdims=True) + EPSILON
    warn_of_missing(settings, statistics)
    if settings.featurewise_center and statistics.mean is not None:
        x -= statistics.mean
    if settings.featurewise_std_normalization and statistics.std is not None:
        x /= statistics.std + EPSILON
    if settings.zca_whitening and statistics.zca_whitening_matrix is not None:
        flat = x.reshape(-1, np.prod(x.shape[-3:]))
        x = np.reshape(flat @ statistics.zca_whitening_matrix, x.shape)
    return x


def fit_statistics(
    x: Any, settings: GeneratorSettings, *, augment: bool = False, rounds: int = 1, seed: int | None = None
) -> Statistics:
    """Learns what the featurewise settings need from sample images, rescaled but not preprocessed.

    Args:
        x: (count, H, W, C) or (count, C, H, W).
        settings: which of the statistics are wanted.
        augment: learn from randomly changed images.
        rounds: how often each image is changed then.
        seed: of these changes.

    Returns:
        The statistics that the settings ask for.

    Raises:
        ValueError: if x is not 4-D.
    """
    x = np.array(x, dtype=settings.dtype)
    if x.ndim != 4:
        raise ValueError(f"Input to `.fit()` should have rank 4. Got array with shape: {x.shape}")
    channels = x.shape[settings.channel_axis]
    if channels not in KNOWN_CHANNELS:
        warnings.warn(
            "Expected input to be images (as Numpy array) following the data format convention "
            f'"{settings.data_format}" (channels on axis {settings.channel_axis}), i.e. expected either 1, 3 or 4 '
            f"channels on axis {settings.channel_axis}. However, it was passed an array with shape {x.shape} "
            f"({channels} channels).",
            stacklevel=3,
        )
    if settings.rescale:
        x *= settings.rescale
    if augment:
        x = _changed(x, settings, rounds, np.random.RandomState(seed))
    mean = std = whitening = None
    if settings.featurewise_center:
        mean = _by_channel(np.mean, x, settings)
        x -= mean
    if settings.featurewise_std_normalization:
        std = _by_channel(np.std, x, settings)
        x /= std + EPSILON
    if settings.zca_whitening:
        whitening = _whitening(x, settings.zca_epsilon)
    return Statistics(mean=mean, std=std, zca_whitening_matrix=whitening)


def warn_of_missing(settings: GeneratorSettings, statistics: Statistics) -> None:
    """Warns of what the settings want but `fit` has not learnt yet."""
    for setting, value in (
        ("featurewise_center", statistics.mean),
        ("featurewise_std_normalization", statistics.std),
        ("zca_whitening", statistics.zca_whitening_matrix),
    ):
        if getattr(settings, setting) and value is None:
            warnings.warn(
                f"This ImageDataGenerator specifies `{setting}`, but it hasn't been fit on any training data. "
                "Fit it first by calling `.fit(numpy_data)`.",
                stacklevel=3,
            )


def _changed(x: np.ndarray, settings: GeneratorSettings, rounds: int, state: np.random.RandomState) -> np.ndarray:
    changed = np.zeros((rounds * len(x), *x.shape[1:]), settings.dtype)
    for position in range(len(changed)):
        image = x[position % len(x)]
        changed[position] = apply_transform(image, draw_transform(settings, image.shape, state), settings)
    return changed


def _by_channel(function: Callable[..., np.ndarray], x: np.ndarray, settings: GeneratorSettings) -> np.ndarray:
    return function(x, axis=(0, settings.row_axis, settings.col_axis), keepdims=True)[0]


def _whitening(x: np.ndarray, epsilon: float) -> np.ndarray:
    """The matrix U · diag(sqrt(n) / (S + epsilon)) · Uᵀ of the singular values S and left vectors U of the images."""
    flat = x.reshape(len(x), -1)
    vectors, values, _ = np.linalg.svd(flat.T, full_matrices=False)
    return (vectors * (np.sqrt(len(x)) / (values + epsilon))) @ vectors.T
