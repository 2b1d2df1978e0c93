"""One measurement of the pipeline on a person's own data, from its source to the page of text."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import replace

from pipeline.cache import usable_cache_bytes
from pipeline.data import DataConfig, load_data
from pipeline.feed import FeedConfig
from pipeline.stage_advice import format_stages, stage_advice
from pipeline.stages import measure_occupation, measure_stages, random_part
from pipeline.verify import check_bad_files, verify_samples

__all__ = ["run_bench"]

_CHECK_WORKERS = 4
_WIDTH = 110


def run_bench(
    data: DataConfig,
    config: FeedConfig,
    *,
    most: int,
    rounds: int,
    step_seconds: float | None,
    evict: Callable[[Sequence[str]], str | None],
    report: Callable[[str], None],
) -> str:
    """Measures every stage and says what follows from it.

    Args:
        data: where the images are.
        config: how they become batches.
        most: images to measure with, a random part of the data.
        rounds: repetitions, of which the medians count.
        step_seconds: what a made-up accelerator needs for a batch; None to play none.
        evict: drops files from the page cache; returns why that failed, or None.
        report: takes lines about the progress.

    Raises:
        DataError: for a source that cannot be used, or a file of the part that cannot be decoded.
    """
    samples = load_data(replace(data, verify=False), seed=config.seed, workers=_CHECK_WORKERS, report=report).train
    part = random_part(samples, most)
    check_bad_files(verify_samples(part, _CHECK_WORKERS), way_out="leave {them} out of the data")
    speeds = measure_stages(part, config, evict=lambda: evict(part.paths), rounds=rounds, report=report)
    occupation = None
    if step_seconds is not None:
        report("playing the accelerator")
        occupation = measure_occupation(part, config, step_seconds)
    decode = config.decode
    advice = stage_advice(
        speeds,
        images=len(samples),
        row_bytes=decode.height * decode.width * decode.channels,
        usable_bytes=usable_cache_bytes(),
        batch_size=config.batch_size,
        step_seconds=step_seconds,
        occupation=occupation,
    )
    measured = f"{len(part):,} of {len(samples):,} images" if len(part) < len(samples) else f"{len(part):,} images"
    head = f"{measured}, {decode.height}x{decode.width}, batch {config.batch_size}, medians of {rounds} rounds"
    return "\n".join((head, format_stages(speeds), "", *(textwrap.fill(sentence, _WIDTH) for sentence in advice)))
