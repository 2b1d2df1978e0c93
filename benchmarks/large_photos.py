"""Decoding photos of 12 megapixels to 224 x 224, bilinear: `exact` against `fast`.

    python benchmarks/large_photos.py --data photos

The large photos (4000 x 3000, JPEG of quality 85) are made from those of the folder by enlarging. Both
decode modes then read them in turn, round by round, the files in the page cache.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import click

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from PIL import Image
from run_facts import run_facts

from pipeline import DecodeConfig, Feed, FeedConfig, Samples, samples_from_folder

_LARGE = (4000, 3000)
_QUALITY = 85
_BATCH = 8


def enlarged(samples: Samples, folder: Path, size: tuple[int, int]) -> Samples:
    """The same images as large JPEGs."""
    paths = []
    for number, path in enumerate(samples.paths):
        paths.append(str(folder / f"{number:03}.jpg"))
        with Image.open(path) as image:
            image.convert("RGB").resize(size, Image.Resampling.BICUBIC).save(paths[-1], quality=_QUALITY)
    return replace(samples, paths=tuple(paths))


def images_per_second(samples: Samples, config: DecodeConfig) -> float:
    """One pass of decoding alone."""
    feed = Feed(samples, FeedConfig(decode=config, batch_size=_BATCH))
    start = time.perf_counter()
    for _ in feed.decoded():
        pass
    return len(samples) / (time.perf_counter() - start)


@click.command()
@click.option("--data", type=click.Path(exists=True, file_okay=False), required=True, help="One sub-folder a class.")
@click.option("--images", default=64, show_default=True)
@click.option("--width", default=_LARGE[0], show_default=True)
@click.option("--height", default=_LARGE[1], show_default=True)
@click.option("--size", default=224, show_default=True)
@click.option("--rounds", default=3, show_default=True)
def main(data: str, images: int, width: int, height: int, size: int, rounds: int) -> None:
    """Prints both speeds and their ratio."""
    samples = samples_from_folder(data)
    chosen = samples.take(range(0, len(samples), max(1, len(samples) // images)))
    modes = {
        method: DecodeConfig(height=size, width=size, interpolation="bilinear", method=method)
        for method in ("exact", "fast")
    }
    speeds: dict[str, list[float]] = {method: [] for method in modes}
    with tempfile.TemporaryDirectory() as folder:
        large = enlarged(chosen, Path(folder), (width, height))
        for config in modes.values():
            images_per_second(large.take(range(min(len(large), _BATCH))), config)
        for _ in range(rounds):
            for method, config in modes.items():
                speeds[method].append(images_per_second(large, config))
    about = run_facts(images=len(chosen), width=width, height=height, size=size, rounds=rounds)
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    median = {method: statistics.median(values) for method, values in speeds.items()}
    for method, value in median.items():
        print(f"{method:6}{value:>8,.1f} images/s{value / median['exact']:>8.2f}x")


if __name__ == "__main__":
    main()
