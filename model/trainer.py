"""One training from its configuration to a complete run folder, recorded phase by phase."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tensorflow as tf

from model.checkpoints import checkpoint_callback, completed_epochs, is_better, load_last, remove_unfinished
from model.classifier import METRIC_NAMES, build_classifier
from model.device_fit import augment_on_device
from model.errors import ResumeError
from model.failures import failures_named, interruption_named
from model.gpu_memory import apply_gpu_memory, visible_gpus
from model.monitor import check_monitor
from model.placement import measure_placement
from model.progress import progress_callback
from model.step_timing import InputClock, time_input
from model.train_config import TrainConfig
from model.weights import require_file
from pipeline import (
    Data,
    Feed,
    SampleCache,
    Samples,
    augment_function,
    data_fingerprint,
    data_place,
    keras_flow,
    load_data,
    open_cache,
    write_bad_files,
)
from telemetry import (
    EpochRow,
    RecordError,
    Run,
    RunRecorder,
    create_run_folder,
    epoch_rows,
    evict_files,
    load_run,
    phase_callback,
    smallest_gpu_memory_bytes,
    write_report,
)

__all__ = ["TrainResult", "resume", "resumed_config", "train"]

Report = Callable[[str], None]
_CHECK_WORKERS = 4


@dataclass(frozen=True, kw_only=True)
class TrainResult:
    """What a training left.

    Attributes:
        folder: the run's.
        rows: the epoch x phase table.
        report: the page that shows it.
    """

    folder: Path
    rows: tuple[EpochRow, ...]
    report: Path


def train(
    config: TrainConfig, *, out: Path, name: str | None, report: Report, is_terminal: bool = False
) -> TrainResult:
    """Trains and records a new run.

    Args:
        config: what to train.
        out: folder of all runs.
        name: of this run's folder; None for a time stamp.
        report: takes lines about the progress.
        is_terminal: whether progress may rewrite its line.

    Returns:
        The finished run.

    Raises:
        DataError, ModelError, RecordError: before the first epoch, leaving no run folder.
        TrainingError: later, for a file that turned bad meanwhile or a folder that cannot be written.
        TrainingInterrupted: after Ctrl-C, if there is something to continue.
    """
    _check_before_reading(config)
    folder = create_run_folder(out, name)
    job = _Job(config, folder, report, is_terminal)
    with interruption_named(folder), _removed_if_nothing_began(folder):
        apply_gpu_memory(config.gpu_memory, smallest_gpu_memory_bytes())
        with job.recorder(resume_epochs=None) as recorder:  # before anything touches the GPU
            data = job.load_data()
            model = build_classifier(config.classifier(len(data.train.class_names)))
            job.fit(recorder, data, model, completed=0, best=None)
    return job.result()


def resume(folder: Path, *, report: Report, is_terminal: bool = False) -> TrainResult:
    """Continues a stopped run from its last complete epoch, as if it had not stopped.

    Raises:
        ResumeError: if the run has all its epochs already, or cannot be continued.
        DataError, ModelError, RecordError: as for `train`; the run stays as it was.
    """
    run = load_run(folder)
    config = resumed_config(folder)
    job = _Job(config, run.folder, report, is_terminal)
    apply_gpu_memory(config.gpu_memory, smallest_gpu_memory_bytes())
    data = job.load_data()
    _check_same_data(run, data)
    model = load_last(run.folder)
    completed = 0 if model is None else completed_epochs(model, _steps(data.train, config))
    if completed >= config.epochs:
        raise ResumeError(f"{run.folder} has all its {config.epochs} epochs; nothing is left to train")
    if model is None:
        model = build_classifier(config.classifier(len(data.train.class_names)))
    best = _best_before(run, config.monitor, completed)
    report(f"continues after epoch {completed} of {config.epochs}")
    if config.input == "idg":
        report("Keras's generator keeps its order in global random state: the epochs to come draw theirs anew")
    remove_unfinished(run.folder)
    with interruption_named(run.folder), job.recorder(resume_epochs=completed) as recorder:
        job.fit(recorder, data, model, completed=completed, best=best)
    return job.result()


def resumed_config(folder: Path) -> TrainConfig:
    """The configuration of a run that is to be continued.

    Raises:
        ResumeError: if it is still running, or was written by another version.
    """
    run = load_run(folder)
    if run.status == "running":
        raise ResumeError(f"{run.folder} is still running; wait for it or stop it first")
    try:
        return TrainConfig.from_json(dict(run.document["config"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ResumeError(f"{run.folder}: its configuration cannot be read ({error}); start a new run") from error


class _Job:
    """The steps that a new and a continued run share."""

    def __init__(self, config: TrainConfig, folder: Path, report: Report, is_terminal: bool) -> None:
        self._config = config
        self._folder = folder
        self._report = report
        self._is_terminal = is_terminal
        self._clock = InputClock()

    def recorder(self, *, resume_epochs: int | None) -> RunRecorder:
        return RunRecorder(
            self._folder,
            data_path=data_place(self._config.data),
            config=self._config.to_json(),
            counters=self._counters,
            resume_epochs=resume_epochs,
        )

    def load_data(self) -> Data:
        config = self._config
        return load_data(config.data, seed=config.feed.seed, workers=_CHECK_WORKERS, report=self._report)

    def fit(
        self, recorder: RunRecorder, data: Data, model: tf.keras.Model, *, completed: int, best: float | None
    ) -> None:
        recorder.add_facts(_facts(self._config, data))
        write_bad_files(self._folder / "bad_files.csv", data.bad_files)
        skips = self._config.data.bad_files == "skip"
        with failures_named(data, workers=_CHECK_WORKERS, skips_bad_files=skips, others=(RecordError,)):
            self._settle_placement(recorder, data, model)
            self._fit(recorder, data, model, completed=completed, best=best)

    def result(self) -> TrainResult:
        run = load_run(self._folder)
        return TrainResult(folder=self._folder, rows=epoch_rows(run), report=write_report(run))

    def _settle_placement(self, recorder: RunRecorder, data: Data, model: tf.keras.Model) -> None:
        """Finds out where augmentation runs, once a run: a resumed one goes on where it was."""
        config = self._config
        if not config.measure_placement or config.feed.augment is None or config.input != "tfdata":
            return
        if not visible_gpus():
            place = config.feed.augment_on
            self._report(f"augmentation on the {place}: TensorFlow sees no accelerator to compare it with")
        else:
            cached = config.cache.mode in ("ram", "disk")
            placement = measure_placement(model, data.train, config.feed, cached=cached)
            place = placement.chosen
            self._report(str(placement))
            recorder.add_facts({"placement": placement.to_json()})
        self._config = replace(config, feed=replace(config.feed, augment_on=place), measure_placement=False)
        recorder.replace_config(self._config.to_json())

    def _fit(
        self, recorder: RunRecorder, data: Data, model: tf.keras.Model, *, completed: int, best: float | None
    ) -> None:
        config = self._config
        inputs = self._inputs(data, range(completed + 1, config.epochs + 1))
        # the phases come first, so that saving and printing are in none of them
        callbacks = [
            phase_callback(recorder),
            checkpoint_callback(self._folder, config.monitor, best),
            progress_callback(self._report, config.epochs, _steps(data.train, config), self._is_terminal),
        ]
        self._evict(data)
        with contextlib.ExitStack() as stack:
            if config.augments_on_device:
                ranges, preprocess = config.feed.augment, config.feed.preprocess
                augment = augment_function(ranges, preprocess, resampler=config.feed.resampler)
                stack.enter_context(augment_on_device(model, augment))
            stack.enter_context(time_input(model, self._clock))
            model.fit(**inputs, epochs=config.epochs, initial_epoch=completed, callbacks=callbacks, verbose=0)

    def _counters(self) -> dict[str, float]:
        totals = self._clock.totals()
        return {"images": totals.images, "input_wait_seconds": totals.wait_seconds}

    def _inputs(self, data: Data, epochs: range) -> dict[str, Any]:
        """The arguments of `fit` that say where batches come from."""
        config, validation = self._config, data.validation
        if config.input == "idg":
            training = keras_flow(data.train, config.feed, training=True)
            validating = keras_flow(validation, config.feed, training=False) if validation else None
        else:
            caches = self._caches(data)
            # of a length that Keras is not told: Keras 3 would open it anew after its last batch, and read ahead in it
            # while the last validation runs
            training = Feed(data.train, config.feed, caches["train"]).training(epochs).take_while(lambda *batch: True)
            validating = Feed(validation, config.feed, caches["validation"]).evaluation() if validation else None
        return {
            "x": training,
            # Keras's generator keeps Keras's default, which shuffles its batches; our order is settled already
            "shuffle": config.input == "idg",
            "steps_per_epoch": _steps(data.train, config),
            "validation_data": validating,
            "validation_steps": _steps(validation, config) if validation else None,
        }

    def _caches(self, data: Data) -> dict[str, SampleCache | None]:
        """A cache of its own for each part, the training images first where there is little room."""
        config, spent, caches = self._config, 0, {}
        for name, part in (("train", data.train), ("validation", data.validation)):
            if part is None:
                continue
            cache = open_cache(
                config.cache,
                part.paths,
                config.feed.decode,
                spent_bytes=spent,
                name=f"{name} images",
                report=self._report,
            )
            spent += cache.plan.kept_bytes if cache else 0
            caches[name] = cache
        return caches

    def _evict(self, data: Data) -> None:
        if not self._config.evict_page_cache:
            return
        paths = [*data.train.paths, *(data.validation.paths if data.validation else ())]
        evicted = evict_files(paths)
        reason = f" ({evicted.reason})" if evicted.reason else ""
        self._report(f"dropped {evicted.evicted_files} of {len(paths)} files from the page cache{reason}")


def _check_before_reading(config: TrainConfig) -> None:
    """Finds what is wrong with the configuration alone, before a large data set is read and verified."""
    check_monitor(METRIC_NAMES, config.monitor, _has_validation(config))
    if config.weights not in ("none", "imagenet"):
        require_file(config.weights)
    if config.input == "tfdata" and config.feed.augment is not None:
        augment_function(config.feed.augment, config.feed.preprocess, resampler=config.feed.resampler)


def _has_validation(config: TrainConfig) -> bool:
    data = config.data
    return bool(data.validation_folder or data.validation_csv or data.validation_fraction > 0)


def _steps(samples: Samples, config: TrainConfig) -> int:
    return -(-len(samples) // config.feed.batch_size)


def _facts(config: TrainConfig, data: Data) -> dict[str, Any]:
    parts = {"train": data.train, "validation": data.validation}
    parts = {name: part for name, part in parts.items() if part is not None}
    return {
        "class_names": list(data.train.class_names),
        "preprocessing": {
            "backbone": config.backbone,
            "interpolation": config.feed.decode.interpolation,
            "channel_affine": config.feed.preprocess.to_json(),
        },
        "images": {name: len(part) for name, part in parts.items()},
        "steps_per_epoch": _steps(data.train, config),
        "bad_files": len(data.bad_files),
        "data_fingerprint": {name: data_fingerprint(part) for name, part in parts.items()},
    }


def _check_same_data(run: Run, data: Data) -> None:
    before = run.document.get("data_fingerprint", {})
    for name, part in (("training", data.train), ("validation", data.validation)):
        known = before.get({"training": "train"}.get(name, name))
        if known is not None and (part is None or known != data_fingerprint(part)):
            raise ResumeError(f"{run.folder}: the {name} images changed since it stopped; start a new run")


def _best_before(run: Run, monitor: str, completed: int) -> float | None:
    """The best value of the monitor in the epochs that are kept; a worse model then never replaces the best."""
    phase = "validation" if monitor.startswith("val_") else "train"
    best = None
    for record in run.phases:
        value = record.metrics.get(monitor.removeprefix("val_"))
        is_kept = record.phase == phase and record.epoch <= completed
        if is_kept and value is not None and is_better(monitor, value, best):
            best = value
    return best


@contextlib.contextmanager
def _removed_if_nothing_began(folder: Path) -> Iterator[None]:
    """Takes a new run's folder away if an error ends it before its first phase."""
    try:
        yield
    except BaseException:
        if not (folder / "run.json").exists() or not load_run(folder).phases:
            shutil.rmtree(folder)
        raise
