"""`--augment-on auto`: augmentation goes where a few batches were faster, and measuring it leaves no trace."""

import json
import time

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner

import cli
import model.trainer
from model import ClassifierConfig, Placement, build_classifier, measure_placement
from pipeline import ChannelAffine, DecodeConfig, FeedConfig, augment_function, samples_from_folder

SIZE = 24
AFFINE = ChannelAffine(scale=(1 / 127.5,) * 3, offset=(-1.0,) * 3)
CONFIG = FeedConfig(decode=DecodeConfig(height=SIZE, width=SIZE), batch_size=8, preprocess=AFFINE)


def classifier() -> tf.keras.Model:
    return build_classifier(ClassifierConfig(height=SIZE, width=SIZE, num_classes=2))


def state(of: tf.keras.Model) -> list[np.ndarray]:
    return [np.array(variable) for variable in (*of.variables, *of.optimizer.variables)]


def delayed(seconds: float):
    """The real augmentation, which takes so much longer in the step."""

    def wait(images: np.ndarray) -> np.ndarray:
        time.sleep(seconds)
        return images

    def make(*arguments, **named):
        augment = augment_function(*arguments, **named)

        def slow(images, draws):
            images = tf.ensure_shape(tf.numpy_function(wait, [images], tf.uint8), images.shape)
            return augment(images, draws)

        return slow

    return make


@pytest.mark.parametrize("cached", [False, True])
def test_measuring_leaves_the_model_as_it_was(photo_folder, cached):
    measured, samples = classifier(), samples_from_folder(photo_folder)
    measured.optimizer.build(measured.trainable_variables)
    before = state(measured)
    placement = measure_placement(measured, samples, CONFIG, cached=cached)
    after = state(measured)
    assert len(after) == len(before) > 0
    for now, then in zip(after, before, strict=True):
        np.testing.assert_array_equal(now, then)
    assert placement.host_ms > 0
    assert placement.device_ms > 0


@pytest.mark.parametrize(
    ("host_ms", "device_ms", "chosen"), [(20.0, 19.0, "device"), (20.0, 21.0, "host"), (20.0, 20.0, "host")]
)
def test_the_faster_place_is_chosen_and_the_host_where_they_are_equal(host_ms, device_ms, chosen):
    placement = Placement(host_ms=host_ms, device_ms=device_ms, steps=16)
    assert placement.chosen == chosen
    assert str(placement) == (
        f"augmentation on the {chosen}: a batch took 20.0 ms with it on the host, on the device {device_ms:.1f} ms "
        "(16 batches each)"
    )
    assert placement.to_json() == {
        "host_ms": host_ms, "device_ms": device_ms, "steps": 16, "reason": None, "chosen": chosen
    }  # fmt: skip


def test_the_time_of_the_augmentation_is_in_the_time_of_its_place(photo_folder, monkeypatch):
    monkeypatch.setattr("model.placement.augment_function", delayed(0.05))
    placement = measure_placement(classifier(), samples_from_folder(photo_folder), CONFIG, cached=True)
    assert placement.device_ms > 50
    assert placement.chosen == "host"


def test_a_device_that_cannot_do_it_loses_and_says_why(photo_folder, monkeypatch):
    def fails(*arguments, **named):
        def augment(images, draws):
            with tf.control_dependencies([tf.debugging.assert_less(tf.size(images), 0, message="no such operation")]):
                return tf.cast(images, tf.float32)

        return augment

    monkeypatch.setattr("model.placement.augment_function", fails)
    measured = classifier()
    placement = measure_placement(measured, samples_from_folder(photo_folder), CONFIG, cached=False)
    assert (placement.device_ms, placement.chosen) == (None, "host")
    assert placement.reason.startswith("assertion failed: [no such operation]")
    assert placement.reason in str(placement)


def train(photo_folder, out, *flags) -> str:
    size = ("--image-size", str(SIZE), "--batch-size", "8", "--epochs", "1")
    arguments = ("train", "--data", photo_folder, "--out", out, "--name", "one", *size, *flags)
    result = CliRunner().invoke(cli.main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def told(out) -> dict:
    return json.loads((out / "one" / "run.json").read_text())


def test_a_run_with_an_accelerator_measures_once_says_so_and_records_it(photo_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(model.trainer, "visible_gpus", lambda: 1)
    output = train(photo_folder, tmp_path)
    document = told(tmp_path)
    placement = document["placement"]
    (line,) = [line for line in output.splitlines() if line.startswith("augmentation on the ")]
    assert line.startswith(f"augmentation on the {placement['chosen']}: a batch took {placement['host_ms']:.1f} ms")
    assert document["config"]["feed"]["augment_on"] == placement["chosen"]
    # what was found out holds for the continued run too
    assert document["config"]["measure_placement"] is False


@pytest.mark.parametrize("place", ["host", "device"])
def test_a_place_that_is_named_is_not_measured(photo_folder, tmp_path, monkeypatch, place):
    monkeypatch.setattr(model.trainer, "visible_gpus", lambda: 1)
    output = train(photo_folder, tmp_path, "--augment-on", place)
    assert "a batch took" not in output
    assert "placement" not in told(tmp_path)
    assert told(tmp_path)["config"]["feed"]["augment_on"] == place


def test_without_an_accelerator_the_host_augments_and_the_run_says_why(photo_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(model.trainer, "visible_gpus", lambda: 0)
    output = train(photo_folder, tmp_path)
    assert "augmentation on the host: TensorFlow sees no accelerator to compare it with" in output
    assert told(tmp_path)["config"]["feed"]["augment_on"] == "host"
