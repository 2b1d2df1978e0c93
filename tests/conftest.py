import os

# before any test imports TensorFlow
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from pathlib import Path

import numpy as np
import pytest
from PIL import Image


@pytest.fixture(scope="session")
def photo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty-three JPEGs of several sizes in two classes that differ in brightness; read-only by agreement."""
    folder = tmp_path_factory.mktemp("photos")
    numbers = np.random.default_rng(7)
    for name, count, level in (("dark", 11, 70), ("light", 12, 180)):
        (folder / name).mkdir()
        for index in range(count):
            coarse = numbers.integers(level - 50, level + 50, (6, 7, 3), dtype=np.uint8)
            size = (40 + 3 * (index % 5), 36 + 5 * (index % 4))
            Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC).save(folder / name / f"{index:02}.jpg")
    return folder
