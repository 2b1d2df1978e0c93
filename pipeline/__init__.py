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
from pipeline.data import VERIFY_LIMIT, Data, DataConfig, data_place, load_data
from pipeline.decode import INTERPOLATIONS, METHODS, DecodeConfig, decode_image
from pipeline.demo import demonstration_set
from pipeline.errors import BadFile, BadFilesError, DataError, InputError, MissingPackageError
from pipeline.feed import CACHE_MODES, Feed, FeedConfig
from pipeline.keras_baseline import keras_flow
from pipeline.pixels import CachePlan, PixelCache, plan_pixel_cache
from pipeline.randomness import epoch_order
from pipeline.samples import (
    Samples,
    align_classes,
    data_fingerprint,
    samples_from_folder,
    samples_from_table,
    split_samples,
)
from pipeline.verify import check_bad_files, drop_bad, verify_samples, write_bad_files

__all__ = [
    "CACHE_MODES",
    "FILL_MODES",
    "IDENTITY",
    "INTERPOLATIONS",
    "METHODS",
    "RESAMPLERS",
    "VERIFY_LIMIT",
    "AugmentParameters",
    "AugmentRanges",
    "BadFile",
    "BadFilesError",
    "CachePlan",
    "ChannelAffine",
    "Data",
    "DataConfig",
    "DataError",
    "DecodeConfig",
    "Feed",
    "FeedConfig",
    "InputError",
    "MissingPackageError",
    "PixelCache",
    "Samples",
    "align_classes",
    "augment_function",
    "check_bad_files",
    "data_fingerprint",
    "data_place",
    "decode_image",
    "demonstration_set",
    "draw_parameters",
    "draw_rows",
    "drop_bad",
    "epoch_order",
    "keras_flow",
    "load_data",
    "plan_pixel_cache",
    "preprocess_function",
    "samples_from_folder",
    "samples_from_table",
    "split_samples",
    "verify_samples",
    "write_bad_files",
]
