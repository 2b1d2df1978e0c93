"""The classifier: what is trained, what weights it takes, that a seed fixes it and that a saved one loads elsewhere."""

from __future__ import annotations

import functools
import inspect
import random
import re
import socket
import subprocess
import sys

import h5py
import numpy as np
import pytest
import tensorflow as tf

from model.classifier import METRIC_NAMES, ClassifierConfig, build_classifier, is_frozen
from model.errors import BackboneError, WeightsError
from model.monitor import reported_names

SIDE = 32


def config(**changes) -> ClassifierConfig:
    return ClassifierConfig(**{"height": SIDE, "width": SIDE, "num_classes": 2, **changes})


def batches(class_count: int = 2, count: int = 10, label_type: type = np.float32) -> tf.data.Dataset:
    images = np.random.default_rng(0).uniform(-1, 1, (count, SIDE, SIDE, 3)).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((images, (np.arange(count) % class_count).astype(label_type))).batch(4)


def fit(model: tf.keras.Model, dataset: tf.data.Dataset, **options) -> tf.keras.callbacks.History:
    return model.fit(dataset, verbose=0, shuffle=False, **options)


def application(**changes) -> tf.keras.Model:
    return tf.keras.applications.MobileNetV2(
        **{"include_top": False, "weights": None, "input_shape": (SIDE, SIDE, 3), **changes}
    )


def write_listed_weights(backbone: tf.keras.Model, path) -> None:
    """Writes the layout of keras.applications by hand, since Keras 3 no longer does."""
    with h5py.File(path, "w") as file:
        file.attrs["layer_names"] = [layer.name.encode() for layer in backbone.layers]
        for layer in backbone.layers:
            weights = [*layer.trainable_weights, *layer.non_trainable_weights]
            group = file.create_group(layer.name)
            names = [f"{layer.name}/{index}:0".encode() for index in range(len(weights))]
            group.attrs["weight_names"] = np.array(names, dtype="S") if names else np.zeros(0)
            for name, weight in zip(names, weights, strict=True):
                group[name.decode()] = weight.numpy()


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    """A random MobileNetV2 and the two files of its weights."""
    folder = tmp_path_factory.mktemp("weights")
    backbone = application(pooling="avg")
    write_listed_weights(backbone, folder / "mobilenet.h5")
    backbone.save_weights(str(folder / "mobilenet.weights.h5"))
    return backbone, folder


@pytest.mark.parametrize("label_type", [np.float32, np.int32])
@pytest.mark.parametrize("class_count", [2, 3])
def test_loss_and_accuracy_are_those_of_class_numbers(class_count, label_type):
    model = build_classifier(config(num_classes=class_count))
    dataset = batches(class_count, label_type=label_type)
    images, labels = (np.concatenate(part) for part in zip(*dataset.as_numpy_iterator(), strict=True))
    labels = labels.astype(int)
    outputs = model(images, training=False).numpy()
    assert outputs.shape == (10, 1 if class_count == 2 else 3)
    probabilities = np.hstack([1 - outputs, outputs]) if class_count == 2 else outputs
    loss, accuracy = model.evaluate(dataset, verbose=0)
    np.testing.assert_allclose(loss, -np.log(probabilities[np.arange(10), labels]).mean(), rtol=1e-4)
    np.testing.assert_allclose(accuracy, (probabilities.argmax(1) == labels).mean(), rtol=1e-6)


def test_what_fit_reports_is_what_a_monitor_may_be():
    history = fit(build_classifier(config()), batches(), validation_data=batches())
    assert set(history.history) == set(reported_names(METRIC_NAMES))


def test_a_backbone_without_weights_is_trained_as_a_whole():
    model = build_classifier(config(backbone="MobileNetV2"))
    assert not is_frozen(config(backbone="MobileNetV2"))
    assert len(model.trainable_weights) == len(application().trainable_weights) + 2


@pytest.mark.parametrize("name", ["mobilenet.h5", "mobilenet.weights.h5"])
def test_weights_of_a_file_are_loaded_and_stay_as_they_are_in_training(pretrained, name):
    backbone, folder = pretrained
    model = build_classifier(config(backbone="MobileNetV2", weights=str(folder / name)))
    assert [tuple(weight.shape) for weight in model.trainable_weights] == [(1280, 1), (1,)]
    fit(model, batches())
    images = next(iter(batches()))[0]
    for weight, expected in zip(model.non_trainable_weights, backbone.weights, strict=True):
        np.testing.assert_array_equal(weight.numpy(), expected.numpy())
    kernel, bias = (weight.numpy() for weight in model.trainable_weights)
    expected = tf.sigmoid(backbone(images, training=False).numpy() @ kernel + bias)
    np.testing.assert_allclose(model(images, training=True), expected, rtol=1e-4)


def test_weights_of_another_width_are_named_with_both_shapes(tmp_path):
    path = tmp_path / "narrow.h5"
    write_listed_weights(application(alpha=0.35), path)
    message = (
        r"narrow\.h5: .*another width .*MobileNetV2: layer Conv1 expects shapes \(3, 3, 3, 32\), found \(3, 3, 3, 16\)"
    )
    with pytest.raises(WeightsError, match=message):
        build_classifier(config(backbone="MobileNetV2", weights=str(path)))


def test_weights_of_another_width_in_the_newer_layout_are_refused_too(tmp_path):
    path = tmp_path / "narrow.weights.h5"
    application(alpha=0.35).save_weights(str(path))
    with pytest.raises(WeightsError, match=r"narrow\.weights\.h5: these are not weights of MobileNetV2 without top"):
        build_classifier(config(backbone="MobileNetV2", weights=str(path)))


def test_weights_with_a_top_are_refused_by_their_number_of_layers(tmp_path):
    path = tmp_path / "top.h5"
    write_listed_weights(application(include_top=True, classes=2), path)
    with pytest.raises(WeightsError, match=r"top\.h5: .* expected 104 layers with weights, found 105"):
        build_classifier(config(backbone="MobileNetV2", weights=str(path)))


def test_a_list_of_layers_that_keras_had_to_cut_is_read_whole(pretrained, tmp_path):
    backbone, folder = pretrained
    path = tmp_path / "cut.h5"
    path.write_bytes((folder / "mobilenet.h5").read_bytes())
    with h5py.File(path, "a") as file:
        names = file.attrs["layer_names"]
        del file.attrs["layer_names"]
        file.attrs["layer_names0"], file.attrs["layer_names1"] = names[:50], names[50:]
        weights = file.create_group("model_weights")
        for key in list(file):
            if key != "model_weights":
                file.move(key, f"model_weights/{key}")
        for key in list(file.attrs):
            weights.attrs[key] = file.attrs[key]
            del file.attrs[key]
    model = build_classifier(config(backbone="MobileNetV2", weights=str(path)))
    np.testing.assert_array_equal(model.layers[1].get_weights()[0], backbone.get_weights()[0])


def write_text(path) -> None:
    path.write_text("not HDF5")


def write_foreign(path) -> None:
    with h5py.File(path, "w") as file:
        file["something"] = np.zeros(3)


def write_half_listed(path) -> None:
    with h5py.File(path, "w") as file:
        file.attrs["layer_names"] = [b"Conv1"]


@pytest.mark.parametrize(
    ("name", "write", "message"),
    [
        ("gone.h5", lambda path: None, "no such weights file"),
        ("text.h5", write_text, "not a readable HDF5 weights file"),
        ("text.weights.h5", write_text, "not a readable HDF5 weights file"),
        ("text.keras", write_text, "a weights file must be named"),
        ("foreign.h5", write_foreign, "holds no list of layers"),
        ("foreign.weights.h5", write_foreign, "these are not weights of MobileNetV2"),
        ("half.h5", write_half_listed, "not a readable HDF5 weights file"),
        ("half.weights.h5", write_half_listed, "holds the older layout"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_one_line(tmp_path, name, write, message):
    write(tmp_path / name)
    with pytest.raises(WeightsError, match=rf"{re.escape(name)}: .*{message}") as caught:
        build_classifier(config(backbone="MobileNetV2", weights=str(tmp_path / name)))
    assert "\n" not in str(caught.value)


def test_imagenet_without_a_network_names_the_way_out(tmp_path, monkeypatch):
    def no_network(*_args, **_kwargs):
        raise socket.gaierror(-2, "Name or service not known")

    module = inspect.getmodule(tf.keras.applications.MobileNet)
    downloads = module.file_utils if hasattr(module, "file_utils") else module.data_utils
    monkeypatch.setattr(downloads, "get_file", functools.partial(downloads.get_file, cache_dir=str(tmp_path)))
    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    with pytest.raises(WeightsError, match=r"imagenet weights of MobileNet could not be had .*--weights FILE"):
        build_classifier(config(backbone="MobileNet", weights="imagenet", height=128, width=128))


def test_small_cnn_takes_no_weights():
    with pytest.raises(WeightsError, match="small_cnn is trained from scratch"):
        build_classifier(config(weights="imagenet"))


def test_an_image_too_small_for_the_backbone_is_refused_with_its_size():
    with pytest.raises(BackboneError, match=r"InceptionV3 at 32x32: Input size must be at least 75x75"):
        build_classifier(config(backbone="InceptionV3"))


@pytest.mark.skipif(hasattr(tf.keras, "ops"), reason="Keras 3 loads it")
def test_a_backbone_whose_saved_file_keras_2_cannot_load_is_refused(tmp_path):
    convnext = tf.keras.applications.ConvNeXtTiny(include_top=False, weights=None, input_shape=(SIDE, SIDE, 3))
    convnext.save(tmp_path / "plain.keras")
    with pytest.raises(TypeError):  # Keras's own model in Keras's own hands: once this passes, the refusal can go
        tf.keras.models.load_model(tmp_path / "plain.keras")
    with pytest.raises(BackboneError, match="ConvNeXtTiny: Keras 2 cannot load a ConvNeXt that it has saved"):
        build_classifier(config(backbone="ConvNeXtTiny"))


def test_all_wrong_values_of_a_config_stand_in_one_message():
    with pytest.raises(ValueError, match=r"height=0, num_classes=1, learning_rate=nan"):
        config(height=0, num_classes=1, learning_rate=float("nan"))


def test_a_seed_fixes_the_initial_weights_and_touches_no_global_state():
    before = (random.getstate(), np.random.get_state()[1].tolist())
    first, same, other = (build_classifier(config(seed=seed)).get_weights() for seed in (1, 1, 2))
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before
    for weight, again in zip(first, same, strict=True):
        np.testing.assert_array_equal(weight, again)
    kernels = [index for index, weight in enumerate(first) if weight.ndim > 1]
    assert len(kernels) == 5
    assert not any(np.array_equal(first[index], other[index]) for index in kernels)


LOAD = """
import sys
import numpy as np
import tensorflow as tf
images = np.load("images.npy")
for name in sys.argv[1:]:
    model = tf.keras.models.load_model(name + ".keras")
    assert not {"model", "pipeline"} & set(sys.modules), "found Feedline"
    state = [np.asarray(variable) for variable in model.optimizer.variables]
    np.savez(name + ".npz", model(images, training=False).numpy(), *state)
"""


def test_a_saved_classifier_loads_with_its_optimizer_where_feedline_is_not(pretrained, tmp_path):
    images = next(iter(batches()))[0].numpy()
    np.save(tmp_path / "images.npy", images)
    models = {
        "small": build_classifier(config(num_classes=3)),
        "frozen": build_classifier(config(backbone="MobileNetV2", weights=str(pretrained[1] / "mobilenet.h5"))),
    }
    for name, model in models.items():
        fit(model, batches())
        model.save(tmp_path / f"{name}.keras")
    subprocess.run([sys.executable, "-I", "-c", LOAD, *models], cwd=tmp_path, check=True)
    for name, model in models.items():
        outputs, *state = np.load(tmp_path / f"{name}.npz").values()
        np.testing.assert_allclose(outputs, model(images, training=False), rtol=1e-5, atol=1e-6)
        expected = [np.asarray(variable) for variable in model.optimizer.variables]
        assert expected[0] == 3  # iterations: ten images by four
        assert len(state) == len(expected)
        assert all(np.array_equal(*pair) for pair in zip(state, expected, strict=True))
