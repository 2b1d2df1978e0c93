"""`ImageDataGenerator`, which takes the place of the Keras class of that name."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pandas as pd

from pipeline.generator.array_iterator import NumpyArrayIterator
from pipeline.generator.batches import FlowLook
from pipeline.generator.explain import explain_settings, format_findings
from pipeline.generator.file_iterators import DataFrameIterator, DirectoryIterator
from pipeline.generator.image_iterator import FlowConfig
from pipeline.generator.settings import GeneratorSettings, make_settings
from pipeline.generator.standardize import Statistics, fit_statistics, standardize
from pipeline.generator.transforms import apply_transform, draw_transform

__all__ = ["ImageDataGenerator"]

# what a subclass may do in its own way; then every image goes through its methods, one after the other
_OPEN_METHODS = ("apply_transform", "get_random_transform", "random_transform", "standardize")


class ImageDataGenerator:
    """Real-time augmentation of images, with the arguments, methods and results of the Keras class.

    Its flows are made by a tf.data pipeline (parallel decoding, one compiled augmentation) in place of a Python loop.
    docs/migrating.md says what is the same, what is better, and why.

    Args:
        keras_exact: do as Keras's class does to the pixel, its faults included, for comparisons.
        For all others see Keras's class; docs/migrating.md lists them.

    Raises:
        ValueError: for an argument that Keras refuses as well.
    """

    def __init__(
        self,
        featurewise_center: bool = False,
        samplewise_center: bool = False,
        featurewise_std_normalization: bool = False,
        samplewise_std_normalization: bool = False,
        zca_whitening: bool = False,
        zca_epsilon: float = 1e-6,
        rotation_range: float = 0,
        width_shift_range: float | int | Sequence[float] = 0.0,
        height_shift_range: float | int | Sequence[float] = 0.0,
        brightness_range: Sequence[float] | None = None,
        shear_range: float = 0.0,
        zoom_range: float | Sequence[float] = 0.0,
        channel_shift_range: float = 0.0,
        fill_mode: str = "nearest",
        cval: float = 0.0,
        horizontal_flip: bool = False,
        vertical_flip: bool = False,
        rescale: float | None = None,
        preprocessing_function: Any = None,
        data_format: str | None = None,
        validation_split: float = 0.0,
        interpolation_order: int = 1,
        dtype: str | None = None,
        *,
        keras_exact: bool = False,
    ) -> None:
        given = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        self._made = make_settings(**given)
        for name in _ATTRIBUTES:
            setattr(self, name, getattr(self._made, name))
        self.zoom_range = list(self._made.zoom_range)
        self._validation_split = validation_split
        self.row_axis, self.col_axis, self.channel_axis = (
            self._made.row_axis,
            self._made.col_axis,
            self._made.channel_axis,
        )
        self.mean: np.ndarray | None = None
        self.std: np.ndarray | None = None
        self.zca_whitening_matrix: np.ndarray | None = None
        self._random_state = np.random.RandomState()

    # -- flows

    def flow(
        self,
        x: Any,
        y: Any = None,
        batch_size: int = 32,
        shuffle: bool = True,
        sample_weight: Any = None,
        seed: int | None = None,
        save_to_dir: str | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        ignore_class_split: bool = False,
        subset: str | None = None,
        *,
        prefetch: int | str = "auto",
    ) -> NumpyArrayIterator:
        """Batches of arrays.

        Args:
            x: images (count, H, W, C), or a pair of images and one further array or a list of them.
            y: labels.
            batch_size: images a batch.
            shuffle: a new order in each epoch.
            sample_weight: a weight a sample.
            seed: of order and draws; None for others each time.
            save_to_dir: folder to which each image that is yielded is written.
            save_prefix: start of the written files' names.
            save_format: suffix, and so the format, of the written files.
            ignore_class_split: let the two parts of a split hold other classes.
            subset: `training` or `validation`, if there is a validation_split.
            prefetch: batches that are made ahead.

        Returns:
            An endless iterator over x, (x, y) or (x, y, weights).

        Raises:
            ValueError: for arrays that do not fit together.
        """
        return NumpyArrayIterator(
            x,
            y,
            self,
            batch_size=batch_size,
            shuffle=shuffle,
            sample_weight=sample_weight,
            seed=seed,
            data_format=self.data_format,
            save_to_dir=save_to_dir,
            save_prefix=save_prefix,
            save_format=save_format,
            ignore_class_split=ignore_class_split,
            subset=subset,
            dtype=self.dtype,
            flow=FlowConfig(prefetch=prefetch),
        )

    def flow_from_directory(
        self,
        directory: str | os.PathLike[str],
        target_size: Sequence[int] = (256, 256),
        color_mode: str = "rgb",
        classes: Sequence[str] | None = None,
        class_mode: str | None = "categorical",
        batch_size: int = 32,
        shuffle: bool = True,
        seed: int | None = None,
        save_to_dir: str | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        follow_links: bool = False,
        subset: str | None = None,
        interpolation: str = "nearest",
        keep_aspect_ratio: bool = False,
        *,
        cache: str = "off",
        prefetch: int | str = "auto",
        parallel: int | str = "auto",
        decode: str = "exact",
    ) -> DirectoryIterator:
        """Batches of the images below a folder that holds one sub-folder a class.

        Args:
            directory: the folder.
            target_size: (height, width) to which every image is resized.
            color_mode: `rgb`, `rgba` or `grayscale`.
            classes: names of the sub-folders, in the order of their numbers; None for all, in alphabetical order.
            class_mode: `categorical`, `binary`, `sparse`, `input` or None for what the labels are.
            batch_size: images a batch.
            shuffle: a new order in each epoch.
            seed: of order and draws; None for others each time.
            save_to_dir: folder to which each image that is yielded is written.
            save_prefix: start of the written files' names.
            save_format: suffix, and so the format, of the written files.
            follow_links: look into linked folders as well.
            subset: `training` or `validation`, if there is a validation_split.
            interpolation: filter of the resize, by Pillow's name.
            keep_aspect_ratio: crop to the target's shape first.
            cache: `off`; `ram` or `disk` to keep decoded pixels, in memory or the user's cache folder; `encoded` to
                keep the files' bytes in memory.
            prefetch: batches that are made ahead.
            parallel: images that are decoded at once.
            decode: `exact` or `fast`.

        Returns:
            An endless iterator over images or (images, labels).

        Raises:
            ValueError: for an argument that Keras refuses as well, or no image at all.
            FileNotFoundError: if there is no such folder.
        """
        return DirectoryIterator(
            directory,
            self,
            target_size=target_size,
            color_mode=color_mode,
            classes=classes,
            class_mode=class_mode,
            batch_size=batch_size,
            shuffle=shuffle,
            seed=seed,
            data_format=self.data_format,
            save_to_dir=save_to_dir,
            save_prefix=save_prefix,
            save_format=save_format,
            follow_links=follow_links,
            subset=subset,
            interpolation=interpolation,
            keep_aspect_ratio=keep_aspect_ratio,
            dtype=self.dtype,
            flow=FlowConfig(cache=cache, prefetch=prefetch, parallel=parallel, decode=decode),
        )

    def flow_from_dataframe(
        self,
        dataframe: pd.DataFrame,
        directory: str | os.PathLike[str] | None = None,
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
        save_to_dir: str | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        subset: str | None = None,
        interpolation: str = "nearest",
        validate_filenames: bool = True,
        *,
        keep_aspect_ratio: bool = False,
        cache: str = "off",
        prefetch: int | str = "auto",
        parallel: int | str = "auto",
        decode: str = "exact",
        stratify: bool = False,
        **kwargs: Any,
    ) -> DataFrameIterator:
        """Batches of the images that a dataframe lists.

        Args:
            dataframe: a row a sample; never changed.
            directory: where relative paths start; None for the working folder.
            x_col: column of the paths.
            y_col: column of the labels, or a list of columns.
            weight_col: column of the weights.
            target_size: (height, width) to which every image is resized.
            color_mode: `rgb`, `rgba` or `grayscale`.
            classes: names in the order of their numbers; None for all, in alphabetical order.
            class_mode: `binary`, `categorical`, `input`, `multi_output`, `raw`, `sparse` or None.
            batch_size: images a batch.
            shuffle: a new order in each epoch.
            seed: of order and draws; None for others each time.
            save_to_dir: folder to which each image that is yielded is written.
            save_prefix: start of the written files' names.
            save_format: suffix, and so the format, of the written files.
            subset: `training` or `validation`, if there is a validation_split.
            interpolation: filter of the resize, by Pillow's name.
            validate_filenames: leave out paths that are no image file.
            keep_aspect_ratio: crop to the target's shape first.
            cache: `off`; `ram` or `disk` to keep decoded pixels, in memory or the user's cache folder; `encoded` to
                keep the files' bytes in memory.
            prefetch: batches that are made ahead.
            parallel: images that are decoded at once.
            decode: `exact` or `fast`.
            stratify: split each class alike, in place of taking the frame's first rows for validation.
            **kwargs: Keras's old `has_ext`, `sort` and `drop_duplicates`, which do nothing.

        Returns:
            An endless iterator over images, (images, labels) or (images, labels, weights).

        Raises:
            ValueError, TypeError: for an argument or a column that Keras refuses as well, an unknown keyword, or no
                image at all.
        """
        class_mode = old_keywords_answered(kwargs, class_mode, keras_exact=self.keras_exact)
        return DataFrameIterator(
            dataframe,
            directory,
            self,
            x_col=x_col,
            y_col=y_col,
            weight_col=weight_col,
            target_size=target_size,
            color_mode=color_mode,
            classes=classes,
            class_mode=class_mode,
            batch_size=batch_size,
            shuffle=shuffle,
            seed=seed,
            data_format=self.data_format,
            save_to_dir=save_to_dir,
            save_prefix=save_prefix,
            save_format=save_format,
            subset=subset,
            interpolation=interpolation,
            # Keras takes this keyword without a word and does nothing
            keep_aspect_ratio=keep_aspect_ratio and not self.keras_exact,
            dtype=self.dtype,
            validate_filenames=validate_filenames,
            flow=FlowConfig(cache=cache, prefetch=prefetch, parallel=parallel, decode=decode),
            stratify=stratify,
        )

    # -- one image

    def get_random_transform(self, img_shape: Sequence[int], seed: int | None = None) -> dict[str, Any]:
        """Draws what is done to one image.

        Args:
            img_shape: (H, W, C) or (C, H, W).
            seed: of these draws; None for others each time.

        Returns:
            theta, tx, ty, shear, zx, zy, flip_horizontal, flip_vertical, channel_shift_intensity, brightness.
        """
        state = self._random_state if seed is None else np.random.RandomState(seed)
        return draw_transform(self.settings, tuple(img_shape), state)

    def apply_transform(self, x: np.ndarray, transform_parameters: Mapping[str, Any]) -> np.ndarray:
        """Does to one image what a dictionary of `get_random_transform` says; what it lacks is left as it is."""
        return apply_transform(x, transform_parameters, self.settings)

    def random_transform(self, x: np.ndarray, seed: int | None = None) -> np.ndarray:
        """One image, changed at random."""
        return self.apply_transform(x, self.get_random_transform(x.shape, seed))

    def standardize(self, x: np.ndarray) -> np.ndarray:
        """Preprocesses and normalises one image or a batch, in place where numpy allows, as Keras's class does."""
        return standardize(x, self.settings, self._statistics())

    def fit(self, x: Any, augment: bool = False, rounds: int = 1, seed: int | None = None) -> None:
        """Learns mean, deviation and whitening from sample images, for the featurewise settings.

        Args:
            x: images (count, H, W, C) or (count, C, H, W).
            augment: learn from randomly changed images.
            rounds: how often each is changed then.
            seed: of those changes.

        Raises:
            ValueError: if x is not 4-D.
        """
        found = fit_statistics(x, self.settings, augment=augment, rounds=rounds, seed=seed)
        for name in ("mean", "std", "zca_whitening_matrix"):
            value = getattr(found, name)
            if value is not None:
                setattr(self, name, value)

    # -- what ours has beside

    def explain(self) -> str:
        """Says in plain sentences what these settings really did in Keras, and what they do here."""
        return format_findings(explain_settings(self.settings))

    @property
    def settings(self) -> GeneratorSettings:
        """The arguments as they stand now."""
        changed = {name: _frozen(getattr(self, name)) for name in _ATTRIBUTES}
        return replace(self._made, **changed, validation_split=self._validation_split)

    def augments(self, subset: str | None) -> bool:
        """Whether the images of a subset are changed at random: those for validation only in Keras's class."""
        return self.keras_exact or subset != "validation"

    def look(self, **flow: Any) -> FlowLook:
        """What a flow's batches look like, by the generator as it stands now."""
        own = any(getattr(type(self), name) is not getattr(ImageDataGenerator, name) for name in _OPEN_METHODS)
        augments = flow["augments"]

        def one_image(image: np.ndarray) -> np.ndarray:
            if augments:
                image = self.apply_transform(image, self.get_random_transform(image.shape))
            return self.standardize(image)

        return FlowLook(
            settings=self.settings, statistics=self._statistics(), one_image=one_image if own else None, **flow
        )

    def _statistics(self) -> Statistics:
        return Statistics(mean=self.mean, std=self.std, zca_whitening_matrix=self.zca_whitening_matrix)


_ATTRIBUTES = tuple(field.name for field in fields(GeneratorSettings) if field.name != "validation_split")


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def old_keywords_answered(kwargs: Mapping[str, Any], class_mode: str | None, *, keras_exact: bool) -> str | None:
    """Answers what `flow_from_dataframe` took in Keras's older versions, as the last one does.

    Returns:
        The class mode, `raw` for its old name `other`.

    Raises:
        TypeError: for any other keyword, which Keras would swallow, unless `keras_exact`.
    """
    for name in kwargs:
        if name in _OLD_KEYWORDS:
            warnings.warn(
                f"{name} is deprecated and does nothing: {_OLD_KEYWORDS[name]}", DeprecationWarning, stacklevel=3
            )
        elif not keras_exact:
            raise TypeError(f"flow_from_dataframe() got an unexpected keyword argument {name!r}")
    if class_mode == "other":
        warnings.warn('class_mode="other" is deprecated, use class_mode="raw"', DeprecationWarning, stacklevel=3)
        return "raw"
    return class_mode


_OLD_KEYWORDS = {
    "has_ext": "names in the dataframe have to be those on disk",
    "sort": "without shuffle, batches follow the order of the dataframe",
    "drop_duplicates": "drop duplicate rows from the dataframe yourself",
}
