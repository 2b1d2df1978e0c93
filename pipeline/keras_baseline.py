"""The same recipe through Keras's own ImageDataGenerator, so that before and after stand in one comparison.

Two things differ by Keras's doing: its width shift moves images up and down and its height shift sideways, and
brightness rounds to 8 bits. Its order and draws come from numpy's global generator, which it seeds itself.
"""

from __future__ import annotations

import contextlib
import io
from typing import Any

import pandas as pd
import tensorflow as tf

from pipeline.augment import AugmentRanges
from pipeline.feed import FeedConfig
from pipeline.samples import Samples

__all__ = ["keras_flow"]


def keras_flow(samples: Samples, config: FeedConfig, *, training: bool) -> Any:
    """Makes a Keras iterator over the samples.

    Args:
        samples: what to read.
        config: size, filter, batch, seed, augmentation and preprocessing; the rest does not apply to Keras's class.
        training: True shuffles and augments; False only preprocesses, in order.

    Returns:
        What `ImageDataGenerator.flow_from_dataframe` returns: (images float32 (N, H, W, 3), labels float32 (N,)).
    """
    augment = _keras_arguments(config.augment) if training and config.augment else {}
    generator = tf.keras.preprocessing.image.ImageDataGenerator(
        preprocessing_function=config.preprocess.apply, **augment
    )
    names = [samples.class_names[target] for target in samples.targets]
    with contextlib.redirect_stdout(io.StringIO()):  # it prints what it found
        return generator.flow_from_dataframe(
            pd.DataFrame({"path": list(samples.paths), "class": names}),
            x_col="path",
            y_col="class",
            classes=list(samples.class_names),
            class_mode="binary" if len(samples.class_names) == 2 else "sparse",
            target_size=(config.decode.height, config.decode.width),
            interpolation=config.decode.interpolation,
            batch_size=config.batch_size,
            shuffle=training,
            seed=config.seed,
            validate_filenames=False,
        )


def _keras_arguments(ranges: AugmentRanges) -> dict[str, Any]:
    return {
        "rotation_range": ranges.rotation_degrees,
        "width_shift_range": ranges.width_shift,
        "height_shift_range": ranges.height_shift,
        "shear_range": ranges.shear_degrees,
        "zoom_range": list(ranges.zoom),
        "horizontal_flip": ranges.horizontal_flip,
        "vertical_flip": ranges.vertical_flip,
        "channel_shift_range": ranges.channel_shift,
        "brightness_range": ranges.brightness,
        "fill_mode": ranges.fill_mode,
        "cval": ranges.cval,
    }
