"""The migration report: every claim about Keras that can be shown is shown on Keras's own class."""

import inspect
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from PIL import Image

from pipeline.errors import InputError
from pipeline.generator.explain import (
    ARGUMENT_FLAGS,
    Finding,
    explain_arguments,
    explain_file,
    explain_settings,
    format_findings,
)
from pipeline.generator.explain_calls import CONSTRUCTOR
from pipeline.generator.explain_source import Unknown, calls_in_source, read_source
from pipeline.generator.settings import make_settings

image = tf.keras.preprocessing.image
IMPORT = "from tensorflow.keras.preprocessing.image import ImageDataGenerator\n"
QUESTION = """
import pandas as pd
from tensorflow.keras.applications import InceptionResNetV2
from tensorflow.keras.applications.inception_resnet_v2 import preprocess_input
from tensorflow.keras.callbacks import ModelCheckpoint
from tensorflow.keras.optimizers import Adam
from tensorflow.keras.preprocessing.image import ImageDataGenerator

frame = pd.read_csv("train.csv")
train_datagen = ImageDataGenerator(
    rotation_range=30,
    width_shift_range=0.4,
    height_shift_range=0.4,
    shear_range=0.4,
    zoom_range=0.25,
    horizontal_flip=True,
    brightness_range=[0.5, 1.5],
    preprocessing_function=preprocess_input,
)
validation_datagen = ImageDataGenerator(preprocessing_function=preprocess_input)
train_generator = train_datagen.flow_from_dataframe(
    frame[:1000], "train/", x_col="Photo", y_col="Class", class_mode="binary",
    target_size=(299, 299), batch_size=8, seed=42,
)
validation_generator = validation_datagen.flow_from_dataframe(
    dataframe=frame[1000:], directory="train/", x_col="Photo", y_col="Class", class_mode="binary",
    target_size=(299, 299), batch_size=8, seed=42,
)
model.compile(optimizer=Adam(lr=0.0001), loss="binary_crossentropy", metrics=["accuracy"])
best = ModelCheckpoint("model.h5", monitor="val_accuracy", save_best_only=True, mode="max", period=1)
model.fit_generator(
    train_generator, steps_per_epoch=len(train_generator), validation_data=validation_generator,
    validation_steps=len(validation_generator), validation_freq=1, epochs=10, callbacks=[best], verbose=1,
)
"""


def findings(flow=None, **arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settings = make_settings(**arguments)
    return explain_settings(settings, flow=flow)


def keras_sentences(name, flow=None, **arguments):
    return " ".join(found.keras for found in findings(flow, **arguments) if name in found.setting)


def drawn(key, shape=(200, 100, 3), count=200, **arguments):
    generator = image.ImageDataGenerator(**arguments)
    return np.array([generator.get_random_transform(shape)[key] for _ in range(count)])


def dot(height=9, width=9):
    picture = np.zeros((height, width, 1), np.float32)
    picture[height // 2, width // 2] = 255
    return picture


# -- what is claimed of Keras


@pytest.mark.parametrize(
    ("side", "key", "moved", "axis", "limit"),
    [("width", "ty", "up and down, not sideways", 0, 40), ("height", "tx", "sideways, not up and down", 1, 80)],
)
def test_the_two_shifts_are_told_as_swapped_as_keras_has_them(side, key, moved, axis, limit):
    name = f"{side}_shift_range"
    assert f"{moved}, by up to 0.4 of the image's {side}" in keras_sentences(name, **{name: 0.4})
    amounts = drawn(key, **{name: 0.4})  # of an image 200 high and 100 wide
    assert 0.8 * limit < np.abs(amounts).max() <= limit
    shifted = image.ImageDataGenerator(fill_mode="constant").apply_transform(dot(), {key: 2})
    where = np.argwhere(shifted[..., 0] == 255)[0]
    assert where[axis] == 2
    assert where[1 - axis] == 4


@pytest.mark.parametrize(
    ("value", "words", "largest"),
    [
        (1, "Nothing moved", 0),
        (3, "a whole number of pixels, up to 2", 2),
        (1.0, "up to 1 pixel (not a share", 1),
        (5.5, "up to 5.5 pixels", 5.5),
        (0.2, "up to 0.2 of the image's width", 20),
        (-0.2, "up to 0.2 of the image's width", 20),
        (-5.5, "up to 5.5 of the image's width", 550),
        ([10, 20], "one of 10, 20 pixels", 20),
        ([-0.2, 0.2], "one of 0.2, 0.2 times the image's width", 20),
    ],
)
def test_each_form_of_a_shift_is_told_as_keras_draws_it(value, words, largest):
    assert words in keras_sentences("width_shift_range", width_shift_range=value)
    amounts = np.abs(drawn("ty", width_shift_range=value))
    assert 0.8 * largest <= amounts.max() <= largest


def test_a_shear_below_one_is_told_in_degrees_with_what_it_moves():
    flow = {"method": "flow_from_directory", "target_size": (299, 299)}
    told = keras_sentences("shear_range", flow, shear_range=0.4)
    assert "0.4 is 0.4 degrees" in told
    assert "at most 1.0 pixels" in told
    ramp = np.tile(np.arange(299, dtype=np.float32), (299, 1))[..., None]
    sheared = image.ImageDataGenerator().apply_transform(ramp, {"shear": 0.4})
    assert np.abs(sheared - ramp).max() == pytest.approx(1.04, abs=0.01)


def test_zoom_is_told_as_drawn_for_each_axis():
    assert "drawn apart" in keras_sentences("zoom_range", zoom_range=0.25)
    assert (drawn("zx", zoom_range=0.25) != drawn("zy", zoom_range=0.25)).all()
    assert "mirrored" in keras_sentences("zoom_range", zoom_range=2)
    assert drawn("zx", zoom_range=2).min() < 0


def test_the_wrong_pivot_is_told_with_its_place_and_only_where_images_may_not_be_square():
    flow = {"method": "flow_from_directory", "target_size": (5, 9)}
    assert "about row 4, column 2 in place of row 2, column 4" in keras_sentences(
        "rotation_range", flow, rotation_range=90
    )
    picture = np.zeros((5, 9, 1), np.float32)
    picture[4, 2] = 255
    turned = image.ImageDataGenerator(fill_mode="constant").apply_transform(picture, {"theta": 180})
    assert turned[4, 2, 0] == pytest.approx(255)
    square = {"method": "flow_from_directory", "target_size": (9, 9)}
    assert "centre" not in keras_sentences("rotation_range", square, rotation_range=90)
    assert "centre" in keras_sentences("rotation_range", rotation_range=90)


def test_channel_shift_is_told_as_one_offset_within_the_images_own_range():
    assert "not a shift of colours" in keras_sentences("channel_shift", channel_shift_range=50.0)
    picture = np.array([10, 100, 200], np.float32).reshape(1, 1, 3)
    shifted = image.apply_channel_shift(picture, 50, channel_axis=2)
    np.testing.assert_allclose(shifted[0, 0], [60, 150, 200])


def test_brightness_is_told_to_round_and_to_blacken_arrays_from_0_to_1_only():
    assert "rounded down to whole levels" in keras_sentences("brightness", brightness_range=(0.5, 1.5))
    assert image.apply_brightness_shift(np.full((2, 2, 3), 127.9), 1.0, scale=False).max() == 127
    assert "black" in keras_sentences("brightness", brightness_range=(0.5, 1.5))
    assert "black" in keras_sentences("brightness", {"method": "flow"}, brightness_range=(0.5, 1.5))
    assert "black" not in keras_sentences("brightness", {"method": "flow_from_directory"}, brightness_range=(0.5, 1.5))
    dark = image.apply_brightness_shift(np.random.RandomState(0).rand(8, 8, 3), 1.5, scale=False)
    assert dark.max() == 0
    # the generator's own rescale comes later and does no harm
    generator = image.ImageDataGenerator(brightness_range=(1, 1), rescale=1 / 255)
    assert next(generator.flow(np.full((1, 4, 4, 3), 204.0)))[0].max() == pytest.approx(0.8)
    assert "did no harm" in keras_sentences("brightness", brightness_range=(1, 1), rescale=1 / 255)


def test_brightness_of_channels_first_is_told_to_go_by_the_global_format():
    arguments = {"brightness_range": (0.5, 0.5), "data_format": "channels_first"}
    assert "Unsupported channel number" in keras_sentences("brightness", **arguments)
    with pytest.raises(ValueError, match="Unsupported channel number"):
        image.ImageDataGenerator(**arguments).random_transform(np.ones((3, 8, 8)))


def test_fill_modes_are_told_as_keras_fills():
    assert "one pixel less than its size" in keras_sentences("fill_mode", rotation_range=1, fill_mode="wrap")
    row = np.array([10, 20, 30, 40, 50], np.float32).reshape(1, 5, 1)
    wrapped = image.ImageDataGenerator(fill_mode="wrap").apply_transform(np.tile(row, (5, 1, 1)), {"tx": -2})
    np.testing.assert_allclose(wrapped[0, :, 0], [30, 40, 10, 20, 30], atol=1e-3)
    assert "boundary mode not supported" in keras_sentences("fill_mode", rotation_range=9, fill_mode="edge")
    with pytest.raises(RuntimeError, match="boundary mode not supported"):
        image.ImageDataGenerator(fill_mode="edge", rotation_range=9).random_transform(dot())
    assert not findings(fill_mode="wrap"), "nothing is moved"
    assert "constant" in keras_sentences("cval", rotation_range=9, cval=3.0)


def test_rescale_after_a_preprocessing_function_is_told():
    def to_one(picture):
        return picture / 127.5 - 1

    told = keras_sentences("rescale", preprocessing_function=to_one, rescale=1 / 255)
    assert "from -0.0039 to 0.0039" in told
    generator = image.ImageDataGenerator(preprocessing_function=to_one, rescale=1 / 255)
    assert generator.standardize(np.full((2, 2, 3), 255.0)).max() == pytest.approx(0.0039, abs=1e-4)
    assert "rescale" not in " ".join(found.setting for found in findings(rescale=1 / 255))


def test_statistics_without_fit_are_told(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(IMPORT + "ImageDataGenerator(featurewise_center=True)\n")
    assert "shows no fit of this generator" in " ".join(explain_file(path).split())
    path.write_text(IMPORT + "g = ImageDataGenerator(featurewise_center=True)\ng.fit(x)\n")
    assert "shows no fit of this generator" not in " ".join(explain_file(path).split())
    assert "changed nothing" in keras_sentences("featurewise_center", featurewise_center=True)
    images = np.ones((1, 4, 4, 3))
    with pytest.warns(UserWarning, match="fit"):
        batch = image.ImageDataGenerator(featurewise_center=True).standardize(images.copy())
    np.testing.assert_array_equal(batch, images)


def test_the_validation_subset_is_told_to_be_augmented():
    flow = {"method": "flow", "subset": "validation", "seed": 1}
    assert "augmented exactly like" in keras_sentences("subset", flow, rotation_range=40, validation_split=0.5)
    assert "augmented" not in keras_sentences("subset", flow, validation_split=0.5)
    images = np.random.RandomState(0).rand(4, 8, 8, 3) * 255
    generator = image.ImageDataGenerator(rotation_range=40, validation_split=0.5)
    batch = generator.flow(images, subset="validation", shuffle=False, seed=1)[0]
    assert np.abs(batch - images[:2]).max() > 10


def test_weights_are_told_to_stay_uncut_with_the_training_subset():
    flow = {"method": "flow", "sample_weight": Unknown("w"), "subset": "training"}
    assert "not cut" in keras_sentences("sample_weight", flow, validation_split=0.5)
    generator = image.ImageDataGenerator(validation_split=0.5)
    batch = generator.flow(
        np.ones((4, 8, 8, 3)), [0, 1, 0, 1], sample_weight=[1, 2, 3, 4], subset="training", shuffle=False
    )[0]
    np.testing.assert_array_equal(batch[2], [1, 2])


@pytest.fixture
def folder(tmp_path):
    for name in ("a", "b", ".hidden"):
        (tmp_path / name).mkdir()
    for number in range(4):
        for name in ("a", "b"):
            Image.new("RGB", (8, 8)).save(tmp_path / name / f"{number}.png")
    Image.new("RGB", (8, 8)).save(tmp_path / "a" / "skipped.webp")
    Image.fromarray(np.full((8, 8), 1000, np.uint16)).save(tmp_path / "a" / "deep.png")
    return tmp_path


def test_what_is_told_of_files_is_so_in_keras(folder):
    flow = {"method": "flow_from_directory", "directory": "x"}
    told = " ".join(found.keras for found in findings(flow))
    for words in ("GIF and WebP", "white wherever", "hidden ones", "no error", "256 x 256", "Not averaged"):
        assert words in told
    iterator = image.ImageDataGenerator().flow_from_directory(folder, shuffle=False)
    assert list(iterator.class_indices) == [".hidden", "a", "b"]
    assert not any("webp" in name for name in iterator.filenames)
    assert iterator[0][0].shape[1:3] == (256, 256)
    assert iterator[0][0][iterator.filenames.index("a/deep.png")].max() == 255
    assert image.ImageDataGenerator().flow_from_directory(folder, classes=["c"]).n == 0


def test_the_head_of_the_frame_is_told_to_be_the_validation_set(folder):
    flow = {
        "method": "flow_from_dataframe",
        "subset": "validation",
        "keep_aspect_ratio": True,
        "nonsense": 1,
        "sort": True,
    }
    found = findings(flow, validation_split=0.25)
    told = " ".join(f"{one.setting} {one.keras}" for one in found)
    for words in ("its head", "keep_aspect_ratio=True Nothing", "nonsense= Nothing", "sort= Nothing", "had to be text"):
        assert words in told
    assert any("stratify=True" in one.ours for one in found)
    frame = pd.DataFrame({"filename": [f"{name}/{number}.png" for name in "ab" for number in range(4)]})
    frame["class"] = frame["filename"].str[0]
    generator = image.ImageDataGenerator(validation_split=0.25)
    iterator = generator.flow_from_dataframe(frame, folder, subset="validation", keep_aspect_ratio=True, nonsense=1)
    assert iterator.filenames == ["a/0.png", "a/1.png"]
    assert not iterator.keep_aspect_ratio
    with pytest.raises(TypeError, match="must be strings"):
        generator.flow_from_dataframe(frame.assign(**{"class": 1}), folder, class_mode="binary")
    assert generator.flow_from_dataframe(frame, folder).n == 8
    assert "took all images" in keras_sentences(
        "validation_split", {"method": "flow_from_dataframe"}, validation_split=0.25
    )


def test_the_seed_is_told_to_reseed_numpy():
    flow = {"method": "flow", "seed": 3}
    assert "numpy's global generator" in keras_sentences("seed=3", flow)
    iterator = image.ImageDataGenerator().flow(np.ones((4, 8, 8, 3)), seed=3, shuffle=False)
    state = np.random.get_state()
    try:
        next(iterator)
        after = np.random.get_state()[1]
        next(image.ImageDataGenerator().flow(np.ones((4, 8, 8, 3)), seed=3, shuffle=False))
        np.testing.assert_array_equal(after, np.random.get_state()[1])
    finally:
        np.random.set_state(state)


# -- which sentences, and how they look


def test_without_settings_there_is_nothing_to_tell():
    assert findings() == ()
    assert "Nothing" in format_findings(())


def test_only_what_is_on_is_told():
    assert [found.setting for found in findings(horizontal_flip=True)] == ["horizontal_flip=True"]
    flow = {"method": "flow_from_directory", "target_size": (9, 9), "subset": "training"}
    told = " ".join(found.setting + found.keras for found in findings(flow, validation_split=0.2))
    assert "dataframe" not in told
    assert "Arrays" not in told


def test_findings_are_laid_out_to_100_columns():
    text = format_findings(
        [Finding("zoom_range=0.2", "word " * 40, "The same.", "As Keras."), Finding("a=1", "x", "y")]
    )
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[0] == "zoom_range=0.2"
    assert lines[1].startswith("  Keras:       word word")
    assert lines[2].startswith("               word")
    assert lines[-6:] == [
        "  here:        The same.",
        "  keras_exact: As Keras.",
        "",
        "a=1",
        "  Keras:       x",
        "  here:        y",
    ]


def test_explaining_leaves_the_random_numbers_of_others_alone():
    before = np.random.get_state()[1].copy()
    findings({"method": "flow", "seed": 1}, rotation_range=3, brightness_range=(1, 2))
    np.testing.assert_array_equal(before, np.random.get_state()[1])


# -- arguments as flags


def test_each_argument_of_the_constructor_has_a_flag():
    assert [flag.argument for flag in ARGUMENT_FLAGS] == list(CONSTRUCTOR)
    assert all(flag.flag == "--" + flag.argument.replace("_", "-") for flag in ARGUMENT_FLAGS)


def test_flags_are_read_as_a_script_spells_them():
    assert "Nothing moved" in explain_arguments({"width_shift_range": "1"})
    assert "up to 1 pixel " in explain_arguments({"width_shift_range": "1.0"})
    assert "0.5 to 1.5" in explain_arguments({"brightness_range": "0.5, 1.5"})
    assert "one of 10, 20 pixels" in explain_arguments({"height_shift_range": "10,20"})
    text = explain_arguments({"rescale": "1/255", "preprocessing_function": "preprocess_input"})
    assert "preprocessing_function=preprocess_input, rescale=0.00392157" in text
    assert "0.4 degrees" in explain_arguments({"shear_range": 0.4})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"zoom_range": "wide"}, r"--zoom-range: 'wide' is not a number, or several with commas"),
        ({"brightness_range": "1"}, r"--brightness-range: '1' is not two numbers"),
        ({"rescale": "1/0"}, r"--rescale: '1/0' is not a number"),
        ({"validation_split": "1.5"}, "strictly between 0 and 1"),
        ({"zoom_range": "1,2,3"}, "zoom_range"),
        ({"rotate": 3}, "no argument 'rotate'"),
    ],
)
def test_flags_that_cannot_be_meant_are_one_line(arguments, message):
    with pytest.raises(InputError, match=message) as caught:
        explain_arguments(arguments)
    assert "\n" not in str(caught.value)


# -- a file


def test_the_questions_script_is_read_whole():
    train, validation = calls_in_source(QUESTION, "question.py")
    assert (train.name, validation.name) == ("train_datagen", "validation_datagen")
    assert train.arguments == {
        "rotation_range": 30,
        "width_shift_range": 0.4,
        "height_shift_range": 0.4,
        "shear_range": 0.4,
        "zoom_range": 0.25,
        "horizontal_flip": True,
        "brightness_range": [0.5, 1.5],
        "preprocessing_function": Unknown("preprocess_input"),
    }
    (flow,) = train.flows
    assert flow.arguments["dataframe"] == Unknown("frame[:1000]")
    assert flow.arguments["directory"] == "train/"
    assert flow.arguments["target_size"] == (299, 299)
    assert [call.method for call in validation.flows] == ["flow_from_dataframe"]
    assert [call.kind for call in read_source(QUESTION, "q").removed] == ["lr", "period", "fit_generator"]


def test_the_questions_script_is_explained(tmp_path):
    path = tmp_path / "question.py"
    path.write_text(QUESTION)
    text = explain_file(path)
    assert max(map(len, text.splitlines()[1:])) <= 100
    flat = " ".join(text.split())
    for words in (
        "train_datagen = ImageDataGenerator(...)",
        "train_datagen.flow_from_dataframe(...)",
        "Not known from the file: preprocessing_function=preprocess_input",
        "0.4 is 0.4 degrees",
        "up and down, not sideways, by up to 0.4 of the image's width (119.6 of 299 pixels)",
        "With square images and two equal ranges",
        "learning_rate=0.0001",
        "model.fit(flow, ...)",
        "save_freq='epoch'",
    ):
        assert words in flat
    assert "black" not in flat, "the images come from files"
    assert "centre" not in flat, "they are square"


@pytest.mark.parametrize(
    "source",
    [
        "from keras.preprocessing.image import ImageDataGenerator as IDG\nIDG(zoom_range=0.1)",
        "import tensorflow as tf\ntf.keras.preprocessing.image.ImageDataGenerator(zoom_range=0.1)",
        "import tensorflow\ntensorflow.keras.preprocessing.image.ImageDataGenerator(zoom_range=0.1)",
        "from keras.preprocessing import image\nimage.ImageDataGenerator(zoom_range=0.1)",
        "from keras.preprocessing import image as im\nim.ImageDataGenerator(zoom_range=0.1)",
        "from keras.preprocessing.image import *\nImageDataGenerator(zoom_range=0.1)",
        "from tensorflow import keras as K\nA = K.preprocessing.image\nB = A.ImageDataGenerator\nB(zoom_range=0.1)",
        "from pipeline import ImageDataGenerator\nImageDataGenerator(zoom_range=0.1)",
        IMPORT + "ARGS = dict(zoom_range=0.1)\nImageDataGenerator(**ARGS)",
        IMPORT + "Z = 1 / 10\nargs = {'zoom_range': Z}\nImageDataGenerator(**args)",
    ],
)
def test_the_class_is_found_by_every_name(source):
    (call,) = calls_in_source(source, "x.py")
    assert call.arguments == {"zoom_range": 0.1}


@pytest.mark.parametrize(
    "source",
    ["class ImageDataGenerator: pass\nImageDataGenerator()", "from my import ImageDataGenerator\nImageDataGenerator()"],
)
def test_another_class_of_that_name_is_not_taken_for_it(source):
    with pytest.raises(InputError, match="no ImageDataGenerator"):
        calls_in_source(source, "x.py")


@pytest.mark.parametrize(
    ("spelled", "value"),
    [
        ("1./255", 1 / 255),
        ("-(2 + 3) * 2", -10),
        ("[1 - 0.2, 1.2]", [0.8, 1.2]),
        ("SIZE", 224),
        ("(SIZE, 2 * SIZE)", (224, 448)),
        ("CHANGED", Unknown("CHANGED")),
        ("LIST", Unknown("LIST")),
        ("NOWHERE", Unknown("NOWHERE")),
        ("[0.1, NOWHERE]", Unknown("[0.1, NOWHERE]")),
        ("int('3')", Unknown("int('3')")),
        ("9 ** 9 ** 9 ** 9", Unknown("9 ** 9 ** 9 ** 9")),
        ("'a' * 10 ** 12", Unknown("'a' * 10 ** 12")),
        ("1 / 0", Unknown("1 / 0")),
    ],
)
def test_values_are_folded_as_far_as_the_file_shows_them(spelled, value):
    names = "SIZE = 224\nCHANGED = 1\nCHANGED += 1\nLIST = [1]\nLIST.append(2)\n"
    (call,) = calls_in_source(f"{IMPORT}{names}ImageDataGenerator(rescale={spelled})", "x.py")
    assert call.arguments["rescale"] == value


def test_positional_and_starred_arguments_get_their_names():
    source = IMPORT + "ImageDataGenerator(True, *more).flow(x, y, 16, **rest)"
    (call,) = calls_in_source(source, "x.py")
    assert call.arguments == {"featurewise_center": True, "**": Unknown("*more")}
    assert call.flows[0].arguments == {"x": Unknown("x"), "y": Unknown("y"), "batch_size": 16, "**": Unknown("**rest")}


def test_flows_are_booked_to_the_generator_that_the_variable_is_there():
    source = (
        IMPORT
        + """
gen = ImageDataGenerator(rotation_range=1)
gen.flow_from_directory("first")
gen = ImageDataGenerator(rotation_range=2)
gen.flow_from_directory("second")
def inner(gen):
    return gen.flow_from_directory("stray")
def outer():
    return gen.flow_from_directory("third")
class Data:
    def __init__(self):
        self.gen, self.other = ImageDataGenerator(rotation_range=3), None
        self.gen.fit(images)
    def flow(self):
        return self.gen.flow(images)
camera.flow(x)
alias = gen
(alias if True else None).flow_from_directory("fourth")
"""
    )
    found = read_source(source, "x.py")
    directories = [[flow.arguments.get("directory") for flow in one.flows] for one in found.generators]
    assert directories == [["first"], ["second", "third", "fourth"], [None]]
    assert [one.is_fitted for one in found.generators] == [False, False, True]
    assert [one.arguments["directory"] for one in found.strays] == ["stray"]


def test_nothing_in_the_file_is_run(tmp_path):
    victim = tmp_path / "victim"
    path = tmp_path / "script.py"
    path.write_text(
        f"open({str(victim)!r}, 'w')\nraise SystemExit(3)\n{IMPORT}"
        f"ImageDataGenerator(rescale=open({str(victim)!r}, 'w'), zoom_range=__import__('os').abort())\n"
    )
    assert "Not known from the file: rescale=open(" in explain_file(path)
    assert not victim.exists()


def test_what_the_file_does_not_show_is_not_guessed(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(
        IMPORT + "g = ImageDataGenerator(rotation_range=R, validation_split=S)\n"
        "g.flow_from_directory(D, subset='validation', **more)\n"
    )
    flat = " ".join(explain_file(path).split())
    assert "Not known from the file: rotation_range=R, validation_split=S" in flat
    assert "directory=D, **more" in flat
    for words in ("no image at all", "augmented exactly", "256 x 256", "numpy"):
        assert words not in flat


def test_arguments_that_keras_refuses_are_told(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(IMPORT + "ImageDataGenerator(zoom_range=[1, 2, 3])\nImageDataGenerator(rotate=3)\n")
    text = explain_file(path)
    assert "These arguments are refused: `zoom_range`" in text
    assert "These arguments are refused: ImageDataGenerator has no argument 'rotate'" in text


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.py", None, "there is no such file"),
        ("old.py", b"x = 1\nprint 'a'\n", "line 2 is not Python"),
        ("notebook.ipynb", b"{'a': [}", "export the notebook"),
        ("zero.py", b"\0", "not Python"),
        ("photo.py", b"\x89PNG\xff\xfe", "not Python"),
        ("coding.py", b"# coding: nonsense\n", "not Python"),
        ("other.py", b"x = 1\n", "has no ImageDataGenerator"),
        ("empty.py", b"", "has no ImageDataGenerator"),
        ("deep.py", b"x = " + b"(" * 5000, "deep.py"),
        ("long.py", b"x = " + b"-" * 100000 + b"1\n", "long.py"),
    ],
)
def test_a_file_that_cannot_be_explained_is_one_line(tmp_path, name, content, message):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        explain_file(path)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        explain_file(tmp_path)


def test_spellings_that_keras_3_has_no_more_are_told_with_the_new_one(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(
        "from keras.preprocessing.image import ImageDataGenerator\nflow = ImageDataGenerator().flow(x)\n"
        "model.fit_generator(flow, workers=4)\nmodel.evaluate_generator(flow)\nmodel.predict_generator(flow)\n"
        "model.fit(flow, use_multiprocessing=True)\nopt = keras.optimizers.SGD(lr=RATE)\n"
        "ModelCheckpoint('m.h5', period=5)\n"
    )
    flat = " ".join(explain_file(path).split())
    for words in (
        "line 3: fit_generator()",
        "model.evaluate(flow, ...)",
        "model.predict(flow, ...)",
        "line 6: fit(use_multiprocessing=)",
        "line 7: SGD(lr=RATE)",
        "learning_rate=RATE",
        "save_freq=5 * len(flow)",
        "from pipeline import ImageDataGenerator",
    ):
        assert words in flat


def test_keras_2_ignores_lr_and_keras_3_refuses_it():
    if hasattr(tf.keras.utils, "PyDataset"):  # Keras 3
        with pytest.raises(ValueError, match="lr"):
            tf.keras.optimizers.Adam(lr=1e-4)
    else:
        assert float(tf.keras.optimizers.Adam(lr=1e-4).learning_rate) == pytest.approx(1e-3)


# -- the guide


def guide_rows():
    text = (Path(__file__).parents[1] / "docs" / "migrating.md").read_text(encoding="utf-8")
    table = text.split("## Every parameter")[1].split("##")[0]
    rows, part = [], ""
    for line in table.splitlines():
        if line.startswith("| ") and not line.startswith(("| Of", "| ---")):
            of, names, verdict, _ = (cell.strip() for cell in line.strip("|").split("|"))
            part = of.strip("`") or part
            rows += [(part, name, verdict) for name in re.findall(r"`(\w+)(?:\(\))?`", names)]
    return rows


def test_the_guide_names_every_parameter_and_none_is_absent():
    rows = guide_rows()
    assert {verdict for _, _, verdict in rows} == {"same", "better", "extra"}
    listed = {(part, name) for part, name, _ in rows}
    generator = image.ImageDataGenerator
    for part, function in [
        ("ImageDataGenerator", generator.__init__),
        *((name, getattr(generator, name)) for name in ("flow", "flow_from_directory", "flow_from_dataframe")),
    ]:
        names = set(inspect.signature(function).parameters) - {"self", "kwargs"}
        assert names <= {name for of, name in listed if of == part}


def test_the_guide_names_every_attribute_of_keras_iterators(folder):
    listed = {name for _, name, _ in guide_rows()}
    generator = image.ImageDataGenerator()
    frame = pd.DataFrame({"filename": ["a/0.png", "b/0.png"], "class": ["a", "b"]})
    iterators = [
        generator.flow(np.ones((2, 8, 8, 3)), [0, 1]),
        generator.flow_from_directory(folder),
        generator.flow_from_dataframe(frame, folder),
    ]
    for iterator in iterators:
        plain = {"auto_shuffle"}
        public = {name for name in dir(iterator) if not name.startswith("_")} - plain
        assert public <= listed
    methods = {name for name in vars(image.ImageDataGenerator) if not name.startswith("_")}
    assert methods <= listed
