"""Which images there are and what each one shows: from a folder or a table, and split into training and validation.

No function here opens an image or asks whether a listed file exists (that is `verify`'s work), so a table of 100,000
rows takes a fraction of a second. Class names are text and sorted as text ("10" before "9"), as in Keras.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.errors import InputError

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".jfif", ".bmp", ".ppm", ".tif", ".tiff", ".gif", ".webp")

# errors and notes name this many of the things found, so that a message stays readable
_NAMED_AT_MOST = 5
# tells the numbers of the split apart from those of the epoch order under the same seed
_SPLIT_STREAM = 0x5B117


@dataclass(frozen=True, kw_only=True, eq=False)
class Samples:
    """Images with the class of each.

    Attributes:
        paths: one absolute path a sample; a path may stand more than once.
        targets: int32 (N,), index into `class_names`, read-only.
        class_names: names by index, sorted as text.
        notes: lines for the person about what was left out while these were collected; empty if nothing was.
    """

    paths: tuple[str, ...]
    targets: np.ndarray
    class_names: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        targets = np.array(self.targets, np.int32)
        if targets.shape != (len(self.paths),):
            raise ValueError(f"targets: shape {targets.shape} for {len(self.paths)} paths; give one target a path")
        if targets.size and not 0 <= targets.min() <= targets.max() < len(self.class_names):
            raise ValueError(f"targets: {targets.min()} to {targets.max()} for {len(self.class_names)} class names")
        targets.setflags(write=False)
        object.__setattr__(self, "targets", targets)

    def __len__(self) -> int:
        return len(self.paths)

    def take(self, indices: Iterable[int]) -> Samples:
        """The samples at these positions, in this order, under the same class names."""
        indices = np.fromiter(indices, np.int64)
        paths = tuple(self.paths[index] for index in indices)
        return dataclasses.replace(self, paths=paths, targets=self.targets[indices])


def samples_from_folder(directory: str | os.PathLike[str]) -> Samples:
    """The images below a folder that holds one sub-folder a class.

    Nested folders belong to their top one. Left out: folders whose name starts with a dot, folders without images,
    files without an image's suffix; `notes` says so.

    Raises:
        InputError: if there is no such folder, or it has not at least two classes with images.
    """
    top = os.path.abspath(directory)
    if not os.path.isdir(top):
        what = "is not a folder" if os.path.exists(top) else "does not exist"
        raise InputError(f"{top}: {what}; give a folder with one sub-folder of images a class")
    entries = _listed(top)
    folders = [name for name in entries if not name.startswith(".") and os.path.isdir(os.path.join(top, name))]
    images, other_count = {}, 0
    for name in folders:
        images[name], others = _images_below(os.path.join(top, name))
        other_count += others
    class_names = tuple(name for name in folders if images[name])
    if len(class_names) < 2:
        raise InputError(_too_few_classes(top, entries, folders, class_names))
    counts = [len(images[name]) for name in class_names]
    return Samples(
        paths=tuple(path for name in class_names for path in images[name]),
        targets=np.repeat(np.arange(len(class_names)), counts),
        class_names=class_names,
        notes=_notes(top, [name for name in folders if not images[name]], other_count),
    )


def samples_from_table(
    table: pd.DataFrame | str | os.PathLike[str],
    x_column: str,
    y_column: str,
    images_directory: str | os.PathLike[str] | None = None,
) -> Samples:
    """The images that a dataframe or a csv file lists, in its order.

    Args:
        table: the dataframe, or the path of a csv file (UTF-8, comma), where words such as NA are plain names.
        x_column: the column of paths.
        y_column: the column of classes: text, whole numbers or booleans.
        images_directory: what relative paths start from; None: the csv's own folder, for a dataframe the working one.

    Raises:
        InputError: if the csv cannot be read, a column is missing, a path or class is empty, or there is but one class.
    """
    if isinstance(table, pd.DataFrame):
        source, default_directory = "the dataframe", os.getcwd()
    else:
        source, default_directory = os.fspath(table), os.path.dirname(os.path.abspath(table))
        table = _read_csv(source)
    directory = os.path.abspath(default_directory if images_directory is None else images_directory)
    if not os.path.isdir(directory):
        raise InputError(f"{directory}: is no folder; give the folder that the paths in column {x_column!r} start from")
    for column in (x_column, y_column):
        _check_column(table, column, source)
    paths, labels = table[x_column].tolist(), table[y_column].tolist()
    _check_cells(paths, labels, (x_column, y_column), source)
    labels = [str(label) for label in labels]
    class_names = tuple(sorted(set(labels)))
    if len(class_names) < 2:
        found = f"only the class {class_names[0]!r}" if class_names else "no rows"
        raise InputError(f"{source}: column {y_column!r} has {found}; training needs at least two classes")
    index_of = {name: index for index, name in enumerate(class_names)}
    return Samples(
        paths=tuple(os.path.join(directory, path) for path in paths),
        targets=np.fromiter((index_of[label] for label in labels), np.int32, len(labels)),
        class_names=class_names,
    )


def split_samples(samples: Samples, fraction: float, seed: int) -> tuple[Samples, Samples]:
    """Training and validation samples: disjoint, of every class the same share, each part in the given order.

    A path that stands more than once lies on one side with all its samples. The side of a file is a function of the
    seed, the fraction and the set of files, whatever their order and the version of numpy.

    Args:
        samples: what to split.
        fraction: the share of each class's files that goes to validation, in (0, 1); each side gets at least one file.
        seed: any whole number.

    Raises:
        ValueError: if the fraction is outside (0, 1).
        InputError: if a class has fewer than two different files.
    """
    if not 0 < fraction < 1:
        raise ValueError(f"fraction: {fraction!r} is not between 0 and 1; give a share such as 0.2")
    files, first_samples, file_of_sample = np.unique(
        np.array([os.path.normpath(path) for path in samples.paths], object), return_index=True, return_inverse=True
    )
    class_of_file = samples.targets[first_samples]
    # the raw numbers of a counter-based generator: numpy may change its shuffles, but not these
    stream = np.random.Philox(key=np.array([int(seed) % 2**64, _SPLIT_STREAM], np.uint64))
    shuffled = np.argsort(stream.random_raw(len(files)), kind="stable")
    is_validation = np.zeros(len(files), bool)
    for index, name in enumerate(samples.class_names):
        members = shuffled[class_of_file[shuffled] == index]
        if len(members) < 2:
            raise InputError(
                f"class {name!r}: {len(members)} usable file(s), but a split needs one on each side; "
                "add images, leave the class out, or name the validation data yourself"
            )
        count = min(max(int(fraction * len(members) + 0.5), 1), len(members) - 1)
        is_validation[members[:count]] = True
    chosen = is_validation[file_of_sample]
    return samples.take(np.flatnonzero(~chosen)), samples.take(np.flatnonzero(chosen))


def align_classes(samples: Samples, class_names: Sequence[str]) -> Samples:
    """The same samples with targets that index these class names, as validation data needs those of training.

    Raises:
        InputError: if a sample's class is not among them.
    """
    index_of = {name: index for index, name in enumerate(class_names)}
    present = [samples.class_names[index] for index in np.unique(samples.targets)]
    unknown = [name for name in present if name not in index_of]
    if unknown:
        raise InputError(
            f"validation data: {_named(unknown, 'class', 'classes')} unknown to training, which has "
            f"{_named(class_names, 'class', 'classes')}; name the classes alike in both"
        )
    new_index = np.array([index_of.get(name, -1) for name in samples.class_names], np.int32)
    return dataclasses.replace(samples, targets=new_index[samples.targets], class_names=tuple(class_names))


def data_fingerprint(samples: Samples) -> str:
    """A name for this data, 32 hex digits: another file, size, time of change, class or order gives another one.

    Paths count from their common folder on, so the same data moved as a whole (with its times) keeps its name.
    A file that is not there counts as such.
    """
    digest = hashlib.blake2b("\0".join(samples.class_names).encode("utf-8", "surrogateescape"), digest_size=16)
    folder = os.path.commonpath([os.path.dirname(path) for path in samples.paths]) if samples.paths else ""
    for path, target in zip(samples.paths, samples.targets.tolist(), strict=True):
        try:
            status = os.stat(path)
            size_bytes, changed_ns = status.st_size, status.st_mtime_ns
        except (OSError, ValueError):
            size_bytes, changed_ns = -1, -1
        digest.update(os.fsencode(path[len(folder) :]) + f"\0{size_bytes}\0{changed_ns}\0{target}\0".encode())
    return digest.hexdigest()


def _listed(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError as error:
        raise InputError(f"{directory}: cannot be listed ({error.strerror}); check its permissions") from error


def _is_image_name(name: str) -> bool:
    # ._name is what macOS leaves beside a file on foreign disks: its attributes, never an image
    return name.lower().endswith(IMAGE_SUFFIXES) and not name.startswith("._")


def _images_below(directory: str) -> tuple[list[str], int]:
    """The images of a class, folder after folder, and the number of other files."""
    _listed(directory)  # os.walk would pass over an unreadable folder without a word
    images, other_count = [], 0
    for folder, subfolders, names in os.walk(directory):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        found = sorted(filter(_is_image_name, names))
        images += [os.path.join(folder, name) for name in found]
        other_count += len(names) - len(found)
    return images, other_count


def _too_few_classes(top: str, entries: list[str], folders: list[str], class_names: tuple[str, ...]) -> str:
    layout = "put the images into one sub-folder a class, such as cat and dog"
    if class_names:
        return f"{top}: only one class, {class_names[0]!r}, has images; training needs at least two: {layout}"
    if folders:
        return f"{top}: no images in its {_named(folders, 'sub-folder', 'sub-folders')}; {layout}"
    if not entries:
        return f"{top}: is empty; {layout}"
    image_count = sum(map(_is_image_name, entries))
    found = f"{image_count} images" if image_count else _named(entries, "entry", "entries")
    return f"{top}: no sub-folders, only {found}; {layout}"


def _notes(top: str, empty_folders: list[str], other_count: int) -> tuple[str, ...]:
    notes = []
    if empty_folders:
        notes.append(f"{top}: left out {_named(empty_folders, 'folder', 'folders')} without images")
    if other_count:
        notes.append(f"{top}: left out {other_count} file(s) without an image's suffix")
    return tuple(notes)


def _named(names: Sequence[str], singular: str, plural: str) -> str:
    """For example: 7 classes ('a', 'b', 'c', 'd', 'e' and 2 more)."""
    shown = ", ".join(repr(name) for name in names[:_NAMED_AT_MOST])
    more = f" and {len(names) - _NAMED_AT_MOST} more" if len(names) > _NAMED_AT_MOST else ""
    return f"{len(names)} {singular if len(names) == 1 else plural} ({shown}{more})"


def _read_csv(path: str) -> pd.DataFrame:
    """All cells as text, "" where there is none."""
    try:
        with warnings.catch_warnings():
            # without index_col=False a comma at each line's end would shift the columns by one, in silence
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(path, dtype=str, keep_default_na=False, index_col=False, encoding="utf-8")
    except FileNotFoundError as error:
        raise InputError(
            f"{path}: does not exist; give a csv file with a column of paths and one of classes"
        ) from error
    except pd.errors.EmptyDataError as error:
        raise InputError(f"{path}: is empty; give a csv file with a header line and one row an image") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text ({error.reason}); save it as a UTF-8 csv file") from error
    except (OSError, ValueError, pd.errors.ParserWarning) as error:
        raise InputError(f"{path}: cannot be read as a csv file ({error})") from error


def _check_column(table: pd.DataFrame, column: str, source: str) -> None:
    count = list(table.columns).count(column)
    if count != 1:
        columns = _named([str(name) for name in table.columns], "column", "columns")
        found = "has no column" if count == 0 else f"has {count} columns named"
        raise InputError(f"{source}: {found} {column!r}, but {columns}; name one of them")


def _check_cells(paths: list, labels: list, columns: tuple[str, str], source: str) -> None:
    """Raises InputError with every kind of unusable cell and its first rows, counted from 1 below the header."""
    problems = []
    for column, cells, is_usable, wanted in (
        (columns[0], paths, _is_path, "a path"),
        (columns[1], labels, _is_label, "a class (text, a whole number or a boolean)"),
    ):
        rows = [row for row, cell in enumerate(cells, start=1) if not is_usable(cell)]
        if rows:
            first = ", ".join(f"{row} ({cells[row - 1]!r:.40})" for row in rows[:_NAMED_AT_MOST])
            problems.append(f"column {column!r} does not hold {wanted} in {len(rows)} row(s), first in row {first}")
    if problems:
        raise InputError(f"{source}: {'; '.join(problems)}; fill in or remove these rows")


def _is_path(cell: object) -> bool:
    return isinstance(cell, str | Path) and str(cell).strip() != ""


def _is_label(cell: object) -> bool:
    return isinstance(cell, bool | int | np.integer | np.bool_) or (isinstance(cell, str) and cell.strip() != "")
