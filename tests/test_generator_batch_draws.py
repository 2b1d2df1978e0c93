"""The draws of a whole epoch: Keras's distributions for every form of every range, each row on its own."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from pipeline.generator.batch_draws import COLUMNS, NEUTRAL, as_parameters, draw_batch, kernel_rows
from pipeline.generator.settings import make_settings
from pipeline.generator.transforms import draw_transform

keras_image = tf.keras.preprocessing.image

SHAPE = (30, 50, 3)
COUNT = 2000
# a level that two equal distributions miss once in a thousand seeds; the seeds are fixed
LEAST_P = 1e-3

FORMS = {
    "rotation": {"rotation_range": 30},
    "negative rotation": {"rotation_range": -30.0},
    "no rotation": {"rotation_range": None},
    "float shifts below 1": {"width_shift_range": 0.4, "height_shift_range": 0.2},
    "float shifts in pixels": {"width_shift_range": 5.5, "height_shift_range": 2.0},
    "negative float shifts": {"width_shift_range": -0.2, "height_shift_range": -2.5},
    "numpy float shifts": {"width_shift_range": np.float64(0.3), "height_shift_range": np.float32(0.25)},
    "int shifts": {"width_shift_range": 3, "height_shift_range": 7},
    "numpy int shifts": {"width_shift_range": np.int64(4), "height_shift_range": np.int32(2)},
    "negative int shifts": {"width_shift_range": -3, "height_shift_range": -1},
    "bool shifts": {"width_shift_range": True, "height_shift_range": False},
    "list of shares": {"width_shift_range": [-0.2, 0.2], "height_shift_range": [0.1, 0.3, 0.5]},
    "tuple of pixels": {"width_shift_range": (10, 20), "height_shift_range": (3,)},
    "list with both": {"width_shift_range": [0.5, 10], "height_shift_range": [0, 0.25]},
    "shear": {"shear_range": 20},
    "negative shear": {"shear_range": -5.0},
    "zoom by a float": {"zoom_range": 0.25},
    "zoom by a pair": {"zoom_range": (0.5, 2.0)},
    "zoom by a pair turned round": {"zoom_range": [1.5, 0.75]},
    "zoom by one factor": {"zoom_range": (0.8, 0.8)},
    "both flips": {"horizontal_flip": True, "vertical_flip": True},
    "one flip": {"horizontal_flip": False, "vertical_flip": True},
    "channel shift": {"channel_shift_range": 40.0},
    "negative channel shift": {"channel_shift_range": -40},
    "brightness": {"brightness_range": (0.5, 1.5)},
    "brightness turned round": {"brightness_range": [1.5, 0.2]},
    "everything": {
        "rotation_range": 10,
        "width_shift_range": 0.1,
        "height_shift_range": 3,
        "shear_range": 15,
        "zoom_range": 0.2,
        "horizontal_flip": True,
        "channel_shift_range": 5.0,
        "brightness_range": (0.8, 1.2),
    },
}


def drawn_by_keras(form, shape=SHAPE, **more):
    """2,000 parameter dictionaries of the installed Keras; its global numpy generator is put back as it was."""
    generator = keras_image.ImageDataGenerator(**form, **more)
    before = np.random.get_state()
    np.random.set_state(np.random.RandomState(1234).get_state())
    try:
        rows = [generator.get_random_transform(shape) for _ in range(COUNT)]
    finally:
        np.random.set_state(before)
    return {name: [row[name] for row in rows] for name in COLUMNS}


def assert_the_same_distribution(ours, keras, what):
    """Equal sets and like shares for a discrete column, otherwise the two-sample test of Kolmogorov and Smirnov."""
    values, counts = np.unique(np.round(keras, 9), return_counts=True)
    if len(values) > 30:
        assert len(np.unique(ours)) > 0.9 * COUNT, f"{what}: discrete where Keras is not"
        assert stats.ks_2samp(ours, keras).pvalue > LEAST_P, what
        return
    ours_values, ours_counts = np.unique(np.round(ours, 9) + 0.0, return_counts=True)
    np.testing.assert_allclose(ours_values, values, atol=1e-6, err_msg=what)
    if len(values) > 1:
        assert stats.chi2_contingency([ours_counts, counts]).pvalue > LEAST_P, what


@pytest.mark.filterwarnings("ignore:(width_shift|height_shift|shear)_range=:UserWarning")
@pytest.mark.parametrize("keras_exact", [False, True], ids=["default", "exact"])
@pytest.mark.parametrize("form", FORMS.values(), ids=list(FORMS))
def test_every_form_has_kerass_distribution(form, keras_exact):
    settings = make_settings(**form, keras_exact=keras_exact)
    ours = draw_batch(settings, seed=5, epoch=1, count=COUNT, image_shape=SHAPE)
    assert ours.shape == (COUNT, len(COLUMNS))
    assert ours.dtype == np.float64
    keras = drawn_by_keras(form)
    for column, (name, neutral) in enumerate(zip(COLUMNS, NEUTRAL, strict=True)):
        # by default the width's range moves sideways, which in Keras's class the height's does
        theirs = name if keras_exact else {"tx": "ty", "ty": "tx"}.get(name, name)
        expected = np.array([neutral if value is None else float(value) for value in keras[theirs]])
        assert_the_same_distribution(ours[:, column], expected, name)


@pytest.mark.parametrize("keras_exact", [False, True], ids=["default", "exact"])
def test_images_with_channels_first_are_shifted_by_their_own_sides(keras_exact):
    form = {"width_shift_range": [0.5], "height_shift_range": [0.1]}
    settings = make_settings(**form, data_format="channels_first", keras_exact=keras_exact)
    ours = draw_batch(settings, seed=0, epoch=1, count=50, image_shape=(3, 30, 50))
    sideways, upright = (3.0, 25.0) if keras_exact else (25.0, 3.0)
    np.testing.assert_allclose(np.abs(ours[:, 1]), sideways)
    np.testing.assert_allclose(np.abs(ours[:, 2]), upright)


def test_columns_are_independent_of_each_other():
    settings = make_settings(
        rotation_range=30,
        width_shift_range=0.4,
        height_shift_range=0.4,
        shear_range=10,
        zoom_range=0.25,
        horizontal_flip=True,
        vertical_flip=True,
        channel_shift_range=10.0,
        brightness_range=(0.5, 1.5),
    )
    ours = draw_batch(settings, seed=2, epoch=1, count=COUNT, image_shape=SHAPE)
    correlation = np.corrcoef(ours.T) - np.eye(len(COLUMNS))
    assert np.abs(correlation).max() < 0.08  # 3.5 standard deviations


def test_a_row_depends_on_seed_epoch_and_sample_alone():
    settings = make_settings(rotation_range=30, width_shift_range=5, zoom_range=0.2, horizontal_flip=True)

    def draw(count, seed=3, epoch=2):
        return draw_batch(settings, seed=seed, epoch=epoch, count=count, image_shape=SHAPE)

    whole = draw(100)
    for count in (0, 1, 7, 99):
        assert np.array_equal(draw(count), whole[:count])
    assert not np.array_equal(draw(100, epoch=3)[:, 0], whole[:, 0])
    assert not np.array_equal(draw(100, seed=4)[:, 0], whole[:, 0])
    assert np.array_equal(draw(100), whole)


def test_switching_one_range_on_leaves_the_draws_of_the_others_alone():
    form = {"rotation_range": 30, "width_shift_range": [0.1, 0.2], "brightness_range": (0.5, 1.5)}
    fewer = draw_batch(make_settings(**form), seed=1, epoch=1, count=40, image_shape=SHAPE)
    settings = make_settings(**form, height_shift_range=4, shear_range=9, zoom_range=0.3, vertical_flip=True)
    more = draw_batch(settings, seed=1, epoch=1, count=40, image_shape=SHAPE)
    for name in ("theta", "tx", "brightness"):
        column = COLUMNS.index(name)
        assert np.array_equal(fewer[:, column], more[:, column])


def test_global_random_state_is_left_alone():
    before = np.random.get_state()[1].copy()
    draw_batch(make_settings(rotation_range=30, zoom_range=0.2), seed=1, epoch=1, count=10, image_shape=SHAPE)
    assert np.array_equal(np.random.get_state()[1], before)


def test_a_row_becomes_the_dictionary_that_one_image_takes():
    settings = make_settings(rotation_range=30, horizontal_flip=True)
    (row,) = draw_batch(settings, seed=1, epoch=1, count=1, image_shape=SHAPE)
    parameters = as_parameters(row, settings)
    assert list(parameters) == list(draw_transform(settings, SHAPE, np.random.RandomState(0)))
    assert parameters["theta"] == row[0]
    assert parameters["flip_horizontal"] is bool(row[6])
    assert parameters["channel_shift_intensity"] is None
    assert parameters["brightness"] is None
    both = make_settings(channel_shift_range=5.0, brightness_range=(0.5, 1.5))
    parameters = as_parameters(draw_batch(both, seed=1, epoch=1, count=1, image_shape=SHAPE)[0], both)
    assert -5 <= parameters["channel_shift_intensity"] <= 5
    assert 0.5 <= parameters["brightness"] <= 1.5


@pytest.mark.parametrize("keras_exact", [False, True], ids=["default", "exact"])
def test_a_neutral_row_is_the_identity_to_the_bit(keras_exact):
    rows = kernel_rows(np.array([NEUTRAL]), make_settings(keras_exact=keras_exact), 17, 30)
    assert rows.dtype == np.float32
    assert rows.tolist() == [[1, 0, 0, 0, 1, 0, 0, 1]]


def test_kernel_rows_by_hand():
    draws = np.array([NEUTRAL, NEUTRAL, NEUTRAL])
    draws[0, 1:3] = 3.0, -2.0  # tx, ty
    draws[1, 6] = 1.0  # flip_horizontal
    draws[2, 0] = 90.0  # theta, on an image of 5 rows and 9 columns
    right = kernel_rows(draws, make_settings(), 5, 9)
    np.testing.assert_allclose(right[0], [1, 0, 3, 0, 1, -2, 0, 1], atol=1e-6)
    np.testing.assert_allclose(right[1], [-1, 0, 0, 0, 1, 0, 0, 1], atol=1e-6)
    np.testing.assert_allclose(right[2], [0, -1, 0, 1, 0, 0, 0, 1], atol=1e-6)
    # Keras turns about column 2, row 4; from the true centre (4, 2) that pivot lies at (-2, 2)
    exact = kernel_rows(draws, make_settings(keras_exact=True), 5, 9)
    np.testing.assert_allclose(exact[:2], right[:2], atol=1e-6)
    np.testing.assert_allclose(exact[2], [0, -1, 0, 1, 0, 4, 0, 1], atol=1e-6)
