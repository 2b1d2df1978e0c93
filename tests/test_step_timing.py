"""Waiting apart from computing: a clock that the test moves by hand, real asynchronous steps, the real `fit`."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context, executor

from model.errors import StepError
from model.step_timing import InputClock, InputTotals, time_input, timed_function

# Keras 3 says so at the end of every data set of unknown length, timed or not
RAN_OUT_OF_DATA = pytest.mark.filterwarnings("ignore:Your input ran out of data:UserWarning")


class HandClock:
    """Seconds that pass only when told to."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def pass_seconds(self, seconds: float) -> None:
        self.seconds += seconds


class Gate:
    """Steps of TensorFlow's asynchronous executor, which are done when the test says so."""

    def __init__(self, clock: InputClock) -> None:
        self._opened = threading.Event()
        self._executor = executor.new_executor(enable_async=True)
        self._step = tf.function(lambda batch: {"loss": tf.py_function(self._wait, [batch], tf.float32)})
        with context.executor_scope(self._executor):
            self.start_step = timed_function(self._run_step, clock)

    def _wait(self, batch: tf.Tensor) -> tf.Tensor:
        assert self._opened.wait(timeout=60), "the step was not asynchronous"
        return tf.reduce_sum(batch)

    def _run_step(self, batch: tf.Tensor, _element_spec: object) -> dict[str, tf.Tensor]:
        with context.executor_scope(self._executor):
            return self._step(batch)

    def open(self) -> None:
        self._opened.set()
        self._executor.wait()

    def close(self) -> None:
        self._opened.clear()


def batch_after(time: HandClock, seconds: float):
    """One batch of four, for which an input pipeline works some seconds."""
    time.pass_seconds(seconds)
    yield tf.ones((4, 2))


def tiny_model(**options) -> tf.keras.Model:
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile(optimizer=tf.keras.optimizers.SGD(0.01), loss="mse", metrics=["mae"], **options)
    return model


def arrays(count: int = 10) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    return generator.normal(size=(count, 2)).astype(np.float32), generator.normal(size=count).astype(np.float32)


def dataset(count: int = 10) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(arrays(count)).batch(4)


def no_read_ahead() -> tf.data.Options:
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    return options


def fit(model: tf.keras.Model, data: tf.data.Dataset, **options) -> dict[str, list[float]]:
    return model.fit(data, verbose=0, shuffle=False, **options).history


def watchers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "feedline-step-watcher"]


def test_fetching_while_an_asynchronous_step_runs_is_not_waiting():
    time = HandClock()
    clock = InputClock(time)
    gate = Gate(clock)
    with clock.watching():
        gate.start_step(batch_after(time, 1))
        gate.start_step(batch_after(time, 10))  # the first step still runs, so nobody waits these ten seconds
        time.pass_seconds(5)
        gate.open()
        totals = clock.totals()
    assert totals == InputTotals(wait_seconds=1, compute_seconds=15, images=8, steps=2)


def test_fetching_after_an_asynchronous_step_is_done_is_waiting():
    time = HandClock()
    clock = InputClock(time)
    gate = Gate(clock)
    with clock.watching():
        gate.start_step(batch_after(time, 1))
        time.pass_seconds(5)
        gate.open()
        before = clock.totals()
        gate.close()
        gate.start_step(batch_after(time, 10))
        gate.open()
        totals = clock.totals()
    assert before == InputTotals(wait_seconds=1, compute_seconds=5, images=4, steps=1)
    assert totals.since(before) == InputTotals(wait_seconds=10, compute_seconds=0, images=4, steps=1)


def test_only_the_part_of_fetching_after_the_step_is_waiting():
    time = HandClock()
    clock = InputClock(time)
    gate = Gate(clock)

    def batch_that_outlasts_the_step():
        time.pass_seconds(4)
        gate.open()
        clock.totals()
        time.pass_seconds(3)
        yield tf.ones((4, 2))

    with clock.watching():
        gate.start_step(batch_after(time, 0))
        gate.start_step(batch_that_outlasts_the_step())
        totals = clock.totals()
    assert totals == InputTotals(wait_seconds=3, compute_seconds=4, images=8, steps=2)


@RAN_OUT_OF_DATA
@pytest.mark.parametrize("options", [{}, {"run_eagerly": True}, {"jit_compile": True}], ids=str)
def test_fit_books_waiting_and_computing_of_both_phases(options):
    time, model = HandClock(), tiny_model(**options)
    clock = InputClock(time)

    def slow_batches():
        for begin in range(0, 10, 4):
            time.pass_seconds(2)
            yield tuple(array[begin : begin + 4] for array in arrays())

    signature = (tf.TensorSpec((None, 2), tf.float32), tf.TensorSpec((None,), tf.float32))
    slow = tf.data.Dataset.from_generator(slow_batches, output_signature=signature).with_options(no_read_ahead())
    with time_input(model, clock):
        fit(model, slow, epochs=2, validation_data=dataset(6))
    # two epochs of 3 batches in training, that take two seconds each, and 2 in validation, that are there at once
    assert clock.totals() == InputTotals(wait_seconds=12, compute_seconds=0, images=32, steps=10)


@RAN_OUT_OF_DATA
@pytest.mark.parametrize("options", [{}, {"run_eagerly": True}, {"jit_compile": True}], ids=str)
@pytest.mark.parametrize("known_length", [True, False])
def test_timing_changes_nothing_that_fit_reports(options, known_length):
    data = dataset() if known_length else dataset().filter(lambda *_: True)
    plain, timed = tiny_model(**options), tiny_model(**options)
    with time_input(timed, InputClock()):
        history = fit(timed, data, epochs=3, validation_data=data)
    expected = fit(plain, data, epochs=3, validation_data=data)
    assert list(history) == list(expected)
    assert all(np.allclose(history[name], expected[name], rtol=1e-5) for name in expected)
    for weight, other in zip(timed.get_weights(), plain.get_weights(), strict=True):
        np.testing.assert_allclose(weight, other, rtol=1e-5)
    # not the plain model's, which Keras also counts up in the step that finds a data set of unknown length at its end
    assert int(timed.optimizer.iterations) == 9
    if hasattr(plain, "_train_counter"):  # Keras 2
        assert int(timed._train_counter) == 9
        assert int(timed._test_counter) == 3


def test_a_smaller_last_batch_is_not_traced_for_itself():
    traces = {}
    for is_timed in (False, True):
        model, sizes = tiny_model(), []
        plain_step = model.train_step

        def counted(batch, plain_step=plain_step, sizes=sizes):
            sizes.append(batch[0].shape[0])
            return plain_step(batch)

        model.train_step = counted
        if is_timed:
            with time_input(model, InputClock()):
                fit(model, dataset(), epochs=2)
        else:
            fit(model, dataset(), epochs=2)
        traces[is_timed] = sizes
    assert traces[True] == traces[False]
    assert set(traces[True]) == {None}


def test_steps_of_single_batches_are_timed_too():
    model, clock = tiny_model(), InputClock()
    with time_input(model, clock):
        model.train_on_batch(*arrays(3))
        model.test_on_batch(*arrays(2))
    assert (clock.totals().images, clock.totals().steps) == (5, 2)


@RAN_OUT_OF_DATA
def test_data_that_ends_before_the_steps_of_an_epoch_ends_the_training_as_keras_does():
    clock = InputClock()
    with time_input(tiny_model(), clock) as model:
        history = fit(model, dataset().filter(lambda *_: True), steps_per_epoch=5)
    assert len(history["loss"]) == 1
    assert clock.totals().steps == 3


def test_the_instance_is_left_as_it_was_and_no_thread_stays():
    model = tiny_model()
    before = set(vars(model))
    with time_input(model, InputClock()):
        fit(model, dataset())
        assert len(watchers()) == 1
    assert not watchers()
    assert not {"make_train_function", "make_test_function"} & set(vars(model))
    assert model.train_function is None
    assert set(vars(model)) - before <= {"history", "_eval_epoch_iterator", "_eval_data_handler", "stop_evaluating"}
    fit(model, dataset())
    assert model.train_function is not None


def test_a_model_compiled_anew_inside_the_block_is_still_timed():
    model, clock = tiny_model(), InputClock()
    with time_input(model, clock):
        fit(model, dataset())
        model.compile(optimizer="sgd", loss="mae")
        fit(model, dataset())
    assert clock.totals().steps == 6


def test_an_error_of_the_block_ends_the_watcher_and_passes_through():
    with pytest.raises(KeyboardInterrupt), time_input(tiny_model(), InputClock()):
        raise KeyboardInterrupt
    assert not watchers()


def test_the_tensor_of_a_step_is_let_go_when_the_step_is_done():
    class Output:
        def numpy(self):
            return 0.0

    clock = InputClock()
    with clock.watching():
        output = Output()
        reference = weakref.ref(output)
        clock.record(called=0, ready=0, images=1, output=output)
        del output
        clock.totals()
        gc.collect()
        # the frame that books a step may still be returning when totals() comes back; the next one is behind it
        clock.record(called=0, ready=0, images=1, output=None)
        clock.totals()
        assert reference() is None


def test_a_step_that_fails_on_the_device_is_an_error_for_the_next_one_and_at_the_end():
    def fail(_batch: tf.Tensor) -> tf.Tensor:
        raise ValueError("the step's own error")

    clock = InputClock()
    asynchronous = executor.new_executor(enable_async=True)
    step = tf.function(lambda batch: {"loss": tf.py_function(fail, [batch], tf.float32)})
    with context.executor_scope(asynchronous):
        function = timed_function(lambda batch, _element_spec: step(batch), clock)
    failed = "a step failed while it was being timed"
    batch = tf.ones((4, 2))  # made here, as the asynchronous executor would wait for its step to convert an array
    watching = clock.watching()
    watching.__enter__()
    with context.executor_scope(asynchronous):
        function(iter([batch]))
    with pytest.raises(StepError, match=failed) as caught:
        clock.totals()
    assert "the step's own error" in str(caught.value.__cause__)
    with pytest.raises(StepError, match=failed):
        clock.record(called=0, ready=0, images=1, output=None)
    with pytest.raises(StepError, match=failed):
        watching.__exit__(None, None, None)
    # the tensor knows of the failure a moment before its executor does, which would tell of it again when it is freed
    with pytest.raises(tf.errors.InvalidArgumentError):
        asynchronous.wait()
    asynchronous.clear_error()
    assert not watchers()


def test_a_clock_times_one_model_at_a_time():
    clock = InputClock()
    with time_input(tiny_model(), clock), pytest.raises(StepError, match="already times a model"):
        time_input(tiny_model(), clock).__enter__()


def test_several_steps_an_execution_are_refused():
    model = tiny_model(steps_per_execution=2)
    with pytest.raises(StepError, match=r"steps_per_execution=2: .*compile the model with steps_per_execution=1"):
        time_input(model, InputClock()).__enter__()


def test_several_steps_an_execution_compiled_inside_the_block_are_refused():
    with time_input(tiny_model(), InputClock()) as model:
        model.compile(optimizer="sgd", loss="mse", steps_per_execution=3)
        with pytest.raises(StepError, match="steps_per_execution=3"):
            fit(model, dataset())


def test_a_distribution_strategy_is_refused():
    with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
        model = tiny_model()
    with pytest.raises(StepError, match="OneDeviceStrategy: timing the input works on one device"):
        time_input(model, InputClock()).__enter__()


def test_a_model_that_makes_its_own_train_function_is_refused():
    model = tiny_model()
    model.make_train_function = lambda force=False: None
    with pytest.raises(StepError, match=r"Sequential\.make_train_function is already replaced"):
        time_input(model, InputClock()).__enter__()
