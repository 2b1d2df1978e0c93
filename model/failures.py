"""What ends a training on its way, turned into an error that says which file it was or how to go on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf

from model.errors import TrainingError, TrainingInterrupted, one_line
from pipeline import BadFilesError, Data, check_bad_files, verify_samples

__all__ = ["failures_named", "interruption_named"]


@contextlib.contextmanager
def failures_named(
    data: Data, *, workers: int, skips_bad_files: bool = False, others: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Turns what goes wrong inside `fit` into a TrainingError; of a file that turned bad it says which one.

    Args:
        data: what is trained on; all of it is decoded again when reading or decoding fails.
        workers: threads of that check.
        skips_bad_files: whether the run leaves bad files out where it finds them before it starts.
        others: further errors that say enough as they are.
    """
    try:
        yield
    except others as error:
        raise TrainingError(str(error)) from error
    except tf.errors.ResourceExhaustedError as error:
        raise TrainingError(
            f"the memory did not suffice ({one_line(error)}); pass a smaller --batch-size or --image-size"
        ) from error
    except (tf.errors.OpError, OSError) as error:  # OSError: Keras's own generator reads in Python
        _name_bad_files(data, workers, skips_bad_files, error)
        if isinstance(error, OSError):
            raise TrainingError(one_line(error)) from error
        raise


def _name_bad_files(data: Data, workers: int, skips_bad_files: bool, cause: Exception) -> None:
    parts = [part for part in (data.train, data.validation) if part is not None]
    bad_files = {bad.path: bad for part in parts for bad in verify_samples(part, workers)}
    try:
        if skips_bad_files:
            check_bad_files(bad_files.values(), way_out="start a new run with --verify to leave {them} out")
        check_bad_files(bad_files.values())
    except BadFilesError as error:
        raise TrainingError(str(error)) from cause


@contextlib.contextmanager
def interruption_named(folder: Path) -> Iterator[None]:
    """Lets Ctrl-C tell which run it stopped, if there is one to go on with."""
    try:
        yield
    except KeyboardInterrupt as error:
        if not folder.exists():  # nothing had begun, so the folder was taken away
            raise
        raise TrainingInterrupted(folder) from error
