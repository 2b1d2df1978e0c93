"""The split into training and validation: of every class the same share, disjoint, and a function of the seed alone."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import InputError
from pipeline.samples import Samples, split_samples


def made(counts: list[int], class_names: tuple[str, ...] | None = None) -> Samples:
    names = class_names or tuple(f"class{index}" for index in range(len(counts)))
    paths = [f"/data/{index}/{number:04}.jpg" for index, count in enumerate(counts) for number in range(count)]
    return Samples(paths=tuple(paths), targets=np.repeat(np.arange(len(counts)), counts), class_names=names)


@settings(max_examples=100, deadline=None)
@given(
    counts=st.lists(st.integers(2, 40), min_size=1, max_size=5),
    fraction=st.floats(0.001, 0.999),
    seed=st.integers(-(2**70), 2**70),
)
def test_parts_are_disjoint_whole_stratified_and_in_order(counts: list[int], fraction: float, seed: int) -> None:
    samples = made(counts)
    training, validation = split_samples(samples, fraction, seed)
    assert sorted(training.paths + validation.paths) == sorted(samples.paths)
    for part in (training, validation):
        assert list(part.paths) == sorted(part.paths)
        assert [f"/data/{target}/" for target in part.targets] == [path[:8] for path in part.paths]
    for index, count in enumerate(counts):
        held_out = int((validation.targets == index).sum())
        assert 1 <= held_out <= count - 1
        assert abs(held_out - fraction * count) <= 1


def test_the_same_seed_gives_the_same_split_on_every_version_of_numpy() -> None:
    _, validation = split_samples(made([10, 10]), 0.3, 42)
    # counted once by hand from the definition: Philox(key=(42, 0x5B117)), the three smallest raw numbers of each class
    numbers = np.random.Philox(key=np.array([42, 0x5B117], np.uint64)).random_raw(20).tolist()
    expected = [sorted(range(start, start + 10), key=numbers.__getitem__)[:3] for start in (0, 10)]
    assert validation.paths == made([10, 10]).take(sorted(expected[0] + expected[1])).paths
    assert [path[6:12] for path in validation.paths] == ["0/0006", "0/0008", "0/0009", "1/0000", "1/0004", "1/0009"]


def test_another_seed_gives_another_split() -> None:
    splits = {split_samples(made([20, 20]), 0.5, seed)[0].paths for seed in range(20)}
    assert len(splits) == 20


def test_the_side_of_a_file_does_not_depend_on_the_order_of_the_rows() -> None:
    samples = made([12, 9])
    reversed_samples = samples.take(range(20, -1, -1))
    _, validation = split_samples(samples, 0.4, 1)
    _, validation_of_reversed = split_samples(reversed_samples, 0.4, 1)
    assert validation_of_reversed.paths == validation.paths[::-1]


def test_a_path_that_stands_more_than_once_lies_on_one_side() -> None:
    samples = made([10, 10])
    twice = samples.take([*range(20), *range(20)])
    written_otherwise = Samples(
        paths=tuple(path.replace("/data/", "/data/./") if row > 20 else path for row, path in enumerate(twice.paths)),
        targets=twice.targets,
        class_names=twice.class_names,
    )
    training, validation = split_samples(written_otherwise, 0.3, 5)
    assert len(training) == 28
    assert len(validation) == 12
    plain = [{path.replace("/./", "/") for path in part.paths} for part in (training, validation)]
    assert plain[0].isdisjoint(plain[1])


@pytest.mark.parametrize("count", [0, 1])
def test_a_class_too_small_to_split_is_named(count: int) -> None:
    with pytest.raises(InputError, match=re.escape(f"class 'rare': {count} usable file(s)")):
        split_samples(made([5, count], ("common", "rare")), 0.2, 0)


def test_a_class_with_one_file_listed_twice_is_too_small() -> None:
    samples = made([3, 1]).take([0, 1, 2, 3, 3])
    with pytest.raises(InputError, match="class 'class1': 1 usable"):
        split_samples(samples, 0.2, 0)


@pytest.mark.parametrize("fraction", [0, 1, -0.1, 20, float("nan")])
def test_a_fraction_outside_zero_to_one_is_refused(fraction: float) -> None:
    with pytest.raises(ValueError, match=re.escape(f"fraction: {fraction!r} is not between 0 and 1")):
        split_samples(made([5, 5]), fraction, 0)


def test_global_random_state_is_left_alone() -> None:
    random_before, numpy_before = random.getstate(), np.random.get_state()
    split_samples(made([5, 5]), 0.2, 0)
    assert random.getstate() == random_before
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before[1])
