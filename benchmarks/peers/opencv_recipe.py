"""The recipe in OpenCV's words, for the peers that use it: one warp, one multiplication."""

from __future__ import annotations

import math

import cv2
import numpy as np
from protocol import RECIPE

__all__ = ["augmented", "decoded"]


def decoded(contents: bytes, size: int) -> np.ndarray:
    """uint8 (size, size, 3), RGB, resized bilinearly without antialias."""
    image = cv2.imdecode(np.frombuffer(contents, np.uint8), cv2.IMREAD_COLOR_RGB)
    return cv2.resize(image, (size, size), interpolation=cv2.INTER_LINEAR)


def augmented(image: np.ndarray, numbers: np.random.Generator) -> np.ndarray:
    """float32 (size, size, 3), 0 to 1: rotated, shifted, sheared, zoomed, flipped and of another brightness."""
    size = image.shape[0]
    middle, shift = (size - 1) / 2, RECIPE["shift"] * size
    angle, shear = np.radians(numbers.uniform(-1, 1, 2) * (RECIPE["rotation"], RECIPE["shear"]))
    zoom = numbers.uniform(1 - RECIPE["zoom"], 1 + RECIPE["zoom"], 2)
    cos, sin = math.cos(angle), math.sin(angle)
    linear = np.array([[cos, -sin], [sin, cos]]) @ [[1, -math.sin(shear)], [0, math.cos(shear)]] @ np.diag(zoom)
    if numbers.random() < 0.5:
        linear = linear @ np.diag([-1.0, 1.0])
    offset = middle - linear @ (middle, middle) + numbers.uniform(-shift, shift, 2)
    warped = cv2.warpAffine(
        image,
        np.column_stack([linear, offset]),
        (size, size),
        flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
        borderMode=cv2.BORDER_REPLICATE,
    )
    factor = np.float32(numbers.uniform(*RECIPE["brightness"]))
    return np.minimum(warped.astype(np.float32) * factor, np.float32(255)) * np.float32(1 / 255)
