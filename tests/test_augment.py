"""The pixel kernel against scipy, against Keras's own transforms and against arithmetic by hand."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import ndimage

from pipeline import (
    FILL_MODES,
    IDENTITY,
    AugmentParameters,
    AugmentRanges,
    ChannelAffine,
    MissingPackageError,
    augment_function,
    draw_parameters,
    draw_rows,
)
from pipeline.augment import host_augment_function
from pipeline.augment.resample import resample_bilinear

SHAPES = ((16, 16), (17, 31), (31, 31), (5, 9), (24, 8), (1, 7), (64, 64))
keras_image = tf.keras.preprocessing.image

# each new shape compiles XLA again, which no deadline or health check should count
unhurried = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=40)


def neutral(count: int = 1, **changes: np.ndarray | float) -> AugmentParameters:
    names = ("rotation_degrees", "width_shift_pixels", "height_shift_pixels", "shear_degrees", "channel_shift")
    values = {name: np.zeros(count) for name in names}
    values |= {name: np.ones(count) for name in ("zoom_width", "zoom_height", "brightness")}
    values |= {name: np.zeros(count, bool) for name in ("horizontal_flip", "vertical_flip")}
    return AugmentParameters(**(values | {name: np.full(count, value) for name, value in changes.items()}))


def random_images(count: int, height: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, height, width, 3), dtype=np.uint8)


def warp(
    images: np.ndarray, parameters: AugmentParameters, fill_mode: str = "nearest", cval: float = 0.0
) -> np.ndarray:
    ranges = AugmentRanges(brightness=None, fill_mode=fill_mode, cval=cval)
    draws, (height, width) = draw_rows(parameters), images.shape[1:3]
    compiled = augment_function(ranges, IDENTITY)(images, draws).numpy()
    on_host = host_augment_function(ranges, IDENTITY, height=height, width=width)
    if on_host is not None:
        # what the host's loop gives stands in for both: they are the same within what float32 makes of a position
        looped = on_host(tf.constant(images), tf.constant(draws)).numpy()
        differs = np.abs(looped - compiled).max(-1) > 0.05
        assert not (differs & ~near_a_jump_of_any(parameters, height, width, fill_mode)).any()
        return looped
    assert min(height, width) == 1
    return compiled


def near_a_jump_of_any(parameters: AugmentParameters, height: int, width: int, fill_mode: str) -> np.ndarray:
    """`near_a_jump` of each image: bool (N, H, W)."""
    names = [field.name for field in dataclasses.fields(parameters)]
    ones = [
        AugmentParameters(**{name: getattr(parameters, name)[k : k + 1] for name in names})
        for k in range(len(parameters.brightness))
    ]
    return np.stack([near_a_jump(positions(one, height, width), fill_mode) for one in ones])


def positions(parameters: AugmentParameters, height: int, width: int) -> np.ndarray:
    """Input (row, column) of every output pixel in float64, by multiplying 3 x 3 matrices step by step."""
    theta, shear = np.deg2rad(parameters.rotation_degrees[0]), np.deg2rad(parameters.shear_degrees[0])
    rotation = np.array([[np.cos(theta), -np.sin(theta), 0], [np.sin(theta), np.cos(theta), 0], [0, 0, 1]])
    shift = np.array([[1, 0, parameters.width_shift_pixels[0]], [0, 1, parameters.height_shift_pixels[0]], [0, 0, 1]])
    sheared = np.array([[1, -np.sin(shear), 0], [0, np.cos(shear), 0], [0, 0, 1]])
    zoom = np.diag([parameters.zoom_width[0], parameters.zoom_height[0], 1])
    flip = np.diag([1 - 2.0 * parameters.horizontal_flip[0], 1 - 2.0 * parameters.vertical_flip[0], 1])
    centre = np.array([[1, 0, (width - 1) / 2], [0, 1, (height - 1) / 2], [0, 0, 1]])
    matrix = centre @ rotation @ shift @ sheared @ zoom @ flip @ np.linalg.inv(centre)
    rows, columns = np.mgrid[:height, :width]
    found = matrix @ np.stack([columns.ravel(), rows.ravel(), np.ones(height * width)])
    return found[[1, 0]].reshape(2, height, width)


def near_a_jump(where: np.ndarray, fill_mode: str) -> np.ndarray:
    """Pixels where rounding the position to float32 may pick another side: the border, and where `wrap` wraps."""
    if fill_mode not in ("constant", "wrap"):
        return np.zeros(where.shape[1:], bool)
    near = np.zeros(where.shape[1:], bool)
    for position, size in zip(where, where.shape[1:], strict=True):
        period = max(size - 1, 1)
        offset = np.mod(position, period)
        near |= np.minimum(offset, period - offset) < 1e-3
    return near


@given(st.sampled_from(SHAPES), st.sampled_from(FILL_MODES), st.integers(0, 10**6))
@unhurried
def test_the_warp_equals_scipys_affine_transform(shape, fill_mode, seed):
    height, width = shape
    ranges = AugmentRanges(rotation_degrees=180, shear_degrees=25, zoom=(0.4, 2.5), vertical_flip=True)
    parameters = draw_parameters(ranges, seed=seed, epoch=1, count=1, height=height, width=width)
    image = random_images(1, height, width, seed)
    where = positions(parameters, height, width)
    expected = np.stack(
        [
            ndimage.map_coordinates(image[0, ..., c].astype(float), where, order=1, mode=fill_mode, cval=77.0)
            for c in range(3)
        ],
        -1,
    )
    compared = ~near_a_jump(where, fill_mode)
    # a one pixel wide axis has its whole image on the border
    assert compared.mean() > 0.98 or min(shape) < 16 or fill_mode == "constant"
    difference = np.abs(warp(image, parameters, fill_mode, 77.0)[0] - expected)[compared]
    if fill_mode == "wrap" and min(shape) == 1:
        return  # scipy divides by a period of 0 there
    assert difference.size == 0 or difference.max() < 0.05


@given(st.integers(0, 10**6))
@unhurried
def test_a_square_image_is_transformed_as_keras_does(seed):
    parameters = draw_parameters(AugmentRanges(), seed=seed, epoch=1, count=1, height=31, width=31)
    image = random_images(1, 31, 31, seed)
    expected = keras_image.apply_affine_transform(
        image[0].astype(np.float32),
        theta=parameters.rotation_degrees[0],
        tx=parameters.width_shift_pixels[0],
        ty=parameters.height_shift_pixels[0],
        shear=parameters.shear_degrees[0],
        zx=parameters.zoom_width[0],
        zy=parameters.zoom_height[0],
        row_axis=0,
        col_axis=1,
        channel_axis=2,
        fill_mode="nearest",
    )
    if parameters.horizontal_flip[0]:
        expected = expected[:, ::-1]
    assert np.abs(warp(image, parameters)[0] - expected).max() < 0.05


def test_width_shift_moves_sideways_and_height_shift_up_and_down():
    ramp = np.broadcast_to(np.arange(9, dtype=np.uint8)[:, None, None], (9, 9, 3))[None].copy()
    assert np.array_equal(warp(ramp, neutral(width_shift_pixels=2.0)), ramp.astype(np.float32))
    moved = warp(ramp, neutral(height_shift_pixels=2.0))[0, :, 0, 0]
    assert moved.tolist() == [2, 3, 4, 5, 6, 7, 8, 8, 8]


def test_golden_rows_of_each_fill_mode():
    row = np.array([10, 20, 30, 40, 50], np.uint8)
    image = np.broadcast_to(row[None, :, None], (5, 5, 3))[None].copy()
    expected = {
        "nearest": ([10, 10, 10, 20, 30], [10, 10, 10, 15, 25]),
        "constant": ([255, 255, 10, 20, 30], [255, 255, 255, 15, 25]),
        "reflect": ([20, 10, 10, 20, 30], [25, 15, 10, 15, 25]),
        "wrap": ([30, 40, 10, 20, 30], [25, 35, 45, 15, 25]),
    }
    for fill_mode, rows in expected.items():
        for shift, wanted in zip((-2.0, -2.5), rows, strict=True):
            assert warp(image, neutral(width_shift_pixels=shift), fill_mode, 255.0)[0, 2, :, 1].tolist() == wanted


def test_flips_mirror_exactly():
    images = random_images(2, 24, 8)
    assert np.array_equal(warp(images, neutral(2, horizontal_flip=True)), images[:, :, ::-1])
    assert np.array_equal(warp(images, neutral(2, vertical_flip=True)), images[:, ::-1])


def test_nothing_drawn_changes_nothing_and_inputs_are_left_alone():
    images = random_images(3, 17, 31)
    before = images.copy()
    assert np.array_equal(warp(images, neutral(3)), images.astype(np.float32))
    assert np.array_equal(images, before)


def test_brightness_multiplies_and_clips_before_preprocessing():
    images = random_images(2, 16, 16)
    draws = draw_rows(neutral(2, brightness=[0.5, 1.5]))
    affine = ChannelAffine(scale=(1 / 127.5, 2.0, 1.0), offset=(-1.0, 0.0, 3.0), reverse_channels=True)
    results = [
        augment_function(AugmentRanges(), affine)(images, draws).numpy(),
        host_augment_function(AugmentRanges(), affine, height=16, width=16)(tf.constant(images), draws).numpy(),
    ]
    levels = np.clip(images * np.array([0.5, 1.5])[:, None, None, None], 0, 255)[..., ::-1]
    expected = levels * np.array([1 / 127.5, 2.0, 1.0]) + np.array([-1.0, 0.0, 3.0])
    for result in results:
        assert np.allclose(result, expected, atol=1e-4)


@pytest.mark.parametrize("fill_mode", FILL_MODES)
def test_the_outside_is_brightened_and_preprocessed_like_the_rest(fill_mode):
    affine = ChannelAffine(scale=(1 / 127.5, 2.0, 1.0), offset=(-1.0, 0.0, 3.0), reverse_channels=True)
    ranges = AugmentRanges(fill_mode=fill_mode, cval=90.0)
    images = random_images(40, 17, 31)
    draws = draw_rows(draw_parameters(ranges, seed=5, epoch=1, count=40, height=17, width=31))
    on_device = augment_function(ranges, affine)(images, draws).numpy()
    on_host = host_augment_function(ranges, affine, height=17, width=31)(tf.constant(images), draws).numpy()
    # here and there float32 puts a position on the other side of an edge
    assert (np.abs(on_host - on_device) > 1e-2).mean() < (0 if fill_mode == "nearest" else 1e-3) + 1e-9


def test_the_host_leaves_to_xla_what_its_loop_does_not_do():
    assert host_augment_function(AugmentRanges(channel_shift=5), IDENTITY, height=16, width=16) is None
    assert host_augment_function(AugmentRanges(), IDENTITY, resampler="addons", height=16, width=16) is None
    assert host_augment_function(AugmentRanges(), IDENTITY, height=16, width=1) is None


def test_channel_shift_is_kerass():
    images = random_images(2, 16, 16) // 2 + 40
    draws = draw_rows(neutral(2, channel_shift=[50.0, -30.0]))
    ranges = AugmentRanges(channel_shift=50, brightness=None)
    result = augment_function(ranges, IDENTITY)(images, draws).numpy()
    for image, shift, found in zip(images, (50.0, -30.0), result, strict=True):
        expected = keras_image.apply_channel_shift(image.astype(np.float32), shift, channel_axis=2)
        assert np.abs(found - expected).max() < 1e-3


def test_the_same_pixels_eagerly_compiled_in_a_map_and_at_any_batch_size():
    images = random_images(6, 16, 16)
    parameters = draw_parameters(AugmentRanges(), seed=3, epoch=1, count=6, height=16, width=16)
    draws = draw_rows(parameters)
    compiled = augment_function(AugmentRanges(), IDENTITY)
    whole = compiled(images, draws).numpy()
    plain = resample_bilinear(tf.constant(images), tf.constant(draws), fill_mode="nearest", cval=0.0)
    plain = np.clip(plain.numpy() * parameters.brightness[:, None, None, None], 0, 255)
    assert np.abs(whole - plain).max() < 0.05
    mapped = tf.data.Dataset.from_tensor_slices((images, draws)).batch(2).map(compiled, num_parallel_calls=2)
    assert np.abs(np.concatenate(list(mapped.as_numpy_iterator())) - whole).max() < 0.05


def test_addons_gives_the_fused_pixels_where_it_is_installed_and_a_clear_error_where_not():
    if not tf.__version__.startswith("2.15"):
        with pytest.raises(MissingPackageError, match=r"--resampler addons.*TensorFlow 2\.15.*--resampler fused"):
            augment_function(AugmentRanges(), IDENTITY, resampler="addons")
        return
    pytest.importorskip("tensorflow_addons", reason="the extra `addons` is not installed")
    images = random_images(4, 31, 31)
    draws = draw_rows(draw_parameters(AugmentRanges(), seed=3, epoch=1, count=4, height=31, width=31))
    for fill_mode in ("nearest", "reflect"):
        ranges = AugmentRanges(fill_mode=fill_mode)
        fused = augment_function(ranges, IDENTITY)(images, draws).numpy()
        addons = augment_function(ranges, IDENTITY, resampler="addons")(images, draws).numpy()
        assert np.abs(fused - addons).max() < 0.05


def test_an_unknown_resampler_is_refused():
    with pytest.raises(ValueError, match="resampler must be one of fused, addons, not 'opencv'"):
        augment_function(AugmentRanges(), IDENTITY, resampler="opencv")


@pytest.mark.parametrize("resampler", ["fused", "addons"])
def test_one_function_serves_images_of_every_size(resampler):
    if resampler == "addons" and not tf.__version__.startswith("2.15"):
        pytest.skip("tensorflow-addons needs TensorFlow 2.15")
    augment = augment_function(AugmentRanges(brightness=None), IDENTITY, resampler=resampler)
    for height, width in ((16, 16), (24, 8), (17, 31), (31, 31)):
        images = random_images(2, height, width)
        found = augment(tf.constant(images), tf.constant(draw_rows(neutral(2)))).numpy()
        assert np.abs(found - images).max() < 1e-3
