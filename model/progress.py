"""What a person sees while a training runs: one line an epoch, and the steps where lines can be rewritten."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

__all__ = ["progress_callback"]

_REFRESH_SECONDS = 0.2


def progress_callback(
    report: Callable[[str], None], epochs: int, steps: int, is_terminal: bool
) -> tf.keras.callbacks.Callback:
    """Makes a Keras callback that reports each epoch's result, and the steps on the way.

    Args:
        report: takes a line; one that starts with a carriage return replaces the line before.
        epochs: of the whole training.
        steps: of one epoch's training phase.
        is_terminal: whether lines can be replaced.
    """

    class Progress(tf.keras.callbacks.Callback):
        # no figure of a step is looked at, so Keras need not wait for the device
        async_safe = True

        def __init__(self) -> None:
            super().__init__()
            self._supports_tf_logs = True
            self._shown = 0.0
            self._start = 0.0
            self._epoch = 0

        def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
            self._epoch, self._start = epoch + 1, time.monotonic()

        def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
            self._show(f"train {batch + 1}/{steps}")

        def on_test_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
            self._show(f"validation {batch + 1}")

        def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
            figures = ", ".join(f"{name} {float(value):.4f}" for name, value in sorted((logs or {}).items()))
            seconds = time.monotonic() - self._start
            start = "\r\x1b[K" if is_terminal else ""
            report(f"{start}epoch {epoch + 1}/{epochs}: {figures} ({seconds:.1f} s)")

        def _show(self, place: str) -> None:
            now = time.monotonic()
            if is_terminal and now - self._shown >= _REFRESH_SECONDS:
                self._shown = now
                report(f"\r\x1b[Kepoch {self._epoch}/{epochs}: {place}")

    return Progress()
