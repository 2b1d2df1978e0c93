"""best.keras is a plain Keras model: it predicts where Feedline is not installed, from what run.json tells."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner

import cli
from pipeline import ChannelAffine, DecodeConfig, Feed, FeedConfig, samples_from_folder

# Started with -I from another folder, with our packages barred even where they are installed. Pictures are prepared by
# Pillow and by what run.json says, nothing else.
ELSEWHERE = """
import json, sys
for name in ("cli", "pipeline", "model", "telemetry"):
    sys.modules[name] = None
import numpy as np
import tensorflow as tf
from PIL import Image

run, *paths = sys.argv[1:]
model = tf.keras.models.load_model(run + "/best.keras")
with open(run + "/run.json", encoding="utf-8") as file:
    about = json.load(file)
preprocessing = about["preprocessing"]
assert preprocessing["interpolation"] == "nearest"
affine = preprocessing["channel_affine"]
_, height, width, _ = model.input_shape
images = []
for path in paths:
    image = Image.open(path).convert("RGB").resize((width, height), Image.Resampling.NEAREST)
    image = np.asarray(image, np.float32)
    image = image[..., ::-1] if affine["reverse_channels"] else image
    images.append(image * affine["scale"] + affine["offset"])
first, again = (model.predict(np.stack(images), verbose=0) for _ in range(2))


def layers_of(layer):
    yield layer
    for inner in getattr(layer, "layers", ()):
        yield from layers_of(inner)


print(json.dumps({
    "same_twice": bool((first == again).all()),
    "probabilities": first[:, 0].tolist(),
    "layers": [[type(layer).__module__, type(layer).__name__] for layer in layers_of(model)],
    "class_names": about["class_names"],
}))
"""


@pytest.fixture(scope="module")
def finished(photo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with augmentation inside its train step, where it could most easily get into the saved model."""
    out = tmp_path_factory.mktemp("saved")
    flags = ("--image-size", "24x32", "--batch-size", "8", "--epochs", "3", "--augment-on", "device")
    arguments = ("train", "--data", photo_folder, "--out", out, "--name", "run", *flags)
    result = CliRunner().invoke(cli.main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return out / "run"


@pytest.fixture(scope="module")
def elsewhere(finished: Path, photo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict:
    """What a process without Feedline says of the best model and the photos."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", ELSEWHERE, str(finished), *samples_from_folder(photo_folder).paths],
        cwd=tmp_path_factory.mktemp("elsewhere"),
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_it_predicts_elsewhere_what_it_predicts_here(finished: Path, elsewhere: dict, photo_folder: Path):
    document = json.loads((finished / "run.json").read_text(encoding="utf-8"))
    affine = ChannelAffine(**document["preprocessing"]["channel_affine"])
    feed = Feed(
        samples_from_folder(photo_folder),
        FeedConfig(decode=DecodeConfig(height=24, width=32), batch_size=8, preprocess=affine),
    )
    model = tf.keras.models.load_model(finished / "best.keras")
    here = np.concatenate([model(images, training=False) for images, _ in feed.evaluation()])
    assert elsewhere["probabilities"] == pytest.approx(here[:, 0].tolist(), abs=1e-4)
    assert np.ptp(here) > 0.01  # else equal predictions would say nothing of the images


def test_it_holds_no_augmentation(elsewhere: dict):
    assert elsewhere["same_twice"]
    assert all(module.partition(".")[0] == "keras" for module, _ in elsewhere["layers"])
    names = {name for _, name in elsewhere["layers"]}
    assert "Conv2D" in names
    assert not {name for name in names if name.startswith("Random") or name == "Lambda"}


def test_its_classes_stand_beside_it(elsewhere: dict):
    assert elsewhere["class_names"] == ["dark", "light"]


def test_the_last_model_can_be_trained_on(finished: Path):
    model = tf.keras.models.load_model(finished / "last.keras")
    steps = int(model.optimizer.iterations)
    assert steps == 3 * json.loads((finished / "run.json").read_text(encoding="utf-8"))["steps_per_epoch"]
    model.fit(np.zeros((8, 24, 32, 3), np.float32), np.zeros(8, np.float32), verbose=0)
    assert int(model.optimizer.iterations) == steps + 1
