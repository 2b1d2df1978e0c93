"""Which preprocessing functions run as tensors: those of keras.applications and no others."""

import functools
import inspect

import numpy as np
import pytest
import tensorflow as tf

from pipeline import ChannelAffine
from pipeline.augment.preprocess_input import channel_affine_of
from pipeline.generator.recognise import recognise

applications = tf.keras.applications
MODULES = sorted(name for name in dir(applications) if hasattr(getattr(applications, name), "preprocess_input"))


@pytest.mark.parametrize("name", MODULES)
def test_the_functions_of_keras_applications_are_recognised_and_mean_the_same(name):
    function = getattr(applications, name).preprocess_input
    affine = recognise(function)
    images = np.random.default_rng(0).uniform(0, 255, (2, 5, 4, 3)).astype(np.float32)
    np.testing.assert_allclose(affine.apply(images), function(images.copy()), rtol=1e-5, atol=1e-4)
    # a generator hands over one image, not a batch
    np.testing.assert_allclose(affine.apply(images[0]), function(images[0].copy()), rtol=1e-5, atol=1e-4)


def test_the_list_of_modules_is_not_empty():
    assert {"vgg16", "mobilenet_v2", "inception_resnet_v2", "imagenet_utils"} <= set(MODULES)


def test_every_networks_own_function_is_recognised():
    builders = [member for name in dir(applications) if inspect.isfunction(member := getattr(applications, name))]
    functions = {inspect.getmodule(builder).preprocess_input for builder in builders}
    assert len(functions) > 10
    assert all(recognise(function) is not None for function in functions)


def test_a_partial_that_fixes_keywords_is_recognised_and_one_that_fixes_the_image_is_not():
    function = applications.imagenet_utils.preprocess_input
    affine = recognise(functools.partial(function, mode="tf"))
    assert affine == ChannelAffine(scale=(1 / 127.5,) * 3, offset=(-1.0,) * 3)
    nested = functools.partial(functools.partial(function, mode="caffe"), mode="tf")
    assert recognise(nested) == affine
    assert recognise(functools.partial(function, np.zeros((2, 2, 3)))) is None


def test_a_persons_own_function_is_not_recognised_even_if_it_calls_one_of_kerass():
    calls = []

    def own(image):
        calls.append(image)
        return applications.vgg16.preprocess_input(image)

    assert recognise(own) is None
    assert recognise(lambda image: image / 127.5 - 1) is None
    assert recognise(np.sqrt) is None
    assert calls == []  # it may do anything, so it is never run to see


@pytest.mark.parametrize("channels", [1, 4])
def test_other_than_three_channels_are_recognised_where_all_are_treated_alike(channels):
    function = applications.mobilenet_v2.preprocess_input
    images = np.random.default_rng(0).uniform(0, 255, (2, 5, 4, channels)).astype(np.float32)
    np.testing.assert_allclose(recognise(function, channels).apply(images), function(images.copy()), atol=1e-5)
    # these subtract something else from each of three channels
    assert recognise(applications.vgg16.preprocess_input, channels) is None
    assert recognise(applications.densenet.preprocess_input, channels) is None


def test_channels_first_is_not_recognised_whoever_asks_for_it():
    function = applications.vgg16.preprocess_input
    assert recognise(functools.partial(function, data_format="channels_first")) is None
    tf.keras.backend.set_image_data_format("channels_first")
    try:
        assert recognise(function) is None
        assert recognise(functools.partial(function, data_format="channels_last")) is not None
    finally:
        tf.keras.backend.set_image_data_format("channels_last")


def test_reading_a_function_that_is_no_such_map_gives_none():
    assert channel_affine_of(lambda images: images**2) is None
    assert channel_affine_of(lambda images: images - images.mean(-1, keepdims=True)) is None
    affine = channel_affine_of(lambda images: images[..., ::-1] * [2.0, 0.5, 1.0] + [0.0, -1.0, 3.0])
    assert affine.reverse_channels
    np.testing.assert_allclose(affine.scale, [2.0, 0.5, 1.0], rtol=1e-6)
