"""The errors of the model package, for whoever calls it to show as one line.

    ModelError              anything that this package refuses or fails to do
    ├── BackboneError       no such backbone, or not at this image size, or not with such a preprocessing
    ├── WeightsError        a weights file or download that cannot be used
    ├── MonitorError        a monitor that the training will never report
    ├── StepError           a model or batch whose training step cannot be timed or augmented
    ├── DeviceError         a limit on the GPU's memory that cannot be set
    ├── ResumeError         a run that cannot be continued
    └── TrainingError       a training that failed on its way
    KeyboardInterrupt
    └── TrainingInterrupted     Ctrl-C in a training, which can be continued

Each message is one line that names the thing, shows the value and says what to do.
"""

from __future__ import annotations

import re
from pathlib import Path

__all__ = [
    "BackboneError",
    "DeviceError",
    "ModelError",
    "MonitorError",
    "ResumeError",
    "StepError",
    "TrainingError",
    "TrainingInterrupted",
    "WeightsError",
    "one_line",
]

_TRACE = re.compile(r'\s*(Graph execution error:$|Detected at node .* defined at|File ".*", line \d+, in )')


class ModelError(Exception):
    """Base of the package's errors."""


class BackboneError(ModelError):
    """A backbone that does not exist, cannot be built at this size, or is not preprocessed channel by channel."""


class WeightsError(ModelError):
    """Weights that are missing, unreadable, of another network, or cannot be downloaded."""


class MonitorError(ModelError):
    """A monitor that is not among the values which the training reports."""


class StepError(ModelError):
    """A compiled model, or a batch, whose training step cannot be timed or augmented."""


class DeviceError(ModelError):
    """A limit on the GPU's memory that cannot be set."""


class ResumeError(ModelError):
    """A run that cannot be continued."""


class TrainingError(ModelError):
    """A training that failed on its way: a file that turned bad, a disk that is full."""


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C in a training.

    Not a ModelError: what catches those to go on with the next training must not go on after Ctrl-C.

    Attributes:
        folder: the run's, which can be continued.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(f"{folder} was interrupted")
        self.folder = folder


def one_line(error: BaseException) -> str:
    """Another library's message as one line of at most 300 characters; the error's type where it has none.

    Of a failed graph TensorFlow tells first where each node was made, and what happened only after that.
    """
    told = (line for line in str(error).splitlines() if not _TRACE.match(line))
    text = " ".join(" ".join(told).split()) or type(error).__name__
    return text if len(text) <= 300 else f"{text[:297]}..."
