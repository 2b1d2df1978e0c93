"""What the speeds of the stages say about the flags to set."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.stages import Occupation, StageSpeeds

__all__ = ["format_stages", "stage_advice"]

_MIB = 2**20
# below this ratio a flag's gain is within the noise of a shared machine
_WORTH_SAYING = 1.15
_WHAT_A_STAGE_DOES = {
    "read": "reading the files",
    "decode": "decoding",
    "resize": "the resize",
    "augment": "augmentation",
}


def format_stages(speeds: StageSpeeds) -> str:
    """The speeds as a table, a stage a line."""
    lines = ["images/s        cold disk   page cache  pixel cache    adds ms/image"]
    for stage, added in speeds.added_ms.items():
        columns = (speeds.cold or {}).get(stage), speeds.warm[stage], speeds.cached.get(stage)
        shown = "".join(f"{'-' if value is None else f'{value:,.0f}':>13}" for value in columns)
        lines.append(f"{stage:12}{shown}{added:>17.2f}")
    return "\n".join(lines)


def stage_advice(
    speeds: StageSpeeds,
    *,
    images: int,
    row_bytes: int,
    usable_bytes: int,
    batch_size: int,
    step_seconds: float | None = None,
    occupation: Occupation | None = None,
) -> Iterator[str]:
    """Sentences for a person, each from the figures alone.

    Args:
        speeds: what was measured.
        images: number of images in the whole data set.
        row_bytes: decoded pixels of one image.
        usable_bytes: what a cache in memory may take.
        batch_size: images a step.
        step_seconds: what a made-up accelerator needs for a batch, or None.
        occupation: how busy it was kept, or None.
    """
    added = speeds.added_ms
    whole = 1000.0 / speeds.warm["augment"]
    yield (
        f"Without a cache most of a training epoch goes into {_WHAT_A_STAGE_DOES[speeds.slowest]}: "
        f"{added[speeds.slowest]:.2f} of {whole:.2f} ms an image."
    )
    yield from _about_the_disk(speeds)
    yield from _about_the_cache(speeds, images, row_bytes, usable_bytes)
    if speeds.fast is not None and speeds.fast > _WORTH_SAYING * speeds.warm["augment"]:
        yield (
            f"--decode fast makes {speeds.fast:,.0f} images/s of {speeds.warm['augment']:,.0f} without a cache; its "
            "pixels are a few grey levels off."
        )
    if step_seconds is not None and occupation is not None:
        yield (
            f"An accelerator that needs {step_seconds * 1000:g} ms for {batch_size} images takes "
            f"{batch_size / step_seconds:,.0f} images/s. It would be busy {occupation.uncached:.0%} of the time "
            f"without a cache, {occupation.cached:.0%} with --cache ram."
        )


def _about_the_disk(speeds: StageSpeeds) -> Iterator[str]:
    if speeds.cold is None:
        yield f"How fast the disk is was not measured: {speeds.cold_reason}."
        return
    per_image = speeds.file_mib / speeds.images
    limit = f"The disk gives {speeds.cold['read']:,.0f} images/s ({speeds.cold['read'] * per_image:,.0f} MiB/s)"
    if speeds.cold["read"] < _WORTH_SAYING * speeds.warm["augment"]:
        yield f"{limit}, which limits epoch 1: the first reading is as slow as the disk."
    else:
        yield f"{limit}, more than the rest of the pipeline takes: it does not limit epoch 1."


def _about_the_cache(speeds: StageSpeeds, images: int, row_bytes: int, usable_bytes: int) -> Iterator[str]:
    gain = speeds.cached["augment"] / speeds.warm["augment"]
    pixels, files = images * row_bytes, images * speeds.file_mib * _MIB / speeds.images
    of_them = f"{pixels / _MIB:,.0f} MiB of pixels for {images:,} images"
    if gain <= _WORTH_SAYING:
        yield (
            f"A cache of pixels gains little here ({gain:.1f}x); --cache off leaves {pixels / _MIB:,.0f} MiB to others."
        )
    elif pixels <= usable_bytes:
        yield (
            f"--cache ram makes {speeds.cached['augment']:,.0f} images/s from epoch 2 on ({gain:.1f}x): {of_them} fit "
            "into memory."
        )
    else:
        share = usable_bytes / pixels
        yield (
            f"--cache ram would make {speeds.cached['augment']:,.0f} images/s ({gain:.1f}x), but of {of_them} only "
            f"{share:.0%} fit into memory; --cache disk keeps all of them if the disk has the room."
        )
        if files <= usable_bytes:
            yield f"--cache encoded keeps the disk quiet from epoch 2 on: the files take {files / _MIB:,.0f} MiB."
