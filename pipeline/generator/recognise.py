"""Preprocessing functions of keras.applications, recognised so that they run as tensors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from pipeline.augment import ChannelAffine, channel_affine_of

__all__ = ["recognise"]

_RGB = 3


def recognise(function: Callable[[Any], Any], channels: int = _RGB) -> ChannelAffine | None:
    """What a preprocessing function does, if it is one of Keras's own.

    A person's own function is never read this way, however it behaves: it may look at the whole image.

    Args:
        function: a `preprocess_input` of keras.applications, or a functools.partial of one that fixes keywords only.
        channels: of the images that it will get.

    Returns:
        The same map as plain data; None for any other function, where Keras would look for the channels elsewhere than
        on the last axis, and for other than three channels unless all are treated alike.
    """
    base, keywords = function, {}
    while isinstance(base, functools.partial):
        if base.args:
            return None
        base, keywords = base.func, {**base.keywords, **keywords}  # the outer partial's keywords win
    if not any(base is known for known in _preprocess_inputs()):
        return None
    data_format = keywords.get("data_format") or tf.keras.backend.image_data_format()
    affine = channel_affine_of(function) if data_format == "channels_last" else None
    return affine if affine is not None and (channels == _RGB or affine.is_uniform) else None


def _preprocess_inputs() -> Iterator[Any]:
    """The functions of the installed Keras, from its public modules and from those where the networks are made."""
    applications = tf.keras.applications
    for name in dir(applications):
        member = getattr(applications, name)
        module = member if inspect.ismodule(member) else inspect.getmodule(member)
        function = getattr(module, "preprocess_input", None)
        if function is not None:
            yield function
