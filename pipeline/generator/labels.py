"""What the labels of a batch of files look like, by class mode."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.generator.listing import Listing

__all__ = ["batch_labels"]


def batch_labels(class_mode: str | None, listing: Listing, indices: np.ndarray, dtype: str) -> Any:
    """The labels of some samples, as Keras's iterators give them.

    Args:
        class_mode: `binary` and `sparse` give class numbers, `categorical` ones at the classes of each sample, `raw`
            and `multi_output` the values as they are.
        listing: of all samples.
        indices: int64 (N,).
        dtype: of class numbers and ones.

    Returns:
        (N,) or (N, C), a list of arrays for `multi_output`, None for `input` and None.
    """
    if class_mode in ("binary", "sparse"):
        return np.array([listing.classes[index] for index in indices], dtype)
    if class_mode == "categorical":
        labels = np.zeros((len(indices), len(listing.class_indices)), dtype)
        for row, index in enumerate(indices):
            labels[row, listing.classes[index]] = 1
        return labels
    if class_mode == "multi_output":
        return [values[indices] for values in listing.targets]
    return listing.targets[indices] if class_mode == "raw" else None
