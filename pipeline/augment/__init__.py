"""Augmentation: ranges, draws, matrices and the pixel kernel."""

from pipeline.augment.draws import AugmentParameters, draw_parameters
from pipeline.augment.geometry import DRAW_COLUMNS, draw_rows, inverse_maps, maps_about_pivot
from pipeline.augment.kernel import RESAMPLERS, augment_function, host_augment_function, preprocess_function
from pipeline.augment.preprocess import IDENTITY, ChannelAffine
from pipeline.augment.preprocess_input import channel_affine_of
from pipeline.augment.spec import FILL_MODES, AugmentRanges

__all__ = [
    "DRAW_COLUMNS",
    "FILL_MODES",
    "IDENTITY",
    "RESAMPLERS",
    "AugmentParameters",
    "AugmentRanges",
    "ChannelAffine",
    "augment_function",
    "channel_affine_of",
    "draw_parameters",
    "draw_rows",
    "host_augment_function",
    "inverse_maps",
    "maps_about_pivot",
    "preprocess_function",
]
