"""Decoding: every format, filter and size gives Pillow's pixels, however the function is called."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, PngImagePlugin

from pipeline import ImageDataGenerator
from pipeline.decode import decode_image, decode_pixels, is_sixteen_bit
from pipeline.decode_config import INTERPOLATIONS, METHODS, DecodeConfig
from pipeline.resize import resize_in_python

NEAREST = DecodeConfig(height=20, width=24)


def noisy_image(mode: str = "RGB", width: int = 37, height: int = 23) -> Image.Image:
    pixels = np.random.default_rng([width, height]).integers(0, 256, (height, width, 4), dtype=np.uint8)
    image = Image.fromarray(pixels)
    return image if mode == "RGBA" else image.convert(mode)


def encoded(image: Image.Image, file_format: str, **options) -> bytes:
    file = io.BytesIO()
    image.save(file, file_format, **options)
    return file.getvalue()


def with_gamma() -> PngImagePlugin.PngInfo:
    chunks = PngImagePlugin.PngInfo()
    chunks.add(b"gAMA", (30_000).to_bytes(4, "big"))
    return chunks


def rotated_by_exif() -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = 6
    return exif


def pillow_pixels(contents: bytes, config: DecodeConfig | None = None) -> np.ndarray:
    """The independent way: Pillow alone, in the steps of Keras's load_img."""
    image = Image.open(io.BytesIO(contents)).convert("RGB")
    if config is not None:
        image = image.resize((config.width, config.height), Image.Resampling[config.interpolation.upper()])
    return np.asarray(image)


FILES = {
    "JPEG": ("RGB", "JPEG", {}),
    "JPEG without subsampling": ("RGB", "JPEG", {"subsampling": 0}),
    "JPEG 4:2:2": ("RGB", "JPEG", {"subsampling": 1}),
    "progressive JPEG": ("RGB", "JPEG", {"progressive": True, "quality": 30}),
    "JPEG stored as RGB": ("RGB", "JPEG", {"keep_rgb": True}),
    "JPEG with restarts": ("RGB", "JPEG", {"restart_marker_blocks": 1}),
    "JPEG turned by EXIF": ("RGB", "JPEG", {"exif": rotated_by_exif()}),
    "grey JPEG": ("L", "JPEG", {}),
    "CMYK JPEG": ("CMYK", "JPEG", {}),
    "PNG": ("RGB", "PNG", {}),
    "PNG with gamma": ("RGB", "PNG", {"pnginfo": with_gamma()}),
    "PNG with alpha": ("RGBA", "PNG", {}),
    "PNG with a transparent colour": ("RGB", "PNG", {"transparency": (1, 2, 3)}),
    "grey PNG": ("L", "PNG", {}),
    "grey PNG with a transparent level": ("L", "PNG", {"transparency": 7}),
    "grey PNG with alpha": ("LA", "PNG", {}),
    "palette PNG": ("P", "PNG", {}),
    "palette PNG with alpha": ("P", "PNG", {"transparency": bytes(range(200))}),
    "black and white PNG": ("1", "PNG", {}),
    "GIF": ("P", "GIF", {}),
    "BMP": ("RGB", "BMP", {}),
    "WebP": ("RGB", "WEBP", {}),
    "WebP with alpha": ("RGBA", "WEBP", {"lossless": True}),
    "TIFF": ("RGB", "TIFF", {"compression": "tiff_lzw"}),
    "PPM": ("RGB", "PPM", {}),
    "PGM": ("L", "PPM", {}),
}


# Pillow's own warning, from the reference; Feedline's decoder raises none
@pytest.mark.filterwarnings("ignore:Palette images with Transparency:UserWarning")
@pytest.mark.parametrize("name", FILES)
def test_every_format_decodes_to_pillows_pixels(name: str) -> None:
    mode, file_format, options = FILES[name]
    contents = encoded(noisy_image(mode), file_format, **options)
    np.testing.assert_array_equal(decode_pixels(tf.constant(contents)), pillow_pixels(contents))


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("name", ["JPEG", "PNG", "GIF"])
def test_every_filter_gives_pillows_pixels_smaller_and_larger(interpolation: str, name: str) -> None:
    mode, file_format, options = FILES[name]
    contents = encoded(noisy_image(mode), file_format, **options)
    for height, width in ((11, 17), (46, 61), (23, 37)):
        config = DecodeConfig(height=height, width=width, interpolation=interpolation)
        found = decode_image(tf.constant(contents), config).numpy()
        off = np.abs(found.astype(int) - pillow_pixels(contents, config))
        assert off.max() <= (1 if interpolation == "bilinear" else 0)


@settings(max_examples=300, deadline=None)
@given(
    source=st.tuples(st.integers(1, 700), st.integers(1, 700)),
    target=st.tuples(st.integers(1, 400), st.integers(1, 400)),
    levels=st.sampled_from([256, 2]),
    seed=st.integers(0, 2**32),
)
def test_bilinear_is_at_most_one_level_off_pillow(source, target, levels, seed) -> None:
    pixels = np.random.default_rng(seed).integers(0, levels, (*source, 3)) * (255 // (levels - 1))
    config = DecodeConfig(height=target[0], width=target[1], interpolation="bilinear")
    found = resize_in_python(pixels.astype(np.uint8), config)
    by_pillow = Image.fromarray(pixels.astype(np.uint8)).resize(target[::-1], Image.Resampling.BILINEAR)
    off = np.abs(found.astype(int) - np.asarray(by_pillow))
    assert off.max() <= 1


def test_bilinear_is_pillows_where_there_is_no_faster_one(monkeypatch) -> None:
    monkeypatch.setattr("pipeline.resize.NARROWS_BILINEAR", False)
    contents = encoded(noisy_image(), "PNG")
    config = DecodeConfig(height=11, width=17, interpolation="bilinear")
    np.testing.assert_array_equal(decode_image(tf.constant(contents), config), pillow_pixels(contents, config))


@settings(max_examples=200, deadline=None)
@given(source=st.integers(1, 5000), target=st.sampled_from([1, 7, 32, 96, 128, 224, 299, 640]))
def test_nearest_takes_the_very_pixels_that_pillow_takes(source: int, target: int) -> None:
    # each pixel holds its own column, so that one wrong index is seen
    column = np.arange(source)
    pixels = np.stack([column % 256, column // 256, np.zeros_like(column)], axis=1).astype(np.uint8)[np.newaxis]
    contents = encoded(Image.fromarray(pixels), "PPM")
    config = DecodeConfig(height=1, width=target)
    np.testing.assert_array_equal(decode_image(tf.constant(contents), config), pillow_pixels(contents, config))


def test_nearest_differs_from_the_rounded_formula_where_pillows_sum_does() -> None:
    # floor((i + 1/2) * scale) is what one would write first; Pillow's sum in float64 ends below a whole number here
    sizes = [(source, target) for source in range(1, 120) for target in (49, 75, 99)]
    differing = 0
    for source, target in sizes:
        row = Image.fromarray(np.arange(source, dtype=np.uint8)[np.newaxis])
        by_pillow = np.asarray(row.resize((target, 1), Image.Resampling.NEAREST))[0]
        differing += not np.array_equal(by_pillow, ((np.arange(target) + 0.5) * source / target).astype(int))
        contents = encoded(row, "PNG")
        ours = decode_image(tf.constant(contents), DecodeConfig(height=1, width=target))
        np.testing.assert_array_equal(ours[0, :, 0], by_pillow)
    assert differing > 0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("interpolation", ["nearest", "bicubic"])
def test_eager_graph_and_parallel_map_agree(method: str, interpolation: str) -> None:
    config = DecodeConfig(height=20, width=24, interpolation=interpolation, method=method)
    files = [encoded(noisy_image(mode), file_format, **options) for mode, file_format, options in FILES.values()]
    compiled = tf.function(
        lambda contents: decode_image(contents, config), input_signature=[tf.TensorSpec((), tf.string)]
    )
    mapped = tf.data.Dataset.from_tensor_slices(files).map(lambda c: decode_image(c, config), num_parallel_calls=2)
    assert mapped.element_spec == tf.TensorSpec((20, 24, 3), tf.uint8)
    for contents, from_map in zip(files, mapped, strict=True):
        eager = decode_image(tf.constant(contents), config)
        np.testing.assert_array_equal(eager, from_map)
        np.testing.assert_array_equal(eager, compiled(tf.constant(contents)))


@pytest.mark.parametrize("file_format", ["PNG", "TIFF"])
def test_sixteen_bit_grey_is_scaled_and_not_cut_off(file_format: str) -> None:
    levels = np.array([[0, 255, 256, 30_000], [40_000, 65_279, 65_280, 65_535]], np.uint16)
    pixels = decode_pixels(tf.constant(encoded(Image.fromarray(levels), file_format))).numpy()
    np.testing.assert_array_equal(pixels, np.repeat((levels >> 8)[:, :, np.newaxis], 3, axis=2))


def test_the_first_frame_of_an_animation_is_taken() -> None:
    frames = [Image.new("RGB", (8, 6), colour) for colour in ("red", "blue")]
    contents = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert decode_pixels(tf.constant(contents)).numpy().reshape(-1, 3).tolist() == [[255, 0, 0]] * 48


def test_a_file_without_its_end_mark_is_decoded_as_pillow_does() -> None:
    contents = encoded(noisy_image(), "PNG")[:-5]
    np.testing.assert_array_equal(decode_pixels(tf.constant(contents)), pillow_pixels(contents))
    contents = encoded(noisy_image(), "JPEG") + b"\0" * 100
    np.testing.assert_array_equal(decode_pixels(tf.constant(contents)), pillow_pixels(contents))


@pytest.mark.parametrize(
    "contents", [b"", b"x", b"\xff\xd8\xff", b"<!DOCTYPE html>", encoded(noisy_image(), "JPEG")[:500]]
)
def test_what_is_no_whole_image_fails_in_a_map(contents: bytes) -> None:
    dataset = tf.data.Dataset.from_tensors(contents).map(lambda c: decode_image(c, NEAREST))
    with pytest.raises(tf.errors.OpError):
        next(iter(dataset))


@pytest.mark.parametrize(
    ("width", "height", "ratio"), [(16, 24, 8), (32, 24, 4), (33, 24, 4), (34, 24, 2), (80, 24, 1)]
)
def test_fast_decodes_at_the_smallest_size_not_below_the_target(width: int, height: int, ratio: int) -> None:
    contents = tf.constant(encoded(noisy_image(width=128, height=192).resize((130, 194)), "JPEG"))
    config = DecodeConfig(height=height, width=width, method="fast")
    scaled = tf.io.decode_jpeg(contents, channels=3, ratio=ratio, dct_method="INTEGER_ACCURATE").numpy()
    by_pillow = np.asarray(Image.fromarray(scaled).resize((width, height), Image.Resampling.NEAREST))
    np.testing.assert_array_equal(decode_image(contents, config), by_pillow)


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_fast_stays_close_to_exact_on_a_smooth_picture(interpolation: str) -> None:
    smooth = noisy_image(width=5, height=4).resize((200, 160), Image.Resampling.BICUBIC)
    contents = tf.constant(encoded(smooth, "JPEG", quality=95))
    exact, fast = (
        decode_image(contents, DecodeConfig(height=50, width=60, interpolation=interpolation, method=method)).numpy()
        for method in METHODS
    )
    assert np.abs(exact.astype(int) - fast).mean() < 3


@pytest.mark.parametrize("interpolation", ["bicubic", "lanczos"])
def test_fast_filters_do_not_wrap_round_where_they_overshoot(interpolation: str) -> None:
    edge = Image.fromarray(np.repeat(np.array([[0] * 8 + [255] * 8], np.uint8), 16, axis=0))
    config = DecodeConfig(height=40, width=40, interpolation=interpolation, method="fast")
    row = decode_image(tf.constant(encoded(edge, "PNG")), config).numpy()[20, :, 0].astype(int)
    assert row[:15].max() < 60
    assert row[25:].min() > 195


def test_a_config_names_every_wrong_value() -> None:
    with pytest.raises(ValueError, match=re.escape("height: 0 is not")) as caught:
        DecodeConfig(height=0, width=2.5, interpolation="cubic", method="quick")
    for part in ("width: 2.5", "interpolation: 'cubic' is unknown; choose one of nearest, ", "method: 'quick'"):
        assert part in str(caught.value)


@pytest.mark.parametrize("color_mode", ["rgb", "rgba", "grayscale"])
@pytest.mark.parametrize("interpolation", ["nearest", "lanczos"])
def test_every_kind_of_jpeg_has_pillows_colours_in_each_mode(color_mode: str, interpolation: str) -> None:
    mode = {"rgb": "RGB", "rgba": "RGBA", "grayscale": "L"}[color_mode]
    config = DecodeConfig(height=20, width=24, interpolation=interpolation, color_mode=color_mode)
    for name in (name for name in FILES if "JPEG" in name):
        kind, file_format, options = FILES[name]
        contents = encoded(noisy_image(kind, width=31, height=17), file_format, **options)
        image = Image.open(io.BytesIO(contents)).convert(mode)
        expected = np.asarray(image.resize((24, 20), Image.Resampling[interpolation.upper()])).reshape(20, 24, -1)
        np.testing.assert_array_equal(decode_image(tf.constant(contents), config), expected, err_msg=name)


@pytest.mark.parametrize(
    ("file_format", "dtype", "expected"),
    [("PNG", "uint16", True), ("TIFF", "uint16", True), ("TIFF", "int32", True), ("PNG", "uint8", False)],
)
def test_files_of_deep_grey_are_known_by_their_header(tmp_path, file_format: str, dtype: str, expected: bool) -> None:
    path = tmp_path / "grey"
    Image.fromarray(np.arange(12).reshape(3, 4).astype(dtype)).save(path, file_format)
    assert is_sixteen_bit(str(path)) is expected


def test_what_is_no_image_is_not_deep_grey(tmp_path) -> None:
    (tmp_path / "text").write_text("no image")
    assert not is_sixteen_bit(str(tmp_path / "text"))
    assert not is_sixteen_bit(str(tmp_path / "gone"))


def test_kerass_levels_of_thirty_two_bit_grey_are_kept_on_request(tmp_path) -> None:
    levels = np.linspace(-9_000, 187_605, 120).reshape(12, 10).astype(np.int32)
    (tmp_path / "a").mkdir()
    Image.fromarray(levels).save(tmp_path / "a" / "deep.tif")
    for interpolation in ("nearest", "bilinear"):
        ours, theirs = (
            kind.flow_from_directory(
                tmp_path, (6, 5), "grayscale", class_mode=None, shuffle=False, interpolation=interpolation
            )
            for kind in (ImageDataGenerator(keras_exact=True), tf.keras.preprocessing.image.ImageDataGenerator())
        )
        np.testing.assert_array_equal(ours[0], theirs[0])
