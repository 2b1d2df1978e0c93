"""`fit_on_device`: a flow's pixel work inside the compiled step of a person's own model."""

import numpy as np
import pytest
import tensorflow as tf

from model import fit_on_device
from pipeline import ImageDataGenerator, InputError

RANDOM = {"rotation_range": 20, "horizontal_flip": True, "brightness_range": (0.6, 1.2), "zoom_range": 0.2}
IMAGES = np.random.default_rng(0).integers(0, 256, (22, 10, 12, 3)).astype("uint8")
LABELS = np.arange(22) % 2


def small_model(**compile_arguments):
    tf.keras.utils.set_random_seed(3)
    model = tf.keras.Sequential(
        [
            tf.keras.Input((10, 12, 3)),
            tf.keras.layers.Conv2D(4, 3, activation="relu"),
            tf.keras.layers.GlobalAveragePooling2D(),
            tf.keras.layers.Dense(1, "sigmoid"),
        ]
    )
    model.compile(tf.keras.optimizers.SGD(0.1), "binary_crossentropy", metrics=["accuracy"], **compile_arguments)
    return model


def flow(labels=LABELS, **generator):
    made = ImageDataGenerator(**{**RANDOM, "rescale": 1 / 255, **generator})
    return made.flow(IMAGES, labels, batch_size=8, seed=4)


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("exact", [False, True])
def test_the_losses_are_those_of_the_host(jit_compile, exact):
    host, device = small_model(jit_compile=jit_compile), small_model(jit_compile=jit_compile)
    expected = host.fit(flow(keras_exact=exact).dataset, epochs=3, shuffle=False, verbose=0).history["loss"]
    found = fit_on_device(device, flow(keras_exact=exact), epochs=3, verbose=0).history["loss"]
    # Keras's brightness rounds to 8 bits, where a float's last bit decides about a level
    np.testing.assert_allclose(found, expected, rtol=2e-3 if exact else 1e-4)


def test_the_model_is_what_it_was_and_validation_is_plain(tmp_path):
    model = small_model()
    validation = ImageDataGenerator(rescale=1 / 255).flow(IMAGES, LABELS, batch_size=8, shuffle=False)
    history = fit_on_device(
        model, flow(), validation_data=validation, epochs=1, verbose=0, class_weight={0: 1.0, 1: 3.0}
    )
    loss, accuracy = model.evaluate(validation.dataset, verbose=0)
    np.testing.assert_allclose(history.history["val_loss"], [loss], rtol=1e-4)
    assert history.history["val_accuracy"] == pytest.approx([accuracy])
    model.save(tmp_path / "model.keras")
    layers = [type(layer).__name__ for layer in tf.keras.models.load_model(tmp_path / "model.keras").layers]
    assert [name for name in layers if name != "InputLayer"] == ["Conv2D", "GlobalAveragePooling2D", "Dense"]


def test_preprocessing_of_keras_applications_is_part_of_the_step():
    function = tf.keras.applications.mobilenet_v2.preprocess_input
    host, device = small_model(), small_model()
    flows = [flow(rescale=None, preprocessing_function=function) for _ in range(2)]
    expected = host.fit(flows[0].dataset, shuffle=False, verbose=0).history["loss"]
    np.testing.assert_allclose(fit_on_device(device, flows[1], verbose=0).history["loss"], expected, rtol=1e-4)


@pytest.mark.parametrize(
    ("generator", "message"),
    [
        ({"preprocessing_function": lambda image: image}, "preprocessing_function=.* is Python; use one of keras"),
        ({"interpolation_order": 3}, "interpolation_order=3 is a spline that only SciPy has"),
        ({"fill_mode": "mirror"}, "fill_mode='mirror' is one that only SciPy has"),
    ],
)
def test_what_only_python_can_do_is_refused_with_its_reason(generator, message):
    with pytest.raises(InputError, match=f"this flow cannot run in the train step: {message}"):
        fit_on_device(small_model(), flow(**generator))


def test_flows_of_more_than_plain_images_are_refused():
    two_inputs = ImageDataGenerator(**RANDOM).flow((IMAGES, LABELS), LABELS)
    with pytest.raises(InputError, match="further inputs, images for labels, or save_to_dir"):
        fit_on_device(small_model(), two_inputs)
