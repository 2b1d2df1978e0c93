"""Which files and labels a flow has: beside Keras's real iterators, and where ours differs, by hand."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from PIL import Image

from pipeline import InputError
from pipeline.generator import ImageDataGenerator

Keras = tf.keras.preprocessing.image.ImageDataGenerator


def make(top, *names):
    for name in names:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        # the content decides what a file is, the name which class it has
        Image.new("RGB", (4, 4)).save(top / name, format="PNG")


@pytest.fixture
def golden(tmp_path):
    """The folders of the specification's golden split."""
    make(tmp_path, *(f"b/im{i}.png" for i in range(5)), "a/.hid.png", *(f"a/im{i}.png" for i in range(3)), "a/z.png",
         "a/sub/deep/x.JPG", "Z/0.png", "Z/1.png", "10/0.png", "9/0.png")  # fmt: skip
    return tmp_path


def flows(top, exact=False, **keywords):
    generator = {name: keywords.pop(name) for name in ("validation_split",) if name in keywords}
    ours = ImageDataGenerator(**generator, keras_exact=exact).flow_from_directory(top, target_size=(4, 4), **keywords)
    return ours, Keras(**generator).flow_from_directory(top, target_size=(4, 4), **keywords)


def test_names_nested_folders_and_order(golden):
    ours, theirs = flows(golden)
    assert ours.filenames == theirs.filenames
    assert list(ours.class_indices) == ["10", "9", "Z", "a", "b"]
    assert ours.class_indices == theirs.class_indices
    np.testing.assert_array_equal(ours.classes, theirs.classes)


def test_the_golden_split(golden):
    ours, theirs = flows(golden, validation_split=0.4, subset="validation")
    assert ours.filenames == theirs.filenames == ["a/.hid.png", "a/im0.png", "b/im0.png", "b/im1.png"]


def test_hidden_and_empty_folders_are_classes_on_request_only(golden):
    make(golden, ".hidden/a.png")
    (golden / "empty").mkdir()
    with pytest.warns(UserWarning, match=r"left out 2 \('\.hidden', 'empty'\), hidden or without images"):
        ours, _ = flows(golden)
    assert list(ours.class_indices) == ["10", "9", "Z", "a", "b"]
    ours, theirs = flows(golden, exact=True)
    assert ours.class_indices == theirs.class_indices
    assert len(ours.class_indices) == 7


def test_gif_and_webp_are_images_unless_kerass_fault_is_wanted(tmp_path):
    make(tmp_path, "a/0.png", "b/0.png", "b/1.gif", "b/2.webp", "b/3.txt")
    ours, _ = flows(tmp_path)
    assert ours.filenames == ["a/0.png", "b/0.png", "b/1.gif", "b/2.webp"]
    ours, theirs = flows(tmp_path, exact=True)
    assert ours.filenames == theirs.filenames == ["a/0.png", "b/0.png"]


def test_links_are_followed_on_request(tmp_path):
    make(tmp_path, "top/a/0.png", "top/b/0.png", "aside/1.png")
    (tmp_path / "top" / "a" / "linked").symlink_to(tmp_path / "aside")
    for follow in (False, True):
        ours, theirs = flows(tmp_path / "top", follow_links=follow)
        assert ours.filenames == theirs.filenames
        assert len(ours.filenames) == 2 + follow


def test_classes_in_an_order_of_ones_own(golden):
    ours, theirs = flows(golden, classes=["b", "Z"])
    assert ours.filenames == theirs.filenames
    assert ours.class_indices == theirs.class_indices == {"b": 0, "Z": 1}


@pytest.mark.parametrize(
    "keywords",
    [
        {"color_mode": "cmyk"},
        {"class_mode": "output"},
        {"class_mode": "raw"},
        {"subset": "test", "validation_split": 0.2},
    ],
    ids=str,
)
def test_wrong_arguments_are_refused_as_by_keras(golden, keywords):
    with pytest.raises(ValueError, match="Invalid"):
        flows(golden, **keywords)
    with pytest.raises(ValueError, match="Invalid"):
        Keras(**{k: v for k, v in keywords.items() if k == "validation_split"}).flow_from_directory(
            golden, **{k: v for k, v in keywords.items() if k != "validation_split"}
        )


def test_folders_that_hold_nothing_are_errors_that_say_what_was_found(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere: there is no such folder"):
        ImageDataGenerator().flow_from_directory(tmp_path / "nowhere")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "notes.txt").write_text("")
    with pytest.raises(
        ValueError, match=r"no image in its 0 sub-folders|no image in its 1 sub-folders; found .*notes\.txt"
    ):
        ImageDataGenerator().flow_from_directory(tmp_path)
    assert ImageDataGenerator(keras_exact=True).flow_from_directory(tmp_path).samples == 0
    make(tmp_path, "a/0.png", "b/0.png", "c/0.png")
    with pytest.raises(ValueError, match=r'class_mode="binary" needs two classes, but .* has 3'):
        ImageDataGenerator().flow_from_directory(tmp_path, class_mode="binary")
    with pytest.raises(InputError, match="its 3 images leave none for subset='validation'"):
        ImageDataGenerator(validation_split=0.2).flow_from_directory(tmp_path, subset="validation")


@pytest.fixture
def frame(tmp_path):
    make(tmp_path, *(f"{i}.png" for i in range(10)))
    return pd.DataFrame({"filename": [f"{i}.png" for i in range(10)], "class": list("aabbccabca"), "n": range(10)})


def frames(frame, top, exact=False, **keywords):
    generator = {name: keywords.pop(name) for name in ("validation_split",) if name in keywords}
    ours = ImageDataGenerator(**generator, keras_exact=exact).flow_from_dataframe(frame, top, **keywords)
    return ours, Keras(**generator).flow_from_dataframe(frame, top, **keywords)


def test_absolute_paths_duplicates_and_any_index(frame, tmp_path):
    frame = pd.concat([frame, frame.iloc[:3]])
    frame["filename"] = [str(tmp_path / name) for name in frame["filename"]]
    before = frame.copy()
    ours, theirs = frames(frame, None)
    assert ours.filenames == theirs.filenames
    assert ours.filepaths == theirs.filepaths
    assert ours.classes == theirs.classes
    pd.testing.assert_frame_equal(frame, before)


def test_paths_that_are_no_image_file_are_left_out_with_a_warning(frame, tmp_path):
    frame.loc[1, "filename"] = "gone.png"
    (tmp_path / "2.txt").write_text("")
    frame.loc[2, "filename"] = "2.txt"
    with pytest.warns(UserWarning, match=r'Found 2 invalid image filename\(s\) in x_col="filename"'):
        ours, theirs = frames(frame, tmp_path)
    assert ours.filenames == theirs.filenames
    assert len(ours.filenames) == 8
    ours, theirs = frames(frame, tmp_path, validate_filenames=False)
    assert ours.filenames == theirs.filenames
    assert len(ours.filenames) == 10
    frame["filename"] = "gone.png"
    with (
        pytest.warns(UserWarning, match="Found 10 invalid"),
        pytest.raises(
            ValueError, match=r"none of the 10 paths in x_col='filename' is an image file; the first: '.*gone\.png'"
        ),
    ):
        ImageDataGenerator().flow_from_dataframe(frame, tmp_path)


def test_classes_that_are_named_are_kept_in_that_order(frame, tmp_path):
    ours, theirs = frames(frame, tmp_path, classes=["c", "a", "c"])
    assert ours.class_indices == theirs.class_indices == {"c": 0, "a": 1}
    assert ours.filenames == theirs.filenames
    assert ours.classes == theirs.classes
    frame["class"] = [["a", "b"] if label == "a" else [label] for label in frame["class"]]
    ours, theirs = frames(frame, tmp_path, classes=["b", "c"])
    assert ours.classes == theirs.classes
    with pytest.warns(UserWarning, match=r'`classes` will be ignored given the class_mode="raw"'):
        frames(frame, tmp_path, classes=["a"], class_mode="raw", y_col="n")


@pytest.mark.parametrize(
    ("keywords", "error"),
    [
        ({"class_mode": "multi_output"}, TypeError),
        ({"class_mode": "binary"}, ValueError),
        ({"class_mode": "binary", "classes": ["a"]}, ValueError),
        ({"class_mode": "unknown"}, ValueError),
        ({"x_col": "n"}, TypeError),
        ({"weight_col": "class"}, TypeError),
        ({"y_col": "gone"}, KeyError),
        ({"color_mode": "cmyk"}, ValueError),
        ({"subset": "foo", "validation_split": 0.5}, ValueError),
    ],
    ids=str,
)
def test_wrong_columns_are_refused_as_by_keras(frame, tmp_path, keywords, error):
    split = {name: value for name, value in keywords.items() if name == "validation_split"}
    rest = {name: value for name, value in keywords.items() if name not in split}
    for kind in (ImageDataGenerator, Keras):
        with pytest.raises(error):
            kind(**split).flow_from_dataframe(frame, tmp_path, **rest)


@pytest.mark.parametrize("class_mode", ["categorical", "sparse"])
def test_whole_numbers_and_booleans_are_labels_unless_kerass_refusal_is_wanted(frame, tmp_path, class_mode):
    ours = ImageDataGenerator().flow_from_dataframe(frame, tmp_path, y_col="n", class_mode=class_mode)
    assert ours.class_indices == {str(i): i for i in range(10)}
    frame["flag"] = frame["n"] > 4
    assert ImageDataGenerator().flow_from_dataframe(frame, tmp_path, y_col="flag").class_indices == {
        "False": 0,
        "True": 1,
    }
    for kind in (Keras, lambda: ImageDataGenerator(keras_exact=True)):
        with pytest.raises(TypeError, match="must be"):
            kind().flow_from_dataframe(frame, tmp_path, y_col="n", class_mode=class_mode)


def test_a_stratified_split_takes_its_share_of_each_class(tmp_path):
    make(tmp_path, *(f"{i}.png" for i in range(40)))
    frame = pd.DataFrame({"filename": [f"{i}.png" for i in range(40)], "class": ["a"] * 30 + ["b"] * 10})
    generator = ImageDataGenerator(validation_split=0.2)

    def parts(**keywords):
        return [
            generator.flow_from_dataframe(frame, tmp_path, subset=subset, **keywords)
            for subset in ("training", "validation")
        ]

    with pytest.warns(UserWarning, match="the first 8 of 40 rows are the validation data.*pass stratify=True"):
        _, head = parts()
    assert head.filenames == [f"{i}.png" for i in range(8)]
    train, validation = parts(stratify=True, seed=1)
    assert np.bincount(validation.classes).tolist() == [6, 2]
    assert not set(train.filenames) & set(validation.filenames)
    assert len(train.filenames) + len(validation.filenames) == 40
    assert train.filenames == sorted(train.filenames, key=lambda name: int(name[:-4]))
    assert parts(stratify=True, seed=2)[1].filenames != validation.filenames


def test_old_and_unknown_keywords(frame, tmp_path):
    for keyword in ("has_ext", "sort", "drop_duplicates"):
        with pytest.warns(DeprecationWarning, match=keyword):
            ImageDataGenerator().flow_from_dataframe(frame, tmp_path, **{keyword: True})
    with pytest.warns(DeprecationWarning, match='class_mode="other" is deprecated'):
        assert (
            ImageDataGenerator().flow_from_dataframe(frame, tmp_path, y_col="n", class_mode="other").class_mode == "raw"
        )
    with pytest.raises(TypeError, match="unexpected keyword argument 'targetsize'"):
        ImageDataGenerator().flow_from_dataframe(frame, tmp_path, targetsize=(4, 4))
    ImageDataGenerator(keras_exact=True).flow_from_dataframe(frame, tmp_path, targetsize=(4, 4))


@pytest.mark.parametrize(
    ("y_col", "classes", "expected"),
    [
        ("n", [1, 0], {"1": 0, "0": 1}),
        ("flag", [True, False], {"True": 0, "False": 1}),
        ("lists", [1, 0], {1: 0, 0: 1}),
    ],
    ids=str,
)
def test_classes_that_are_named_by_whole_numbers_are_found(frame, tmp_path, y_col, classes, expected):
    frame["n"] %= 3
    frame["flag"] = frame["n"] == 1
    frame["lists"] = [[number] for number in frame["n"]]  # which Keras takes as they are
    before = frame.copy()
    flow = ImageDataGenerator().flow_from_dataframe(frame, tmp_path, y_col=y_col, classes=classes)
    assert flow.class_indices == expected
    kept = frame.index if y_col == "flag" else frame.index[frame["n"] < 2]
    assert flow.filenames == [f"{row}.png" for row in kept]
    pd.testing.assert_frame_equal(frame, before)
    if y_col == "flag":
        flow = ImageDataGenerator().flow_from_dataframe(
            frame, tmp_path, y_col=y_col, classes=classes, class_mode="binary"
        )
        assert flow.classes == [int(number != 1) for number in frame["n"]]


@pytest.mark.parametrize("class_mode", ["binary", "sparse", "categorical"])
def test_labels_in_several_columns_are_refused_as_by_keras(frame, tmp_path, class_mode):
    for kind in (ImageDataGenerator, lambda: ImageDataGenerator(keras_exact=True), Keras):
        with pytest.raises(TypeError, match=f'class_mode="{class_mode}"'):
            kind().flow_from_dataframe(frame, tmp_path, y_col=["class", "n"], class_mode=class_mode)


@pytest.mark.parametrize("class_mode", ["binary", "categorical"])
def test_a_folder_without_classes_is_told_by_its_first_files_in_every_class_mode(tmp_path, class_mode):
    make(tmp_path, *(f"{index}.png" for index in range(7)))
    with pytest.raises(ValueError, match=r"no image in its 0 sub-folders; found .*0\.png, .*4\.png\. Give") as caught:
        ImageDataGenerator().flow_from_directory(tmp_path, class_mode=class_mode)
    assert "5.png" not in str(caught.value)


def test_images_in_hidden_folders_only_are_told_apart_from_an_empty_subset(tmp_path):
    make(tmp_path, ".a/0.png", ".b/1.png")
    with pytest.raises(ValueError, match=r"no image in its 2 sub-folders, hidden ones aside; found .*0\.png"):
        ImageDataGenerator().flow_from_directory(tmp_path)
    assert ImageDataGenerator(keras_exact=True).flow_from_directory(tmp_path).samples == 2


def mixed(top, labels):
    make(top, "0.png")
    return pd.DataFrame({"filename": ["0.png"] * len(labels), "class": list(labels)})


def test_a_head_with_other_shares_of_the_same_classes_is_told(tmp_path):
    frame = mixed(tmp_path, "a" * 95 + "b" * 5 + "b" * 270 + "a" * 30)
    with pytest.warns(UserWarning, match="the first 100 of 400 rows are the validation data.*pass stratify=True"):
        ImageDataGenerator(validation_split=0.25).flow_from_dataframe(frame, tmp_path, subset="validation")
    with pytest.warns(UserWarning, match="shuffle the dataframe$"):
        ImageDataGenerator(validation_split=0.25, keras_exact=True).flow_from_dataframe(
            frame, tmp_path, subset="training"
        )


def test_a_shuffled_frame_gets_no_warning_of_its_head(tmp_path):
    labels = np.array(list("a" * 300 + "b" * 80 + "c" * 20))
    for seed in range(20):
        shuffled = np.random.default_rng(seed).permutation(labels)
        ImageDataGenerator(validation_split=0.25).flow_from_dataframe(
            mixed(tmp_path, shuffled), tmp_path, subset="validation"
        )


@pytest.mark.parametrize("class_mode", ["raw", None])
def test_stratify_without_classes_is_refused_and_not_ignored(frame, tmp_path, class_mode):
    generator = ImageDataGenerator(validation_split=0.2)
    with pytest.raises(ValueError, match="stratify=True needs classes"):
        generator.flow_from_dataframe(
            frame, tmp_path, y_col="n", class_mode=class_mode, subset="training", stratify=True
        )
