"""From what a person names (folders, csv files, nothing) to checked training and validation samples."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pipeline.demo import demonstration_set
from pipeline.errors import BadFile, InputError
from pipeline.samples import Samples, align_classes, samples_from_folder, samples_from_table, split_samples
from pipeline.verify import check_bad_files, drop_bad, verify_samples

__all__ = ["VERIFY_LIMIT", "Data", "DataConfig", "data_place", "load_data"]

VERIFY_LIMIT = 50_000  # files up to which decoding everything first takes a minute or so


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Where images and labels come from; with no source named, the demonstration set.

    Attributes:
        folder: one sub-folder a class.
        csv: a table of paths and classes, in place of `folder`.
        x_column: column of the paths.
        y_column: column of the classes.
        images: folder that the table's relative paths start from; None for the csv's own.
        validation_folder: validation images, laid out as `folder`.
        validation_csv: validation table, laid out as `csv`.
        validation_fraction: share split off where no validation data is named, in [0, 1); 0 for no validation.
        bad_files: `error` stops at files that cannot be decoded, `skip` leaves them out.
        verify: decode every file first; None for up to `VERIFY_LIMIT` files.
    """

    folder: str | None = None
    csv: str | None = None
    x_column: str = "Photo"
    y_column: str = "Class"
    images: str | None = None
    validation_folder: str | None = None
    validation_csv: str | None = None
    validation_fraction: float = 0.2
    bad_files: Literal["error", "skip"] = "error"
    verify: bool | None = None

    def __post_init__(self) -> None:
        problems = []
        if self.folder and self.csv:
            problems.append("--data and --csv exclude each other: name one source of images")
        if self.validation_folder and self.validation_csv:
            problems.append("--val-data and --val-csv exclude each other: name one source of validation images")
        if not (self.folder or self.csv) and (self.validation_folder or self.validation_csv):
            problems.append("validation data without training data: name --data or --csv as well")
        if not 0 <= self.validation_fraction < 1:
            problems.append(f"--val-split must be at least 0 and below 1, not {self.validation_fraction!r}")
        if problems:
            raise InputError("; ".join(problems))


@dataclass(frozen=True, kw_only=True)
class Data:
    """What a run trains on.

    Attributes:
        train: samples of the training phase.
        validation: samples of the validation phase, or None; same class names as `train`.
        bad_files: files that were left out.
    """

    train: Samples
    validation: Samples | None
    bad_files: tuple[BadFile, ...]


def load_data(
    config: DataConfig, *, seed: int, workers: int, report: Callable[[str], None] = lambda line: None
) -> Data:
    """Finds, checks and splits the samples.

    Args:
        config: where they are.
        seed: of the split.
        workers: threads that decode for the check.
        report: takes lines about what was found.

    Returns:
        The samples without those that cannot be decoded, if they were checked.

    Raises:
        InputError: for a source that cannot be trained on.
        BadFilesError: for files that cannot be decoded, unless they are to be skipped.
    """
    samples = _named_samples(config.folder, config.csv, config)
    validation = None
    if config.validation_folder or config.validation_csv:
        named = _named_samples(config.validation_folder, config.validation_csv, config)
        validation = align_classes(named, samples.class_names)
    for note in (*samples.notes, *(validation.notes if validation else ())):
        report(note)
    bad_files = _check(config, [samples, *([validation] if validation else [])], workers, report)
    if bad_files:
        samples = drop_bad(samples, bad_files)
        validation = drop_bad(validation, bad_files) if validation else None
    if validation is None and config.validation_fraction > 0:
        samples, validation = split_samples(samples, config.validation_fraction, seed)
    return Data(train=samples, validation=validation, bad_files=bad_files)


def data_place(config: DataConfig) -> str:
    """The folder whose disk the training images are read from."""
    if config.csv:
        return config.images or os.path.dirname(os.path.abspath(config.csv))
    return config.folder or _demonstration_folder()


def _named_samples(folder: str | None, csv: str | None, config: DataConfig) -> Samples:
    if csv:
        return samples_from_table(csv, config.x_column, config.y_column, config.images)
    return samples_from_folder(folder or _demonstration_folder())


def _demonstration_folder() -> str:
    try:
        return str(demonstration_set())
    except OSError as error:
        raise InputError(
            f"the demonstration set cannot be written ({error}); name your own images with --data"
        ) from error


def _check(
    config: DataConfig, parts: list[Samples], workers: int, report: Callable[[str], None]
) -> tuple[BadFile, ...]:
    count = sum(len(part) for part in parts)
    wanted = count <= VERIFY_LIMIT if config.verify is None else config.verify
    if not wanted:
        return ()
    report(f"checking {count} files")
    found = {bad.path: bad for part in parts for bad in verify_samples(part, workers)}
    bad_files = tuple(found.values())
    if config.bad_files == "error":
        check_bad_files(bad_files)
    elif bad_files:
        report(f"left out {len(bad_files)} of {count} files that cannot be decoded; bad_files.csv names them")
    return bad_files
