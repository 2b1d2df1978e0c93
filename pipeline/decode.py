"""Encoded bytes to uint8 pixels at the target size, inside a TensorFlow graph.

`exact` gives what Pillow's `open`, `convert` and `resize` give, as does Keras's `load_img`: bit for bit, but for one
level here and there under bilinear; `fast` trades a few levels for speed. Both take the first frame of an animation and
ignore the EXIF orientation.

TensorFlow decodes what it decodes as Pillow does: whole JPEGs of one or three components and whole 8-bit PNGs without
a palette. Everything else goes to Pillow, which lets other threads run while it decodes: CMYK JPEG, palette and 16-bit
PNG, GIF, BMP, WebP, TIFF, PPM, and files that lack their format's end mark (TensorFlow refuses some that Pillow reads).
"""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
import tensorflow as tf
from PIL import Image

from pipeline.decode_config import CHANNELS, ColorMode, DecodeConfig
from pipeline.resize import resize, resize_in_python

_PILLOW_MODES = {"rgb": "RGB", "rgba": "RGBA", "grayscale": "L"}
# first and last bytes of a file
_JPEG_MARKS = (b"\xff\xd8\xff", b"\xff\xd9")
_PNG_MARKS = (b"\x89PNG\r\n\x1a\n", b"\x00\x00\x00\x00IEND\xaeB`\x82")
# stands for what is no whole JPEG where a number of components is asked: the shortest header that tells four
_CMYK_HEADER = (
    b"\xff\xd8\xff\xc0\x00\x14\x08\x00\x01\x00\x01\x04\x01\x11\x00\x02\x11\x00\x03\x11\x00\x04\x11\x00"
    b"\xff\xda\x00\x0e\x04\x01\x00\x02\x00\x03\x00\x04\x00\x00\x3f\x00"
)
# bit depth and colour type in the header: 8 bits of grey, colour, grey with alpha, colour with alpha
_PNG_KIND_POSITION = 24
_PNG_KINDS = [b"\x08\x00", b"\x08\x02", b"\x08\x04", b"\x08\x06"]
_SHRINK_RATIOS = np.array([[2], [4], [8]], np.int32)

JpegDecoder = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]


# left as it is: autograph would rewrite the functions that run in Python once an image
@tf.autograph.experimental.do_not_convert
def decode_image(contents: tf.Tensor, config: DecodeConfig) -> tf.Tensor:
    """The image at the configured size.

    Works eagerly, in a `tf.function` and in a `tf.data` map with parallel calls.

    Args:
        contents: string (), the bytes of an image file.
        config: size, filter and method.

    Returns:
        uint8 (height, width, 3, 4 or 1), 0 to 255.

    Raises:
        tf.errors.OpError: if the bytes are not an image, or not a whole one.
    """
    resized = resize(decode_before_resize(contents, config), config)
    return tf.ensure_shape(resized, (config.height, config.width, config.channels))


@tf.autograph.experimental.do_not_convert
def decode_before_resize(contents: tf.Tensor, config: DecodeConfig) -> tf.Tensor:
    """The image at the file's size, or at the fraction of it that `fast` decodes to.

    Args:
        contents: string (), the bytes of an image file.
        config: as for `decode_image`.

    Returns:
        uint8 (H, W, 3, 4 or 1), 0 to 255.
    """
    contents = tf.convert_to_tensor(contents)
    decode_jpeg = _jpeg_scaler(config) if config.scales_jpegs else _decode_jpeg_exactly
    if config.color_mode == "rgb" and not config.saturate_sixteen_bit:
        return decode_pixels(contents, decode_jpeg)
    return _decode_colours(contents, config, decode_jpeg)


def decode_whole_in_python(contents: bytes, config: DecodeConfig) -> np.ndarray:
    """The same as `decode_image` under `exact`, by Pillow alone, for processes in which TensorFlow must not run.

    Returns:
        uint8 (height, width, 3, 4 or 1), 0 to 255.
    """
    pixels = decode_with_pillow(contents, config.color_mode, saturate=config.saturate_sixteen_bit)
    return resize_in_python(pixels, config)


def decode_with_pillow(contents: bytes, color_mode: str = "rgb", *, saturate: bool = False) -> np.ndarray:
    """The first frame as Pillow reads it.

    Args:
        contents: the bytes of an image file.
        color_mode: `rgb`, `rgba` or `grayscale`.
        saturate: cut 16-bit grey off at 255, as Pillow does.

    Returns:
        uint8 (H, W, 3, 4 or 1), 0 to 255. Of 16-bit grey the high byte; Pillow itself takes the high byte of 16-bit
        colour, but cuts 16-bit grey off at 255.

    Raises:
        Exception: whatever Pillow raises for bytes that are no image, or not a whole one.
    """
    with Image.open(io.BytesIO(contents)) as image:
        if _is_sixteen_bit(image) and not saturate:
            high_byte = (np.asarray(image) >> 8).astype(np.uint8)
            grey = Image.fromarray(high_byte)
            return _with_channel_axis(np.asarray(grey.convert(_PILLOW_MODES[color_mode])))
        if color_mode != "rgba":
            # there is no transparency in the result, and Pillow warns about an unused one
            image.info.pop("transparency", None)
        mode = _PILLOW_MODES[color_mode]
        return _with_channel_axis(np.asarray(image if image.mode == mode else image.convert(mode)))


def is_sixteen_bit(path: str) -> bool:
    """Whether an image file holds grey levels of more than 8 bits, by its header; False for what is no image."""
    try:
        with Image.open(path) as image:
            # Keras keeps the levels of 32-bit grey too, whatever the file's format
            return image.mode == "I" or _is_sixteen_bit(image)
    except Exception:  # whatever is wrong with it is told where it is decoded
        return False


def _is_sixteen_bit(image: Image.Image) -> bool:
    return image.mode.startswith("I;16") or (image.mode == "I" and image.format in ("PNG", "PPM"))


def _with_channel_axis(pixels: np.ndarray) -> np.ndarray:
    return pixels[:, :, np.newaxis] if pixels.ndim == 2 else pixels


def is_left_to_pillow(contents: bytes) -> bool:
    """Whether Pillow decodes these bytes for want of a JPEG's or PNG's marks; of other files the graph looks inside."""
    return not any(contents.startswith(start) and contents.endswith(end) for start, end in (_JPEG_MARKS, _PNG_MARKS))


def _decode_jpeg_exactly(contents: tf.Tensor, shape: tf.Tensor) -> tf.Tensor:
    """uint8 (h, w, 3) at the file's size."""
    del shape
    # TensorFlow's default transform is up to 5 levels off Pillow's
    return tf.io.decode_jpeg(contents, channels=3, dct_method="INTEGER_ACCURATE")


@tf.autograph.experimental.do_not_convert
def decode_pixels(contents: tf.Tensor, decode_jpeg: JpegDecoder = _decode_jpeg_exactly) -> tf.Tensor:
    """The image at the file's size, by TensorFlow if it reads these bytes as Pillow does, else by Pillow.

    Args:
        contents: string (), the bytes of an image file.
        decode_jpeg: takes the bytes of a JPEG and its shape, int32 (3,), the default at full size with Pillow's pixels.

    Returns:
        uint8 (H, W, 3), RGB, 0 to 255.
    """

    def by_png_kind() -> tf.Tensor:
        position = tf.minimum(_PNG_KIND_POSITION, tf.strings.length(contents))
        kind = tf.strings.substr(contents, position, len(_PNG_KINDS[0]))
        is_plain = tf.logical_and(_has_marks(contents, _PNG_MARKS), tf.reduce_any(kind == _PNG_KINDS))
        return tf.cond(is_plain, lambda: tf.io.decode_png(contents, channels=3), lambda: _by_pillow(contents))

    return _if_plain_jpeg(contents, decode_jpeg, by_png_kind)


def _decode_colours(contents: tf.Tensor, config: DecodeConfig, decode_jpeg: JpegDecoder) -> tf.Tensor:
    """The image at the file's size in the asked colours: JPEGs by TensorFlow, all else by Pillow."""
    colour = _FROM_RGB[config.color_mode]
    return _if_plain_jpeg(
        contents,
        lambda contents, shape: colour(decode_jpeg(contents, shape)),
        lambda: _by_pillow(contents, config.color_mode, saturate=config.saturate_sixteen_bit),
    )


def _if_plain_jpeg(contents: tf.Tensor, decode_jpeg: JpegDecoder, otherwise: Callable[[], tf.Tensor]) -> tf.Tensor:
    """Decodes a whole JPEG of one or three components, and leaves all else to another decoder."""
    # JPEG is what most people have: one condition decides it, for each costs some fifty microseconds an image
    shape = tf.image.extract_jpeg_shape(tf.where(_has_marks(contents, _JPEG_MARKS), contents, _CMYK_HEADER))
    return tf.cond(shape[2] == 4, otherwise, lambda: decode_jpeg(contents, shape))


def _by_pillow(contents: tf.Tensor, color_mode: ColorMode = "rgb", *, saturate: bool = False) -> tf.Tensor:
    def decode(data: bytes | np.ndarray) -> np.ndarray:
        # TensorFlow hands over bytes from a graph, an array () of them when it runs eagerly
        data = data if isinstance(data, bytes) else data.item()
        return decode_with_pillow(data, color_mode, saturate=saturate)

    image = tf.numpy_function(decode, [contents], tf.uint8, stateful=False)
    return tf.ensure_shape(image, (None, None, CHANNELS[color_mode]))


def _opaque(image: tf.Tensor) -> tf.Tensor:
    return tf.concat([image, tf.fill(tf.concat([tf.shape(image)[:2], [1]], 0), tf.constant(255, tf.uint8))], -1)


def _grey(image: tf.Tensor) -> tf.Tensor:
    # Pillow's convert("L"): weights in 16-bit fixed point, rounded; of a grey JPEG it gives back the grey
    weights = tf.constant([19595, 38470, 7471], tf.int32)
    levels = tf.reduce_sum(tf.cast(image, tf.int32) * weights, -1, keepdims=True)
    return tf.cast((levels + 32768) // 65536, tf.uint8)


_FROM_RGB: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {"rgb": tf.identity, "rgba": _opaque, "grayscale": _grey}


def _has_marks(contents: tf.Tensor, marks: tuple[bytes, bytes]) -> tf.Tensor:
    """Whether the bytes have this start and this end: bool ()."""
    start, end = marks
    first = tf.strings.substr(contents, 0, len(start))
    last = tf.strings.substr(contents, tf.maximum(tf.strings.length(contents) - len(end), 0), len(end))
    return tf.logical_and(first == start, last == end)


def _jpeg_scaler(config: DecodeConfig) -> JpegDecoder:
    """Decodes at the smallest of 1, 1/2, 1/4 and 1/8 of the file's size that is not below the target."""

    def decode(contents: tf.Tensor, shape: tf.Tensor) -> tf.Tensor:
        def decode_at(ratio: int) -> Callable[[], tf.Tensor]:
            return lambda: tf.io.decode_jpeg(contents, channels=3, ratio=ratio, dct_method="INTEGER_ACCURATE")

        # libjpeg rounds a scaled size up
        fits = (shape[:2] + _SHRINK_RATIOS - 1) // _SHRINK_RATIOS >= (config.height, config.width)
        step = tf.reduce_sum(tf.cast(tf.reduce_all(fits, axis=1), tf.int32))
        return tf.switch_case(step, [decode_at(ratio) for ratio in (1, 2, 4, 8)])

    return decode
