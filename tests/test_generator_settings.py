"""The constructor, `fit` and `standardize`: what Keras's class accepts, refuses, warns of and computes."""

import inspect
import warnings

import numpy as np
import pytest
import tensorflow as tf

from pipeline.generator import ImageDataGenerator

Keras = tf.keras.preprocessing.image.ImageDataGenerator


def outcome(kind, **arguments):
    """The exception's type, or the attributes; and the texts of the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            made = kind(**arguments)
        except Exception as error:
            return type(error), []
    return made, [str(warning.message) for warning in caught]


def test_the_signatures_are_kerass():
    for name in ("__init__", "flow", "flow_from_directory", "flow_from_dataframe", "fit", "standardize",
                 "get_random_transform", "apply_transform", "random_transform"):  # fmt: skip
        ours, theirs = (
            inspect.signature(getattr(kind, name)).parameters.values() for kind in (ImageDataGenerator, Keras)
        )
        positional = [(p.name, p.default) for p in ours if p.kind is p.POSITIONAL_OR_KEYWORD]
        assert positional == [(p.name, p.default) for p in theirs if p.kind is p.POSITIONAL_OR_KEYWORD], name


@pytest.mark.parametrize(
    "arguments",
    [
        {"zoom_range": 3},
        {"zoom_range": np.float64(0.3)},
        {"zoom_range": (0.5, 2)},
        {"zoom_range": (0.5, 0.6, 0.7)},
        {"zoom_range": ["a", "b"]},
        {"zoom_range": np.float32(0.3)},
        {"validation_split": 1},
        {"validation_split": 1.5},
        {"validation_split": -0.1},
        {"validation_split": 0.25},
        {"validation_split": None},
        {"data_format": "channels_middle"},
        {"data_format": "channels_first"},
        {"brightness_range": 0.5},
        {"brightness_range": [0.5]},
        {"brightness_range": (0.5, 1.5)},
        {"brightness_range": [0.5, 1.5]},
        {"zca_whitening": True},
        {"zca_whitening": True, "featurewise_center": True},
        {"zca_whitening": True, "featurewise_std_normalization": True},
        {"featurewise_std_normalization": True},
        {"samplewise_std_normalization": True},
        {"fill_mode": "unheard of", "interpolation_order": 9},
        {"dtype": "float64", "rescale": 2, "rotation_range": None},
    ],
    ids=str,
)
def test_arguments_are_taken_and_refused_as_by_keras(arguments):
    ours, our_warnings = outcome(ImageDataGenerator, **arguments)
    theirs, their_warnings = outcome(Keras, **arguments)
    if isinstance(theirs, type):
        assert ours is theirs
        return
    assert len(our_warnings) == len(their_warnings)
    for name, value in vars(theirs).items():
        found = getattr(ours, name)
        assert found == (tuple(value) if name == "brightness_range" and value else value), name


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"width_shift_range": 1}, "width_shift_range=1 means no shift at all"),
        ({"height_shift_range": 1.0}, r"height_shift_range=1\.0 means one pixel"),
        ({"shear_range": 0.4}, r"shear_range=0\.4 means 0\.4 degrees"),
    ],
)
def test_numbers_that_do_not_mean_what_they_look_like_are_said(arguments, message):
    with pytest.warns(UserWarning, match=message):
        ImageDataGenerator(**arguments)


FITTED = [
    {"featurewise_center": True},
    {"featurewise_center": True, "featurewise_std_normalization": True, "rescale": 1 / 255},
    {"zca_whitening": True, "featurewise_center": True, "zca_epsilon": 1e-3},
    {"samplewise_center": True, "samplewise_std_normalization": True},
    {"preprocessing_function": lambda image: image / 2 + 1, "samplewise_center": True},
]


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
@pytest.mark.parametrize("arguments", FITTED, ids=lambda arguments: "-".join(arguments))
def test_statistics_and_standardizing_are_kerass(arguments, data_format):
    shape = (20, 6, 5, 3) if data_format == "channels_last" else (20, 3, 6, 5)
    x = np.random.default_rng(0).uniform(0, 255, shape).astype("float32")
    ours, theirs = (kind(**arguments, data_format=data_format) for kind in (ImageDataGenerator, Keras))
    ours.fit(x)
    theirs.fit(x)
    for name in ("mean", "std", "zca_whitening_matrix"):
        found, expected = getattr(ours, name), getattr(theirs, name)
        assert (found is None) is (expected is None), name
        if expected is not None:
            assert found.shape == expected.shape
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(ours.standardize(x[0].copy()), theirs.standardize(x[0].copy()), rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(ours.standardize(x.copy()), theirs.standardize(x.copy()), rtol=1e-4, atol=1e-3)


def test_fitting_on_changed_images_is_kerass_for_the_same_seed():
    x = np.random.default_rng(0).uniform(0, 255, (6, 8, 8, 3))
    arguments = {"featurewise_center": True, "rotation_range": 90, "width_shift_range": 0.3}
    ours, theirs = ImageDataGenerator(**arguments, keras_exact=True), Keras(**arguments)
    state = np.random.get_state()
    try:
        theirs.fit(x, augment=True, rounds=2, seed=4)
    finally:
        np.random.set_state(state)
    ours.fit(x, augment=True, rounds=2, seed=4)
    np.testing.assert_allclose(ours.mean, theirs.mean, atol=1e-4)


def test_fit_refuses_and_warns_as_keras_does():
    generator = ImageDataGenerator(featurewise_center=True)
    with pytest.raises(ValueError, match=r"Input to `\.fit\(\)` should have rank 4"):
        generator.fit(np.zeros((3, 4, 4)))
    with pytest.warns(UserWarning, match="expected either 1, 3 or 4 channels on axis 3"):
        generator.fit(np.zeros((3, 4, 4, 5)))
    with pytest.warns(UserWarning, match="hasn't been fit on any training data"):
        ImageDataGenerator(featurewise_center=True).standardize(np.zeros((4, 4, 3)))


def test_a_generator_explains_itself():
    with pytest.warns(UserWarning, match="degrees"):
        text = ImageDataGenerator(shear_range=0.4, width_shift_range=0.2).explain()
    assert "0.4 degrees" in text
    assert "width_shift_range" in text
