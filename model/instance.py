"""Replaces methods of one compiled model, on the instance, for as long as a `with` block lasts.

On the instance, because a file saved from a subclass of Model does not load where the subclass is not defined, while an
instance's own attributes are not saved at all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from model.errors import StepError

__all__ = ["methods_replaced", "require_default_strategy"]

_COMPILED = ("train_function", "test_function")


@contextlib.contextmanager
def methods_replaced(model: tf.keras.Model, **methods: Callable[..., Any]) -> Iterator[None]:
    """Gives an instance other methods, and takes them away again.

    At both ends Keras's cached train and test functions are dropped, since they were traced with the other methods
    (Keras makes them anew when they are next needed).

    Args:
        model: the instance.
        methods: the new method by name.
    """
    before = {name: vars(model)[name] for name in methods if name in vars(model)}
    try:
        for name, method in methods.items():
            setattr(model, name, method)
        _forget_compiled(model)
        yield
    finally:
        for name in methods:
            if name in before:
                setattr(model, name, before[name])
            elif name in vars(model):
                delattr(model, name)
        _forget_compiled(model)


def require_default_strategy(model: tf.keras.Model, purpose: str) -> None:
    """Refuses a model that is spread over several devices.

    Raises:
        StepError: if the model was made, or is used, under a distribution strategy.
    """
    strategy = model.distribute_strategy
    if tf.distribute.has_strategy() or strategy is not tf.distribute.get_strategy():
        raise StepError(
            f"{type(strategy).__name__}: {purpose} works on one device; build and fit the model outside its scope()"
        )


def _forget_compiled(model: tf.keras.Model) -> None:
    for name in _COMPILED:
        setattr(model, name, None)
