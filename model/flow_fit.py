"""Fits a person's own model on a flow whose pixel work runs inside the compiled train step."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from model.device_fit import augment_on_device

__all__ = ["fit_on_device"]


def fit_on_device(model: tf.keras.Model, flow: Any, *, validation_data: Any = None, **fit_arguments: Any) -> Any:
    """`model.fit(flow)` with augmentation and standardizing on the accelerator.

    Args:
        model: compiled; afterwards it is what it was, and its saved file holds none of the augmentation.
        flow: what `ImageDataGenerator.flow`, `flow_from_directory` or `flow_from_dataframe` returns.
        validation_data: another flow, or what `fit` takes; flows for validation are made on the host.
        **fit_arguments: of `fit`: epochs, callbacks, class_weight and so on.

    Returns:
        Keras's History.

    Raises:
        InputError: if a part of the flow's pixel work can run in Python only.
        StepError: if the model is under a distribution strategy.
    """
    batches, finish = flow.on_device()
    validation = getattr(validation_data, "dataset", validation_data)
    with augment_on_device(model, finish):
        # a dataset has its own order
        return model.fit(batches, validation_data=validation, **{"shuffle": False, **fit_arguments})
