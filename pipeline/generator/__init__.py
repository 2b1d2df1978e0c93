"""`ImageDataGenerator` and what stands beside it in Keras, made by the tf.data pipeline."""

from pipeline.generator.array_iterator import NumpyArrayIterator
from pipeline.generator.file_iterators import DataFrameIterator, DirectoryIterator
from pipeline.generator.functions import (
    apply_affine_transform,
    apply_brightness_shift,
    apply_channel_shift,
    array_to_img,
    img_to_array,
    load_img,
    random_brightness,
    random_channel_shift,
    random_rotation,
    random_shear,
    random_shift,
    random_zoom,
    save_img,
    smart_resize,
)
from pipeline.generator.image_data_generator import ImageDataGenerator
from pipeline.generator.iterators import Iterator

__all__ = [
    "DataFrameIterator",
    "DirectoryIterator",
    "ImageDataGenerator",
    "Iterator",
    "NumpyArrayIterator",
    "apply_affine_transform",
    "apply_brightness_shift",
    "apply_channel_shift",
    "array_to_img",
    "img_to_array",
    "load_img",
    "random_brightness",
    "random_channel_shift",
    "random_rotation",
    "random_shear",
    "random_shift",
    "random_zoom",
    "save_img",
    "smart_resize",
]
