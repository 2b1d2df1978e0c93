"""The warp as a loop over pixels for the processor, compiled by numba.

The arithmetic is that of `resample.resample_bilinear`, `colour.scale_brightness` and `ChannelAffine`, which XLA
compiles for a device. XLA makes one element of the result after the other; here a row is done in three passes: the
first and the last, which compute, become vector instructions, and the middle one does nothing but load. That takes a
third of the time (docs/performance.md).
"""

from __future__ import annotations

import numba
import numpy as np

from pipeline.loops import LOOP_OPTIONS, word

__all__ = ["FILL_CODES", "warp_images"]

FILL_CODES = {"nearest": 0, "constant": 1, "reflect": 2, "wrap": 3}
_CONSTANT, _REFLECT, _WRAP = (FILL_CODES[name] for name in ("constant", "reflect", "wrap"))

_f32, _i32, _u32, _u64 = np.float32, np.int32, np.uint32, np.uint64
_BYTE = _u32(0xFF)

# a product and a sum may become one operation, and neither NaN nor infinity comes up
_OPTIONS = LOOP_OPTIONS | {"fastmath": {"contract", "nsz", "nnan", "ninf"}}


@numba.njit(**LOOP_OPTIONS)
def _level(word: np.uint32, shift: np.uint32) -> np.float32:
    return _f32(_i32((word >> shift) & _BYTE))


@numba.njit(**_OPTIONS)
def _fold(positions: np.ndarray, size: int, fill: int) -> None:
    """Brings positions beyond the edges back, as `resample._reflect` and `resample._wrap` do."""
    if fill == _REFLECT:
        period = _f32(2 * size)
        for j in range(len(positions)):
            moved = positions[j] + _f32(0.5)
            folded = moved - period * np.floor(moved / period)
            positions[j] = min(folded, period - folded) - _f32(0.5)
    elif fill == _WRAP:
        period = _f32(max(size - 1, 1))
        for j in range(len(positions)):
            position = positions[j]
            if position < _f32(0) or position > period:
                positions[j] = position - period * np.floor(position / period)


@numba.njit(**_OPTIONS)
def warp_images(
    images: np.ndarray,
    draws: np.ndarray,
    fill: int,
    cval: float,
    low: float,
    high: float,
    scale: np.ndarray,
    offset: np.ndarray,
    is_reversed: bool,
    start: int,
    stop: int,
    out: np.ndarray,
) -> None:
    """Warps, brightens and preprocesses images `start` to `stop`.

    Args:
        images: uint8 (N, H, W, 3), H and W at least 2, contiguous.
        draws: float32 (N, 8), the columns of `geometry.DRAW_COLUMNS`; the seventh is not looked at.
        fill: of `FILL_CODES`.
        cval: value of the outside for `constant`.
        low: lowest level after the brightness.
        high: highest level.
        scale: float32 (3,), factor of each output channel.
        offset: float32 (3,), summand of each output channel.
        is_reversed: whether red and blue change places.
        start: first image.
        stop: after the last image.
        out: float32 (N, H, W, 3), contiguous; written.
    """
    height, width = images.shape[1], images.shape[2]
    x, y = np.empty(width, np.float32), np.empty(width, np.float32)
    is_outside = np.empty(width, np.bool_)
    places = np.empty(width, np.int32)
    weight_x, weight_y = np.empty(width, np.float32), np.empty(width, np.float32)
    up, up_right = np.empty(width, np.uint32), np.empty(width, np.uint32)
    down, down_right = np.empty(width, np.uint32), np.empty(width, np.uint32)

    centre_x, centre_y = _f32((width - 1) / 2), _f32((height - 1) / 2)
    last_x, last_y = _f32(width - 1), _f32(height - 1)
    first_x, first_y = _f32(width - 2), _f32(height - 2)
    row_bytes = _i32(3 * width)
    step_down = _u64(3 * width)
    low, high, cval = _f32(low), _f32(high), _f32(cval)
    # of a word that starts with a pixel, and of one that starts a byte before a pixel
    shift_0, shift_1, shift_2 = _u32(0), _u32(8), _u32(16)
    if is_reversed:
        shift_0, shift_2 = shift_2, shift_0
    right_0, right_1, right_2 = shift_0 + _u32(8), shift_1 + _u32(8), shift_2 + _u32(8)
    scale_0, scale_1, scale_2 = scale[0], scale[1], scale[2]
    offset_0, offset_1, offset_2 = offset[0], offset[1], offset[2]

    for number in range(start, stop):
        flat = images[number].reshape(-1)
        finished = out[number].reshape(-1)
        a, b, c = draws[number, 0], draws[number, 1], draws[number, 2]
        d, e, f = draws[number, 3], draws[number, 4], draws[number, 5]
        factor = draws[number, 7]
        outside = min(max(cval * factor, low), high)
        for i in range(height):
            below = _f32(i) - centre_y
            row_x, row_y = b * below + (c + centre_x), e * below + (f + centre_y)
            for j in range(width):
                beside = _f32(_i32(j)) - centre_x
                x[j] = a * beside + row_x
                y[j] = d * beside + row_y
            if fill == _CONSTANT:
                for j in range(width):
                    is_outside[j] = x[j] < _f32(0) or x[j] > last_x or y[j] < _f32(0) or y[j] > last_y
            _fold(x, width, fill)
            _fold(y, height, fill)
            for j in range(width):
                # the last pixel is the second tap with weight 1, and so is all that lies beyond it
                column, row = min(max(x[j], _f32(0)), last_x), min(max(y[j], _f32(0)), last_y)
                left, top = _i32(min(column, first_x)), _i32(min(row, first_y))
                weight_x[j], weight_y[j] = column - _f32(left), row - _f32(top)
                places[j] = top * row_bytes + left * _i32(3)
            for j in range(width):
                # the word of the right pixel starts a byte before it, for the last one's would end beyond the row
                place = _u64(places[j])
                # one a line: two loads before two stores take a third longer
                up[j] = word(flat, place)
                up_right[j] = word(flat, place + _u64(2))
                place += step_down
                down[j] = word(flat, place)
                down_right[j] = word(flat, place + _u64(2))
            line = finished[3 * width * i : 3 * width * (i + 1)]
            for j in range(width):
                p, q, r, s = up[j], up_right[j], down[j], down_right[j]
                both = weight_x[j] * weight_y[j]
                only_y, only_x = weight_y[j] - both, weight_x[j] - both
                none = _f32(1) - weight_x[j] - only_y
                value = _level(p, shift_0) * none + _level(q, right_0) * only_x
                value += _level(r, shift_0) * only_y + _level(s, right_0) * both
                line[3 * j] = min(max(value * factor, low), high) * scale_0 + offset_0
                value = _level(p, shift_1) * none + _level(q, right_1) * only_x
                value += _level(r, shift_1) * only_y + _level(s, right_1) * both
                line[3 * j + 1] = min(max(value * factor, low), high) * scale_1 + offset_1
                value = _level(p, shift_2) * none + _level(q, right_2) * only_x
                value += _level(r, shift_2) * only_y + _level(s, right_2) * both
                line[3 * j + 2] = min(max(value * factor, low), high) * scale_2 + offset_2
            if fill == _CONSTANT:
                for j in range(width):
                    if is_outside[j]:
                        line[3 * j] = outside * scale_0 + offset_0
                        line[3 * j + 1] = outside * scale_1 + offset_1
                        line[3 * j + 2] = outside * scale_2 + offset_2
