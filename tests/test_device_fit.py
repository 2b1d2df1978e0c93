"""Augmentation inside the training step: for training alone, compiled or not, and nowhere in the saved model."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from model.device_fit import augment_on_device
from model.errors import StepError
from model.step_timing import InputClock, time_input

SIDE, COUNT = 8, 10  # batches of four: the last has two


@tf.function(jit_compile=True)
def augment(images: tf.Tensor, draws: tf.Tensor) -> tf.Tensor:
    """Brightness by the first draw, then -1 to 1."""
    return tf.cast(images, tf.float32) * draws[:, 0, None, None, None] / 127.5 - 1


def augment_numpy(images: np.ndarray, draws: np.ndarray) -> np.ndarray:
    return images.astype(np.float32) * draws[:, 0, None, None, None] / np.float32(127.5) - 1


def tiny_model(**options) -> tf.keras.Model:
    inputs = tf.keras.Input((SIDE, SIDE, 3))
    features = tf.keras.layers.Conv2D(4, 3, kernel_initializer=tf.keras.initializers.GlorotUniform(seed=1))(inputs)
    pooled = tf.keras.layers.GlobalAveragePooling2D()(tf.keras.layers.BatchNormalization()(features))
    head = tf.keras.layers.Dense(1, "sigmoid", kernel_initializer=tf.keras.initializers.GlorotUniform(seed=2))
    model = tf.keras.Model(inputs, head(pooled))
    adam = tf.keras.optimizers.Adam(0.01)
    model.compile(optimizer=adam, loss="binary_crossentropy", metrics=["accuracy"], **options)
    return model


def raw_arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (COUNT, SIDE, SIDE, 3), dtype=np.uint8)
    return images, generator.uniform(0.5, 1.5, (COUNT, 8)).astype(np.float32), (np.arange(COUNT) % 2).astype(np.float32)


def raw(*weights: np.ndarray) -> tf.data.Dataset:
    images, draws, labels = raw_arrays()
    return tf.data.Dataset.from_tensor_slices(((images, draws), labels, *weights)).batch(4)


def augmented(*weights: np.ndarray) -> tf.data.Dataset:
    images, draws, labels = raw_arrays()
    return tf.data.Dataset.from_tensor_slices((augment_numpy(images, draws), labels, *weights)).batch(4)


def validation() -> tf.data.Dataset:
    images, _, labels = raw_arrays()
    return tf.data.Dataset.from_tensor_slices((images.astype(np.float32) / 127.5 - 1, labels)).batch(4)


def fit(model: tf.keras.Model, data: tf.data.Dataset, **options) -> dict[str, list[float]]:
    return model.fit(data, verbose=0, shuffle=False, validation_data=validation(), epochs=2, **options).history


def assert_same(history: dict[str, list[float]], expected: dict[str, list[float]]) -> None:
    assert set(history) == set(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(history[name], values, rtol=1e-3, err_msg=name)


@pytest.mark.parametrize("options", [{}, {"jit_compile": True}, {"run_eagerly": True}], ids=str)
def test_training_sees_augmented_images_and_validation_its_own(options):
    model = tiny_model(**options)
    with augment_on_device(model, augment):
        history = fit(model, raw())
    assert_same(history, fit(tiny_model(), augmented()))


@pytest.mark.parametrize("timing_is_outside", [True, False])
def test_it_combines_with_timing_in_either_order(timing_is_outside):
    model, clock = tiny_model(jit_compile=True), InputClock()
    blocks = [time_input(model, clock), augment_on_device(model, augment)]
    outer, inner = blocks if timing_is_outside else reversed(blocks)
    with outer, inner:
        history = fit(model, raw())
    assert_same(history, fit(tiny_model(), augmented()))
    assert (clock.totals().images, clock.totals().steps) == (4 * COUNT, 12)


def test_sample_weights_reach_the_loss():
    weights = np.linspace(0, 1, COUNT, dtype=np.float32)
    model = tiny_model()
    with augment_on_device(model, augment):
        history = fit(model, raw(weights))
    assert_same(history, fit(tiny_model(), augmented(weights)))


def test_after_the_block_the_model_trains_on_its_own_input_again():
    model = tiny_model()
    with augment_on_device(model, augment):
        fit(model, raw())
    assert "train_step" not in vars(model)
    fit(model, augmented())


def test_a_train_step_of_the_persons_own_is_kept():
    model, calls = tiny_model(), []
    plain_step = model.train_step

    def own_step(batch):
        calls.append(batch[0].dtype)
        return plain_step(batch)

    model.train_step = own_step
    with augment_on_device(model, augment):
        fit(model, raw())
    assert set(calls) == {tf.float32}
    assert vars(model)["train_step"] is own_step


def test_a_batch_without_draws_is_refused_by_its_shape():
    model = tiny_model()
    with augment_on_device(model, augment), pytest.raises(StepError, match=r"one tensor of shape \(None, 8, 8, 3\)"):
        fit(model, augmented())


def test_a_distribution_strategy_is_refused():
    with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
        model = tiny_model()
    with pytest.raises(StepError, match="OneDeviceStrategy: augmentation on the device works on one device"):
        augment_on_device(model, augment).__enter__()


LOAD = """
import sys
import numpy as np
import tensorflow as tf
model = tf.keras.models.load_model("best.keras")
assert not {"model", "pipeline"} & set(sys.modules), "found Feedline"
images = np.load("images.npy")
outputs = model.predict(images, verbose=0)
model.fit(images, np.zeros(len(images), np.float32), verbose=0)
np.savez("loaded.npz", outputs=outputs, type_name=type(model).__name__, input_dtype=str(model.inputs[0].dtype))
"""


def test_the_best_model_saved_from_inside_loads_elsewhere_and_knows_nothing_of_it(tmp_path):
    model = tiny_model(jit_compile=True)
    keep_best = tf.keras.callbacks.ModelCheckpoint(
        str(tmp_path / "best.keras"), monitor="val_accuracy", mode="max", save_best_only=True
    )
    images = next(validation().as_numpy_iterator())[0]
    np.save(tmp_path / "images.npy", images)
    with augment_on_device(model, augment), time_input(model, InputClock()):
        model.fit(raw(), verbose=0, shuffle=False, validation_data=validation(), callbacks=[keep_best])
        expected = model.predict(images, verbose=0)
    subprocess.run([sys.executable, "-I", "-c", LOAD], cwd=tmp_path, check=True)
    loaded = np.load(tmp_path / "loaded.npz")
    np.testing.assert_allclose(loaded["outputs"], expected, rtol=1e-5, atol=1e-6)
    assert str(loaded["type_name"]) == "Functional"
    assert "float32" in str(loaded["input_dtype"])
