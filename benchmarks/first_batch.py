"""How long a large table takes to its first batch, in a fresh process after the imports.

    python benchmarks/first_batch.py --data photos --rows 100000

The table names the folder's photos over and over, as different rows. Counted is everything from reading the table to
the first augmented batch, without verification; XLA's compilation, which does not depend on the table, is measured
before with a feed of one batch and stands apart.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import click

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pandas as pd
from run_facts import run_facts

from pipeline import (
    CacheConfig,
    DecodeConfig,
    Feed,
    FeedConfig,
    open_cache,
    samples_from_folder,
    samples_from_table,
    split_samples,
)


@click.command()
@click.option("--data", type=click.Path(exists=True, file_okay=False), required=True, help="One sub-folder a class.")
@click.option("--rows", default=100_000, show_default=True)
@click.option("--size", default=299, show_default=True)
@click.option("--batch-size", default=32, show_default=True)
def main(data: str, rows: int, size: int, batch_size: int) -> None:
    """Prints seconds by step."""
    photos = samples_from_folder(data)
    config = FeedConfig(decode=DecodeConfig(height=size, width=size), batch_size=batch_size)
    start = time.perf_counter()
    next(iter(Feed(photos.take(range(min(batch_size, len(photos)))), config).training(range(1, 2))))
    seconds = {"a first batch of one batch, XLA's compilation included": time.perf_counter() - start}
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        order = [number % len(photos) for number in range(rows)]
        classes = [photos.class_names[photos.targets[number]] for number in order]
        pd.DataFrame({"Photo": [photos.paths[number] for number in order], "Class": classes}).to_csv(table, index=False)
        begin = start = time.perf_counter()
        train, _ = split_samples(samples_from_table(table, "Photo", "Class", None), 0.2, 42)
        seconds["reading and splitting the table"] = time.perf_counter() - start
        start = time.perf_counter()
        cache = open_cache(CacheConfig(mode="ram"), train.paths, config.decode)
        seconds["planning the cache"] = time.perf_counter() - start
        start = time.perf_counter()
        next(iter(Feed(train, config, cache).training(range(1, 2))))
        seconds["the first batch"] = time.perf_counter() - start
        seconds["all but the compilation"] = time.perf_counter() - begin
    print(
        ", ".join(f"{name} {value}" for name, value in run_facts(rows=rows, size=size, batch_size=batch_size).items())
    )
    for name, value in seconds.items():
        print(f"{name:58}{value:>7.2f} s")


if __name__ == "__main__":
    main()
