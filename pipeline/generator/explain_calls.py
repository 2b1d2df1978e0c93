"""What a source says about its image generators, as plain data, and the names of their arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["CONSTRUCTOR", "FLOW_METHODS", "REST", "FlowCall", "GeneratorCall", "RemovedCall", "Source"]

# positional arguments, in Keras's order
CONSTRUCTOR = tuple(
    "featurewise_center samplewise_center featurewise_std_normalization samplewise_std_normalization zca_whitening "
    "zca_epsilon rotation_range width_shift_range height_shift_range brightness_range shear_range zoom_range "
    "channel_shift_range fill_mode cval horizontal_flip vertical_flip rescale preprocessing_function data_format "
    "validation_split interpolation_order dtype".split()
)
FLOW_METHODS: Mapping[str, tuple[str, ...]] = {
    "flow": tuple(
        "x y batch_size shuffle sample_weight seed save_to_dir save_prefix save_format "
        "ignore_class_split subset".split()
    ),
    "flow_from_directory": tuple(
        "directory target_size color_mode classes class_mode batch_size shuffle seed save_to_dir save_prefix "
        "save_format follow_links subset interpolation keep_aspect_ratio".split()
    ),
    "flow_from_dataframe": tuple(
        "dataframe directory x_col y_col weight_col target_size color_mode classes class_mode batch_size shuffle seed "
        "save_to_dir save_prefix save_format subset interpolation validate_filenames".split()
    ),
}
# under this name stands what `*args` or `**kwargs` brought and the file does not show
REST = "**"


@dataclass(frozen=True, kw_only=True)
class FlowCall:
    """A call of `flow`, `flow_from_directory` or `flow_from_dataframe`.

    Attributes:
        line: from 1.
        method: its name.
        arguments: values by the arguments' names, `Unknown` where the file does not show them.
    """

    line: int
    method: str
    arguments: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class GeneratorCall:
    """One ImageDataGenerator that a file makes.

    Attributes:
        line: from 1.
        name: the variable that it is assigned to, or None.
        arguments: values by the arguments' names, `Unknown` where the file does not show them.
        flows: calls on it, in the file's order.
        is_fitted: whether the file calls its `fit`.
    """

    line: int
    name: str | None
    arguments: dict[str, Any]
    flows: tuple[FlowCall, ...] = ()
    is_fitted: bool = False


@dataclass(frozen=True, kw_only=True)
class RemovedCall:
    """A call or argument that Keras 3 does not have any more.

    Attributes:
        line: from 1.
        kind: `fit_generator` and the like, `lr`, `period`, `workers`, `next` or `import`.
        text: how the file spells it.
        value: of the argument, if it is one.
    """

    line: int
    kind: str
    text: str
    value: Any = None


@dataclass(frozen=True, kw_only=True)
class Source:
    """What a file says about its image generators.

    Attributes:
        generators: in the file's order.
        removed: what Keras 3 does not have any more, in the file's order.
        strays: flow calls on what the file does not show to be a generator.
    """

    generators: tuple[GeneratorCall, ...]
    removed: tuple[RemovedCall, ...]
    strays: tuple[FlowCall, ...]
