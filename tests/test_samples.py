"""Samples from a folder or a table: what is found, what is left out, and what is said when it cannot be trained on."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline.errors import DataError, InputError
from pipeline.samples import Samples, align_classes, data_fingerprint, samples_from_folder, samples_from_table


def touch(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())


def names_of(samples: Samples, folder: Path) -> list[tuple[str, str]]:
    pairs = zip(samples.paths, samples.targets, strict=True)
    return [(Path(path).relative_to(folder).as_posix(), samples.class_names[target]) for path, target in pairs]


def test_a_folder_gives_one_class_a_sub_folder_in_text_order(tmp_path: Path) -> None:
    touch(tmp_path, "b/2.jpg", "b/1.PNG", "a/x.tiff", "10/x.webp", "9/x.gif", "Z/x.JFIF", "a/deep/er/y.ppm", "a/a.jpeg")
    samples = samples_from_folder(tmp_path)
    assert samples.class_names == ("10", "9", "Z", "a", "b")
    assert names_of(samples, tmp_path) == [
        ("10/x.webp", "10"),
        ("9/x.gif", "9"),
        ("Z/x.JFIF", "Z"),
        ("a/a.jpeg", "a"),
        ("a/x.tiff", "a"),
        ("a/deep/er/y.ppm", "a"),
        ("b/1.PNG", "b"),
        ("b/2.jpg", "b"),
    ]
    assert samples.targets.dtype == np.int32
    assert samples.notes == ()


def test_a_relative_folder_gives_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "data/a/x.jpg", "data/b/x.jpg")
    monkeypatch.chdir(tmp_path)
    assert samples_from_folder("data").paths == (str(tmp_path / "data/a/x.jpg"), str(tmp_path / "data/b/x.jpg"))


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    touch(tmp_path, "a/x.jpg", "b/x.jpg", "b/._x.jpg", "b/Thumbs.db", "c/readme.txt", ".git/x.jpg", "a/.cache/x.jpg")
    (tmp_path / "empty").mkdir()
    samples = samples_from_folder(tmp_path)
    assert names_of(samples, tmp_path) == [("a/x.jpg", "a"), ("b/x.jpg", "b")]
    assert samples.notes == (
        f"{tmp_path}: left out 2 folders ('c', 'empty') without images",
        f"{tmp_path}: left out 3 file(s) without an image's suffix",
    )


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "is empty"),
        (["x.jpg", "y.jpg"], "no sub-folders, only 2 images"),
        (["x.txt"], "no sub-folders, only 1 entry ('x.txt')"),
        (["a/x.txt", "b/y.txt"], "no images in its 2 sub-folders ('a', 'b')"),
        (["a/x.jpg", "b/y.txt"], "only one class, 'a', has images"),
    ],
)
def test_a_folder_that_cannot_be_trained_on_is_named_with_what_it_holds(
    tmp_path: Path, files: list[str], message: str
) -> None:
    touch(tmp_path, *files)
    with pytest.raises(InputError, match=re.escape(f"{tmp_path}: {message}")) as caught:
        samples_from_folder(tmp_path)
    assert "one sub-folder a class" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_folder_and_a_file_in_its_place_are_told_apart(tmp_path: Path) -> None:
    touch(tmp_path, "file")
    with pytest.raises(InputError, match="does not exist"):
        samples_from_folder(tmp_path / "missing")
    with pytest.raises(InputError, match="is not a folder"):
        samples_from_folder(tmp_path / "file")


def test_a_dataframe_keeps_its_order_and_asks_for_no_file(tmp_path: Path) -> None:
    table = pd.DataFrame({"Photo": ["b.jpg", "/else/a.jpg", "b.jpg"], "Class": ["dog", "cat", "dog"]}, index=[7, 7, 9])
    samples = samples_from_table(table, "Photo", "Class", tmp_path)
    assert samples.paths == (str(tmp_path / "b.jpg"), "/else/a.jpg", str(tmp_path / "b.jpg"))
    assert samples.class_names == ("cat", "dog")
    assert samples.targets.tolist() == [1, 0, 1]


def test_relative_paths_start_from_the_csvs_folder_or_the_working_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    table = pd.DataFrame({"Photo": ["x/1.jpg", "x/2.jpg"], "Class": ["a", "b"]})
    table.to_csv(tmp_path / "data" / "t.csv", index=False)
    monkeypatch.chdir(tmp_path)
    assert samples_from_table("data/t.csv", "Photo", "Class").paths[0] == str(tmp_path / "data/x/1.jpg")
    assert samples_from_table(table, "Photo", "Class").paths[0] == str(tmp_path / "x/1.jpg")


@pytest.mark.parametrize(
    ("labels", "class_names"),
    [
        ([10, 9, 10], ("10", "9")),
        ([True, False, True], ("False", "True")),
        (["b", "A", "b"], ("A", "b")),
        (pd.Categorical(["b", "A", "b"]), ("A", "b")),
    ],
)
def test_classes_become_text_in_text_order(labels, class_names: tuple[str, ...], tmp_path: Path) -> None:
    samples = samples_from_table(pd.DataFrame({"x": ["1", "2", "3"], "y": labels}), "x", "y", tmp_path)
    assert samples.class_names == class_names
    assert [samples.class_names[target] for target in samples.targets] == [str(label) for label in labels]


def test_words_such_as_na_are_classes_in_a_csv_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("Photo,Class\n001.jpg,NA\nnull,None\n3,01\n")
    samples = samples_from_table(tmp_path / "t.csv", "Photo", "Class")
    assert samples.class_names == ("01", "NA", "None")
    assert [os.path.basename(path) for path in samples.paths] == ["001.jpg", "null", "3"]


def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("\ufeffPhoto,Class\nä.jpg,Bär\nb.jpg,c\n".encode())
    assert samples_from_table(tmp_path / "t.csv", "Photo", "Class").class_names == ("Bär", "c")


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (None, "does not exist"),
        (b"", "is empty"),
        (b"Photo,Class\n\xff\xfe.jpg,a\n", "is not UTF-8 text"),
        (b'Photo,Class\n"a.jpg,b\n', "cannot be read as a csv file"),
        (b"Photo,Class\na.jpg,b,\nb.jpg,c,\n", "cannot be read as a csv file"),
        (b"Photo,Class\n", "has no rows"),
        (b"Photo,Class\na.jpg,b\nb.jpg,b\n", "only the class 'b'; training needs at least two"),
        (b"Photo;Class\na.jpg;b\n", "has no column 'Photo', but 1 column ('Photo;Class')"),
        (b"File,Class\na.jpg,b\n", "has no column 'Photo', but 2 columns ('File', 'Class')"),
        (b"Photo,Kind\na.jpg,b\n", "has no column 'Class', but 2 columns ('Photo', 'Kind')"),
    ],
)
def test_a_csv_that_cannot_be_used_is_an_error_in_one_line(
    tmp_path: Path, contents: bytes | None, message: str
) -> None:
    path = tmp_path / "t.csv"
    if contents is not None:
        path.write_bytes(contents)
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        samples_from_table(path, "Photo", "Class")
    assert str(caught.value).startswith(f"{path}: ")
    assert len(str(caught.value).splitlines()) == 1


def test_empty_cells_are_named_by_their_first_five_rows_column_by_column(tmp_path: Path) -> None:
    rows = "".join(f"{'' if index in (1, 3) else index},{'' if index > 3 else 'a'}\n" for index in range(1, 11))
    (tmp_path / "t.csv").write_text("Photo,Class\n" + rows)
    with pytest.raises(InputError) as caught:
        samples_from_table(tmp_path / "t.csv", "Photo", "Class")
    assert "'Photo' does not hold a path in 2 row(s), first in row 1 (''), 3 ('')" in str(caught.value)
    assert "in 7 row(s), first in row 4 (''), 5 (''), 6 (''), 7 (''), 8 ('');" in str(caught.value)


@pytest.mark.parametrize("label", [None, np.nan, pd.NA, 0.5, ["cat"], " "])
def test_a_cell_that_is_no_class_is_named(label, tmp_path: Path) -> None:
    table = pd.DataFrame({"x": ["1", "2"], "y": pd.Series(["a", label], dtype=object)})
    with pytest.raises(InputError, match=re.escape("column 'y' does not hold a class")):
        samples_from_table(table, "x", "y", tmp_path)


def test_a_wrong_images_folder_is_an_error(tmp_path: Path) -> None:
    table = pd.DataFrame({"x": ["1", "2"], "y": ["a", "b"]})
    with pytest.raises(InputError, match=re.escape(f"{tmp_path / 'missing'}: is no folder")):
        samples_from_table(table, "x", "y", tmp_path / "missing")


def test_a_column_that_stands_twice_is_an_error(tmp_path: Path) -> None:
    table = pd.DataFrame([["1", "a", "b"], ["2", "b", "a"]], columns=["x", "y", "y"])
    with pytest.raises(InputError, match="has 2 columns named 'y'"):
        samples_from_table(table, "x", "y", tmp_path)


def test_samples_refuse_targets_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="one target a path"):
        Samples(paths=("/a", "/b"), targets=np.array([0]), class_names=("x",))
    with pytest.raises(ValueError, match="0 to 2 for 2 class names"):
        Samples(paths=("/a", "/b"), targets=np.array([0, 2]), class_names=("x", "y"))


def test_taken_samples_keep_the_class_names_and_the_asked_order() -> None:
    samples = Samples(paths=("/a", "/b", "/c"), targets=np.array([0, 1, 0]), class_names=("x", "y"))
    taken = samples.take([2, 1])
    assert (taken.paths, taken.targets.tolist(), taken.class_names, len(taken)) == (("/c", "/b"), [0, 1], ("x", "y"), 2)
    with pytest.raises(ValueError, match="read-only"):
        taken.targets[0] = 1


def test_validation_classes_are_aligned_by_name_and_not_by_number() -> None:
    samples = Samples(paths=("/a", "/b"), targets=np.array([0, 1]), class_names=("b", "c"))
    aligned = align_classes(samples, ("a", "b", "c"))
    assert aligned.targets.tolist() == [1, 2]
    assert aligned.class_names == ("a", "b", "c")
    with pytest.raises(
        InputError, match=re.escape("1 class ('c') unknown to training, which has 2 classes ('a', 'b')")
    ):
        align_classes(samples, ("a", "b"))


def test_the_fingerprint_changes_with_the_data_and_not_with_its_place(tmp_path: Path) -> None:
    touch(tmp_path, "one/a/x.jpg", "one/a/y.jpg", "one/b/x.jpg")
    before = data_fingerprint(samples_from_folder(tmp_path / "one"))
    assert re.fullmatch("[0-9a-f]{32}", before)
    (tmp_path / "one").rename(tmp_path / "two")
    samples = samples_from_folder(tmp_path / "two")
    assert data_fingerprint(samples) == before
    changed = {before, data_fingerprint(samples.take([0, 1])), data_fingerprint(samples.take([1, 0, 2]))}
    changed.add(data_fingerprint(align_classes(samples, ("a", "b", "c"))))
    status = os.stat(samples.paths[0])
    os.utime(samples.paths[0], ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000_000))
    changed.add(data_fingerprint(samples))
    os.unlink(samples.paths[0])
    changed.add(data_fingerprint(samples))
    assert len(changed) == 6


def test_input_errors_are_data_errors() -> None:
    assert issubclass(InputError, DataError)
