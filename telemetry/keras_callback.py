"""The Keras callback that marks the phases of an ordinary `fit`, on Keras 2 and 3.

TensorFlow is imported inside the functions only: `import telemetry` needs none.
"""

from collections.abc import Mapping
from typing import Any

from telemetry.probes.reading import MIB, Reading, unknown
from telemetry.recorder import RunRecorder

_MEMORY_FIELDS = ("tf_memory_current_mib", "tf_memory_peak_mib")


def phase_callback(recorder: RunRecorder) -> Any:
    """Returns a Keras callback that marks train and validation phases, their warm-up and their metrics.

    The first step of each kind in this process, which traces and compiles, is marked as warm-up. Training's loss and
    accuracy reach the record at the epoch's end, because Keras tells them only then. An `evaluate` outside `fit` is
    not recorded.

    Args:
        recorder: a recorder that has been started.
    """
    import tensorflow as tf

    class PhaseCallback(tf.keras.callbacks.Callback):
        """Marks the phases of `fit`."""

        # logs are not looked at after a batch, so neither Keras need wait for a step of the device to be done
        _supports_tf_logs = True
        async_safe = True

        def __init__(self) -> None:
            super().__init__()
            self._supports_tf_logs = True  # Keras 2 sets False in its __init__
            self._epoch = 0
            self._warm: set[str] = set()

        def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
            self._epoch = epoch + 1
            self._begin("train")

        def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
            self._end_warmup("train")

        def on_test_begin(self, logs: Mapping[str, Any] | None = None) -> None:
            if recorder.open_phase == (self._epoch, "train"):
                self._end({})
                self._begin("validation")

        def on_test_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
            self._end_warmup("validation")

        def on_test_end(self, logs: Mapping[str, Any] | None = None) -> None:
            if recorder.open_phase == (self._epoch, "validation"):
                self._end(phase_metrics(logs or {}))

        def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
            train, validation = split_metrics(logs or {})
            if recorder.open_phase == (self._epoch, "train"):  # an epoch without validation
                self._end(train)
                return
            recorder.record_metrics(self._epoch, "train", train)
            if validation:
                recorder.record_metrics(self._epoch, "validation", validation)

        def _begin(self, phase: str) -> None:
            _reset_peak(tf)
            recorder.begin_phase(self._epoch, phase)

        def _end_warmup(self, phase: str) -> None:
            # Keras 3 may call this from another thread, when the phase is over already
            if phase not in self._warm and recorder.open_phase == (self._epoch, phase):
                self._warm.add(phase)
                recorder.end_warmup()

        def _end(self, metrics: Mapping[str, float]) -> None:
            _finish_device_work(tf)
            recorder.end_phase(metrics, readings=read_allocator(tf))

    return PhaseCallback()


def phase_metrics(logs: Mapping[str, Any]) -> dict[str, float]:
    """Returns the figures of one phase as numbers, with `accuracy` under that name whichever kind Keras computed.

    `binary_accuracy`, `acc` and any other name that ends in `accuracy` count; all are kept under their own name too.
    """
    metrics = {}
    for name, value in logs.items():
        try:
            metrics[name] = float(value)
        except (TypeError, ValueError):  # one figure a class, such as F1Score's
            continue
    if "accuracy" not in metrics:
        kinds = [name for name in metrics if name.endswith("accuracy") or name == "acc"]
        if kinds:
            metrics["accuracy"] = metrics[kinds[0]]
    return metrics


def split_metrics(logs: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, float]]:
    """Returns the figures of training and of validation from an epoch's logs, which prefix the latter by `val_`."""
    validation = {name.removeprefix("val_"): value for name, value in logs.items() if name.startswith("val_")}
    train = {name: value for name, value in logs.items() if not name.startswith("val_")}
    return phase_metrics(train), phase_metrics(validation)


def read_allocator(tf: Any) -> Reading:
    """Returns what TensorFlow's allocator holds on the first GPU now, and the most since the phase's begin.

    Args:
        tf: the tensorflow module.
    """
    if not tf.config.list_logical_devices("GPU"):
        return unknown(_MEMORY_FIELDS, "TensorFlow sees no GPU, and tells no memory of the host")
    try:
        told = tf.config.experimental.get_memory_info("GPU:0")
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        return unknown(_MEMORY_FIELDS, f"TensorFlow's allocator: {error}")
    return Reading(values={f"tf_memory_{name}_mib": told[name] / MIB for name in ("current", "peak")})


def _finish_device_work(tf: Any) -> None:
    """Waits until the GPU has done the phase's last steps, which Keras has only handed to it."""
    if tf.config.list_logical_devices("GPU"):
        tf.test.experimental.sync_devices()


def _reset_peak(tf: Any) -> None:
    if not tf.config.list_logical_devices("GPU"):
        return
    try:
        tf.config.experimental.reset_memory_stats("GPU:0")
    except (ValueError, RuntimeError, tf.errors.OpError):  # read_allocator says why at the phase's end
        return
