"""The real augmentation inside the compiled train step trains as the one on the host does, partial batches included."""

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from model import ClassifierConfig, augment_on_device, build_classifier
from pipeline import ChannelAffine, DecodeConfig, Feed, FeedConfig, augment_function, samples_from_folder

SIZE, EPOCHS = 24, 2
AFFINE = ChannelAffine(scale=(1 / 127.5,) * 3, offset=(-1.0,) * 3)
CONFIG = FeedConfig(decode=DecodeConfig(height=SIZE, width=SIZE), batch_size=8, preprocess=AFFINE)


def losses(photo_folder, augment_on: str, jit_compile: bool) -> list[float]:
    """Training losses of two epochs of 23 photos: batches of 8, 8 and 7."""
    feed = Feed(samples_from_folder(photo_folder), replace(CONFIG, augment_on=augment_on))
    model = build_classifier(ClassifierConfig(height=SIZE, width=SIZE, num_classes=2, jit_compile=jit_compile))
    fit = {"epochs": EPOCHS, "steps_per_epoch": feed.steps_per_epoch, "shuffle": False, "verbose": 0}
    data = feed.training(range(1, EPOCHS + 1))
    if augment_on == "host":
        return model.fit(data, **fit).history["loss"]
    with augment_on_device(model, augment_function(CONFIG.augment, CONFIG.preprocess)):
        return model.fit(data, **fit).history["loss"]


@pytest.mark.parametrize("jit_compile", [False, True])
def test_the_step_with_augmentation_gives_the_losses_of_the_host(photo_folder, jit_compile):
    tf.keras.backend.clear_session()
    expected = losses(photo_folder, "host", False)
    np.testing.assert_allclose(losses(photo_folder, "device", jit_compile), expected, rtol=2e-3)
