"""The networks that can stand under the classifier: every Keras Application by name, and `small_cnn`.

The Applications are those which the installed Keras has (40 in Keras 3.15, 71 in Keras 2.15), found by looking, not
listed here. Images are RGB, 0 to 255, channels last, until a backbone's preprocessing is applied to them.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from model.errors import BackboneError
from pipeline import ChannelAffine
from pipeline import channel_affine_of as read_channel_affine

__all__ = [
    "SMALL_CNN",
    "application_builder",
    "backbone_names",
    "channel_affine_of",
    "check_backbone",
    "default_image_size",
    "preprocessing_of",
]

SMALL_CNN = "small_cnn"

# Default sides in pixels, where they are not 224 (128 for small_cnn is the command line's own default).
# test_backbones.py compares them with what each Application asks for itself.
_SIZES = {
    SMALL_CNN: 128,
    "EfficientNetB1": 240,
    "EfficientNetB2": 260,
    "EfficientNetB3": 300,
    "EfficientNetB4": 380,
    "EfficientNetB5": 456,
    "EfficientNetB6": 528,
    "EfficientNetB7": 600,
    "EfficientNetV2B1": 240,
    "EfficientNetV2B2": 260,
    "EfficientNetV2B3": 300,
    "EfficientNetV2L": 480,
    "EfficientNetV2M": 480,
    "EfficientNetV2S": 384,
    "InceptionResNetV2": 299,
    "InceptionV3": 299,
    "NASNetLarge": 331,
    "Xception": 299,
}

_SMALL_CNN_AFFINE = ChannelAffine(scale=(1 / 127.5,) * 3, offset=(-1.0,) * 3)


def backbone_names() -> tuple[str, ...]:
    """Every name that `--backbone` takes: `small_cnn`, then the Keras Applications in alphabetical order."""
    applications = tf.keras.applications
    return (SMALL_CNN, *sorted(name for name in dir(applications) if _is_builder(getattr(applications, name))))


def check_backbone(name: str) -> None:
    """Refuses a name that is not a backbone.

    Raises:
        BackboneError: if there is no such backbone; it suggests the nearest names and says how many there are.
    """
    names = backbone_names()
    if name in names:
        return
    by_lower_case = {known.lower(): known for known in names}
    nearest = difflib.get_close_matches(name.lower(), by_lower_case, n=3)
    hint = f"; did you mean {' or '.join(by_lower_case[match] for match in nearest)}?" if nearest else ""
    raise BackboneError(
        f"there is no backbone {name!r}{hint} "
        f"({SMALL_CNN} and {len(names) - 1} Keras Applications by their name, e.g. MobileNetV2, are known)"
    )


def default_image_size(name: str) -> int:
    """Side of the square images that a backbone was made for, in pixels.

    Raises:
        BackboneError: if there is no such backbone.
    """
    check_backbone(name)
    return _SIZES.get(name, 224)


def preprocessing_of(name: str) -> ChannelAffine:
    """The map from RGB, 0 to 255, to what a backbone expects; identity for those that rescale inside themselves.

    Raises:
        BackboneError: if there is no such backbone, or its preprocessing is not such a map.
    """
    check_backbone(name)
    if name == SMALL_CNN:
        return _SMALL_CNN_AFFINE
    # each Application's module holds the function that belongs to it (the public sub-modules lack some builders)
    return channel_affine_of(inspect.getmodule(application_builder(name)).preprocess_input)


def application_builder(name: str) -> Callable[..., tf.keras.Model]:
    """The function of keras.applications that builds a backbone.

    Raises:
        BackboneError: if there is no such Application (`small_cnn` is not one).
    """
    check_backbone(name)
    if name == SMALL_CNN:
        raise BackboneError(f"{SMALL_CNN} is Feedline's own network, not a Keras Application")
    return getattr(tf.keras.applications, name)


def channel_affine_of(preprocess_input: Callable[[Any], Any]) -> ChannelAffine:
    """Reads a `preprocess_input` function as plain data.

    Raises:
        BackboneError: if the function is not a scale and an offset a channel, with red and blue perhaps exchanged.
    """
    affine = read_channel_affine(preprocess_input)
    if affine is None:
        raise BackboneError(
            f"{getattr(preprocess_input, '__qualname__', preprocess_input)} is not a scale and an offset a channel, "
            "so it cannot run inside the augmentation"
        )
    return affine


def _is_builder(member: Any) -> bool:
    """Whether a member of keras.applications builds a network: its functions do, the rest are modules."""
    return inspect.isfunction(member) and "include_top" in inspect.signature(member).parameters
