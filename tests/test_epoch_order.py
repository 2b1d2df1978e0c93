"""Order and random numbers are pure functions of (seed, epoch, index)."""

import random

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from pipeline import AugmentRanges, draw_parameters, epoch_order
from pipeline.randomness import Stream, uniforms

SEEDS = st.integers(0, 2**63)
EPOCHS = st.integers(1, 10_000)


@given(SEEDS, EPOCHS, st.integers(0, 500))
def test_an_order_visits_every_sample_once(seed, epoch, count):
    assert sorted(epoch_order(seed, epoch, count)) == list(range(count))


@given(SEEDS, EPOCHS)
def test_seed_and_epoch_each_change_the_order(seed, epoch):
    order = epoch_order(seed, epoch, 200).tolist()
    assert order == epoch_order(seed, epoch, 200).tolist()
    assert order != epoch_order(seed, epoch + 1, 200).tolist()
    assert order != epoch_order(seed + 1, epoch, 200).tolist()


def test_every_position_is_equally_likely():
    # chi-square of where sample 0 lands among 8 places in 4,000 epochs: 7 degrees of freedom, 0.999 quantile 24.3
    places = np.array([int(np.flatnonzero(epoch_order(3, epoch, 8) == 0)[0]) for epoch in range(1, 4001)])
    observed = np.bincount(places, minlength=8)
    assert ((observed - 500) ** 2 / 500).sum() < 24.3


def test_the_random_words_are_those_of_the_philox_4x64_reference():
    # Random123's known answer for philox4x64-10 with counter 0 and key 0; numpy increments the counter before it draws,
    # so the words of counter 0 come after a start at the counter before
    generator = np.random.Philox(key=np.zeros(2, np.uint64), counter=np.full(4, 2**64 - 1, np.uint64))
    assert [hex(word) for word in generator.random_raw(4)] == [
        "0x16554d9eca36314c",
        "0xdb20fe9d672d0fdc",
        "0xd7e772cee186176b",
        "0x7e68b68aec7ba23b",
    ]


@given(SEEDS, EPOCHS, st.integers(1, 60), st.integers(1, 60))
def test_a_samples_draws_do_not_depend_on_how_many_samples_there_are(seed, epoch, few, more):
    few, more = sorted((few, few + more))
    assert np.array_equal(
        uniforms(seed, epoch, Stream.AUGMENT, (few, 10)), uniforms(seed, epoch, Stream.AUGMENT, (more, 10))[:few]
    )


def test_switching_one_range_off_leaves_the_other_draws_as_they_are():
    shape = {"seed": 5, "epoch": 2, "count": 50, "height": 32, "width": 48}
    full = draw_parameters(AugmentRanges(), **shape)
    less = draw_parameters(AugmentRanges(rotation_degrees=0, brightness=None), **shape)
    assert not less.rotation_degrees.any()
    assert (less.brightness == 1).all()
    for name in ("width_shift_pixels", "height_shift_pixels", "shear_degrees", "zoom_width", "horizontal_flip"):
        assert np.array_equal(getattr(full, name), getattr(less, name)), name


def test_draws_fill_their_ranges_and_no_more():
    ranges = AugmentRanges(channel_shift=20, vertical_flip=True)
    drawn = draw_parameters(ranges, seed=1, epoch=1, count=20_000, height=100, width=200)
    for values, low, high in (
        (drawn.rotation_degrees, -30, 30),
        (drawn.width_shift_pixels, -80, 80),
        (drawn.height_shift_pixels, -40, 40),
        (drawn.shear_degrees, -0.4, 0.4),
        (drawn.zoom_width, 0.75, 1.25),
        (drawn.zoom_height, 0.75, 1.25),
        (drawn.channel_shift, -20, 20),
        (drawn.brightness, 0.5, 1.5),
    ):
        assert low <= values.min() < low + 0.01 * (high - low)
        assert high - 0.01 * (high - low) < values.max() <= high
        # the mean of 20,000 uniform numbers: five standard errors
        assert abs(values.mean() - (low + high) / 2) < 5 * (high - low) / np.sqrt(12 * 20_000)
    for flips in (drawn.horizontal_flip, drawn.vertical_flip):
        assert abs(flips.mean() - 0.5) < 5 * 0.5 / np.sqrt(20_000)
    assert abs(np.corrcoef(drawn.zoom_width, drawn.zoom_height)[0, 1]) < 0.05


def test_a_shift_from_one_on_is_in_pixels():
    drawn = draw_parameters(
        AugmentRanges(width_shift=5.5, height_shift=1.0), seed=1, epoch=1, count=5000, height=100, width=100
    )
    assert 5.4 < drawn.width_shift_pixels.max() <= 5.5
    assert 0.99 < drawn.height_shift_pixels.max() <= 1.0


def test_global_random_state_is_never_touched():
    np_state, py_state = np.random.get_state()[1].copy(), random.getstate()
    tf_state = tf.random.get_global_generator().state.numpy()
    epoch_order(1, 2, 100)
    draw_parameters(AugmentRanges(), seed=1, epoch=1, count=10, height=8, width=8)
    assert np.array_equal(np.random.get_state()[1], np_state)
    assert random.getstate() == py_state
    assert np.array_equal(tf.random.get_global_generator().state.numpy(), tf_state)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rotation_degrees": -1}, "rotation_degrees must be"),
        ({"zoom": (0.0, 1.0)}, "zoom must be"),
        ({"zoom": (1.2, 0.8)}, "zoom must be"),
        ({"brightness": (-0.5, 1.0)}, "brightness must be"),
        ({"fill_mode": "mirror"}, "fill_mode must be one of nearest, constant, reflect, wrap"),
        ({"width_shift": float("nan")}, "width_shift must be"),
    ],
)
def test_impossible_ranges_are_refused_by_name(change, message):
    with pytest.raises(ValueError, match=message):
        AugmentRanges(**change)
