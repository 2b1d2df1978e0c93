"""The best and the last model on disk: written whole, and enough to go on from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from model.errors import ResumeError

__all__ = [
    "BEST_FILE",
    "LAST_FILE",
    "checkpoint_callback",
    "completed_epochs",
    "is_better",
    "load_last",
    "remove_unfinished",
]

BEST_FILE = "best.keras"
LAST_FILE = "last.keras"


def is_better(monitor: str, value: float, best: float | None) -> bool:
    """Whether a value of the monitor beats the best so far: higher for an accuracy, lower for a loss; NaN never."""
    if value != value:
        return False
    if best is None:
        return True
    return value < best if monitor.endswith("loss") else value > best


def checkpoint_callback(folder: Path, monitor: str, best: float | None) -> tf.keras.callbacks.Callback:
    """Makes the callback that saves `best.keras` and `last.keras` at each epoch's end.

    The best is written first: a run killed between the two trains that epoch again, comes to the same value and writes
    the same best model.

    Args:
        folder: the run's.
        monitor: name of the value to judge by.
        best: its best value in the epochs before, None for none.
    """

    class Checkpoints(tf.keras.callbacks.Callback):
        def __init__(self) -> None:
            super().__init__()
            self.best = best

        def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
            value = float((logs or {})[monitor])
            if is_better(monitor, value, self.best):
                self.best = value
                _save(self.model, folder / BEST_FILE)
            _save(self.model, folder / LAST_FILE)

    return Checkpoints()


def _save(model: tf.keras.Model, path: Path) -> None:
    """Writes the file whole or not at all, so that a kill at any moment leaves the one before."""
    beside = path.with_name(f".{path.stem}.{os.getpid()}.tmp.keras")
    try:
        model.save(beside)
        with open(beside, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def remove_unfinished(folder: Path) -> None:
    """Deletes what a kill in the middle of saving left beside the models."""
    for path in folder.glob(".*.tmp.keras"):
        path.unlink()


def load_last(folder: Path) -> tf.keras.Model | None:
    """The model as the last complete epoch left it, optimizer included; None if no epoch was completed.

    Raises:
        ResumeError: if the file cannot be read.
    """
    path = folder / LAST_FILE
    if not path.exists():
        return None
    try:
        return tf.keras.models.load_model(path)
    except Exception as error:  # whatever Keras finds wrong with it
        raise ResumeError(
            f"{path}: cannot be loaded ({error}); start the training anew under another --name"
        ) from error


def completed_epochs(model: tf.keras.Model, steps_per_epoch: int) -> int:
    """How many epochs a saved model was trained: its optimizer counts the steps, in the same file as the weights."""
    return int(model.optimizer.iterations) // steps_per_epoch
