"""The demonstration set: drawn once, whole or not at all, and not to be told apart by colour."""

from __future__ import annotations

import hashlib
import os
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pipeline import demo
from pipeline.demo import demonstration_set, draw_image
from pipeline.samples import samples_from_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demonstration_set(tmp_path_factory.mktemp("cache"))


def contents_by_name(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*.jpg")
    }


def test_it_is_a_few_hundred_photo_sized_jpegs_in_two_classes(folder: Path) -> None:
    samples = samples_from_folder(folder)
    assert samples.class_names == ("pointed", "round")
    assert np.bincount(samples.targets).tolist() == [300, 300]
    assert samples.notes == ()
    for path in samples.paths[::50]:
        with Image.open(path) as image:
            assert (image.format, image.mode) == ("JPEG", "RGB")
            assert 360 <= image.width <= 440
            assert 320 <= image.height <= 400


@pytest.mark.parametrize("statistic", [np.mean, np.median], ids=["mean", "median"])
def test_colour_does_not_tell_the_classes_apart(folder: Path, statistic) -> None:
    samples = samples_from_folder(folder)
    colours = np.array([statistic(np.asarray(Image.open(path)), axis=(0, 1)) for path in samples.paths])
    classifier = make_pipeline(StandardScaler(), LogisticRegression())
    assert cross_val_score(classifier, colours, samples.targets, cv=5).mean() < 0.6


def test_drawing_is_a_function_of_class_and_number_and_touches_no_global_state() -> None:
    random_before, numpy_before = random.getstate(), np.random.get_state()
    first, second = draw_image("round", 3), draw_image("round", 3)
    np.testing.assert_array_equal(first, second)
    assert draw_image("round", 4).tobytes() != first.tobytes()
    assert random.getstate() == random_before
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before[1])


def test_a_second_call_finds_the_set_and_writes_nothing(folder: Path) -> None:
    path = folder / "round" / "round-000.jpg"
    before = path.stat()
    assert demonstration_set(folder.parent) == folder
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert os.listdir(folder.parent) == [folder.name]


def test_makers_at_once_leave_one_whole_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "_IMAGES_PER_CLASS", 4)
    with ThreadPoolExecutor(3) as executor:
        folders = set(executor.map(demonstration_set, [tmp_path] * 3))
    assert len(folders) == 1
    assert os.listdir(tmp_path) == [folders.pop().name]
    alone = demonstration_set(tmp_path / "alone")
    assert len(contents_by_name(alone)) == 8
    assert contents_by_name(alone) == contents_by_name(tmp_path / alone.name)


def test_a_failed_drawing_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(*_, **__) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(demo, "_IMAGES_PER_CLASS", 4)
    monkeypatch.setattr(Image.Image, "save", full_disk)
    with pytest.raises(OSError, match="No space left"):
        demonstration_set(tmp_path)
    assert os.listdir(tmp_path) == []
