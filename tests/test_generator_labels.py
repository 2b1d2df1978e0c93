"""What the labels of a batch look like in each class mode: beside what Keras's real iterators yield."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from PIL import Image

from pipeline.generator import ImageDataGenerator
from pipeline.generator.labels import batch_labels
from pipeline.generator.listing import Listing

Keras = tf.keras.preprocessing.image.ImageDataGenerator
SIZE = {"target_size": (4, 4), "batch_size": 4, "shuffle": False}


@pytest.fixture
def frame(tmp_path):
    names = [f"{folder}/{index}.png" for folder in "ab" for index in range(5)]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (4, 4)).save(tmp_path / name)
    return pd.DataFrame(
        {
            "filename": names,
            "class": list("xyyxyxxyxy"),
            "many": [["p"], ["q", "p"], [], ("r",), ["r", "q", "p"], ["p"], ["q"], ["r"], ["q"], ["r", "r"]],
            "whole": np.arange(10),
            "half": np.arange(10, dtype="float32") / 2,
            "weight": np.linspace(0, 1, 10),
        }
    )


def assert_batches_are_equal(ours, theirs):
    assert len(ours) == len(theirs) == 3
    for index in range(3):
        found, expected = (
            tf.nest.flatten(batch if isinstance(batch, tuple) else (batch,)) for batch in (ours[index], theirs[index])
        )
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
@pytest.mark.parametrize("class_mode", ["binary", "sparse", "categorical", "input", None])
def test_labels_of_a_directory_are_kerass(frame, tmp_path, class_mode, dtype):
    del frame  # its files are what is listed
    ours, theirs = (
        kind(dtype=dtype).flow_from_directory(tmp_path, class_mode=class_mode, **SIZE)
        for kind in (ImageDataGenerator, Keras)
    )
    assert_batches_are_equal(ours, theirs)


@pytest.mark.parametrize("weight_col", [None, "weight"])
@pytest.mark.parametrize(
    ("class_mode", "y_col"),
    [
        ("binary", "class"),
        ("sparse", "class"),
        ("categorical", "class"),
        ("categorical", "many"),
        ("raw", "whole"),
        ("raw", ["whole", "half"]),
        ("multi_output", ["whole", "half"]),
        ("input", "class"),
        (None, "class"),
    ],
    ids=str,
)
def test_labels_and_weights_of_a_dataframe_are_kerass(frame, tmp_path, class_mode, y_col, weight_col):
    ours, theirs = (
        kind().flow_from_dataframe(frame, tmp_path, y_col=y_col, class_mode=class_mode, weight_col=weight_col, **SIZE)
        for kind in (ImageDataGenerator, Keras)
    )
    assert_batches_are_equal(ours, theirs)


def test_labels_follow_the_indices_in_any_order():
    listing = Listing(
        filenames=[], filepaths=[], message="", classes=[2, [0, 1], []], class_indices={"a": 0, "b": 1, "c": 2}
    )
    labels = batch_labels("categorical", listing, np.array([2, 1, 0, 1]), "float32")
    np.testing.assert_array_equal(labels, [[0, 0, 0], [1, 1, 0], [0, 0, 1], [1, 1, 0]])
    assert labels.dtype == np.float32
    assert batch_labels("categorical", listing, np.zeros(0, np.int64), "float32").shape == (0, 3)
