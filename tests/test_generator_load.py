"""Files to pixels in each colour mode and by each filter: equal to Keras's real `load_img`."""

import io
import warnings
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from pipeline import INTERPOLATIONS, DecodeConfig, ImageDataGenerator, decode_image
from pipeline.decode import decode_whole_in_python

NOISE = np.random.default_rng(5).integers(0, 256, (37, 50, 4), dtype=np.uint8)
RGBA = Image.fromarray(NOISE)
RGB, GREY = RGBA.convert("RGB"), RGBA.convert("L")


def encoded(image: Image.Image, form: str, **options) -> bytes:
    stream = io.BytesIO()
    image.save(stream, form, **options)
    return stream.getvalue()


FILES = {
    "JPEG": encoded(RGB, "JPEG"),
    "grey JPEG": encoded(GREY, "JPEG"),
    "CMYK JPEG": encoded(RGB.convert("CMYK"), "JPEG"),
    "PNG": encoded(RGB, "PNG"),
    "grey PNG": encoded(GREY, "PNG"),
    "grey PNG with alpha": encoded(RGBA.convert("LA"), "PNG"),
    "PNG with alpha": encoded(RGBA, "PNG"),
    "palette PNG": encoded(RGB.convert("P", palette=Image.Palette.ADAPTIVE), "PNG"),
    "palette PNG with transparency": encoded(RGB.convert("P", palette=Image.Palette.ADAPTIVE), "PNG", transparency=3),
    "PNG with a transparent colour": encoded(RGB, "PNG", transparency=tuple(NOISE[0, 0, :3].tolist())),
    "one-bit PNG": encoded(GREY.convert("1"), "PNG"),
    "BMP": encoded(RGB, "BMP"),
    "GIF": encoded(RGB.convert("P", palette=Image.Palette.ADAPTIVE), "GIF"),
    "TIFF": encoded(RGB, "TIFF"),
    "TIFF with alpha": encoded(RGBA, "TIFF"),
    "WebP": encoded(RGB, "WEBP", lossless=True),
    "WebP with alpha": encoded(RGBA, "WEBP", lossless=True, exact=True),
}
SIZES = [(16, 16), (37, 50), (60, 31)]


def kerass(contents: bytes, config: DecodeConfig) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # Pillow, of a palette's transparency that Keras drops
        image = tf.keras.utils.load_img(
            io.BytesIO(contents),
            color_mode=config.color_mode,
            target_size=(config.height, config.width),
            interpolation=config.interpolation,
            keep_aspect_ratio=config.keep_aspect_ratio,
        )
    return tf.keras.utils.img_to_array(image, data_format="channels_last")


@pytest.mark.parametrize("keep_aspect_ratio", [False, True])
@pytest.mark.parametrize("color_mode", ["rgb", "rgba", "grayscale"])
@pytest.mark.parametrize("name", FILES)
def test_every_format_in_every_colour_mode_by_every_filter(name, color_mode, keep_aspect_ratio):
    for height, width in SIZES:
        for interpolation in INTERPOLATIONS:
            config = DecodeConfig(
                height=height,
                width=width,
                interpolation=interpolation,
                color_mode=color_mode,
                keep_aspect_ratio=keep_aspect_ratio,
            )
            expected = kerass(FILES[name], config)
            found = decode_image(tf.constant(FILES[name]), config).numpy()
            assert found.dtype == np.uint8
            off = np.abs(found.astype(int) - expected)
            assert off.max() <= (0 if interpolation == "nearest" else 1), (height, width, interpolation)
            np.testing.assert_array_equal(decode_whole_in_python(FILES[name], config), found)


def test_index_ties_of_nearest_in_a_function_of_ones_own():
    # in these sizes (i + 1/2) x scale is whole somewhere, so that the last bit of the scale decides
    for width, height in [(320, 223), (448, 335), (320, 239), (448, 258)]:
        contents = encoded(Image.fromarray(np.resize(NOISE[..., :3], (height, width, 3))), "PNG")
        config = DecodeConfig(height=64, width=48)
        found = tf.function(decode_image)(tf.constant(contents), config)
        np.testing.assert_array_equal(found, kerass(contents, config))


def test_sixteen_bit_grey_is_scaled_and_on_request_kept_as_keras_keeps_it(tmp_path):
    levels = np.linspace(0, 65535, 12 * 10).reshape(12, 10).astype(np.uint16)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        Image.fromarray(levels).save(tmp_path / name / "deep.png")
    for color_mode, channels in (("grayscale", 1), ("rgb", 3), ("rgba", 4)):
        keywords = {"target_size": (12, 10), "color_mode": color_mode, "class_mode": None, "shuffle": False}
        scaled = ImageDataGenerator().flow_from_directory(tmp_path, **keywords)[0][0]
        expected = np.repeat((levels >> 8)[..., np.newaxis], 3, -1).astype("float32")
        if channels == 4:
            expected = np.concatenate([expected, np.full((12, 10, 1), 255.0)], -1)
        np.testing.assert_array_equal(scaled, expected[..., :channels])
        exact = ImageDataGenerator(keras_exact=True).flow_from_directory(tmp_path, **keywords)
        keras = tf.keras.preprocessing.image.ImageDataGenerator().flow_from_directory(tmp_path, **keywords)
        np.testing.assert_array_equal(exact[0], keras[0])
    cropped = {**keywords, "color_mode": "grayscale", "target_size": (6, 9), "keep_aspect_ratio": True}
    exact = ImageDataGenerator(keras_exact=True).flow_from_directory(tmp_path, **cropped)
    keras = tf.keras.preprocessing.image.ImageDataGenerator().flow_from_directory(tmp_path, **cropped)
    np.testing.assert_array_equal(exact[0], keras[0])
    with pytest.warns(UserWarning, match="cache='ram' is off: with keras_exact 16-bit grey files keep their levels"):
        ImageDataGenerator(keras_exact=True).flow_from_directory(
            tmp_path, **{**keywords, "color_mode": "grayscale"}, cache="ram"
        )


def test_colour_modes_of_a_flow_are_kerass(tmp_path):
    for index, (name, contents) in enumerate(FILES.items()):
        suffix = {"JPEG": "jpg", "TIFF": "tif"}.get(name.split()[-1], "png")
        place = Path(tmp_path / "ab"[index % 2] / f"{index}.{suffix}")
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(contents)
    for color_mode in ("rgb", "rgba", "grayscale"):
        for data_format in ("channels_last", "channels_first"):
            keywords = {"target_size": (20, 30), "color_mode": color_mode, "class_mode": None, "shuffle": False}
            ours, theirs = (
                kind(data_format=data_format).flow_from_directory(tmp_path, **keywords)
                for kind in (ImageDataGenerator, tf.keras.preprocessing.image.ImageDataGenerator)
            )
            assert ours.image_shape == theirs.image_shape
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                np.testing.assert_array_equal(ours[0], theirs[0])
