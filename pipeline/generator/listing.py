"""Which files, labels and weights a flow has: from a directory or a dataframe, as Keras's class finds them.

By default hidden and empty folders are no classes, gif and webp files are taken, labels may be whole numbers or
booleans, and finding no image at all is an error; `keras_exact` does as Keras does.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import chdtrc

from pipeline.errors import InputError
from pipeline.randomness import Stream, random_words
from pipeline.samples import IMAGE_SUFFIXES

__all__ = ["Listing", "ListingError", "MissingFolderError", "class_numbers", "list_dataframe", "list_directory"]

_KERAS_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".tif", ".tiff")
_NAMED_AT_MOST = 5
_PLAIN_MODES = ("input", "multi_output", "raw", None)
_NUMBERS = (int, np.integer, np.bool_)
# how often shares alone alarm in a shuffled frame; some times oftener where a class has few rows
_CHANCE_OF_ALARM = 1e-4


class ListingError(InputError, ValueError):
    """What was found cannot be flowed from."""


class MissingFolderError(InputError, FileNotFoundError):
    """There is no such folder."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, kw_only=True, eq=False)
class Listing:
    """The samples of a flow.

    Attributes:
        filenames: as they were listed, relative to the folder.
        filepaths: the folder and the name.
        message: what Keras prints about them.
        classes: int32 (N,) of a directory; a list of numbers, or of lists of numbers, of a dataframe; None without
            classes.
        class_indices: number of each class name; None without classes.
        targets: values of the class modes raw (an array) and multi_output (a list of arrays); None otherwise.
        sample_weight: (N,) or None.
        notes: what a person should know, one sentence each.
    """

    filenames: list[str]
    filepaths: list[str]
    message: str
    classes: Any = None
    class_indices: dict[str, int] | None = None
    targets: Any = None
    sample_weight: np.ndarray | None = None
    notes: tuple[str, ...] = ()


def list_directory(
    directory: str | os.PathLike[str],
    *,
    classes: Sequence[str] | None,
    class_mode: str | None,
    subset: str | None,
    validation_split: float,
    follow_links: bool,
    keras_exact: bool,
) -> Listing:
    """Lists the images below a folder with one sub-folder a class.

    Args:
        directory: the folder.
        classes: names of the sub-folders in the order of their numbers; None for all of them, sorted as text.
        class_mode: `binary` needs two classes.
        subset: `validation` for the first share of each class's sorted files, `training` for the rest, None for all.
        validation_split: that share.
        follow_links: look into linked folders as well.
        keras_exact: see the module.

    Raises:
        MissingFolderError: if there is no such folder, or none for a name in `classes`.
        ListingError: if there is no image, or `binary` does not find two classes.
    """
    top = os.fspath(directory)
    notes: list[str] = []
    names = list(classes) if classes else _class_folders(top)
    suffixes = _KERAS_SUFFIXES if keras_exact else IMAGE_SUFFIXES
    files = {name: _files_of_class(top, name, suffixes, follow_links, must_exist=not keras_exact) for name in names}
    if not classes and not keras_exact:
        names = _usual_classes(top, names, files, notes)
    if not keras_exact and not any(files[name] for name in names):
        raise ListingError(_nothing_in_folder(top, files, suffixes))
    if class_mode == "binary" and len(names) != 2 and not keras_exact:
        raise ListingError(
            f'class_mode="binary" needs two classes, but {top} has {_named(names)}; use class_mode="categorical" or '
            '"sparse", or name two with classes='
        )
    share = validation_split or 0
    filenames: list[str] = []
    numbers: list[int] = []
    index_of = {name: number for number, name in enumerate(names)}
    for name in names:
        split = int(share * len(files[name]))
        kept = {"validation": files[name][:split], "training": files[name][split:]}.get(subset, files[name])
        filenames += kept
        numbers += [index_of[name]] * len(kept)
    if not filenames and not keras_exact:
        count = sum(len(files[name]) for name in names)
        raise ListingError(
            f"{top}: its {count} images leave none for subset={subset!r} with validation_split={share!r}"
        )
    return Listing(
        filenames=filenames,
        filepaths=[os.path.join(top, name) for name in filenames],
        message=f"Found {len(filenames)} images belonging to {len(names)} classes.",
        classes=np.array(numbers, np.int32),
        class_indices=index_of,
        notes=tuple(notes),
    )


def list_dataframe(
    dataframe: pd.DataFrame,
    directory: str | os.PathLike[str],
    *,
    x_col: str,
    y_col: Any,
    weight_col: str | None,
    classes: Sequence[str] | None,
    class_mode: str | None,
    subset: str | None,
    validation_split: float,
    validate_filenames: bool,
    stratify: bool,
    seed: int | None,
    keras_exact: bool,
) -> Listing:
    """Lists the images that a dataframe names, in its order.

    Args:
        dataframe: never changed.
        directory: where relative paths start; "" for the working folder.
        x_col: column of the paths.
        y_col: column of the labels, or a list of columns.
        weight_col: column of the weights, or None.
        classes: class names in the order of their numbers; None for those that are there, sorted as text.
        class_mode: what the labels are.
        subset: `validation` for the first share of the rows, `training` for the rest, None for all.
        validation_split: that share.
        validate_filenames: leave out rows whose path is no image file.
        stratify: take that share of each class, drawn by the seed, in place of the first rows.
        seed: of that draw; both subsets need the same, or they overlap.
        keras_exact: see the module.

    Raises:
        TypeError, ValueError: for columns that Keras refuses as well.
        ListingError: if there is no image left, or a subset is to be stratified without classes.
    """
    top = os.fspath(directory)
    _check_columns(dataframe, x_col, y_col, weight_col, class_mode)
    labels, classes = _labels(dataframe, y_col, classes, class_mode, keras_exact)
    _check_values(dataframe, x_col, y_col, labels, weight_col, classes, class_mode)
    if classes and class_mode in _PLAIN_MODES:
        warnings.warn(f'`classes` will be ignored given the class_mode="{class_mode}"', stacklevel=4)
    paths = [os.path.join(top, name) for name in dataframe[x_col]]
    rows = np.arange(len(dataframe))
    if validate_filenames:
        rows = _valid_rows(paths, x_col, _KERAS_SUFFIXES if keras_exact else IMAGE_SUFFIXES)
        if not len(rows) and not keras_exact:
            raise ListingError(_nothing_in_table(paths, x_col, top))
    index_of = None
    if class_mode not in _PLAIN_MODES:
        rows, labels, index_of = _with_classes(rows, labels, classes)
    rows, notes = _subset_rows(
        rows, labels if index_of else None, subset, validation_split, stratify, seed, keras_exact
    )
    if not len(rows) and not keras_exact:
        raise ListingError(
            f"{len(dataframe)} rows hold no image for subset={subset!r}, validation_split={validation_split!r}, "
            f"classes={classes!r}; change one of them"
        )
    names = dataframe[x_col].tolist()
    checked = "validated" if validate_filenames else "non-validated"
    belonging = f" belonging to {len(index_of)} classes" if index_of is not None else ""
    return Listing(
        filenames=[names[row] for row in rows],
        filepaths=[paths[row] for row in rows],
        message=f"Found {len(rows)} {checked} image filenames{belonging}.",
        classes=None if index_of is None else [class_numbers(labels[row], index_of) for row in rows],
        class_indices=index_of,
        targets=_targets(dataframe, y_col, class_mode, rows),
        sample_weight=dataframe[weight_col].to_numpy()[rows] if weight_col else None,
        notes=notes,
    )


# -- folders


def _class_folders(top: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(top) if os.path.isdir(os.path.join(top, name)))
    except FileNotFoundError as error:
        raise MissingFolderError(
            f"{top}: there is no such folder; give one with a sub-folder of images a class"
        ) from error


def _files_of_class(
    top: str, name: str, suffixes: tuple[str, ...], follow_links: bool, *, must_exist: bool
) -> list[str]:
    """The image files of a class, relative to the top, folder after folder, each sorted as text."""
    folder = os.path.join(top, name)
    if must_exist and not os.path.isdir(folder):
        raise MissingFolderError(f"{folder}: there is no such folder, though {name!r} is one of classes=")
    files = []
    for root, _, names in sorted(os.walk(folder, followlinks=follow_links), key=lambda found: found[0]):
        inside = os.path.relpath(root, folder)
        found = sorted(file for file in names if file.lower().endswith(suffixes))
        _warn_of_tiff(found)
        files += [os.path.normpath(os.path.join(name, inside, file)) for file in found]
    return files


def _warn_of_tiff(names: Iterable[str]) -> None:
    if any(name.lower().endswith(".tiff") for name in names):
        warnings.warn(
            'Using ".tiff" files with multiple bands will cause distortion. Please verify your output.', stacklevel=6
        )


def _usual_classes(top: str, names: list[str], files: dict[str, list[str]], notes: list[str]) -> list[str]:
    """The folders that a person means: neither hidden nor empty."""
    left_out = [name for name in names if name.startswith(".") or not files[name]]
    kept = [name for name in names if name not in set(left_out)]
    # with no image at all, the error says more than a note
    if left_out and kept:
        notes.append(
            f"{top}: left out {_named(left_out)}, hidden or without images, which Keras would take for classes"
        )
    return kept


def _nothing_in_folder(top: str, files: dict[str, list[str]], suffixes: tuple[str, ...]) -> str:
    others = _first_files(top)
    found = ", ".join(others) if others else "no file at all"
    # whose images would otherwise seem to be overlooked
    aside = ", hidden ones aside" if any(files.values()) else ""
    return (
        f"{top}: no image in its {len(files)} sub-folders{aside}; found {found}. Give a folder with one sub-folder a "
        f"class of files that end in {', '.join(suffixes)}"
    )


def _first_files(top: str) -> list[str]:
    def walk() -> Iterator[str]:
        for root, folders, names in os.walk(top):
            folders.sort()
            yield from (os.path.join(root, name) for name in sorted(names))

    return [path for path, _ in zip(walk(), range(_NAMED_AT_MOST), strict=False)]


# -- dataframes


def _check_columns(
    dataframe: pd.DataFrame, x_col: str, y_col: Any, weight_col: str | None, class_mode: str | None
) -> None:
    if class_mode == "multi_output" and not isinstance(y_col, list):
        raise TypeError(f'If class_mode="{class_mode}", y_col must be a list. Received {type(y_col).__name__}.')
    labels = [] if class_mode in ("input", None) else y_col if isinstance(y_col, list) else [y_col]
    wanted = [x_col, *labels, *([weight_col] if weight_col else [])]
    missing = [column for column in wanted if column not in dataframe.columns]
    if missing:
        # Keras lets pandas say it, with a KeyError
        raise KeyError(f"the dataframe has no column {missing[0]!r}; it has {list(map(str, dataframe.columns))}")


def _labels(
    dataframe: pd.DataFrame, y_col: Any, classes: Sequence[str] | None, class_mode: str | None, keras_exact: bool
) -> tuple[list[Any], Sequence[str] | None]:
    """The labels of all rows and the classes, whole numbers and booleans as text unless Keras refuses them."""
    if class_mode in _PLAIN_MODES:
        return [], classes
    column = dataframe[y_col]
    if isinstance(column, pd.DataFrame):
        raise TypeError(f'If class_mode="{class_mode}", y_col must be the name of one column. Received {y_col!r}.')
    labels = column.tolist()
    if keras_exact or not any(isinstance(label, _NUMBERS) for label in labels):
        return labels, classes  # numbers inside lists are names as they are, as in Keras
    named = [[str(name) if isinstance(name, _NUMBERS) else name for name in names] for names in (labels, classes or ())]
    return named[0], named[1] or classes


def _check_values(
    dataframe: pd.DataFrame,
    x_col: str,
    y_col: Any,
    labels: list[Any],
    weight_col: str | None,
    classes: Sequence[str] | None,
    class_mode: str | None,
) -> None:
    if not all(isinstance(name, str) for name in dataframe[x_col]):
        raise TypeError(f"All values in column x_col={x_col} must be strings.")
    kinds = {"binary": str, "sparse": str, "categorical": (str, list, tuple)}.get(class_mode)
    if kinds is not None and not all(isinstance(label, kinds) for label in labels):
        what = "strings" if kinds is str else "type string, list or tuple"
        raise TypeError(f'If class_mode="{class_mode}", y_col="{y_col}" column values must be {what}.')
    if class_mode == "binary":
        count = len(set(classes)) if classes else len(set(labels))
        if count != 2:
            found = f"{count} class/es were given." if classes else f"Found {count} classes."
            raise ValueError(f'If class_mode="binary" there must be 2 classes. {found}')
    if weight_col and not issubclass(dataframe[weight_col].dtype.type, np.number):
        raise TypeError(f"Column weight_col={weight_col} must be numeric.")


def _valid_rows(paths: list[str], x_col: str, suffixes: tuple[str, ...]) -> np.ndarray:
    is_valid = np.array([path.lower().endswith(suffixes) and os.path.isfile(path) for path in paths], bool)
    invalid = int((~is_valid).sum())
    if invalid:
        warnings.warn(
            f'Found {invalid} invalid image filename(s) in x_col="{x_col}". These filename(s) will be ignored.',
            stacklevel=5,
        )
    return np.flatnonzero(is_valid)


def _nothing_in_table(paths: list[str], x_col: str, top: str) -> str:
    shown = ", ".join(repr(path) for path in paths[:_NAMED_AT_MOST])
    return (
        f"none of the {len(paths)} paths in x_col={x_col!r} is an image file; the first: {shown or 'none'}. "
        f"Relative paths start at directory={top!r}"
    )


def _with_classes(
    rows: np.ndarray, labels: list[Any], classes: Sequence[str] | None
) -> tuple[np.ndarray, list[Any], dict[str, int]]:
    """The rows that have a class, the labels of all rows, and the numbers of the classes."""
    if classes:
        names = list(dict.fromkeys(classes))
        known = set(names)
        labels = [
            [part for part in label if part in known] if isinstance(label, list | tuple) else label for label in labels
        ]
        keeps = [bool(label) if isinstance(label, list) else label in known for label in labels]
        rows = rows[[keeps[row] for row in rows]] if len(rows) else rows
    else:
        found: set[str] = set()
        for row in rows:
            found.update(labels[row] if isinstance(labels[row], list | tuple) else [labels[row]])
        names = sorted(found)
    return rows, labels, {name: number for number, name in enumerate(names)}


def class_numbers(label: Any, index_of: dict[str, int]) -> Any:
    """The number of a label, or the numbers of a list of them."""
    return [index_of[part] for part in label] if isinstance(label, list | tuple) else index_of[label]


def _targets(dataframe: pd.DataFrame, y_col: Any, class_mode: str | None, rows: np.ndarray) -> Any:
    if class_mode == "multi_output":
        return [np.array(dataframe[column].iloc[rows].tolist()) for column in y_col]
    return dataframe[y_col].iloc[rows].to_numpy() if class_mode == "raw" else None


def _subset_rows(
    rows: np.ndarray,
    labels: list[Any] | None,
    subset: str | None,
    fraction: float,
    stratify: bool,
    seed: int | None,
    keras_exact: bool,
) -> tuple[np.ndarray, tuple[str, ...]]:
    """The rows of the subset, in their order."""
    if subset is None:
        return rows, ()
    keys = None if labels is None else [str(labels[row]) for row in rows]
    if stratify:
        if keys is None:
            raise ListingError(
                'stratify=True needs classes to take a share of; use class_mode="categorical", "sparse" or "binary", '
                "or leave it out"
            )
        is_validation = _stratified(keys, fraction or 0, seed)
        return rows[is_validation if subset == "validation" else ~is_validation], ()
    split = int((fraction or 0) * len(rows))
    notes = ()
    if keys is not None and 0 < split < len(rows) and _mix_differs(keys, split):
        notes = (
            f"the first {split} of {len(rows)} rows are the validation data, as in Keras, and do not hold the classes "
            "in the shares of the rest; shuffle the dataframe" + ("" if keras_exact else " or pass stratify=True"),
        )
    return (rows[:split] if subset == "validation" else rows[split:]), notes


def _mix_differs(keys: list[str], split: int) -> bool:
    """Whether head and rest hold other classes, or the same in other shares than chance gives: a chi-square test."""
    codes, names = pd.factorize(np.array(keys, object))
    counts = np.stack([np.bincount(part, minlength=len(names)) for part in (codes[:split], codes[split:])])
    if not counts.all():
        return True
    expected = counts.sum(1, keepdims=True) * counts.sum(0) / len(keys)
    statistic = ((counts - expected) ** 2 / expected).sum()
    return len(names) > 1 and chdtrc(len(names) - 1, statistic) < _CHANCE_OF_ALARM


def _stratified(keys: list[str], fraction: float, seed: int | None) -> np.ndarray:
    """Bool (N,): the rows of each class that fall to validation, by a draw that both subsets share."""
    # without a seed both subsets still have to agree
    words = random_words((seed or 0) % 2**64, 0, Stream.SPLIT, len(keys))
    is_validation = np.zeros(len(keys), bool)
    for members in pd.Series(range(len(keys))).groupby(pd.Series(keys)).indices.values():
        shuffled = members[np.argsort(words[members], kind="stable")]
        is_validation[shuffled[: int(fraction * len(members) + 0.5)]] = True
    return is_validation


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_NAMED_AT_MOST])
    more = f" and {len(names) - _NAMED_AT_MOST} more" if len(names) > _NAMED_AT_MOST else ""
    return f"{len(names)} ({shown}{more})" if names else "none"
