"""Resizes as loops over pixels, compiled by numba: nearest as Pillow does it, and bilinear without antialias."""

from __future__ import annotations

import numba
import numpy as np

from pipeline.loops import LOOP_OPTIONS, word

__all__ = ["resize_bilinear", "resize_nearest"]

_i64, _u8, _u16, _u32, _u64 = np.int64, np.uint8, np.uint16, np.uint32, np.uint64

# weights of the bilinear resize: 7 bits, so that a level times a weight fits 16
_ONE = 128
_HALF = 64
_BITS = 7


@numba.njit(**LOOP_OPTIONS)
def _nearest_sources(first: float, scale: float, places: np.ndarray, step: int) -> None:
    """Input place of each output place, in multiples of `step`.

    Pillow's: x_0 = first + scale / 2 and x_i = x_(i-1) + scale, cut to whole numbers. The sum is taken step by step as
    Pillow does: where (i + 1/2) * scale is whole, its rounding decides.
    """
    position = first + scale * 0.5
    for i in range(len(places)):
        places[i] = _i64(position) * step
        position += scale


@numba.njit(**LOOP_OPTIONS)
def resize_nearest(
    pixels: np.ndarray, top: float, left: float, used_height: float, used_width: float, out: np.ndarray
) -> None:
    """Pillow's nearest of a part of an image.

    Args:
        pixels: uint8 (H, W, C), contiguous.
        top: first row of the part.
        left: first column.
        used_height: its rows.
        used_width: its columns.
        out: uint8 (height, width, C), contiguous; written.
    """
    height, width, channels = out.shape
    rows, columns = np.empty(height, np.int64), np.empty(width, np.int64)
    _nearest_sources(top, used_height / height, rows, pixels.shape[1] * channels)
    _nearest_sources(left, used_width / width, columns, channels)
    values = np.empty(width * channels, np.int64)
    for j in range(width):
        for c in range(channels):
            values[j * channels + c] = columns[j] + c
    flat, finished = pixels.reshape(-1), out.reshape(-1)
    for i in range(height):
        # unsigned, since numba lets a negative place count from the end
        row = _u64(rows[i])
        line = finished[i * width * channels : (i + 1) * width * channels]
        for j in range(width * channels):
            line[j] = flat[row + _u64(values[j])]


@numba.njit(**LOOP_OPTIONS)
def _tap(index: int, scale: float, size: int) -> tuple[int, int]:
    """The first of two neighbours and the weight of the second: pixel centres lie at whole numbers and a half."""
    position = min(max((index + 0.5) * scale - 0.5, 0.0), size - 1.0)
    first = int(min(position, size - 2.0))
    return first, int((position - first) * _ONE + 0.5)


@numba.njit(**LOOP_OPTIONS)
def resize_bilinear(pixels: np.ndarray, out: np.ndarray) -> None:
    """Blends the four pixels around each position, first two rows and then two columns, each rounded to 8 bits.

    Args:
        pixels: uint8 (H, W, 3), H and W at least 2, contiguous.
        out: uint8 (height, width, 3), contiguous; written.
    """
    source_height, source_width = pixels.shape[:2]
    height, width = out.shape[:2]
    size = 3 * source_width
    places, weights = np.empty(width, np.uint32), np.empty(width, np.uint32)
    for j in range(width):
        first, weight = _tap(j, source_width / width, source_width)
        places[j], weights[j] = 3 * first, weight
    blended = np.empty(size, np.uint8)
    left, right = np.empty(width, np.uint32), np.empty(width, np.uint32)
    # two channels of a pixel in one word, 16 bits each
    outer, both_halves, byte = _u32(0xFF00FF), _u32(_HALF * 0x10001), _u32(0xFF)
    flat, finished = pixels.reshape(-1), out.reshape(-1)
    for i in range(height):
        first, weight = _tap(i, source_height / height, source_height)
        upper, lower = flat[first * size : (first + 1) * size], flat[(first + 1) * size : (first + 2) * size]
        down, up = _u16(weight), _u16(_ONE - weight)
        for j in range(size):
            blended[j] = _u8(_u16(_u16(_u16(upper[j]) * up) + _u16(_u16(lower[j]) * down) + _u16(_HALF)) >> _u16(_BITS))
        for j in range(width):
            # the word of the right pixel starts a byte before it, for the last one's would end beyond the row
            place = _u64(places[j])
            left[j] = word(blended, place)
            right[j] = word(blended, place + _u64(2))
        line = finished[3 * width * i : 3 * width * (i + 1)]
        for j in range(width):
            p, q, to_right = left[j], right[j] >> _u32(8), weights[j]
            to_left = _u32(_ONE) - to_right
            red_blue = ((p & outer) * to_left + (q & outer) * to_right + both_halves) >> _u32(_BITS)
            green = ((p >> _u32(8)) & byte) * to_left + ((q >> _u32(8)) & byte) * to_right + _u32(_HALF)
            line[3 * j] = _u8(red_blue & byte)
            line[3 * j + 1] = _u8(green >> _u32(_BITS))
            line[3 * j + 2] = _u8((red_blue >> _u32(16)) & byte)
