"""Parameters to matrices: flip, shift, rotation, shear and zoom become one map a sample.

Every matrix maps an *output* pixel to the *input* position it is sampled from, in pixels (column, row), with the origin
at the image's centre ((W - 1) / 2, (H - 1) / 2). Coordinates about the centre keep float32 rounding small in the
kernel.
"""

from __future__ import annotations

import numpy as np

from pipeline.augment.draws import AugmentParameters

__all__ = ["DRAW_COLUMNS", "draw_rows", "inverse_maps", "maps_about_pivot"]

# What travels with each image of a batch: the two rows of its matrix, then the colour changes.
DRAW_COLUMNS = ("column_x", "column_y", "column_offset", "row_x", "row_y", "row_offset", "channel_shift", "brightness")


def inverse_maps(parameters: AugmentParameters) -> np.ndarray:
    """The output-to-input map of each sample: rotation · shift · shear · zoom · flip.

    The order and the matrices are those of Keras's `apply_affine_transform` (shear is [[1, -sin s], [0, cos s]]), with
    each shift on its own axis and the pivot at the image's centre.

    Returns:
        float64 (N, 2, 3): input (column, row) = matrix · (column, row, 1) of the output.
    """
    return maps_about_pivot(
        parameters.rotation_degrees,
        parameters.width_shift_pixels,
        parameters.height_shift_pixels,
        parameters.shear_degrees,
        # a flip mirrors the finished picture, so it acts first on the way back from output to input
        np.where(parameters.horizontal_flip, -1.0, 1.0) * parameters.zoom_width,
        np.where(parameters.vertical_flip, -1.0, 1.0) * parameters.zoom_height,
    )


def maps_about_pivot(
    theta_degrees: np.ndarray,
    shift_x: np.ndarray,
    shift_y: np.ndarray,
    shear_degrees: np.ndarray,
    zoom_x: np.ndarray,
    zoom_y: np.ndarray,
) -> np.ndarray:
    """Rotation · shift · shear · zoom in closed form, all about one pivot.

    Args:
        theta_degrees: (N,), counter-clockwise on the screen.
        shift_x: (N,), pixels; positive moves the content to the left.
        shift_y: (N,), pixels; positive moves the content up.
        shear_degrees: (N,).
        zoom_x: (N,), factor of the width; below 1 enlarges, below 0 mirrors.
        zoom_y: (N,), factor of the height.

    Returns:
        float64 (N, 2, 3): input (column, row) = map · (column, row, 1) of the output, both counted from the pivot.
    """
    theta, shear = np.deg2rad(theta_degrees), np.deg2rad(shear_degrees)
    cos, sin = np.cos(theta), np.sin(theta)
    column = [cos * zoom_x, -np.sin(theta + shear) * zoom_y, cos * shift_x - sin * shift_y]
    row = [sin * zoom_x, np.cos(theta + shear) * zoom_y, sin * shift_x + cos * shift_y]
    return np.stack([np.stack(column, -1), np.stack(row, -1)], 1)


def draw_rows(parameters: AugmentParameters) -> np.ndarray:
    """The numbers that the pixel kernel needs of each sample.

    Returns:
        float32 (N, 8), the columns of `DRAW_COLUMNS`.
    """
    matrices = inverse_maps(parameters).reshape(-1, 6)
    colour = np.stack([parameters.channel_shift, parameters.brightness], -1)
    return np.concatenate([matrices, colour], 1).astype(np.float32)
