"""The functions beside the class: Keras's where it has them, and our own against Keras's."""

import numpy as np
import pytest
import tensorflow as tf

import pipeline
from pipeline import generator
from pipeline.generator.functions import OWN

keras_image = tf.keras.preprocessing.image
IMAGE = np.random.default_rng(0).uniform(0, 255, (3, 9, 12)).astype("float32")


def test_every_function_is_kerass_own_and_stands_beside_the_class():
    for name in (*OWN, "smart_resize"):
        assert getattr(generator, name) is getattr(keras_image, name), name
        assert getattr(pipeline, name) is getattr(generator, name), name


@pytest.mark.parametrize(
    "axes", [{}, {"row_axis": 0, "col_axis": 1, "channel_axis": 2}, {"row_axis": 2, "col_axis": 1}]
)
def test_our_affine_transform_is_kerass(axes):
    image = IMAGE.transpose(1, 2, 0) if axes.get("channel_axis") == 2 else IMAGE
    values = {"theta": 25, "tx": 1.5, "ty": -2, "shear": 10, "zx": 0.8, "zy": 1.3, "fill_mode": "reflect", **axes}
    expected = keras_image.apply_affine_transform(image, **values)
    np.testing.assert_allclose(OWN["apply_affine_transform"](image, **values), expected, atol=1e-3)


@pytest.mark.parametrize(
    "axes",
    [{"row_axis": 1, "col_axis": 1}, {"row_axis": 0, "col_axis": 3}, {"row_axis": 0, "channel_axis": 1, "col_axis": 2}],
)
def test_impossible_axes_are_refused_as_by_keras(axes):
    for function in (OWN["apply_affine_transform"], keras_image.apply_affine_transform):
        with pytest.raises(ValueError, match=r"axis|Channels"):
            function(IMAGE, theta=5, **axes)
    with pytest.raises(ValueError, match="multi-channel 2D images"):
        OWN["apply_affine_transform"](IMAGE[0])


def test_our_changes_of_level_are_kerass():
    last = IMAGE.transpose(1, 2, 0)
    for scale in (True, False):
        expected = keras_image.apply_brightness_shift(last - 20, 0.7, scale)
        np.testing.assert_allclose(OWN["apply_brightness_shift"](last - 20, 0.7, scale), expected, atol=1e-3)
    expected = keras_image.apply_channel_shift(IMAGE, 40)
    np.testing.assert_allclose(OWN["apply_channel_shift"](IMAGE, 40), expected, atol=1e-3)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("random_rotation", (40,)),
        ("random_shear", (30,)),
        ("random_shift", (0.3, 0.2)),
        ("random_zoom", ((0.6, 0.8),)),
        ("random_channel_shift", (30,)),
    ],
)
def test_our_random_functions_change_images_within_their_range(name, arguments):
    state = np.random.get_state()[1].copy()
    first, second = (OWN[name](IMAGE, *arguments) for _ in range(2))
    assert first.shape == IMAGE.shape
    assert not np.array_equal(first, second)
    assert first.min() >= IMAGE.min() - 1e-3
    assert first.max() <= IMAGE.max() + 1e-3
    assert np.array_equal(state, np.random.get_state()[1])
    with_axes = OWN[name](IMAGE.transpose(1, 2, 0), *arguments, **({} if "channel" in name else {
        "row_axis": 0, "col_axis": 1, "channel_axis": 2, "fill_mode": "wrap"
    }))  # fmt: skip
    assert with_axes.shape == (9, 12, 3)


def test_our_random_brightness_and_what_is_no_pair():
    last = IMAGE.transpose(1, 2, 0)
    assert OWN["random_brightness"](last, (0.4, 0.5)).mean() < last.mean() * 0.6
    for name in ("random_brightness", "random_zoom"):
        with pytest.raises(ValueError, match="should be"):
            OWN[name](last, (1, 2, 3))
