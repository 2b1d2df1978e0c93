import numpy as np
import pytest
import tensorflow as tf

from telemetry import RunRecorder, SamplerConfig, epoch_rows, load_run, phase_callback
from telemetry.keras_callback import phase_metrics, split_metrics


@pytest.fixture(scope="module")
def data():
    images = np.random.default_rng(0).normal(size=(48, 4)).astype("float32")
    return images, (images.sum(axis=1) > 0).astype("float32")


def small_model(metrics):
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "binary_crossentropy", metrics=metrics)
    return model


def fit(folder, data, *, metrics=("accuracy",), also=(), **arguments):
    """Trains with the recorder and returns its rows and Keras's own history."""
    with RunRecorder(folder, data_path=None, config={}, sampler=SamplerConfig(period_seconds=0.05)) as recorder:
        model = small_model(list(metrics))
        history = model.fit(*data, batch_size=8, verbose=0, callbacks=[*also, phase_callback(recorder)], **arguments)
    return epoch_rows(load_run(folder)), history.history


def test_each_epoch_has_a_train_and_a_validation_phase_with_keras_own_figures(tmp_path, data):
    rows, history = fit(tmp_path / "one", data, epochs=2, validation_data=data)
    assert [(row.epoch, row.phase) for row in rows] == [
        (1, "train"),
        (1, "validation"),
        (2, "train"),
        (2, "validation"),
    ]
    for name, prefix in (("train", ""), ("validation", "val_")):
        own = [row for row in rows if row.phase == name]
        assert [row["loss"] for row in own] == pytest.approx(history[f"{prefix}loss"])
        assert [row["accuracy"] for row in own] == pytest.approx(history[f"{prefix}accuracy"])


def test_the_first_step_of_each_kind_is_warmup_and_later_epochs_have_none(tmp_path, data):
    rows, _ = fit(tmp_path / "one", data, epochs=2, validation_data=data)
    assert [row["warmup_seconds"] is not None for row in rows] == [True, True, False, False]
    assert all(0 < row["warmup_seconds"] < row["seconds"] for row in rows[:2])


def test_fit_without_validation_has_train_phases_only(tmp_path, data):
    rows, history = fit(tmp_path / "one", data, epochs=2)
    assert [row.phase for row in rows] == ["train", "train"]
    assert [row["loss"] for row in rows] == pytest.approx(history["loss"])


def test_validation_every_second_epoch_is_recorded_where_it_happens(tmp_path, data):
    rows, _ = fit(tmp_path / "one", data, epochs=2, validation_data=data, validation_freq=2)
    assert [(row.epoch, row.phase) for row in rows] == [(1, "train"), (2, "train"), (2, "validation")]


def test_epochs_are_numbered_as_keras_does_from_its_initial_epoch(tmp_path, data):
    rows, _ = fit(tmp_path / "one", data, initial_epoch=3, epochs=4)
    assert [row.epoch for row in rows] == [4]


def test_an_epoch_of_one_step_is_recorded(tmp_path, data):
    rows, _ = fit(tmp_path / "one", data, epochs=1, steps_per_epoch=1, validation_data=data, validation_steps=1)
    assert [row.phase for row in rows] == ["train", "validation"]
    assert rows[0]["images_per_second"] is None


def test_a_compiled_metric_under_another_name_is_the_accuracy(tmp_path, data):
    rows, history = fit(tmp_path / "one", data, metrics=("binary_accuracy",), epochs=1, validation_data=data)
    assert rows[1]["accuracy"] == pytest.approx(history["val_binary_accuracy"][0])


class EvaluatesItself(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        self.model.evaluate(np.zeros((4, 4)), np.zeros(4), verbose=0)


def test_an_evaluation_of_a_persons_own_is_no_phase(tmp_path, data):
    rows, _ = fit(tmp_path / "one", data, epochs=2, also=[EvaluatesItself()])
    assert [row.phase for row in rows] == ["train", "train"]


def test_the_callback_marks_an_ordinary_evaluate_of_nothing(tmp_path, data):
    with RunRecorder(tmp_path / "one", data_path=None, config={}) as recorder:
        small_model(["accuracy"]).evaluate(*data, verbose=0, callbacks=[phase_callback(recorder)])
    assert load_run(tmp_path / "one").phases == ()


@pytest.mark.skipif(bool(tf.config.list_physical_devices("GPU")), reason="a GPU is visible")
def test_without_a_gpu_tensorflows_memory_is_null_with_the_reason(tmp_path, data):
    rows, _ = fit(tmp_path / "one", data, epochs=1)
    assert rows[0]["tf_memory_peak_mib"] is None
    assert rows[0].reasons["tf_memory_peak_mib"] == "TensorFlow sees no GPU, and tells no memory of the host"


def test_the_callback_keeps_neither_keras_from_running_ahead_of_the_device(tmp_path):
    with RunRecorder(tmp_path / "one", data_path=None, config={}) as recorder:
        callback = phase_callback(recorder)
    assert callback.async_safe  # Keras 3: batch hooks need not wait
    assert callback._supports_tf_logs  # Keras 2: logs stay tensors after a batch


def test_metrics_that_are_no_single_number_are_left_out():
    assert phase_metrics({"loss": 1, "f1": [1.0, 2.0], "acc": np.float32(0.5)}) == {
        "loss": 1.0,
        "acc": 0.5,
        "accuracy": 0.5,
    }


def test_an_epochs_logs_are_split_by_their_prefix():
    assert split_metrics({"loss": 1.0, "val_loss": 2.0}) == ({"loss": 1.0}, {"loss": 2.0})
