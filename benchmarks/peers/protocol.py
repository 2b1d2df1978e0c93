"""What every peer's script shares: its arguments, the files, and how its speed is taken.

Standard library only, since it runs in the environment of each peer.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

__all__ = ["RECIPE", "Job", "run"]

# the recipe of the pipeline's defaults, in the words of Keras's generator
RECIPE = {"rotation": 30.0, "shift": 0.4, "shear": 0.4, "zoom": 0.25, "brightness": (0.5, 1.5)}


@dataclass(frozen=True)
class Job:
    """What is to be made into batches.

    Attributes:
        data: the folder, one sub-folder a class.
        paths: its files in the order of the epoch.
        labels: number of each file's class.
        size: pixels a side.
        batch_size: images a batch.
        workers: threads or processes that a peer may use.
        work: `whole`, `decode` (no augmentation), or `cached` (augmentation of pixels that are in memory).
    """

    data: str
    paths: list[str]
    labels: list[int]
    size: int
    batch_size: int
    workers: int
    work: str


def run(make_batches: Callable[[Job], Iterable[int]]) -> None:
    """Drops the files from the page cache, takes one epoch and prints images per second as JSON.

    The clock runs from the first batch, which workers and compilers need their start for, to the last.

    Args:
        make_batches: yields the number of images of each batch as soon as its pixels are in memory.
    """
    job = _job()
    evict(job.paths)
    counts = iter(make_batches(job))
    first = next(counts)
    start = time.perf_counter()
    images = sum(counts)
    seconds = time.perf_counter() - start
    if first + images != len(job.paths):
        raise SystemExit(f"{first + images} images came of {len(job.paths)}")
    print(json.dumps({"images_per_second": images / seconds}))


def evict(paths: Iterable[str]) -> None:
    """Drops files from the operating system's page cache, where it has `posix_fadvise`."""
    for path in paths:
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _job() -> Job:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--work", choices=("whole", "decode", "cached"), required=True)
    given = parser.parse_args()
    classes = sorted(entry.name for entry in os.scandir(given.data) if entry.is_dir())
    files = [
        (os.path.join(given.data, name, file), number)
        for number, name in enumerate(classes)
        for file in sorted(os.listdir(os.path.join(given.data, name)))
    ]
    random.Random(0).shuffle(files)
    paths, labels = [path for path, _ in files], [label for _, label in files]
    return Job(given.data, paths, labels, given.size, given.batch_size, given.workers, given.work)
