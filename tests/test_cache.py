"""The cache of samples: what it keeps, that it changes no pixel, and that each sample is made once."""

import os
import shutil
import threading
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from pipeline import (
    CacheConfig,
    DecodeConfig,
    Feed,
    FeedConfig,
    SampleCache,
    open_cache,
    plan_cache,
    samples_from_folder,
)
from pipeline.cache.stores import RowStore

SIZE = 24
ROW_BYTES = SIZE * SIZE * 3
CONFIG = FeedConfig(decode=DecodeConfig(height=SIZE, width=SIZE), batch_size=8)
KEEPING = ("encoded", "ram", "disk")


@pytest.fixture(scope="module")
def samples(photo_folder):
    return samples_from_folder(photo_folder)


def cache_of(samples, mode, folder, budget=None, **changes):
    config = CacheConfig(mode=mode, budget_bytes=budget, directory=str(folder))
    return open_cache(config, samples.paths, CONFIG.decode, **changes)


def pixels(feed, epochs):
    return np.concatenate([images for images, _ in feed.training(epochs).as_numpy_iterator()])


class CountingStore(RowStore):
    """Counts how often each place is written."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.writes = Counter()

    def write(self, slots, values):
        self.writes.update(slots.tolist())
        super().write(slots, values)


def counting_cache(count, budget=2**30):
    plan = plan_cache(np.full(count, ROW_BYTES), budget)
    store = CountingStore(plan.kept, (SIZE, SIZE, 3))
    return SampleCache(plan, store), store


# --- the plan


def test_a_plan_keeps_what_the_budget_holds():
    assert plan_cache(np.full(100, 300), 300 * 100).kept == 100
    part = plan_cache(np.full(100, 300), 300 * 40 + 299)
    assert (part.kept, part.kept_bytes) == (40, 12_000)
    assert plan_cache(np.full(100, 300), -5).kept == 0
    assert plan_cache(np.zeros(0), 10).kept == 0


@settings(deadline=None)
@given(sizes=st.lists(st.integers(0, 50), max_size=40), budget=st.integers(0, 1000))
def test_files_of_any_size_are_kept_as_long_as_they_fit(sizes, budget):
    plan = plan_cache(np.array(sizes, np.int64), budget)
    slots = plan.slots()
    assert sorted(slots) == list(range(len(sizes)))
    assert plan.kept_bytes == sum(size for size, slot in zip(sizes, slots, strict=True) if slot < plan.kept) <= budget
    if plan.kept < len(sizes):  # the next one would be too much
        assert plan.kept_bytes + sizes[list(slots).index(plan.kept)] > budget


def test_a_greater_budget_only_adds_to_what_is_kept():
    small, large = (plan_cache(np.full(50, 10), budget) for budget in (100, 300))
    assert (small.kept, large.kept) == (10, 30)
    assert np.array_equal(small.slots(), large.slots())


def test_what_is_kept_is_a_random_part():
    kept = plan_cache(np.full(1000, 1), 500)
    is_kept = kept.slots() < kept.kept
    assert 200 < is_kept[:500].sum() < 300  # not the first half, which would be one class


def test_the_budget_of_a_run_is_shared_by_its_caches(samples, tmp_path):
    budget = 30 * ROW_BYTES
    first = cache_of(samples, "ram", tmp_path, budget)
    second = cache_of(samples, "ram", tmp_path, budget, spent_bytes=first.plan.kept_bytes)
    assert (first.plan.kept, second.plan.kept) == (23, 7)


def test_a_budget_beyond_the_memory_is_cut_to_it(samples, tmp_path, monkeypatch):
    monkeypatch.setattr("pipeline.cache.opening.usable_memory_bytes", lambda: 10 * ROW_BYTES)
    lines = []
    assert cache_of(samples, "ram", tmp_path, 2**40, report=lines.append).plan.kept == 9
    assert cache_of(samples, "ram", tmp_path, report=lines.append).plan.kept == 6
    assert cache_of(samples, "ram", tmp_path, 3 * ROW_BYTES, report=lines.append).plan.kept == 3
    assert "90% of the usable memory, less than --cache-budget" in lines[0]
    assert "60% of the usable memory" in lines[1]
    assert "cache ram: pixels of 3 of 23 images, 0 MiB (no more fit: --cache-budget is 0 MiB)" in lines[2]


# --- what a feed sees


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("mode", KEEPING)
def test_a_cache_changes_no_pixel(samples, tmp_path, mode, share):
    sizes = [SIZE * SIZE * 3] * len(samples)
    if mode == "encoded":
        sizes = [os.path.getsize(path) for path in samples.paths]
    cache = cache_of(samples, mode, tmp_path, int(sum(sizes) * share))
    expected = pixels(Feed(samples, CONFIG), range(1, 4))
    assert np.array_equal(pixels(Feed(samples, CONFIG, cache), range(1, 4)), expected)
    assert cache.complete == cache.plan.kept
    assert 0.7 * share * len(samples) <= cache.plan.kept <= len(samples)


@pytest.mark.parametrize("mode", KEEPING)
def test_a_filled_cache_reads_no_file(samples, tmp_path, mode):
    folder = tmp_path / "photos"
    shutil.copytree(samples.paths[0].rsplit("/", 2)[0], folder)
    moved = samples_from_folder(folder)
    feed = Feed(moved, CONFIG, cache_of(moved, mode, tmp_path / "cache"))
    expected = pixels(feed, range(1, 3))
    shutil.rmtree(folder)
    assert np.array_equal(pixels(feed, range(1, 3)), expected)


@pytest.mark.parametrize("mode", KEEPING)
def test_an_interrupted_epoch_is_filled_later(samples, tmp_path, mode):
    cache = cache_of(samples, mode, tmp_path)
    feed = Feed(samples, CONFIG, cache)
    for _ in feed.training(range(1, 2)).take(1):
        pass
    start = time.monotonic()
    assert np.array_equal(pixels(feed, range(2, 4)), pixels(Feed(samples, CONFIG), range(2, 4)))
    assert cache.complete == len(samples)
    assert time.monotonic() - start < 60  # what the interrupted batches were to make is not waited for without end


@pytest.mark.parametrize("batch_size", [1, 4, 8, 23])
@pytest.mark.parametrize("kept", [10, 23])
def test_each_kept_sample_is_made_once_also_where_epochs_meet(samples, batch_size, kept):
    """Two batches are under way at once, so an epoch's first batch meets samples that the last one is making."""
    cache, store = counting_cache(len(samples), kept * ROW_BYTES)
    config = replace(CONFIG, batch_size=batch_size, augment=None)
    for _ in Feed(samples, config, cache).training(range(1, 6)):
        pass
    assert store.writes == Counter(dict.fromkeys(range(kept), 1))


def test_a_batch_waits_for_the_one_that_makes_its_sample():
    cache, store = counting_cache(3)
    first, rows = np.array([0, 1]), np.ones((2, SIZE, SIZE, 3), np.uint8)
    assert cache.missing(first).tolist() == [0, 1]
    found = []
    waiting = threading.Thread(target=lambda: found.append(cache.missing(np.array([1, 2]))))
    waiting.start()
    waiting.join(0.3)
    assert waiting.is_alive()
    cache.merge(first, np.array([0, 1]), rows)
    waiting.join(10)
    assert found[0].tolist() == [1]  # only sample 2
    assert store.writes == Counter(cache.plan.slots()[:2].tolist())


def test_a_batch_that_was_given_up_is_not_waited_for_without_end():
    cache, _ = counting_cache(2)
    cache.missing(np.array([0, 1]))
    start = time.monotonic()
    assert cache.missing(np.array([1, 0])).tolist() == [0, 1]
    assert time.monotonic() - start < 30


def test_a_sample_that_stands_twice_in_a_batch_is_there_twice():
    cache, _ = counting_cache(2)
    indices = np.array([1, 1, 0])
    missing = cache.missing(indices)
    made = np.arange(3, dtype=np.uint8)[missing, None, None, None] + np.zeros((1, SIZE, SIZE, 3), np.uint8)
    assert len(cache.merge(indices, missing, made)) == 3


def test_file_bytes_that_hold_zeros_stay_whole(tmp_path):
    (tmp_path / "a").mkdir()
    noise = np.random.default_rng(0).integers(0, 256, (30, 30, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "a" / "x.bmp")  # ends with padding
    (tmp_path / "b").mkdir()
    Image.fromarray(noise).save(tmp_path / "b" / "x.png")
    samples = samples_from_folder(tmp_path)
    decode = DecodeConfig(height=30, width=30)
    cache = open_cache(CacheConfig(mode="encoded"), samples.paths, decode)
    feed = Feed(samples, FeedConfig(decode=decode, batch_size=2), cache)
    for _ in range(2):
        (images,) = feed.decoded().as_numpy_iterator()
        assert np.array_equal(images, np.stack([noise, noise]))


@pytest.mark.parametrize("mode", KEEPING)
def test_a_bad_file_ends_the_epoch_and_not_the_process(samples, tmp_path, mode):
    folder = tmp_path / "photos"
    shutil.copytree(samples.paths[0].rsplit("/", 2)[0], folder)
    moved = samples_from_folder(folder)
    feed = Feed(moved, CONFIG, cache_of(moved, mode, tmp_path / "cache"))
    with open(moved.paths[3], "wb") as file:
        file.write(b"nothing")
    with pytest.raises(tf.errors.OpError):
        pixels(feed, range(1, 2))


def test_an_unknown_mode_and_a_negative_budget_are_refused():
    with pytest.raises(ValueError, match="cache must be one of off, encoded, ram, disk, not 'disc'"):
        CacheConfig(mode="disc")
    with pytest.raises(ValueError, match="the budget of the cache must be 0 or more bytes, not -1"):
        CacheConfig(budget_bytes=-1)
