"""Networks, and their training from a feed with every phase recorded."""

from model.backbones import backbone_names, channel_affine_of, check_backbone, default_image_size, preprocessing_of
from model.classifier import ClassifierConfig, build_classifier
from model.device_fit import augment_on_device
from model.errors import (
    BackboneError,
    DeviceError,
    ModelError,
    MonitorError,
    ResumeError,
    StepError,
    TrainingError,
    TrainingInterrupted,
    WeightsError,
)
from model.flow_fit import fit_on_device
from model.gpu_memory import GpuMemoryConfig, visible_gpus
from model.placement import Placement, measure_placement
from model.step_timing import InputClock, InputTotals, time_input
from model.train_config import TrainConfig
from model.trainer import TrainResult, resume, resumed_config, train

__all__ = [
    "BackboneError",
    "ClassifierConfig",
    "DeviceError",
    "GpuMemoryConfig",
    "InputClock",
    "InputTotals",
    "ModelError",
    "MonitorError",
    "Placement",
    "ResumeError",
    "StepError",
    "TrainConfig",
    "TrainResult",
    "TrainingError",
    "TrainingInterrupted",
    "WeightsError",
    "augment_on_device",
    "backbone_names",
    "build_classifier",
    "channel_affine_of",
    "check_backbone",
    "default_image_size",
    "fit_on_device",
    "measure_placement",
    "preprocessing_of",
    "resume",
    "resumed_config",
    "time_input",
    "train",
    "visible_gpus",
]
