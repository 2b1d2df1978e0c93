"""From a choice of cache to a cache: its budget, its plan, and what a person is told about both."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from pipeline.cache.disk_store import ROWS_FILE, DiskStore
from pipeline.cache.folders import (
    bytes_on_disk,
    cache_key,
    default_cache_directory,
    free_disk_bytes,
    make_cache_folder,
)
from pipeline.cache.plan import CachePlan, plan_cache
from pipeline.cache.sample_cache import SampleCache
from pipeline.cache.stores import FileStore, RowStore
from pipeline.decode_config import DecodeConfig
from pipeline.errors import InputError
from pipeline.memory import usable_memory_bytes

__all__ = ["CACHE_MODES", "CacheConfig", "CacheMode", "open_cache", "usable_cache_bytes"]

CacheMode = Literal["off", "encoded", "ram", "disk"]
CACHE_MODES: tuple[str, ...] = get_args(CacheMode)

# The share of the usable memory that a cache may take; the rest is for the model and its batches.
_MEMORY_SHARE = 0.6
# The share that it may take when asked to: nothing could be trained beside more.
_MOST_MEMORY_SHARE = 0.9
_DISK_SHARE = 0.9
_MIB = 2**20
_WHAT_IS_KEPT = {"encoded": "files", "ram": "pixels", "disk": "pixels"}


@dataclass(frozen=True, kw_only=True)
class CacheConfig:
    """What is kept of the samples from their first visit on.

    Attributes:
        mode: `off` reads and decodes every file in every epoch; `encoded` keeps the files' bytes in memory; `ram` and
            `disk` keep decoded pixels, in memory or in a folder that the next run finds again.
        budget_bytes: the most that all caches of a run may take; None for what the memory or the disk has to spare.
        directory: of the caches on disk; None for the user's own cache folder.
    """

    mode: CacheMode = "ram"
    budget_bytes: int | None = None
    directory: str | None = None

    def __post_init__(self) -> None:
        if self.mode not in CACHE_MODES:
            raise ValueError(f"cache must be one of {', '.join(CACHE_MODES)}, not {self.mode!r}")
        if self.budget_bytes is not None and self.budget_bytes < 0:
            raise ValueError(f"the budget of the cache must be 0 or more bytes, not {self.budget_bytes}")

    @property
    def place(self) -> Path:
        """The folder of the caches on disk."""
        return default_cache_directory() if self.directory is None else Path(self.directory)


def open_cache(
    config: CacheConfig,
    paths: Sequence[str],
    decode: DecodeConfig,
    *,
    spent_bytes: int = 0,
    name: str = "images",
    report: Callable[[str], None] = lambda line: None,
) -> SampleCache | None:
    """The cache of one part of a data set; None for mode `off`.

    Args:
        config: which.
        paths: one file a sample.
        decode: how it becomes pixels.
        spent_bytes: what other caches of the same run were promised.
        name: of the part, in what is reported.
        report: takes a line about what is kept.

    Raises:
        InputError: if the folder of the cache cannot be written to.
    """
    if config.mode == "off" or not len(paths):
        return None
    row_shape = (decode.height, decode.width, decode.channels)
    if config.mode == "encoded":
        sizes = np.array([_file_bytes(path) for path in paths], np.int64)
    else:
        sizes = np.full(len(paths), np.prod(row_shape), np.int64)
    folder = _folder(config, paths, decode) if config.mode == "disk" else None
    budget, because = _budget(config, spent_bytes, 0 if folder is None else bytes_on_disk(folder / ROWS_FILE))
    plan = plan_cache(sizes, budget)
    cache = SampleCache(plan, _store(config, plan, folder, row_shape))
    report(_line(config, plan, cache, name, because))
    return cache


def _folder(config: CacheConfig, paths: Sequence[str], decode: DecodeConfig) -> Path:
    about = {"data": _common_folder(paths), "samples": len(paths), **asdict(decode)}
    try:
        return make_cache_folder(config.place, cache_key(paths, decode), about)
    except OSError as error:
        raise _unusable(config, error) from error


def _store(
    config: CacheConfig, plan: CachePlan, folder: Path | None, row_shape: tuple[int, int, int]
) -> FileStore | RowStore | DiskStore:
    if config.mode == "encoded":
        return FileStore(plan.kept)
    if folder is None:
        return RowStore(plan.kept, row_shape)
    try:
        return DiskStore(folder, plan.kept, row_shape)
    except OSError as error:
        raise _unusable(config, error) from error


def _unusable(config: CacheConfig, error: OSError) -> InputError:
    return InputError(
        f"--cache disk: {config.place} cannot hold it ({error.strerror or error}); name another folder with "
        "--cache-dir, a smaller --cache-budget, or take --cache ram"
    )


def usable_cache_bytes() -> int:
    """What caches in memory may take together if nobody says otherwise."""
    return int(usable_memory_bytes() * _MEMORY_SHARE)


def _budget(config: CacheConfig, spent_bytes: int, held_bytes: int) -> tuple[int, str]:
    """Bytes for one cache, and what decided on them."""
    if config.mode == "disk":
        # the room of other caches, and of this one's rows that are there already, is taken and no longer free
        usual = most = int(free_disk_bytes(config.place) * _DISK_SHARE) + held_bytes
        most_in_words = usual_in_words = f"{_DISK_SHARE:.0%} of the free disk"
    else:
        usable = usable_memory_bytes()
        usual, most = (int(usable * share) - spent_bytes for share in (_MEMORY_SHARE, _MOST_MEMORY_SHARE))
        usual_in_words = f"{_MEMORY_SHARE:.0%} of the usable memory"
        most_in_words = f"{_MOST_MEMORY_SHARE:.0%} of the usable memory"
    if config.budget_bytes is None:
        return usual, usual_in_words
    asked = config.budget_bytes - spent_bytes
    if asked > most:
        return most, f"{most_in_words}, less than --cache-budget"
    return asked, "--cache-budget"


def _line(config: CacheConfig, plan: CachePlan, cache: SampleCache, name: str, because: str) -> str:
    count = len(plan.sizes)
    what = f"{_WHAT_IS_KEPT[config.mode]} of {plan.kept} of {count} {name}, {plan.kept_bytes / _MIB:,.0f} MiB"
    limit = "" if plan.kept == count else f" (no more fit: {because} is {max(plan.budget_bytes, 0) / _MIB:,.0f} MiB)"
    complete = cache.complete
    if not complete:
        there = "filled in epoch 1"
    else:
        there = "all there" if complete == plan.kept else f"{complete} there, the rest filled in epoch 1"
    return f"cache {config.mode}: {what}{limit}, {there}"


def _file_bytes(path: str) -> int:
    try:
        return os.path.getsize(path)
    except (OSError, ValueError):
        return 0  # it is missed where it is to be read


def _common_folder(paths: Sequence[str]) -> str:
    try:
        return os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in paths])
    except ValueError:  # on several drives
        return os.path.dirname(os.path.abspath(paths[0]))
