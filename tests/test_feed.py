"""Batches as a model sees them: which samples, in which order, with which pixels."""

import random
import shutil
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from pipeline import (
    AugmentRanges,
    CacheConfig,
    ChannelAffine,
    DecodeConfig,
    Feed,
    FeedConfig,
    augment_function,
    epoch_order,
    open_cache,
    samples_from_folder,
)

SIZE = 24
AFFINE = ChannelAffine(scale=(1 / 127.5,) * 3, offset=(-1.0,) * 3)
CONFIG = FeedConfig(decode=DecodeConfig(height=SIZE, width=SIZE), batch_size=8, preprocess=AFFINE)


@pytest.fixture(scope="module")
def samples(photo_folder):
    return samples_from_folder(photo_folder)


def cache_for(samples, kept=None):
    budget = None if kept is None else kept * SIZE * SIZE * 3
    return open_cache(CacheConfig(mode="ram", budget_bytes=budget), samples.paths, CONFIG.decode)


def batches(feed, epochs):
    return [(images, labels) for images, labels in feed.training(epochs).as_numpy_iterator()]


def pixels(feed, epochs):
    return np.concatenate([images for images, _ in batches(feed, epochs)])


def test_each_epoch_holds_every_sample_once_and_its_last_batch_is_the_rest(samples):
    feed = Feed(samples, CONFIG)
    assert feed.steps_per_epoch == 3
    sizes = [len(labels) for _, labels in batches(feed, range(1, 3))]
    assert sizes == [8, 8, 7, 8, 8, 7]
    for epoch in (1, 2):
        labels = np.concatenate([labels for _, labels in batches(feed, range(epoch, epoch + 1))])
        assert labels.dtype == np.float32
        assert np.array_equal(labels, samples.targets[epoch_order(CONFIG.seed, epoch, len(samples))])


def test_the_cardinality_is_known(samples):
    feed = Feed(samples, CONFIG)
    assert feed.training(range(1, 4)).cardinality() == 9
    assert feed.evaluation().cardinality() == 3


def test_evaluation_gives_pillows_pixels_in_the_given_order(samples):
    images = np.concatenate([images for images, _ in Feed(samples, CONFIG).evaluation().as_numpy_iterator()])
    for path, found in zip(samples.paths, images, strict=True):
        expected = np.asarray(Image.open(path).convert("RGB").resize((SIZE, SIZE), Image.Resampling.NEAREST))
        assert np.abs(found - (expected / 127.5 - 1)).max() < 1e-5


def test_no_augmentation_gives_preprocessed_pixels_in_the_epochs_order(samples):
    feed = Feed(samples, replace(CONFIG, augment=None))
    plain = np.concatenate([images for images, _ in feed.evaluation().as_numpy_iterator()])
    assert np.allclose(pixels(feed, range(2, 3)), plain[epoch_order(CONFIG.seed, 2, len(samples))], atol=1e-6)


@pytest.mark.parametrize(
    "change",
    [
        {"parallel_images": 1},
        {"parallel_images": 16},
        {"prefetch_batches": 0},
        {"prefetch_batches": 5},
        {"parallel_images": 1, "prefetch_batches": 0},
    ],
    ids=str,
)
def test_parallelism_and_prefetch_change_no_pixel(samples, change):
    expected = pixels(Feed(samples, CONFIG), range(1, 3))
    assert np.array_equal(pixels(Feed(samples, replace(CONFIG, **change)), range(1, 3)), expected)


def test_the_batch_size_changes_no_pixel(samples):
    expected = pixels(Feed(samples, CONFIG), range(1, 2))
    other = pixels(Feed(samples, replace(CONFIG, batch_size=5)), range(1, 2))
    assert np.abs(other - expected).max() < 0.05 / 127.5


@pytest.mark.parametrize("kept", [None, 10, 0], ids=["whole", "part", "nothing"])
def test_a_cache_changes_no_pixel_and_holds_what_fits(samples, kept):
    cache = cache_for(samples, kept)
    expected = pixels(Feed(samples, CONFIG), range(1, 4))
    assert np.array_equal(pixels(Feed(samples, CONFIG, cache), range(1, 4)), expected)
    assert cache.complete == (len(samples) if kept is None else kept)


def test_a_filled_cache_reads_no_file(photo_folder, tmp_path):
    folder = tmp_path / "photos"
    shutil.copytree(photo_folder, folder)
    samples = samples_from_folder(folder)
    feed = Feed(samples, CONFIG, cache_for(samples))
    expected = pixels(Feed(samples, CONFIG), range(2, 3))
    pixels(feed, range(1, 2))
    shutil.rmtree(folder)
    assert np.array_equal(pixels(feed, range(2, 3)), expected)
    with pytest.raises(tf.errors.NotFoundError):
        pixels(Feed(samples, CONFIG), range(2, 3))


def test_later_epochs_are_the_same_whether_or_not_a_run_was_interrupted(samples):
    whole = pixels(Feed(samples, CONFIG, cache_for(samples)), range(1, 4))
    continued = pixels(Feed(samples, CONFIG, cache_for(samples)), range(2, 4))
    assert np.array_equal(continued, whole[len(samples) :])
    assert not np.array_equal(whole[: len(samples)], whole[len(samples) : 2 * len(samples)])


def test_host_and_device_give_the_same_pixels(samples):
    host = pixels(Feed(samples, CONFIG), range(1, 3))
    augment = augment_function(CONFIG.augment, CONFIG.preprocess)
    device = []
    for (images, draws), labels in Feed(samples, replace(CONFIG, augment_on="device")).training(range(1, 3)):
        assert images.dtype == tf.uint8
        assert draws.shape == (len(labels), 8)
        device.append(augment(images, draws).numpy())
    assert np.abs(np.concatenate(device) - host).max() < 0.05 / 127.5


def test_seeds_give_other_pictures(samples):
    first = pixels(Feed(samples, CONFIG), range(1, 2))
    assert not np.array_equal(first, pixels(Feed(samples, replace(CONFIG, seed=43)), range(1, 2)))


def test_a_feed_leaves_global_random_state_alone(samples):
    before = np.random.get_state()[1].copy(), random.getstate(), tf.random.get_global_generator().state.numpy()
    pixels(Feed(samples, CONFIG, cache_for(samples)), range(1, 2))
    assert np.array_equal(np.random.get_state()[1], before[0])
    assert random.getstate() == before[1]
    assert np.array_equal(tf.random.get_global_generator().state.numpy(), before[2])


def test_without_prefetch_the_finished_batch_waits_for_nobody(photo_folder, tmp_path):
    """With --prefetch 0 and --parallel 1 the second batch is not made before it is asked for."""
    folder = tmp_path / "photos"
    shutil.copytree(photo_folder, folder)
    samples = samples_from_folder(folder)
    config = replace(CONFIG, prefetch_batches=0, parallel_images=1)
    iterator = iter(Feed(samples, config).training(range(1, 2)))
    next(iterator)
    shutil.rmtree(folder)
    with pytest.raises(tf.errors.NotFoundError):  # the second batch was not there yet
        next(iterator)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number of 1 or more, not 0"),
        ({"prefetch_batches": -1}, "prefetch_batches must be a whole number of 0 or more"),
        ({"parallel_images": 1.5}, "parallel_images must be a whole number"),
        ({"resampler": "opencv"}, "resampler must be one of fused, addons, not 'opencv'"),
        ({"augment_on": "gpu"}, "augment_on must be host or device, not 'gpu'"),
    ],
)
def test_impossible_settings_are_refused_by_name(change, message):
    with pytest.raises(ValueError, match=message):
        replace(CONFIG, **change)


def test_ranges_of_the_default_feed_are_the_recipes():
    assert FeedConfig(decode=DecodeConfig(height=8, width=8)).augment == AugmentRanges(
        rotation_degrees=30, width_shift=0.4, height_shift=0.4, shear_degrees=0.4, zoom=(0.75, 1.25),
        horizontal_flip=True, brightness=(0.5, 1.5), fill_mode="nearest",
    )  # fmt: skip
