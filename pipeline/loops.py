"""What the loops that numba compiles share."""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["LOOP_OPTIONS", "word"]

# Python's lock is let go meanwhile; a place outside an array is the loop's own fault, and so is a division by zero
LOOP_OPTIONS = {"nogil": True, "boundscheck": False, "error_model": "numpy"}


@numba.njit(**LOOP_OPTIONS)
def word(flat: np.ndarray, place: np.uint64) -> np.uint32:
    """Four bytes of a uint8 array as one word, lowest first.

    The place is unsigned, for numba lets a negative one count from the end; that lets the compiler make one load of it.
    """
    return (
        np.uint32(flat[place])
        | (np.uint32(flat[place + np.uint64(1)]) << np.uint32(8))
        | (np.uint32(flat[place + np.uint64(2)]) << np.uint32(16))
        | (np.uint32(flat[place + np.uint64(3)]) << np.uint32(24))
    )
