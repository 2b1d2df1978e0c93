"""The folders of caches on disk: their names, which are made of what is in them, and their housekeeping."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs

from pipeline.cache.disk_store import MARKS_FILE, ROWS_FILE
from pipeline.decode_config import DecodeConfig

__all__ = [
    "CacheFolder",
    "bytes_on_disk",
    "cache_key",
    "clear_cache",
    "default_cache_directory",
    "free_disk_bytes",
    "list_caches",
    "make_cache_folder",
]

# raise it whenever rows, marks or what the key is made of change
_FORMAT_VERSION = 1
_ABOUT = "about.json"
_FILES = (ROWS_FILE, MARKS_FILE, _ABOUT)
_KEY_LENGTH = 32
_DRAFT_PREFIX = ".about-"


@dataclass(frozen=True, kw_only=True)
class CacheFolder:
    """A cache on disk.

    Attributes:
        path: its folder, named by its key.
        about: what `make_cache_folder` wrote: `data`, `samples`, `height`, `width`, `interpolation`, ...
        complete: samples whose pixels are there.
        bytes: what it takes on the disk.
        used: seconds since the epoch, when a run last opened it.
    """

    path: Path
    about: dict[str, Any]
    complete: int
    bytes: int
    used: float


def default_cache_directory() -> Path:
    """The folder of all caches in the user's own cache folder."""
    return Path(platformdirs.user_cache_dir("feedline")) / "pixels"


def cache_key(paths: Sequence[str], decode: DecodeConfig) -> str:
    """The name of a cache: two data sets, or two ways to decode one, never have the same.

    It is made of every file's absolute path, size, times of modification and of change (which nobody can set back), of
    everything that decides on the pixels, and of the versions of the packages that decode.

    Args:
        paths: one file a sample.
        decode: how it becomes pixels.

    Returns:
        32 hexadecimal digits.
    """
    digest = hashlib.sha256()
    versions = {name: _version(name) for name in ("tensorflow", "pillow", "cykooz-resizer")}
    digest.update(json.dumps([_FORMAT_VERSION, versions, asdict(decode)], sort_keys=True).encode())
    for path in paths:
        digest.update(b"\0" + os.fsencode(os.path.abspath(path)) + _identity(path))
    return digest.hexdigest()[:_KEY_LENGTH]


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _identity(path: str) -> bytes:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return b"\0-"  # it is missed where it is to be decoded
    return f"\0{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}".encode()


def make_cache_folder(directory: Path, key: str, about: dict[str, Any]) -> Path:
    """The cache's folder, made if it is not there, with a page that tells what is in it.

    Raises:
        OSError: if it cannot be made or written to.
    """
    folder = directory / key
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        _write_about(folder, {"format": _FORMAT_VERSION, **about})
    except OSError:
        # one that is there can be read from a full or a closed disk
        if not (folder / _ABOUT).exists():
            raise
    return folder


def _write_about(folder: Path, document: dict[str, Any]) -> None:
    # written anew each time: its time of modification is when the cache was last used
    descriptor, draft = tempfile.mkstemp(prefix=_DRAFT_PREFIX, dir=folder)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(document, file)
        os.replace(draft, folder / _ABOUT)
    except BaseException:
        os.unlink(draft)
        raise


def list_caches(directory: Path) -> list[CacheFolder]:
    """The caches below a folder, the last used first; anything else there is passed over."""
    found = []
    for folder in directory.iterdir() if directory.is_dir() else ():
        if len(folder.name) != _KEY_LENGTH or folder.is_symlink():
            continue
        try:
            about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
            marks = np.fromfile(folder / MARKS_FILE, np.uint64)
            used = (folder / _ABOUT).stat().st_mtime
            size = sum(bytes_on_disk(folder / name) for name in _FILES)
        except (OSError, ValueError):
            continue
        if isinstance(about, dict) and about.get("format") == _FORMAT_VERSION:
            complete = int(np.count_nonzero(marks))
            found.append(CacheFolder(path=folder, about=about, complete=complete, bytes=size, used=used))
    return sorted(found, key=lambda cache: -cache.used)


def bytes_on_disk(path: Path) -> int:
    """What a file takes on the disk; 0 if it is not there."""
    try:
        status = path.stat()
    except OSError:
        return 0
    # blocks of 512 bytes, where the system counts them
    return getattr(status, "st_blocks", -(-status.st_size // 512)) * 512


def clear_cache(caches: Collection[CacheFolder]) -> int:
    """Removes caches, also while a run uses them: it keeps what it has open.

    Returns:
        Bytes that were freed.
    """
    freed = 0
    for cache in caches:
        # only what a cache is made of: whatever else lies there is not ours
        for path in cache.path.iterdir():
            if path.name in _FILES or path.name.startswith(_DRAFT_PREFIX):
                path.unlink()
        if not any(cache.path.iterdir()):
            cache.path.rmdir()
        freed += cache.bytes
    return freed


def free_disk_bytes(directory: Path) -> int:
    """What the disk below a folder, which need not exist yet, still holds."""
    existing = next(place for place in (directory, *directory.parents) if place.exists())
    return shutil.disk_usage(existing).free
