"""Waiting for input apart from computing, inside an ordinary `fit` with ordinary callbacks.

Keras compiles `next(iterator)` and the training step into one function, so no callback can tell them apart. Here the
function that Keras calls with its iterator takes the batch first, in Python, and then hands it to the function that
Keras made, as an iterator over this batch alone. Where a GPU computes it, a step returns before it is done; fetching
the next batch meanwhile keeps nobody waiting. With `called` and `ready` the two ends of the fetching of batch k, and
`done` the end of a step:

    wait(k)    = max(0, ready(k) - max(called(k), done(k - 1)))
    compute(k) = done(k) - max(ready(k), done(k - 1))

Where all is computed on the CPU, a step is done when it returns. Else `done` comes from a watcher thread that waits for
a tensor of the step, so that the training thread itself never waits for the device.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import tensorflow as tf

from model.errors import StepError, one_line
from model.instance import methods_replaced, require_default_strategy

__all__ = ["InputClock", "InputTotals", "time_input", "timed_function"]


@dataclass(frozen=True, kw_only=True)
class InputTotals:
    """What an `InputClock` has counted so far, over training and validation steps together.

    Attributes:
        wait_seconds: time in which a batch was wanted, none was there and the device had nothing to do.
        compute_seconds: time in which a step ran; a first step's tracing and compilation are in it.
        images: samples in the batches of the finished steps.
        steps: finished steps.
    """

    wait_seconds: float = 0.0
    compute_seconds: float = 0.0
    images: int = 0
    steps: int = 0

    def since(self, before: InputTotals) -> InputTotals:
        """What was counted after an earlier reading."""
        names = (field.name for field in fields(self))
        return InputTotals(**{name: getattr(self, name) - getattr(before, name) for name in names})


@dataclass(frozen=True, kw_only=True)
class _Step:
    """A step that was started: when its batch was asked for and came, and when it was done or what will tell."""

    called: float
    ready: float
    images: int
    done: float | None
    output: Any


class InputClock:
    """Adds up the waiting and the computing of the steps that it is told of; safe to read from any thread."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.now = clock
        self._steps: queue.SimpleQueue[_Step | None] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._started = 0
        self._finished = 0
        self._done = float("-inf")
        self._totals = InputTotals()
        self._failure: BaseException | None = None
        self._watcher: threading.Thread | None = None

    def totals(self) -> InputTotals:
        """What was counted up to now, once every step that has been started is done.

        Raises:
            StepError: if a step failed on the device, or the watcher did.
        """
        with self._changed:
            started = self._started
            self._changed.wait_for(lambda: self._finished >= started or self._failure is not None)
            self._raise_failure()
            return self._totals

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Runs the watcher thread for as long as the block lasts; steps may be recorded only inside.

        Raises:
            StepError: at the end of the block, if a step failed on the device, or the watcher did.
        """
        if self._watcher is not None:
            raise StepError("this InputClock already times a model; give each its own")
        self._watcher = threading.Thread(target=self._watch, name="feedline-step-watcher", daemon=True)
        self._watcher.start()
        try:
            yield
        finally:
            self._steps.put(None)
            self._watcher.join()
            self._watcher = None
        with self._changed:
            self._raise_failure()

    def record(self, *, called: float, ready: float, images: int, output: Any) -> None:
        """Notes a step that was started, without waiting for it.

        Args:
            called: when its batch was asked for, by this clock.
            ready: when the batch was there.
            images: samples in the batch.
            output: a small tensor that the step computes, or None for a step that is done by now.

        Raises:
            StepError: if an earlier step failed on the device, or the watcher did.
        """
        done = self.now() if output is None else None
        with self._changed:
            self._raise_failure()
            self._started += 1
        self._steps.put(_Step(called=called, ready=ready, images=images, done=done, output=output))

    def _watch(self) -> None:
        try:
            while self._finish(self._steps.get()):
                pass
        except BaseException as error:  # whatever it is, the training thread has to hear of it
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def _finish(self, step: _Step | None) -> bool:
        """Waits until a step is done and books it; its tensor is let go with this call's frame."""
        if step is None:
            return False
        done = step.done
        if done is None:
            # On a GPU the copy to the host also waits for what was launched after this tensor: the whole step.
            step.output.numpy()
            done = self.now()
        with self._changed:
            self._book(step, done)
            self._changed.notify_all()
        return True

    def _book(self, step: _Step, done: float) -> None:
        totals, previous_done = self._totals, self._done
        self._totals = InputTotals(
            wait_seconds=totals.wait_seconds + max(0.0, step.ready - max(step.called, previous_done)),
            compute_seconds=totals.compute_seconds + max(0.0, done - max(step.ready, previous_done)),
            images=totals.images + step.images,
            steps=totals.steps + 1,
        )
        self._done = done
        self._finished += 1

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure = f"{type(self._failure).__name__}: {one_line(self._failure)}"
            raise StepError(f"a step failed while it was being timed ({failure})") from self._failure


@contextlib.contextmanager
def time_input(model: tf.keras.Model, clock: InputClock) -> Iterator[tf.keras.Model]:
    """Times the training and validation steps of a compiled model inside the block.

    Args:
        model: any Keras model that trains by `fit`; the instance is changed, and is what it was when the block ends.
        clock: where the times are added up; one block at a time.

    Yields:
        The same model.

    Raises:
        StepError: if the model makes its own train function, runs several steps an execution, or is under a
            distribution strategy; at the end of the block, if a step failed on the device.
    """
    _require_plain_functions(model)
    _require_single_steps(model)
    with methods_replaced(
        model,
        make_train_function=_maker(model, "train", clock),
        make_test_function=_maker(model, "test", clock),
    ):
        with clock.watching():
            yield model


def _maker(model: tf.keras.Model, kind: str, clock: InputClock) -> Callable[..., Callable]:
    """The instance's `make_train_function` or `make_test_function`: Keras's own, then split and put in its place."""
    attribute = f"{kind}_function"

    def make(force: bool = False) -> Callable:
        if getattr(model, attribute) is None or force:
            _require_single_steps(model)
            getattr(type(model), f"make_{attribute}")(model, force=True)  # sets the attribute, on Keras 2 and 3
            runs_eagerly = model.run_eagerly or tf.config.functions_run_eagerly()
            run_step = _step_on_batch(getattr(model, attribute), runs_eagerly)
            setattr(model, attribute, timed_function(run_step, clock))
        return getattr(model, attribute)

    return make


def timed_function(run_step: Callable[[Any, Any], Any], clock: InputClock) -> Callable[[Iterator], Any]:
    """The function that Keras calls once a step.

    Args:
        run_step: starts a step, from a batch and the dataset's element spec (None for a plain iterator), and returns
            the step's logs, perhaps before they are computed.
        clock: is told of each step.

    Returns:
        A function of the iterator. The end of the data passes through it, as it passes through the one of Keras.
    """
    # asked once: the second question waits for every pending step where there is an asynchronous executor
    has_accelerator = any(device.device_type != "CPU" for device in tf.config.list_logical_devices())
    returns_early = has_accelerator or not tf.config.experimental.get_synchronous_execution()

    def function(iterator: Iterator) -> Any:
        called = clock.now()
        batch = next(iterator)
        ready = clock.now()
        logs = run_step(batch, getattr(iterator, "element_spec", None))
        output = _small_output(logs) if returns_early else None
        clock.record(called=called, ready=ready, images=_batch_size(batch), output=output)
        return logs

    return function


def _step_on_batch(keras_function: Callable, runs_eagerly: bool) -> Callable[[Any, Any], Any]:
    """Makes a function of (batch, element spec or None) from Keras's function of an iterator."""

    def on_batch(batch: Any) -> Any:
        return keras_function(_Same(batch))

    compiled = tf.function(on_batch, autograph=False, reduce_retracing=True)
    traced: list[Any] = []

    def run_step(batch: Any, element_spec: Any) -> Any:
        if runs_eagerly or element_spec is None:  # None: train_on_batch of Keras 3 sends a plain Python iterator
            return on_batch(batch)
        if element_spec not in traced:
            # The dataset knows which axes vary: traced with those open, a smaller last batch does not trace again.
            compiled.get_concrete_function(element_spec)
            traced.append(element_spec)
        return compiled(batch)

    return run_step


class _Same:
    """An iterator that gives one batch as often as it is asked: once a trace, and tf.function may trace twice."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def __iter__(self) -> _Same:
        return self

    def __next__(self) -> Any:
        return self._batch


def _batch_size(batch: Any) -> int:
    shapes = (getattr(leaf, "shape", None) for leaf in tf.nest.flatten(batch))
    return next((int(shape[0]) for shape in shapes if shape is not None and len(shape)), 0)


def _small_output(logs: Any) -> Any:
    """A tensor of the step that is cheap to copy: the loss, or else the first there is; None where there is none."""
    first = logs.get("loss") if isinstance(logs, dict) else None
    return next((leaf for leaf in [first, *tf.nest.flatten(logs)] if tf.is_tensor(leaf)), None)


def _require_plain_functions(model: tf.keras.Model) -> None:
    for name in ("make_train_function", "make_test_function"):
        if name in vars(model) or getattr(type(model), name) is not getattr(tf.keras.Model, name):
            raise StepError(f"{type(model).__name__}.{name} is already replaced, so its steps cannot be timed")


def _require_single_steps(model: tf.keras.Model) -> None:
    require_default_strategy(model, "timing the input")
    steps = model.steps_per_execution
    count = 1 if steps is None else int(steps)
    if count != 1 or getattr(model, "autotune_steps_per_execution", False):
        raise StepError(
            f"steps_per_execution={count}: waiting is timed step by step; compile the model with steps_per_execution=1"
        )
