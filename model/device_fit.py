"""Augmentation inside a compiled model's training step, so that it runs where the model runs: on the accelerator.

tf.data runs every map on the CPU; what is to run on a GPU has to stand in the step. Validation, prediction and the
saved model hold none of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from model.errors import StepError
from model.instance import methods_replaced, require_default_strategy

__all__ = ["augment_on_device"]

Augment = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]


@contextlib.contextmanager
def augment_on_device(model: tf.keras.Model, augment: Augment) -> Iterator[tf.keras.Model]:
    """Lets a compiled model be fitted, inside the block, on a dataset of raw images and their random numbers.

    The training dataset yields `((images, draws), labels)` or `((images, draws), labels, weights)`: images uint8
    (N, H, W, 3), draws float32 (N, D). Validation data stays what the model itself takes, `(float32 images, labels)`.
    The model may be compiled before or inside the block, also with `jit_compile=True`, and combines with `time_input`.

    Args:
        model: any Keras model; the instance is changed, and is what it was when the block ends.
        augment: maps (images, draws) to the float32 (N, H, W, 3) that the model takes; traced into the step.

    Yields:
        The same model.

    Raises:
        StepError: if the model is under a distribution strategy, or (from `fit`) a batch is not of this form.
    """
    require_default_strategy(model, "augmentation on the device")
    plain_step = model.train_step

    def train_step(data: Any) -> Any:
        inputs, labels, weights = tf.keras.utils.unpack_x_y_sample_weight(data)
        images, draws = _images_and_draws(inputs)
        return plain_step(tf.keras.utils.pack_x_y_sample_weight(augment(images, draws), labels, weights))

    with methods_replaced(model, train_step=train_step):
        yield model


def _images_and_draws(inputs: Any) -> tuple[tf.Tensor, tf.Tensor]:
    if isinstance(inputs, tuple | list) and len(inputs) == 2:
        return inputs[0], inputs[1]
    shape = getattr(inputs, "shape", None)
    found = type(inputs).__name__ if shape is None else f"one tensor of shape {tuple(shape)}"
    raise StepError(f"augmentation on the device needs batches of ((images, draws), labels), not of ({found}, labels)")
