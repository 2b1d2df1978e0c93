"""The classifier: a backbone, average pooling and one layer of classes, compiled and ready for `fit`.

It is a plain functional Keras model of Keras's own layers, so that a saved one loads where Feedline is not installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from model.backbones import SMALL_CNN, application_builder, check_backbone
from model.errors import BackboneError, WeightsError, one_line
from model.weights import load_weights_file

__all__ = ["METRIC_NAMES", "ClassifierConfig", "build_classifier", "is_frozen"]

METRIC_NAMES = ("accuracy",)


@dataclass(frozen=True, kw_only=True)
class ClassifierConfig:
    """What to build.

    Attributes:
        backbone: `small_cnn` or the name of a Keras Application.
        weights: `none`, `imagenet`, or the path of a file of the backbone's weights without top.
        height: of the images, in pixels.
        width: of the images, in pixels.
        num_classes: 2 gives one sigmoid unit, more give a softmax over them.
        learning_rate: Adam's step size.
        seed: fixes the initial weights of small_cnn and of the classes' layer. Those of a Keras Application without
            weights follow Keras's global state, which is the caller's.
        jit_compile: compiles the steps with XLA. Off by default, since a deep network takes long to compile on a CPU,
            and the augmentation on the device is compiled by itself.
    """

    backbone: str = SMALL_CNN
    weights: str = "none"
    height: int
    width: int
    num_classes: int
    learning_rate: float = 1e-3
    seed: int = 42
    jit_compile: bool = False

    def __post_init__(self) -> None:
        check_backbone(self.backbone)
        checks = {
            "height": self.height >= 1,
            "width": self.width >= 1,
            "num_classes": self.num_classes >= 2,
            "learning_rate": np.isfinite(self.learning_rate) and self.learning_rate > 0,
            "seed": self.seed >= 0,
            "weights": bool(self.weights),
        }
        wrong = [f"{name}={getattr(self, name)!r}" for name, is_right in checks.items() if not is_right]
        if wrong:
            raise ValueError(f"out of range: {', '.join(wrong)}")


def is_frozen(config: ClassifierConfig) -> bool:
    """Whether the backbone keeps its weights: only where it was given some, as frozen random features are useless."""
    return config.weights != "none"


def build_classifier(config: ClassifierConfig) -> tf.keras.Model:
    """A compiled classifier of preprocessed images.

    A backbone with weights is frozen and runs in inference mode (its batch normalisation uses the statistics it came
    with, its dropout is off); one without is trained as a whole.

    Args:
        config: what to build.

    Returns:
        A functional model from float32 (N, height, width, 3), already preprocessed, to float32 (N, 1), the probability
        of class 1, or (N, num_classes). It is fitted on the numbers of the classes, float32 or int (N,).

    Raises:
        BackboneError: if the backbone cannot be built at this image size, or its saved file could not be loaded.
        WeightsError: if the weights cannot be loaded or downloaded.
    """
    seeds = _layer_seeds(config.seed)
    images = tf.keras.Input((config.height, config.width, 3), dtype="float32", name="images")
    is_binary = config.num_classes == 2
    classes = tf.keras.layers.Dense(
        1 if is_binary else config.num_classes,
        activation="sigmoid" if is_binary else "softmax",
        kernel_initializer=tf.keras.initializers.GlorotUniform(seed=next(seeds)),
        dtype="float32",  # probabilities stay exact under a mixed precision policy
        name="classes",
    )(_features(images, config, seeds))
    model = tf.keras.Model(images, classes, name="classifier")
    model.compile(
        optimizer=tf.keras.optimizers.Adam(config.learning_rate),
        loss="binary_crossentropy" if is_binary else "sparse_categorical_crossentropy",
        metrics=list(METRIC_NAMES),
        jit_compile=config.jit_compile,
    )
    return model


def _features(images: tf.Tensor, config: ClassifierConfig, seeds: Iterator[int]) -> tf.Tensor:
    """Float32 (N, features) of a batch of images."""
    if config.backbone == SMALL_CNN:
        if config.weights != "none":
            raise WeightsError(f"{SMALL_CNN} is trained from scratch: weights must be none, not {config.weights!r}")
        return _small_cnn_features(images, seeds)
    backbone = _build_application(config)
    if not is_frozen(config):
        return backbone(images)
    backbone.trainable = False
    return backbone(images, training=False)


def _small_cnn_features(images: tf.Tensor, seeds: Iterator[int]) -> tf.Tensor:
    """Float32 (N, 96): four convolutions, each normalised and rectified, and the strongest answer over the image.

    Each image is standardised first, so that brightness does not count. The maximum does not depend on how many things
    are in view, as an average would.
    """
    layers = tf.keras.layers
    features = layers.GroupNormalization(groups=1, center=False, scale=False)(images)
    for filters, side, strides, pooled in ((16, 7, 4, False), (32, 3, 1, True), (64, 3, 1, True), (96, 3, 1, False)):
        initializer = tf.keras.initializers.GlorotUniform(seed=next(seeds))
        features = layers.Conv2D(
            filters, side, strides=strides, padding="same", use_bias=False, kernel_initializer=initializer
        )(features)
        if pooled:
            # before the normalisation, which costs as much as the convolution and has a quarter left to do
            features = layers.MaxPooling2D(2, 2, padding="same")(features)
        # the default momentum of 0.99 needs hundreds of steps to settle; a small data set has tens an epoch
        features = layers.BatchNormalization(momentum=0.8)(features)
        features = layers.ReLU()(features)
    return layers.BatchNormalization(momentum=0.8)(layers.GlobalMaxPooling2D()(features))


def _build_application(config: ClassifierConfig) -> tf.keras.Model:
    """The Application without top, with its weights."""
    _require_loadable(config.backbone)
    builder = application_builder(config.backbone)
    input_shape = (config.height, config.width, 3)

    is_imagenet = config.weights == "imagenet"
    try:
        backbone = builder(
            include_top=False, weights="imagenet" if is_imagenet else None, input_shape=input_shape, pooling="avg"
        )
    except ValueError as error:  # as Keras says that it cannot be built so
        raise BackboneError(f"{config.backbone} at {config.height}x{config.width}: {one_line(error)}") from error
    except Exception as error:  # as Keras says that a download failed
        if not is_imagenet:
            raise
        raise WeightsError(
            f"the imagenet weights of {config.backbone} could not be had ({one_line(error)}); without a network pass "
            "--weights FILE, an .h5 file of its weights without top"
        ) from error
    if is_frozen(config) and not is_imagenet:
        load_weights_file(backbone, config.weights, config.backbone)
    return backbone


def _require_loadable(name: str) -> None:
    """Refuses the one family whose saved files Keras 2 cannot read (the test shows it without Feedline)."""
    is_keras_2 = not hasattr(tf.keras, "ops")
    if is_keras_2 and name.startswith("ConvNeXt"):
        raise BackboneError(
            f"{name}: Keras 2 cannot load a ConvNeXt that it has saved; install Keras 3 (tensorflow>=2.16)"
        )


def _layer_seeds(seed: int) -> Iterator[int]:
    """A seed for each layer in turn, far apart from one another, below 2**31 as Keras 2 wants them."""
    generator = np.random.default_rng(seed)
    while True:
        yield int(generator.integers(2**31))
