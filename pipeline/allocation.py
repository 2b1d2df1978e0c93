"""Keeps freed batches in the process, so that the next batch does not ask the system for its memory again.

A batch of 32 float32 images of 299 x 299 is 34 MB, more than glibc ever keeps: each batch would be mapped anew, and the
kernel would zero every page of it at its first touch. That costs more than the augmentation where page faults are slow
(virtual machines). `docs/performance.md` has the figures.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
from collections.abc import Callable

import numpy as np

__all__ = ["aligned_empty", "keep_freed_memory"]

# from malloc.h
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_KEPT_BYTES = 2**30
# where TensorFlow takes an array's memory as a tensor's, in place of copying it
_TENSOR_ALIGNMENT_BYTES = 64
_OWN_SETTINGS = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")


def keep_freed_memory() -> bool:
    """Tells glibc's allocator to reuse blocks of up to 1 GiB instead of handing each back to the system.

    It holds for the whole process and changes nothing but when freed memory returns to the system. A person's own
    settings of the allocator in the environment are left alone; elsewhere than on glibc nothing is done. To be called
    again where TensorFlow may have set its own threshold meanwhile, as 2.21 does with its first generator dataset.

    Returns:
        Whether the setting was made.
    """
    mallopt = _mallopt()
    if mallopt is None:
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES) and mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES))


def aligned_empty(shape: tuple[int, ...], dtype: type[np.generic]) -> np.ndarray:
    """An array of any content that TensorFlow takes over from Python without a copy."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.empty(size + _TENSOR_ALIGNMENT_BYTES, np.uint8)
    start = -memory.ctypes.data % _TENSOR_ALIGNMENT_BYTES
    return memory[start : start + size].view(dtype).reshape(shape)


@functools.cache
def _mallopt() -> Callable[[int, int], int] | None:
    if platform.libc_ver()[0] != "glibc" or any(name in os.environ for name in _OWN_SETTINGS):
        return None
    return ctypes.CDLL(None).mallopt
