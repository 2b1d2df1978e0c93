"""On a machine without a GPU: what would run on one has a kernel there, and lowers for it through XLA."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import kernels

from model import augment_on_device, build_classifier
from model.classifier import ClassifierConfig
from pipeline import FILL_MODES, AugmentRanges, ChannelAffine, augment_function

# what belongs to a function's frame, not to a device
_FRAME_OPS = {"Placeholder", "NoOp", "Const", "Identity", "IdentityN", "PartitionedCall", "StatefulPartitionedCall"}
GATHERS = {"GatherV2", "GatherNd"}  # the warp takes whichever XLA compiles better in the installed version
AFFINE = ChannelAffine(scale=(1 / 127.5,) * 3, offset=(-1.0,) * 3, reverse_channels=True)


def ops_of(function: tf.types.experimental.ConcreteFunction) -> set[str]:
    """Types of all ops of a traced function and of the functions that it calls."""
    definition = function.graph.as_graph_def()
    nodes = [*definition.node, *(node for body in definition.library.function for node in body.node_def)]
    return {node.op for node in nodes}


def without_gpu_kernel(ops: set[str]) -> set[str]:
    def devices(op: str) -> set[str]:
        return {kernel.device_type for kernel in kernels.get_registered_kernels_for_op(op).kernel}

    # a kernel registered for DEFAULT serves every device
    return {op for op in ops - _FRAME_OPS if not devices(op) & {"GPU", "DEFAULT"}}


def test_the_check_itself_finds_an_op_without_a_gpu_kernel():
    assert without_gpu_kernel({"DecodeJpeg", "AddV2"}) == {"DecodeJpeg"}


@pytest.mark.parametrize("fill_mode", FILL_MODES)
def test_every_op_of_the_augmentation_has_a_gpu_kernel(fill_mode):
    ranges = AugmentRanges(fill_mode=fill_mode, channel_shift=10)
    augment = augment_function(ranges, AFFINE)
    traced = augment.get_concrete_function(
        tf.TensorSpec((None, 32, 48, 3), tf.uint8), tf.TensorSpec((None, 8), tf.float32)
    )
    ops = ops_of(traced)
    assert ops & GATHERS
    assert without_gpu_kernel(ops) == set()


def test_every_op_of_the_train_step_with_augmentation_has_a_gpu_kernel():
    model = build_classifier(ClassifierConfig(height=32, width=32, num_classes=2))
    with augment_on_device(model, augment_function(AugmentRanges(), AFFINE)):
        data = (np.zeros((4, 32, 32, 3), np.uint8), np.zeros((4, 8), np.float32)), np.zeros(4, np.float32)
        model.fit(tf.data.Dataset.from_tensors(data), shuffle=False, verbose=0)  # builds metrics and optimizer
        step = tf.function(model.train_step)
        ops = ops_of(step.get_concrete_function(tf.nest.map_structure(tf.constant, data)))
    assert {"Conv2D", "Conv2DBackpropFilter"} <= ops
    assert ops & GATHERS
    assert without_gpu_kernel(ops) == set()


@pytest.mark.skipif(tf.__version__.startswith("2.15"), reason="TensorFlow 2.15 cannot lower for another platform")
@pytest.mark.parametrize("fill_mode", FILL_MODES)
def test_the_augmentation_lowers_for_a_gpu_through_xla(fill_mode):
    augment = augment_function(AugmentRanges(fill_mode=fill_mode, channel_shift=10), AFFINE)
    images, draws = tf.zeros((4, 32, 48, 3), tf.uint8), tf.zeros((4, 8))
    lowered = augment.experimental_get_compiler_ir(images, draws)(stage="hlo", platform_name="GPU")
    assert "gather(" in lowered
    assert "f32[4,32,48,3]" in lowered
