"""One image, drawn and transformed: against Keras's real generator and by hand."""

import random

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pipeline.generator import ImageDataGenerator
from pipeline.generator.transforms import apply_transform, draw_transform, inverse_maps

Keras = tf.keras.preprocessing.image.ImageDataGenerator
SHAPES = [(5, 9), (8, 8), (7, 12), (16, 5), (13, 13), (21, 10)]
RECIPE = {
    "rotation_range": 30,
    "width_shift_range": 0.4,
    "height_shift_range": 0.4,
    "shear_range": 0.4,
    "zoom_range": 0.25,
    "horizontal_flip": True,
    "brightness_range": (0.5, 1.5),
}
RAMP = np.arange(25.0).reshape(5, 5, 1)

pytestmark = [
    pytest.mark.filterwarnings("ignore:shear_range=0.4 means:UserWarning"),
    pytest.mark.filterwarnings("ignore:(width|height)_shift_range=1"),
]


def image_of(shape: tuple[int, int], channels: int, seed: int = 0, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(seed).uniform(0, 255, (*shape, channels)).astype(dtype)


@st.composite
def parameters(draw):
    number = lambda low, high: draw(st.floats(low, high, width=32))  # noqa: E731
    return {
        "theta": number(-180, 180),
        "tx": number(-9, 9),
        "ty": number(-9, 9),
        "shear": number(-60, 60),
        "zx": number(0.25, 2),
        "zy": number(0.25, 2),
        "flip_horizontal": draw(st.booleans()),
        "flip_vertical": draw(st.booleans()),
        "channel_shift_intensity": draw(st.none() | st.floats(-80, 80, width=32)),
        "brightness": draw(st.none() | st.floats(0, 3, width=32)),
    }


@settings(max_examples=60, deadline=None)
@given(
    parameters=parameters(),
    shape=st.sampled_from(SHAPES),
    channels=st.sampled_from([1, 3, 4]),
    fill_mode=st.sampled_from(["constant", "nearest", "reflect", "wrap"]),
    order=st.sampled_from([0, 1, 1, 3]),
)
def test_exact_transforms_are_kerass(parameters, shape, channels, fill_mode, order):
    image = image_of(shape, channels)
    arguments = {"fill_mode": fill_mode, "cval": 17.0, "interpolation_order": order}
    ours = ImageDataGenerator(**arguments, keras_exact=True).apply_transform(image, parameters)
    np.testing.assert_allclose(ours, Keras(**arguments).apply_transform(image, parameters), atol=1e-3)


@settings(max_examples=20, deadline=None)
@given(parameters=parameters(), shape=st.sampled_from(SHAPES))
def test_channels_first_is_the_same_image_in_another_layout(parameters, shape):
    parameters = {**parameters, "brightness": None}
    image = image_of(shape, 3)
    last = ImageDataGenerator().apply_transform(image, parameters)
    first = ImageDataGenerator(data_format="channels_first").apply_transform(image.transpose(2, 0, 1), parameters)
    np.testing.assert_allclose(first.transpose(1, 2, 0), last, atol=1e-4)


def test_the_documented_values_of_the_affine_step():
    def row(order=1, fill_mode="nearest", cval=0.0, image=RAMP, **values):
        generator = ImageDataGenerator(interpolation_order=order, fill_mode=fill_mode, cval=cval)
        return generator.apply_transform(image, values)[0, :, 0].round(3).tolist()

    assert row(theta=30) == [1.268, 2.134, 4.34, 7.706, 10.34]
    assert row(shear=30) == [2.34, 3.34, 4.34, 5.34, 5.34]
    assert row(zx=0.5) == [1, 1.5, 2, 2.5, 3]
    assert row(tx=1.5) == [1.5, 2.5, 3.5, 4, 4]
    assert row(theta=20, tx=1, ty=-1, shear=10, zx=0.9, zy=1.2) == [2.79, 3.636, 4, 4, 4]
    line = np.array([[10.0, 20, 30, 40, 50]])[..., np.newaxis]
    assert row(image=line, tx=-2, cval=-1, fill_mode="constant") == [-1, -1, 10, 20, 30]
    assert row(image=line, tx=-2, fill_mode="reflect") == [20, 10, 10, 20, 30]
    assert row(image=line, tx=-2, fill_mode="wrap") == [30, 40, 10, 20, 30]
    assert row(image=line, tx=0.5, order=0) == [20, 30, 40, 50, 50]


def test_by_default_the_pivot_is_the_middle_of_the_image():
    # a dot in the middle of a wide image stays where it is when the image turns
    image = np.zeros((5, 9, 1), np.float32)
    image[2, 4] = 255
    np.testing.assert_allclose(ImageDataGenerator().apply_transform(image, {"theta": 90})[2, 4], 255, atol=1e-3)
    assert Keras().apply_transform(image, {"theta": 90})[2, 4] == 0


def test_nothing_to_do_gives_the_image_itself_and_nothing_changes_it():
    image = image_of((6, 7), 3)
    before = image.copy()
    assert ImageDataGenerator().apply_transform(image, {}) is image
    ImageDataGenerator().apply_transform(
        image, {"theta": 5, "brightness": 0.5, "channel_shift_intensity": 9, "flip_vertical": True}
    )
    np.testing.assert_array_equal(image, before)


@pytest.mark.parametrize(
    ("low", "high", "dtype", "top"),
    [(0, 1, "float32", 1), (-1, 1, "float32", 1), (0, 255, "float32", 255), (0, 255, "uint8", 255)],
)
def test_brightness_multiplies_and_clips_to_the_range_that_the_image_uses(low, high, dtype, top):
    image = np.linspace(low, high, 48).reshape(4, 4, 3).astype(dtype)
    bright = ImageDataGenerator().apply_transform(image, {"brightness": 1.5})
    np.testing.assert_allclose(bright, np.clip(image.astype("float32") * 1.5, low, top), rtol=1e-6)


def test_exact_brightness_blackens_images_that_are_scaled_to_one_as_in_keras():
    image = np.linspace(0, 0.99, 48, dtype="float32").reshape(4, 4, 3)
    assert not ImageDataGenerator(keras_exact=True).apply_transform(image, {"brightness": 1.0}).any()


def test_the_golden_draws_of_the_recipe():
    generator = ImageDataGenerator(**RECIPE, keras_exact=True)
    golden = {
        0: [2.92881, 51.473296, 24.581, 0.035907, 0.961827, 1.072947, 1.463663],
        1: [-4.97868, 52.701619, -119.572642, -0.158134, 0.823378, 0.796169, 0.896767],
        2: [-3.840306, -113.398445, 11.879265, -0.051742, 0.960184, 0.915167, 0.799655],
    }
    for seed, values in golden.items():
        drawn = generator.get_random_transform((299, 299, 3), seed=seed)
        found = [drawn[name] for name in ("theta", "tx", "ty", "shear", "zx", "zy", "brightness")]
        np.testing.assert_allclose(found, values, atol=2e-6)
        assert drawn["flip_horizontal"]


FORMS = [
    {"rotation_range": 40},
    {"rotation_range": -40},
    {"width_shift_range": 0.3, "height_shift_range": 0.1},
    {"width_shift_range": 5.5, "height_shift_range": 1.0},
    {"width_shift_range": 3, "height_shift_range": 1},
    {"width_shift_range": [-0.2, 0.2], "height_shift_range": (10, 20, 30)},
    {"width_shift_range": [0.2], "height_shift_range": -0.2},
    {"width_shift_range": [0.0], "height_shift_range": -3},
    {"shear_range": 20.0},
    {"zoom_range": 0.3},
    {"zoom_range": [0.5, 0.6]},
    {"channel_shift_range": 25},
    {"brightness_range": [0.2, 0.9]},
    {"horizontal_flip": True, "vertical_flip": True},
    RECIPE,
]


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("seed", [0, 7])
def test_exact_draws_are_kerass_for_every_form_and_seed(form, seed):
    before = np.random.get_state()
    ours = ImageDataGenerator(**form, keras_exact=True).get_random_transform((20, 30, 3), seed=seed)
    assert np.array_equal(np.random.get_state()[1], before[1])
    try:
        theirs = Keras(**form).get_random_transform((20, 30, 3), seed=seed)
    finally:
        np.random.set_state(before)
    assert ours == pytest.approx(theirs)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_batches_are_drawn_with_kerass_distributions(form):
    generator = ImageDataGenerator(**form, keras_exact=True)
    from pipeline.generator.batch_draws import COLUMNS, draw_batch

    ours = draw_batch(generator.settings, seed=5, epoch=1, count=2000, image_shape=(20, 30, 3))
    keras, state = Keras(**form), np.random.get_state()
    try:
        theirs = [keras.get_random_transform((20, 30, 3), seed=seed) for seed in range(2000)]
    finally:
        np.random.set_state(state)
    for column, name in enumerate(COLUMNS):
        expected = np.array([values[name] if values[name] is not None else ours[0, column] for values in theirs], float)
        found = ours[:, column]
        choices = np.unique(expected)
        if len(choices) <= 20:  # one of a few values: the same values, about equally often
            assert np.array_equal(np.unique(found), choices), name
            for choice in choices:
                assert abs((found == choice).mean() - (expected == choice).mean()) < 0.06, (name, choice)
        else:
            assert stats.ks_2samp(found, expected).pvalue > 1e-4, name


def test_draws_of_a_sample_depend_on_seed_epoch_and_index_alone():
    from pipeline.generator.batch_draws import draw_batch

    chosen = ImageDataGenerator(**RECIPE).settings
    many = draw_batch(chosen, seed=3, epoch=2, count=50, image_shape=(20, 30, 3))
    few = draw_batch(chosen, seed=3, epoch=2, count=7, image_shape=(20, 30, 3))
    np.testing.assert_array_equal(many[:7], few)
    assert not np.array_equal(draw_batch(chosen, seed=3, epoch=3, count=7, image_shape=(20, 30, 3)), few)
    assert not np.array_equal(draw_batch(chosen, seed=4, epoch=2, count=7, image_shape=(20, 30, 3)), few)


def test_width_shift_moves_sideways_by_default_and_up_and_down_on_request():
    image = np.tile(np.arange(20.0)[:, np.newaxis, np.newaxis], (1, 20, 3)).astype(
        "float32"
    )  # rows differ, columns do not
    for exact, moves_rows in ((False, False), (True, True)):
        generator = ImageDataGenerator(width_shift_range=[0.25], keras_exact=exact)
        moved = generator.random_transform(image, seed=1)
        assert np.array_equal(moved, image) != moves_rows


def test_a_generator_never_touches_global_random_state():
    before = np.random.get_state()[1].copy(), random.getstate()
    generator = ImageDataGenerator(**RECIPE)
    generator.random_transform(image_of((8, 8), 3))
    generator.fit(np.zeros((3, 8, 8, 3)), augment=True, seed=3)
    next(generator.flow(np.zeros((5, 8, 8, 3)), seed=1))
    assert np.array_equal(before[0], np.random.get_state()[1])
    assert before[1] == random.getstate()


def test_maps_agree_with_the_formula_by_hand():
    # a quarter turn about the middle of a 3 x 5 image sends the output's (column 2, row 0) to the input's (3, 1)
    (quarter,) = inverse_maps(90, 0, 0, 0, 1, 1, height=3, width=5, exact_pivot=False)
    np.testing.assert_allclose(quarter @ [2, 0, 1], [3, 1], atol=1e-12)


def test_module_functions_take_what_the_methods_take():
    chosen = ImageDataGenerator(**RECIPE).settings
    drawn = draw_transform(chosen, (8, 9, 3), np.random.RandomState(1))
    assert apply_transform(image_of((8, 9), 3), drawn, chosen).shape == (8, 9, 3)
