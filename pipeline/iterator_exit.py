"""Ends running pipelines before the interpreter does, so that a script which stops mid-epoch does not hang at its end.

A pipeline calls Python from TensorFlow's threads. Once the interpreter is shutting down such a call never returns, and
the destructor of the iterator that waits for it neither; so iterators are let go while Python still runs.
"""

from __future__ import annotations

import atexit
import functools
import gc

import tensorflow as tf

__all__ = ["release_iterators_at_exit"]


@functools.cache
def release_iterators_at_exit() -> None:
    """Lets go of every tf.data iterator of the process when it exits, wherever it is held."""
    atexit.register(_release_iterators)


def _release_iterators() -> None:
    for found in gc.get_objects():
        if issubclass(type(found), tf.data.Iterator):
            vars(found).clear()  # its handle is the last thing that keeps the pipeline running
