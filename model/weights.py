"""Weights of a backbone from a file, checked layer by layer before they are loaded.

Two layouts exist. The older one of keras.applications (`.h5`) lists layers in order with their arrays, and both Keras
versions read it. The newer one (`.weights.h5`) mirrors the objects of the Keras version that wrote it.
"""

from __future__ import annotations

from pathlib import Path

import h5py
import tensorflow as tf

from model.errors import WeightsError, one_line

__all__ = ["load_weights_file", "require_file"]

_Layers = list[tuple[str, list[tuple[int, ...]]]]


def load_weights_file(model: tf.keras.Model, path: str | Path, name: str) -> None:
    """Loads a file into a backbone without top.

    Args:
        model: the backbone; changed.
        path: an `.h5` file of keras.applications, or a `.weights.h5` file of the installed Keras.
        name: the backbone's name, for the messages.

    Raises:
        WeightsError: if the file is missing, not HDF5, of another layout, width or network.
    """
    path = Path(path)
    require_file(path)
    try:
        with h5py.File(path, "r") as file:
            _check_file(file, model, path, name)
    except (OSError, KeyError, AttributeError, UnicodeDecodeError) as error:
        raise WeightsError(f"{path}: not a readable HDF5 weights file ({one_line(error)})") from error
    try:
        model.load_weights(str(path))
    except Exception as error:  # Keras raises many kinds for a file that does not fit; nothing else happens here
        raise WeightsError(f"{path}: these are not weights of {name} without top ({one_line(error)})") from error


def require_file(path: str | Path) -> None:
    """Refuses what cannot be a weights file, without reading it.

    Raises:
        WeightsError: if the file is missing or not named as Keras wants it.
    """
    path = Path(path)
    if not path.is_file():
        raise WeightsError(f"{path}: no such weights file")
    if path.suffix not in {".h5", ".hdf5"}:  # Keras chooses its reader by the name, not by what the file holds
        raise WeightsError(
            f"{path}: a weights file must be named .h5 (keras.applications) or .weights.h5 (save_weights)"
        )


def _check_file(file: h5py.File, model: tf.keras.Model, path: Path, name: str) -> None:
    layers = file if "layer_names" in file.attrs else file.get("model_weights", file)
    is_listed = bool(_stored_names(layers, "layer_names"))
    is_object_name = path.name.endswith(".weights.h5")
    if is_listed and is_object_name:
        raise WeightsError(
            f"{path}: holds the older layout, which Keras reads only from a name that ends in .h5; rename it"
        )
    if is_listed:
        _check_layers(_stored_layers(layers), _model_layers(model), path, name)
    elif not is_object_name:
        raise WeightsError(f"{path}: holds no list of layers; a file of save_weights must be named .weights.h5")


def _check_layers(found: _Layers, expected: _Layers, path: Path, name: str) -> None:
    for (found_name, found_shapes), (layer_name, shapes) in zip(found, expected, strict=False):
        if found_shapes != shapes:
            raise WeightsError(
                f"{path}: weights of another width or network than {name}: layer {layer_name} expects shapes "
                f"{_listed(shapes)}, found {_listed(found_shapes)} ({found_name})"
            )
    if len(found) != len(expected):
        raise WeightsError(
            f"{path}: weights of another network than {name} without top: "
            f"expected {len(expected)} layers with weights, found {len(found)}"
        )


def _model_layers(model: tf.keras.Model) -> _Layers:
    """Name and shapes of each layer that has weights, in the order in which the older layout lists them."""
    layers = ((layer.name, [*layer.trainable_weights, *layer.non_trainable_weights]) for layer in model.layers)
    return [(name, [tuple(weight.shape) for weight in weights]) for name, weights in layers if weights]


def _stored_layers(group: h5py.Group) -> _Layers:
    """The same of a file in the older layout."""
    layers = ((name, group[name]) for name in _stored_names(group, "layer_names"))
    found = ((name, [layer[weight].shape for weight in _stored_names(layer, "weight_names")]) for name, layer in layers)
    return [(name, shapes) for name, shapes in found if shapes]


def _stored_names(group: h5py.Group, attribute: str) -> list[str]:
    """A list of names in the attributes; Keras cuts a long one into `attribute0`, `attribute1`, ..."""
    chunks = [group.attrs[attribute]] if attribute in group.attrs else []
    while f"{attribute}{len(chunks)}" in group.attrs and attribute not in group.attrs:
        chunks.append(group.attrs[f"{attribute}{len(chunks)}"])
    return [name.decode() if isinstance(name, bytes) else str(name) for chunk in chunks for name in chunk]


def _listed(shapes: list[tuple[int, ...]]) -> str:
    return ", ".join(str(shape) for shape in shapes)
