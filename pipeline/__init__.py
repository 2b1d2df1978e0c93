"""From image files to augmented batches; knows nothing of models or telemetry."""

from pipeline.augment import (
    FILL_MODES,
    IDENTITY,
    RESAMPLERS,
    AugmentParameters,
    AugmentRanges,
    ChannelAffine,
    augment_function,
    draw_parameters,
    draw_rows,
    preprocess_function,
)
from pipeline.decode import INTERPOLATIONS, METHODS, DecodeConfig, decode_image
from pipeline.errors import BadFilesError, DataError, InputError, MissingPackageError
from pipeline.feed import CACHE_MODES, Feed, FeedConfig
from pipeline.pixels import CachePlan, PixelCache, plan_pixel_cache
from pipeline.randomness import epoch_order
from pipeline.samples import (
    Samples,
    samples_from_folder,
)

__all__ = [
    "CACHE_MODES",
    "FILL_MODES",
    "IDENTITY",
    "INTERPOLATIONS",
    "METHODS",
    "RESAMPLERS",
    "AugmentParameters",
    "AugmentRanges",
    "BadFilesError",
    "CachePlan",
    "ChannelAffine",
    "DataError",
    "DecodeConfig",
    "Feed",
    "FeedConfig",
    "InputError",
    "MissingPackageError",
    "PixelCache",
    "Samples",
    "augment_function",
    "decode_image",
    "draw_parameters",
    "draw_rows",
    "epoch_order",
    "plan_pixel_cache",
    "preprocess_function",
    "samples_from_folder",
]
