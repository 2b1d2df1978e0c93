"""Backbones by name: their sizes and their preprocessing, held against the installed Keras itself."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest
import tensorflow as tf

from model.backbones import (
    SMALL_CNN,
    application_builder,
    backbone_names,
    channel_affine_of,
    default_image_size,
    preprocessing_of,
)
from model.errors import BackboneError
from pipeline.augment.preprocess import IDENTITY

APPLICATIONS = backbone_names()[1:]
# a backbone of each module of keras.applications, since the members of a module share its preprocess_input
FAMILIES = {inspect.getmodule(application_builder(name)): name for name in APPLICATIONS}


class SizeAskedError(Exception):
    pass


def size_asked_by(name: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """The default size that an Application hands to Keras's shape check, which is as far as it is let."""

    def stop(*_args, default_size: int, **_kwargs):
        raise SizeAskedError(default_size)

    builder = application_builder(name)
    if name.startswith("MobileNetV3"):  # takes any size without asking; its documentation names the one it was made for
        return int(re.search(r"\((\d+), \1, 3\)", inspect.getsource(inspect.getmodule(builder)))[1])
    monkeypatch.setattr(inspect.getmodule(builder).imagenet_utils, "obtain_input_shape", stop)
    with pytest.raises(SizeAskedError) as caught:
        builder(weights=None)
    return caught.value.args[0]


@pytest.mark.parametrize("name", APPLICATIONS)
def test_the_default_size_is_the_one_that_the_application_asks_for(name, monkeypatch):
    assert default_image_size(name) == size_asked_by(name, monkeypatch)


@pytest.mark.parametrize("name", FAMILIES.values())
def test_the_preprocessing_gives_what_preprocess_input_gives(name):
    module = inspect.getmodule(application_builder(name))
    images = np.random.default_rng(1).uniform(0, 255, (2, 5, 4, 3)).astype(np.float32)
    expected = module.preprocess_input(images.copy())
    np.testing.assert_allclose(preprocessing_of(name).apply(images), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name", APPLICATIONS)
def test_pixels_are_rescaled_once_before_the_backbone_or_inside_it(name):
    builder = application_builder(name)
    # the builders say so by this parameter, but for EfficientNet, which always rescales inside
    rescales_inside = "include_preprocessing" in inspect.signature(builder).parameters or "EfficientNetB" in name
    assert (preprocessing_of(name) == IDENTITY) is rescales_inside


def test_a_backbone_with_identity_preprocessing_brings_its_own_rescaling():
    backbone = tf.keras.applications.MobileNetV3Small(include_top=False, weights=None, input_shape=(32, 32, 3))
    rescaling = next(layer for layer in backbone.layers if isinstance(layer, tf.keras.layers.Rescaling))
    assert preprocessing_of("MobileNetV3Small") == IDENTITY
    np.testing.assert_allclose(rescaling(np.array([[0.0, 255.0]], np.float32)), [[-1, 1]], atol=1e-6)


def test_small_cnn_wants_pixels_from_minus_one_to_one():
    images = np.array([[[[0, 127.5, 255]]]], np.float32)
    np.testing.assert_allclose(preprocessing_of(SMALL_CNN).apply(images), [[[[-1, 0, 1]]]], atol=1e-6)


def test_the_names_are_the_builders_and_not_the_modules_beside_them():
    assert {"InceptionResNetV2", "MobileNetV2", "VGG16"} <= set(APPLICATIONS)
    assert not {"mobilenet_v2", "vgg16", "imagenet_utils"} & set(APPLICATIONS)


def test_an_unknown_name_is_answered_with_the_nearest_ones_and_their_number():
    with pytest.raises(
        BackboneError, match=rf"no backbone 'mobilnetv2'; did you mean MobileNetV2 .*{len(APPLICATIONS)} Keras"
    ):
        default_image_size("mobilnetv2")


def test_small_cnn_is_not_an_application():
    with pytest.raises(BackboneError, match="small_cnn is Feedline's own"):
        application_builder(SMALL_CNN)


def test_exchanged_channels_and_a_scale_of_its_own_for_each_are_read_from_the_function():
    affine = channel_affine_of(lambda images: images[..., ::-1] * [2.0, 0.5, 1.0] + [0.0, -1.0, 3.0])
    assert affine.reverse_channels
    np.testing.assert_allclose(affine.scale, [2.0, 0.5, 1.0], rtol=1e-6)
    np.testing.assert_allclose(affine.offset, [0.0, -1.0, 3.0])


@pytest.mark.parametrize(
    "preprocess_input",
    [
        lambda images: images**2,
        lambda images: images - images.mean(-1, keepdims=True),
        lambda images: images[..., [1, 2, 0]],
    ],
    ids=["not linear", "mixes channels", "other order"],
)
def test_a_function_that_is_no_scale_and_offset_is_refused(preprocess_input):
    with pytest.raises(BackboneError, match="not a scale and an offset a channel"):
        channel_affine_of(preprocess_input)
