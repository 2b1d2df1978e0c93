"""Which files cannot be decoded, and why, found before training starts.

Every file is decoded whole by the very function that training uses, so what passes here decodes there. The content
decides what a file is: a PNG named `.jpg` is good, an HTML page named `.jpg` is not.
"""

from __future__ import annotations

import csv
import os
import stat
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import numpy as np
import tensorflow as tf
from PIL import Image, UnidentifiedImageError

from pipeline.decode import decode_pixels, decode_with_pillow, is_left_to_pillow
from pipeline.errors import BadFile, BadFilesError, InputError
from pipeline.samples import Samples

# an error names this many files; bad_files.csv holds all
_NAMED_AT_MOST = 5
_IMAGE_STARTS = (b"\xff\xd8", b"\x89PNG", b"GIF8", b"BM", b"RIFF", b"II*\x00", b"MM\x00*", b"P5", b"P6")
# a spreadsheet takes a cell that starts with one of these for a formula
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def verify_samples(
    samples: Samples, workers: int, progress: Callable[[int, int], None] | None = None
) -> tuple[BadFile, ...]:
    """The files that cannot be decoded, each named once, in the order of the samples.

    Runs TensorFlow, so a limit on GPU memory has to be set before.

    Args:
        samples: what to look at; a path that stands more than once is read once.
        workers: threads, at least 1 (Pillow and TensorFlow both let other threads run while they decode).
        progress: takes the number of files done and of all files, after each file, in the caller's thread.
    """
    paths = list(dict.fromkeys(samples.paths))
    # traced once here: the worker threads would each trace it
    decode = tf.function(_decoded_size).get_concrete_function(tf.TensorSpec((), tf.string))
    bad_files = []
    executor = ThreadPoolExecutor(workers)
    try:
        reasons = executor.map(partial(_reason_if_bad, decode), paths)
        for done, (path, reason) in enumerate(zip(paths, reasons, strict=True), start=1):
            if reason is not None:
                bad_files.append(BadFile(path=path, reason=reason))
            if progress is not None:
                progress(done, len(paths))
    finally:
        # an interrupt must not wait for the files that are still queued
        executor.shutdown(cancel_futures=True)
    return tuple(bad_files)


def drop_bad(samples: Samples, bad_files: Collection[BadFile]) -> Samples:
    """The samples without those of the bad files.

    Raises:
        InputError: if a class loses all its samples.
    """
    bad_paths = {bad.path for bad in bad_files}
    is_good = np.array([path not in bad_paths for path in samples.paths], bool)
    good = samples.take(np.flatnonzero(is_good))
    lost = sorted(set(samples.targets.tolist()) - set(good.targets.tolist()))
    if lost:
        names = ", ".join(repr(samples.class_names[index]) for index in lost)
        raise InputError(f"class {names}: none of its files can be decoded; repair them or leave the class out")
    return good


def check_bad_files(
    bad_files: Collection[BadFile], *, way_out: str = "pass --bad-files skip to train without {them}"
) -> None:
    """Does nothing if there are no bad files.

    Args:
        bad_files: all that were found.
        way_out: what else a person can do than repair or remove them, with `{them}` for the files.

    Raises:
        BadFilesError: naming how many there are, the first five with their reasons, and what to do.
    """
    if not bad_files:
        return
    first = next(iter(bad_files))
    if len(bad_files) == 1:
        named = f"{_printable(first.path)} {first.reason}"
        raise BadFilesError(f"{named}; repair or remove it, or {way_out.format(them='it')}", (first,))
    lines = [f"{len(bad_files)} files cannot be used:"]
    lines += [f"  {_printable(bad.path)} {bad.reason}" for bad in tuple(bad_files)[:_NAMED_AT_MOST]]
    if len(bad_files) > _NAMED_AT_MOST:
        lines.append(f"  and {len(bad_files) - _NAMED_AT_MOST} more")
    lines.append(f"Repair or remove them, or {way_out.format(them='them')}.")
    raise BadFilesError("\n".join(lines), tuple(bad_files))


def write_bad_files(path: str | os.PathLike[str], bad_files: Collection[BadFile]) -> None:
    """Writes a csv file with the columns path and reason, whole or not at all.

    A cell that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    path = os.path.abspath(path)
    draft = os.path.join(os.path.dirname(path), f".bad_files.{os.getpid()}.tmp")
    try:
        # file names need not be text; what is not stands as \udc.. escapes
        with open(draft, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("path", "reason"))
            writer.writerows((_plain_cell(bad.path), _plain_cell(bad.reason)) for bad in bad_files)
        os.replace(draft, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(draft)
        raise


def _decoded_size(contents: tf.Tensor) -> tf.Tensor:
    """int32 (3,): decodes all pixels, hands back only how many there are."""
    with tf.device("/CPU:0"):
        return tf.shape(decode_pixels(contents))


def _reason_if_bad(decode: Callable[[bytes], tf.Tensor], path: str) -> str | None:
    try:
        status = os.stat(path)
        # asked before the file is opened: opening a named pipe waits for a writer
        if not stat.S_ISREG(status.st_mode):
            return (
                "is a folder" if stat.S_ISDIR(status.st_mode) else "is not a regular file but a pipe, socket or device"
            )
        with open(path, "rb") as file:
            contents = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return "does not exist (moved or deleted?)"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    except ValueError as error:
        return f"is no possible file name ({error})"
    if not contents:
        return "is empty"
    # where training asks Pillow, it is asked without a graph: TensorFlow prints each exception that passes through one
    if is_left_to_pillow(contents):
        return _reason_from_pillow(contents)
    try:
        decode(contents)
    except tf.errors.OpError:
        # what Pillow says is plainer than what TensorFlow says
        return _reason_from_pillow(contents) or "is damaged (TensorFlow cannot decode it, Pillow only in part)"
    return None


def _reason_from_pillow(contents: bytes) -> str | None:
    try:
        decode_with_pillow(contents)
    except UnidentifiedImageError:
        if contents.startswith(_IMAGE_STARTS):
            return "is truncated or damaged (its header is not whole)"
        return f"is not an image (starts with {contents[:12]!r})"
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        return f"has too many pixels ({error})"
    except Exception as error:  # a decoder meets damage in many ways: SyntaxError, struct.error, MemoryError, ...
        text = str(error) or type(error).__name__
        if isinstance(error, EOFError) or "truncated" in text.lower():
            return "is truncated (its end is missing)"
        return f"is damaged ({text})"
    return None


def _printable(path: str) -> str:
    return path if path.isprintable() else repr(path)


def _plain_cell(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
