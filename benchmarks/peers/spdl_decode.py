"""SPDL: FFmpeg's decoder and scaler, in its pipeline of threads. It augments nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import spdl.io
from protocol import Job, run
from spdl.pipeline import PipelineBuilder


def batches(job: Job) -> Iterator[int]:
    def load(path: str) -> spdl.io.ImageFrames:
        packets = spdl.io.demux_image(path)
        filters = spdl.io.get_video_filter_desc(scale_width=job.size, scale_height=job.size, pix_fmt="rgb24")
        return spdl.io.decode_packets(packets, filter_desc=filters)

    def to_array(frames: list[spdl.io.ImageFrames]) -> np.ndarray:
        return spdl.io.to_numpy(spdl.io.convert_frames(frames))

    pipeline = (
        PipelineBuilder()
        .add_source(job.paths)
        .pipe(load, concurrency=job.workers)
        .aggregate(job.batch_size)
        .pipe(to_array)
        .add_sink(2)
        .build(num_threads=job.workers)
    )
    with pipeline.auto_stop():
        for batch in pipeline:
            yield len(batch)


if __name__ == "__main__":
    run(batches)
