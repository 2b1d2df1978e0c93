"""The batched kernel against one image at a time in float64, against Keras's brightness and against hand arithmetic."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_gpu_readiness import ops_of, without_gpu_kernel

from pipeline import FILL_MODES, ChannelAffine
from pipeline.augment.colour import scale_brightness_exact
from pipeline.generator.batch_draws import NEUTRAL, as_parameters, draw_batch, kernel_rows
from pipeline.generator.batch_kernel import KernelSpec, augment_batch, standardize_batch, why_not_fused
from pipeline.generator.settings import make_settings
from pipeline.generator.standardize import Statistics, standardize
from pipeline.generator.transforms import apply_transform, inverse_maps

keras_image = tf.keras.preprocessing.image

# odd, even, square or not, 1, 3 and 4 channels
SHAPES = ((16, 16, 3), (17, 30, 1), (31, 31, 4), (5, 9, 3), (24, 8, 1), (48, 64, 4))
COUNT = 16
# how near to a tap change or a border float32 may take the other side, and how many such pixels may be left out
NEAR = 1e-3
MOST_LEFT_OUT = 0.02
WIDE = {
    "rotation_range": 180,
    "width_shift_range": 0.4,
    "height_shift_range": 0.3,
    "shear_range": 25,
    "zoom_range": (0.4, 2.5),
    "horizontal_flip": True,
    "vertical_flip": True,
}

# each new shape compiles XLA again, which no deadline or health check should count
unhurried = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=24)


def random_images(count, shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, *shape), dtype=np.uint8)


def spec_of(given, value_range=(0.0, 255.0)):
    brightness = "off" if given.brightness_range is None else "exact" if given.keras_exact else "clip"
    return KernelSpec(
        order=given.interpolation_order,
        fill_mode=given.fill_mode,
        cval=given.cval,
        channel_shift=given.channel_shift_range != 0,
        brightness=brightness,
        value_range=value_range,
    )


def one_by_one(images, draws, given, value_range=(0.0, 255.0)):
    """What numpy and SciPy make of each image alone."""
    return np.stack(
        [
            apply_transform(image.astype(np.float32), as_parameters(row, given), given, value_range=value_range)
            for image, row in zip(images, draws, strict=True)
        ]
    )


def left_out(draws, given, shape):
    """bool (N, H, W): pixels whose position lies so near to a jump that float32 may fall on its other side."""
    height, width = shape[:2]
    maps = inverse_maps(*draws[:, :6].T, height=height, width=width, exact_pivot=given.keras_exact)
    rows, columns = np.mgrid[:height, :width]
    where = np.einsum("nij,jp->nip", maps, np.stack([columns.ravel(), rows.ravel(), np.ones(height * width)]))
    where = where.reshape(-1, 2, height, width)
    near = np.zeros((len(draws), height, width), bool)
    for axis, size in ((0, width), (1, height)):
        position = where[:, axis]
        # order 0 changes its tap half way, order 1 on each pixel: there XLA, which computes a position more than once,
        # may round it to either side and take a tap from each
        change = 0.5 if given.interpolation_order == 0 else 0.0
        near |= np.abs(np.mod(position - change + 0.5, 1) - 0.5) < NEAR
        if given.fill_mode == "wrap":
            offset = np.mod(position, size - 1)
            near |= np.minimum(offset, size - 1 - offset) < NEAR
        if given.fill_mode == "constant":
            near |= (np.abs(position) < NEAR) | (np.abs(position - (size - 1)) < NEAR)
    for index, row in enumerate(draws):
        if row[6]:
            near[index] = near[index, :, ::-1]
        if row[7]:
            near[index] = near[index, ::-1]
    return near


def compare(shape, given, seed, count=COUNT):
    """(largest difference of the pixels compared, share of the pixels left out)."""
    images = random_images(count, shape, seed)
    draws = draw_batch(given, seed=seed, epoch=1, count=count, image_shape=shape)
    found = augment_batch(spec_of(given))(images, kernel_rows(draws, given, *shape[:2])).numpy()
    assert found.dtype == np.float32
    out = left_out(draws, given, shape)
    difference = np.abs(found - one_by_one(images, draws, given))[~out]
    return difference.max(), out.mean()


@given(
    st.sampled_from(SHAPES), st.sampled_from(FILL_MODES), st.sampled_from((0, 1)), st.booleans(), st.integers(0, 10**6)
)
@unhurried
def test_the_kernel_equals_one_image_at_a_time(shape, fill_mode, order, keras_exact, seed):
    given = make_settings(**WIDE, fill_mode=fill_mode, cval=77.0, interpolation_order=order, keras_exact=keras_exact)
    difference, share_left_out = compare(shape, given, seed)
    assert difference < 0.05
    assert share_left_out <= MOST_LEFT_OUT


@pytest.mark.parametrize("shape", SHAPES)
def test_channel_shift_and_clipping_brightness_equal_one_image_at_a_time(shape):
    given = make_settings(**WIDE, channel_shift_range=60.0, brightness_range=(0.2, 1.8))
    difference, share_left_out = compare(shape, given, seed=3)
    assert difference < 0.05
    assert share_left_out <= MOST_LEFT_OUT


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("fill_mode", FILL_MODES)
def test_images_of_512_pixels_are_as_near(fill_mode, order):
    given = make_settings(
        rotation_range=40,
        width_shift_range=0.4,
        height_shift_range=0.4,
        shear_range=10,
        zoom_range=0.5,
        horizontal_flip=True,
        fill_mode=fill_mode,
        interpolation_order=order,
    )
    difference, share_left_out = compare((512, 384, 1), given, seed=8, count=2)
    assert difference < 0.05
    assert share_left_out <= MOST_LEFT_OUT


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("keras_exact", [False, True], ids=["default", "exact"])
def test_flips_alone_mirror_to_the_bit(order, keras_exact):
    given = make_settings(horizontal_flip=True, vertical_flip=True, interpolation_order=order, keras_exact=keras_exact)
    images = random_images(4, (5, 8, 3))
    draws = np.array([NEUTRAL] * 4)
    draws[:, 6:8] = [[0, 0], [1, 0], [0, 1], [1, 1]]
    found = augment_batch(spec_of(given))(images, kernel_rows(draws, given, 5, 8)).numpy()
    expected = [images[0], images[1][:, ::-1], images[2][::-1], images[3][::-1, ::-1]]
    assert np.array_equal(found, np.stack(expected))


def test_golden_rows_of_order_0():
    image = np.tile(np.array([10, 20, 30, 40, 50], np.uint8)[None, None, :, None], (1, 5, 1, 1))
    given = make_settings(interpolation_order=0)
    draws = np.array([NEUTRAL])
    draws[0, 1] = 0.5
    found = augment_batch(spec_of(given))(image, kernel_rows(draws, given, 5, 5)).numpy()
    assert found[0, 2, :, 0].tolist() == [20, 30, 40, 50, 50]


# -- brightness through 8 bits


@pytest.mark.parametrize("factor", [0.0, 0.5, 0.77, 1.0, 1.3, 2.5, -0.5])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_exact_brightness_is_kerass_for_all_256_levels(channels, factor):
    image = np.resize(np.arange(256, dtype=np.float32), (16, 16, channels))
    image = image + np.float32(0.25) * (image < 255)
    expected = keras_image.apply_brightness_shift(image, factor, scale=False)
    found = scale_brightness_exact(tf.constant(image[None]), tf.constant([factor], tf.float32)).numpy()[0]
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("low_high", [(-1.0, 1.0), (-40.0, 300.0), (10.0, 400.0), (0.0, 1.0), (-3.0, -3.0)])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_exact_brightness_stretches_what_leaves_0_to_255_as_keras_does(channels, low_high):
    images = np.random.default_rng(1).uniform(*low_high, (2, 24, 20, channels)).astype(np.float32)
    span = max(low_high[1] - low_high[0], 1e-6)
    factors = np.array([0.7, 1.4], np.float32)
    expected = np.stack(
        [keras_image.apply_brightness_shift(image, f, scale=False) for image, f in zip(images, factors, strict=True)]
    )
    found = tf.function(scale_brightness_exact, jit_compile=True)(images, factors).numpy()
    # one 8-bit level before the factor, at most, where dividing rounds the other way
    step = span / 255 if low_high[0] < 0 or low_high[1] > 255 else 1.0
    off = np.abs(found - expected)
    assert off.max() <= (factors.max() + 1) * step
    assert (off > 1e-3 * span).mean() <= 0.005


@pytest.mark.parametrize("shape", [(16, 16, 3), (31, 31, 4), (17, 30, 3), (24, 8, 4)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_exact_brightness_after_a_warp_is_one_level_off_on_half_a_percent_at_most(shape, dtype):
    given = make_settings(**WIDE, brightness_range=(0.5, 1.5), keras_exact=True)
    images = random_images(COUNT, shape, seed=4).astype(dtype)
    if dtype == np.float32:
        images = images + np.random.default_rng(0).uniform(-0.5, 0.5, images.shape).astype(np.float32)
    draws = draw_batch(given, seed=6, epoch=1, count=COUNT, image_shape=shape)
    found = augment_batch(spec_of(given))(images, kernel_rows(draws, given, *shape[:2])).numpy()
    off = np.abs(found - one_by_one(images, draws, given))
    # the level before the factor differs by one at most; stretching makes a level at most (255.5 + 0.5) / 255 wide
    assert (off <= (np.ceil(draws[:, 9]) * 1.01)[:, None, None, None]).all()
    assert (off > 0.05).mean() <= 0.005


def test_clipping_brightness_keeps_to_the_range_given():
    given = make_settings(brightness_range=(1.0, 3.0))
    images = np.random.default_rng(0).uniform(-1, 1, (3, 6, 5, 3)).astype(np.float32)
    draws = np.array([NEUTRAL] * 3)
    draws[:, 9] = [1.0, 2.0, 3.0]
    found = augment_batch(spec_of(given, (-1.0, 1.0)))(images, kernel_rows(draws, given, 6, 5)).numpy()
    np.testing.assert_allclose(found, np.clip(images * draws[:, 9, None, None, None], -1, 1), atol=1e-5)


# -- where it runs


def test_the_same_pixels_in_a_map_inside_a_compiled_function_and_at_any_batch_size():
    given = make_settings(**WIDE, channel_shift_range=20.0, brightness_range=(0.5, 1.5))
    images = random_images(6, (16, 16, 3))
    rows = kernel_rows(draw_batch(given, seed=1, epoch=1, count=6, image_shape=(16, 16, 3)), given, 16, 16)
    augment = augment_batch(spec_of(given))
    whole = augment(images, rows).numpy()
    mapped = tf.data.Dataset.from_tensor_slices((images, rows)).batch(2).map(augment, num_parallel_calls=2)
    assert np.abs(np.concatenate(list(mapped.as_numpy_iterator())) - whole).max() < 0.05
    inside = tf.function(lambda images, rows: augment(images, rows) * 2.0, jit_compile=True)
    assert np.abs(inside(images, rows).numpy() - 2 * whole).max() < 0.1


def test_without_a_warp_the_pixels_are_those_of_the_warp_that_does_nothing():
    given = make_settings(channel_shift_range=20.0, brightness_range=(0.5, 1.5))
    images = random_images(4, (5, 9, 3))
    rows = kernel_rows(draw_batch(given, seed=1, epoch=1, count=4, image_shape=(5, 9, 3)), given, 5, 9)
    with_warp = spec_of(given)
    without = dataclasses.replace(with_warp, moves_pixels=False)
    assert np.array_equal(augment_batch(with_warp)(images, rows), augment_batch(without)(images, rows))


def test_one_function_a_recipe_and_process():
    assert augment_batch(KernelSpec(order=0)) is augment_batch(KernelSpec(order=0))
    assert augment_batch(KernelSpec(order=0)) is not augment_batch(KernelSpec(order=1))


def test_inputs_are_left_alone():
    given = make_settings(**WIDE, brightness_range=(0.5, 1.5))
    images = random_images(2, (16, 16, 3)).astype(np.float32)
    before = images.copy()
    rows = kernel_rows(draw_batch(given, seed=1, epoch=1, count=2, image_shape=(16, 16, 3)), given, 16, 16)
    augment_batch(spec_of(given))(images, rows)
    assert np.array_equal(images, before)


@pytest.mark.parametrize(
    ("fill_mode", "order", "brightness"),
    [*((fill_mode, order, "exact") for fill_mode in FILL_MODES for order in (0, 1)), ("nearest", 1, "clip")],
)
def test_every_op_of_the_kernel_has_a_gpu_kernel(fill_mode, order, brightness):
    dtype = tf.float32 if brightness == "exact" else tf.uint8
    augment = augment_batch(KernelSpec(order=order, fill_mode=fill_mode, channel_shift=True, brightness=brightness))
    traced = augment.get_concrete_function(
        tf.TensorSpec((None, 32, 48, 4), dtype), tf.TensorSpec((None, 8), tf.float32)
    )
    assert ops_of(traced) & {"GatherNd", "GatherV2"}
    assert without_gpu_kernel(ops_of(traced)) == set()


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_every_op_of_standardizing_has_a_gpu_kernel(data_format):
    shape = (1, 1, 3) if data_format == "channels_last" else (3, 1, 1)
    statistics = Statistics(mean=np.ones(shape), std=np.ones(shape), zca_whitening_matrix=np.eye(60))
    given = make_settings(
        samplewise_center=True,
        samplewise_std_normalization=True,
        featurewise_center=True,
        rescale=1 / 255,
        data_format=data_format,
        zca_whitening=True,
    )
    affine = ChannelAffine(scale=(1 / 127.5,) * 3, offset=(-1.0,) * 3, reverse_channels=True)
    traced = tf.function(standardize_batch(given, statistics, affine)).get_concrete_function(
        tf.TensorSpec((None, 4, 5, 3), tf.float32)
    )
    assert without_gpu_kernel(ops_of(traced)) == set()


# -- standardising


STANDARDIZE = {
    "rescale": {"rescale": 1 / 255},
    "samplewise": {"samplewise_center": True, "samplewise_std_normalization": True},
    "samplewise mean alone": {"samplewise_center": True},
    "featurewise": {"featurewise_center": True, "featurewise_std_normalization": True},
    "zca": {"zca_whitening": True, "featurewise_center": True},
    "all": {
        "rescale": 1 / 255,
        "samplewise_center": True,
        "samplewise_std_normalization": True,
        "featurewise_center": True,
        "featurewise_std_normalization": True,
    },
}


def statistics_for(shape, axis):
    numbers = np.random.default_rng(5)
    of_channels = [1, 1, 1]
    of_channels[axis] = shape[axis]
    size = int(np.prod(shape))
    return Statistics(
        mean=numbers.uniform(0.2, 0.8, of_channels).astype(np.float32),
        std=numbers.uniform(0.5, 2.0, of_channels).astype(np.float32),
        zca_whitening_matrix=(numbers.normal(size=(size, size)) / size).astype(np.float32),
    )


@pytest.mark.parametrize("channels_first", [False, True], ids=["last", "first"])
@pytest.mark.parametrize("form", STANDARDIZE.values(), ids=list(STANDARDIZE))
def test_standardizing_a_batch_is_standardizing_each_image(form, channels_first):
    given = make_settings(**form, data_format="channels_first" if channels_first else "channels_last")
    images = np.random.default_rng(2).uniform(0, 255, (3, 6, 5, 3)).astype(np.float32)
    layout = (2, 0, 1) if channels_first else (0, 1, 2)
    shape = images[0].transpose(layout).shape
    statistics = statistics_for(shape, 0 if channels_first else 2)
    found = tf.function(standardize_batch(given, statistics, None), jit_compile=True)(images).numpy()
    for image, one in zip(images, found, strict=True):
        expected = standardize(image.transpose(layout).astype(np.float64), given, statistics)
        np.testing.assert_allclose(one.transpose(layout), expected, rtol=1e-4, atol=1e-4)


def test_standardizing_by_hand():
    given = make_settings(rescale=0.5, samplewise_center=True, samplewise_std_normalization=True)
    images = np.array([[[[1.0], [3.0]]], [[[10.0], [10.0]]]], np.float32)
    found = standardize_batch(given, Statistics(), None)(tf.constant(images)).numpy()
    # 0.5 and 1.5: mean 1, deviation 0.5; an image of one level has deviation 0 and stays 0
    np.testing.assert_allclose(found.ravel(), [-1, 1, 0, 0], atol=1e-5)


def test_preprocessing_comes_first_and_rescaling_after_it():
    given = make_settings(rescale=10.0)
    affine = ChannelAffine(scale=(1.0, 2.0, 3.0), offset=(1.0, 0.0, -1.0), reverse_channels=True)
    images = np.array([[[[5.0, 6.0, 7.0]]]], np.float32)
    found = standardize_batch(given, Statistics(), affine)(tf.constant(images)).numpy()
    assert found.ravel().tolist() == [80.0, 120.0, 140.0]


def test_the_mean_of_a_large_image_is_exact():
    # 270,000 float32 values of one sign, whose sum loses digits if it is taken in one row
    given = make_settings(samplewise_center=True, samplewise_std_normalization=True)
    images = (200 + 5 * np.random.default_rng(0).standard_normal((2, 299, 299, 3))).astype(np.float32)
    found = tf.function(standardize_batch(given, Statistics(), None), jit_compile=True)(images).numpy()
    for image, one in zip(images.astype(np.float64), found, strict=True):
        assert np.abs(one - (image - image.mean()) / (image.std() + 1e-6)).max() < 1e-4


@pytest.mark.parametrize(
    "mean", [np.float32(3.0), np.array([1.0, 2.0, 3.0]), np.arange(90.0).reshape(6, 5, 3)], ids=["one", "rgb", "image"]
)
def test_a_mean_that_a_person_set_is_broadcast_as_numpy_does(mean):
    given = make_settings(featurewise_center=True)
    images = np.random.default_rng(2).uniform(0, 255, (2, 6, 5, 3)).astype(np.float32)
    found = standardize_batch(given, Statistics(mean=mean), None)(tf.constant(images)).numpy()
    np.testing.assert_allclose(found, images - mean, atol=1e-4)


# -- what it leaves to Python


def test_what_the_kernel_does_not_cover_is_said_in_words():
    assert why_not_fused(make_settings(**WIDE), 3) is None
    assert why_not_fused(make_settings(**WIDE, interpolation_order=0), 2) is None
    assert "interpolation_order=3" in why_not_fused(make_settings(**WIDE, interpolation_order=3), 3)
    assert "'mirror'" in why_not_fused(make_settings(**WIDE, fill_mode="mirror"), 3)
    # without a warp neither is ever looked at
    assert why_not_fused(make_settings(rescale=0.5, interpolation_order=3, fill_mode="mirror"), 3) is None


def test_exact_brightness_is_fused_for_the_channels_that_keras_takes():
    given = make_settings(brightness_range=(0.5, 1.5), keras_exact=True)
    assert [why_not_fused(given, channels) is None for channels in (1, 2, 3, 4, 5)] == [True, False, True, True, False]
    first = make_settings(brightness_range=(0.5, 1.5), keras_exact=True, data_format="channels_first")
    assert "channels_first" in why_not_fused(first, 3)
