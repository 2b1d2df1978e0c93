"""The iterators over image files that `flow_from_directory` and `flow_from_dataframe` return."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator as IteratorType
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import tensorflow as tf

from pipeline.cache import CacheConfig, SampleCache, open_cache
from pipeline.decode import is_sixteen_bit
from pipeline.decode_config import CHANNELS, DecodeConfig
from pipeline.generator.batches import Unchanged
from pipeline.generator.image_iterator import Beside, FlowConfig, ImageIterator, check_subset, say
from pipeline.generator.labels import batch_labels
from pipeline.generator.listing import Listing, class_numbers, list_dataframe, list_directory
from pipeline.loading import FileImages, KerasImages
from pipeline.samples import Samples
from pipeline.verify import check_bad_files, verify_samples

__all__ = ["DataFrameIterator", "DirectoryIterator", "FileIterator"]

_CHECK_WORKERS = 4


class FileIterator(ImageIterator):
    """What the iterators over files share: Keras's `BatchFromFilesMixin`."""

    allowed_class_modes: ClassVar[set[str | None]] = set()

    def set_processing_attrs(
        self,
        image_data_generator: Any,
        target_size: Sequence[int],
        color_mode: str,
        data_format: str,
        save_to_dir: str | None,
        save_prefix: str,
        save_format: str,
        subset: str | None,
        interpolation: str,
        keep_aspect_ratio: bool,
    ) -> None:
        """Sets how files become batches; the arguments are those of Keras's method."""
        if color_mode not in CHANNELS:
            raise ValueError(f'Invalid color mode: {color_mode}; expected "rgb", "rgba", or "grayscale".')
        self.image_data_generator = image_data_generator
        self._changes = Unchanged(data_format) if image_data_generator is None else image_data_generator
        self.target_size = tuple(target_size)
        self.keep_aspect_ratio = keep_aspect_ratio
        self.color_mode = color_mode
        self.data_format = data_format
        channels = (CHANNELS[color_mode],)
        is_last = data_format == "channels_last"
        self.image_shape = self.target_size + channels if is_last else channels + self.target_size
        self.save_to_dir, self.save_prefix, self.save_format = save_to_dir, save_prefix, save_format
        self.interpolation = interpolation
        self.split = None if subset is None else _split(subset, self._changes.settings.validation_split)
        self.subset = subset

    @property
    def filepaths(self) -> list[str]:
        """The path of each sample."""
        return self._listing.filepaths

    @property
    def sample_weight(self) -> np.ndarray | None:
        """The weight of each sample, or None."""
        return self._listing.sample_weight

    def _check_class_mode(self) -> None:
        if self.class_mode not in self.allowed_class_modes:
            raise ValueError(f"Invalid class_mode: {self.class_mode}; expected one of: {self.allowed_class_modes}")

    def _begin(self, listing: Listing, flow: FlowConfig, *, batch_size: int, shuffle: bool, seed: int | None) -> None:
        """Takes what was found, says so, and starts."""
        self._listing = listing
        self.filenames = listing.filenames
        self.samples = len(listing.filenames)
        for note in listing.notes:
            warnings.warn(note, stacklevel=4)
        say(listing.message)
        changes = self._changes
        decode = DecodeConfig(
            height=int(self.target_size[0]),
            width=int(self.target_size[1]),
            interpolation=self.interpolation,
            method=flow.decode,
            color_mode=self.color_mode,
            keep_aspect_ratio=self.keep_aspect_ratio,
            saturate_sixteen_bit=changes.settings.keras_exact,
        )
        augments = changes.augments(self.subset)
        self._start(
            _images(listing.filepaths, decode, flow, keras_exact=changes.settings.keras_exact),
            lambda: changes.look(
                augments=augments, value_range=(0.0, 255.0), data_format=self.data_format, dtype=self.dtype
            ),
            flow,
            n=self.samples,
            batch_size=batch_size,
            shuffle=shuffle,
            seed=seed,
        )

    def _beside(self, indices: np.ndarray) -> Beside:
        labels = batch_labels(self.class_mode, self._listing, indices, self.dtype)
        weights = self.sample_weight
        return Beside(
            labels=labels,
            weights=None if weights is None else weights[indices],
            are_labels_the_images=self.class_mode == "input",
        )

    @contextlib.contextmanager
    def _failures_named(self, indices: np.ndarray) -> IteratorType[None]:
        try:
            yield
        except (tf.errors.OpError, OSError) as error:
            paths = tuple(os.path.abspath(self.filepaths[index]) for index in indices)
            samples = Samples(paths=paths, targets=np.zeros(len(paths), np.int32), class_names=("",))
            bad_files = verify_samples(samples, _CHECK_WORKERS)
            try:
                check_bad_files(bad_files, way_out="leave {them} out of the data")
            except Exception as named:
                raise named from error
            raise


class DirectoryIterator(FileIterator):
    """Batches of the images below a folder with one sub-folder a class; the arguments are those of Keras's class.

    Args:
        directory: the folder.
        image_data_generator: what is done to the images.
        flow: how fast it may work.
        For the rest see `ImageDataGenerator.flow_from_directory`.
    """

    allowed_class_modes: ClassVar = {"categorical", "binary", "sparse", "input", None}

    def __init__(
        self,
        directory: str | os.PathLike[str],
        image_data_generator: Any,
        target_size: Sequence[int] = (256, 256),
        color_mode: str = "rgb",
        classes: Sequence[str] | None = None,
        class_mode: str | None = "categorical",
        batch_size: int = 32,
        shuffle: bool = True,
        seed: int | None = None,
        data_format: str | None = None,
        save_to_dir: str | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        follow_links: bool = False,
        subset: str | None = None,
        interpolation: str = "nearest",
        keep_aspect_ratio: bool = False,
        dtype: str | None = None,
        *,
        flow: FlowConfig | None = None,
    ) -> None:
        self.set_processing_attrs(
            image_data_generator,
            target_size,
            color_mode,
            data_format or tf.keras.backend.image_data_format(),
            save_to_dir,
            save_prefix,
            save_format,
            subset,
            interpolation,
            keep_aspect_ratio,
        )
        self.directory = directory
        self.class_mode = class_mode
        self.dtype = dtype or tf.keras.backend.floatx()
        self._check_class_mode()
        settings = self._changes.settings
        listing = list_directory(
            directory,
            classes=classes,
            class_mode=class_mode,
            subset=subset,
            validation_split=settings.validation_split,
            follow_links=follow_links,
            keras_exact=settings.keras_exact,
        )
        self.classes = listing.classes
        self.class_indices = listing.class_indices
        self.num_classes = len(listing.class_indices)
        self._begin(listing, flow or FlowConfig(), batch_size=batch_size, shuffle=shuffle, seed=seed)

    @property
    def labels(self) -> np.ndarray:
        """The class number of each sample, int32."""
        return self.classes


class DataFrameIterator(FileIterator):
    """Batches of the images that a dataframe lists; the arguments are those of Keras's class.

    Args:
        dataframe: a row a sample.
        flow: how fast it may work.
        stratify: take the same share of each class for validation, in place of the frame's first rows.
        For the rest see `ImageDataGenerator.flow_from_dataframe`.
    """

    allowed_class_modes: ClassVar = {"binary", "categorical", "input", "multi_output", "raw", "sparse", None}

    def __init__(
        self,
        dataframe: pd.DataFrame,
        directory: str | os.PathLike[str] | None = None,
        image_data_generator: Any = None,
        x_col: str = "filename",
        y_col: str | list[str] = "class",
        weight_col: str | None = None,
        target_size: Sequence[int] = (256, 256),
        color_mode: str = "rgb",
        classes: Sequence[str] | None = None,
        class_mode: str | None = "categorical",
        batch_size: int = 32,
        shuffle: bool = True,
        seed: int | None = None,
        data_format: str = "channels_last",
        save_to_dir: str | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        subset: str | None = None,
        interpolation: str = "nearest",
        keep_aspect_ratio: bool = False,
        dtype: str = "float32",
        validate_filenames: bool = True,
        *,
        flow: FlowConfig | None = None,
        stratify: bool = False,
    ) -> None:
        self.set_processing_attrs(
            image_data_generator,
            target_size,
            color_mode,
            data_format,
            save_to_dir,
            save_prefix,
            save_format,
            subset,
            interpolation,
            keep_aspect_ratio,
        )
        self.directory = directory or ""
        self.class_mode = class_mode
        self.dtype = dtype
        self._check_class_mode()
        settings = self._changes.settings
        listing = list_dataframe(
            dataframe,
            self.directory,
            x_col=x_col,
            y_col=y_col,
            weight_col=weight_col,
            classes=classes,
            class_mode=class_mode,
            subset=subset,
            validation_split=settings.validation_split,
            validate_filenames=validate_filenames,
            stratify=stratify,
            seed=seed,
            keras_exact=settings.keras_exact,
        )
        if listing.class_indices is not None:  # Keras has these for classes only
            self.classes, self.class_indices = listing.classes, listing.class_indices
        self._begin(listing, flow or FlowConfig(), batch_size=batch_size, shuffle=shuffle, seed=seed)

    def get_classes(self, df: pd.DataFrame, y_col: str) -> list[Any]:
        """The class numbers of a dataframe's labels, a list of them where a label is a list."""
        return [class_numbers(label, self.class_indices) for label in df[y_col]]

    @property
    def labels(self) -> Any:
        """Class numbers, or the target values of the class modes raw and multi_output."""
        return self._listing.targets if self.class_mode in ("multi_output", "raw") else self.classes


def _split(subset: str, fraction: float) -> tuple[float, float]:
    check_subset(subset)
    return (0, fraction) if subset == "validation" else (fraction, 1)


def _images(
    paths: Sequence[str], decode: DecodeConfig, flow: FlowConfig, *, keras_exact: bool
) -> FileImages | KerasImages:
    if keras_exact and decode.color_mode == "grayscale" and any(map(is_sixteen_bit, paths)):
        if flow.cache != "off":
            warnings.warn(
                f"cache={flow.cache!r} is off: with keras_exact 16-bit grey files keep their levels, which no cached "
                "byte holds",
                stacklevel=5,
            )
        return KerasImages(paths, decode)
    cache = _cache(flow, paths, decode)
    return FileImages(paths, decode, parallel_images=flow.parallel_images, cache=cache)


def _cache(flow: FlowConfig, paths: list[str], decode: DecodeConfig) -> SampleCache | None:
    cache = open_cache(CacheConfig(mode=flow.cache), paths, decode)
    if cache is not None and cache.plan.kept < len(paths):
        warnings.warn(
            f"cache={flow.cache!r}: {cache.plan.kept} of {len(paths)} images fit into the room at hand; the rest is "
            "decoded anew in every epoch",
            stacklevel=5,
        )
    return cache
