"""Finding bad files before training: each kind with its reason, decoding's own verdict, nothing opened that waits."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image, ImageFile

from pipeline.decode import decode_image
from pipeline.decode_config import DecodeConfig
from pipeline.errors import BadFile, BadFilesError, InputError
from pipeline.samples import Samples
from pipeline.verify import check_bad_files, drop_bad, verify_samples, write_bad_files


def encoded(file_format: str, **options) -> bytes:
    pixels = np.random.default_rng(0).integers(0, 256, (60, 50, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, file_format, **options)
    return file.getvalue()


JPEG, PNG = encoded("JPEG"), encoded("PNG")


def made(paths: list[str]) -> Samples:
    return Samples(paths=tuple(paths), targets=np.arange(len(paths)) % 2, class_names=("a", "b"))


def reason_for(path: Path, contents: bytes | None) -> str | None:
    if contents is not None:
        path.write_bytes(contents)
    bad_files = verify_samples(made([str(path)]), workers=1)
    assert [bad.path for bad in bad_files] == [str(path)] * len(bad_files)
    return bad_files[0].reason if bad_files else None


@pytest.mark.parametrize(
    ("contents", "reason"),
    [
        (None, "does not exist"),
        (b"", "is empty"),
        (b"<!DOCTYPE html><html></html>", "is not an image (starts with b'<!DOCTYPE ht')"),
        (b"x", "is not an image (starts with b'x')"),
        (JPEG[:4], "is truncated"),
        (JPEG[: len(JPEG) // 2], "is truncated (its end is missing)"),
        (JPEG[:-2], "is truncated (its end is missing)"),
        (PNG[: len(PNG) // 2], "is truncated (its end is missing)"),
        (encoded("GIF")[:1500], "is truncated (its end is missing)"),
        (encoded("BMP")[:1500], "is truncated (its end is missing)"),
        (encoded("PPM")[:1500], "is truncated (its end is missing)"),
        (encoded("WEBP")[:400], "is damaged"),
        (JPEG[:20] + JPEG[100:], "is damaged"),
        (PNG[:60] + b"\0" * 40 + PNG[100:], "is damaged"),
    ],
)
def test_each_kind_of_bad_file_has_its_reason(tmp_path: Path, contents: bytes | None, reason: str) -> None:
    found = reason_for(tmp_path / "photo.jpg", contents)
    assert found is not None
    assert found.startswith(reason)


@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM"])
def test_the_content_decides_and_not_the_suffix(tmp_path: Path, file_format: str) -> None:
    assert reason_for(tmp_path / "photo.jpg", encoded(file_format)) is None
    assert reason_for(tmp_path / "photo.txt", encoded(file_format)) is None


def test_an_image_of_too_many_pixels_is_refused_without_being_decoded(tmp_path: Path) -> None:
    file = io.BytesIO()
    Image.new("1", (15_000, 15_000)).save(file, "GIF")
    assert (reason_for(tmp_path / "bomb.gif", file.getvalue()) or "").startswith("has too many pixels (")


def test_a_folder_and_an_impossible_name_are_bad_files(tmp_path: Path) -> None:
    assert reason_for(tmp_path, None) == "is a folder"
    assert reason_for(tmp_path / "a\0b.jpg", None) == "is no possible file name (embedded null byte)"
    (tmp_path / "file.jpg").write_bytes(JPEG)
    assert (reason_for(tmp_path / "file.jpg" / "x.jpg", None) or "").startswith("does not exist")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jpg")
    assert reason_for(tmp_path / "pipe.jpg", None) == "is not a regular file but a pipe, socket or device"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission_is_named_so(tmp_path: Path) -> None:
    (tmp_path / "secret.jpg").write_bytes(JPEG)
    (tmp_path / "secret.jpg").chmod(0)
    assert reason_for(tmp_path / "secret.jpg", None) == "cannot be read (Permission denied)"


# Pillow tells of damaged metadata by a warning and goes on
@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
@pytest.mark.parametrize("file_format", ["JPEG", "progressive", "PNG", "GIF", "TIFF", "WEBP"])
def test_the_verdict_is_that_of_decoding_for_files_cut_or_changed_anywhere(tmp_path: Path, file_format: str) -> None:
    whole = encoded("JPEG", progressive=True) if file_format == "progressive" else encoded(file_format)
    generator = np.random.default_rng(1)
    versions = [whole[: generator.integers(1, len(whole))] for _ in range(12)]
    versions += [whole[: len(whole) - tail] for tail in range(1, 16)]
    for _ in range(12):
        damaged = bytearray(whole)
        damaged[generator.integers(8, len(whole))] ^= 1 << int(generator.integers(8))
        versions.append(bytes(damaged))
    versions += [whole + b"\0" * 30, whole]
    paths = [tmp_path / f"{number:02}.img" for number in range(len(versions))]
    for path, contents in zip(paths, versions, strict=True):
        path.write_bytes(contents)
    bad_paths = {bad.path for bad in verify_samples(made([str(path) for path in paths]), workers=2)}
    config = DecodeConfig(height=8, width=8)
    decode = tf.function(
        lambda contents: decode_image(contents, config), input_signature=[tf.TensorSpec((), tf.string)]
    )
    for path, contents in zip(paths, versions, strict=True):
        try:
            decode(contents)
            is_decodable = True
        except tf.errors.OpError:
            is_decodable = False
        assert (str(path) not in bad_paths) == is_decodable, path.name
    assert 12 <= len(bad_paths) < len(versions)


def test_bad_files_come_in_the_samples_order_once_each_and_progress_is_told(tmp_path: Path) -> None:
    names = ["z", "good", "a", "z", "m"]
    for name in names:
        (tmp_path / name).write_bytes(JPEG if name == "good" else b"")
    seen = []
    samples = made([str(tmp_path / name) for name in names])
    bad_files = verify_samples(samples, workers=3, progress=lambda done, total: seen.append((done, total)))
    assert [Path(bad.path).name for bad in bad_files] == ["z", "a", "m"]
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_an_error_in_the_progress_callback_ends_the_scan(tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify_samples(made([str(tmp_path / str(number)) for number in range(50)]), workers=2, progress=interrupt)


def test_pillows_global_switch_for_truncated_images_is_left_alone(tmp_path: Path) -> None:
    before = ImageFile.LOAD_TRUNCATED_IMAGES
    reason_for(tmp_path / "x.jpg", JPEG[:500])
    assert ImageFile.LOAD_TRUNCATED_IMAGES is before is False


def test_dropping_removes_every_sample_of_a_bad_file() -> None:
    samples = made(["/0", "/1", "/2", "/3", "/0"])
    good = drop_bad(samples, [BadFile(path="/0", reason="is empty")])
    assert good.paths == ("/1", "/2", "/3")
    assert good.targets.tolist() == [1, 0, 1]


def test_dropping_a_whole_class_is_an_error() -> None:
    bad_files = [BadFile(path="/1", reason="is empty"), BadFile(path="/3", reason="is empty")]
    with pytest.raises(InputError, match="class 'b': none of its files can be decoded"):
        drop_bad(made(["/0", "/1", "/2", "/3"]), bad_files)


def test_the_error_names_five_files_counts_all_and_says_what_to_do() -> None:
    bad_files = tuple(BadFile(path=f"/data/{number}.jpg", reason="is empty") for number in range(7))
    with pytest.raises(BadFilesError) as caught:
        check_bad_files(bad_files)
    assert caught.value.bad_files == bad_files
    assert str(caught.value).splitlines() == [
        "7 files cannot be used:",
        *[f"  /data/{number}.jpg is empty" for number in range(5)],
        "  and 2 more",
        "Repair or remove them, or pass --bad-files skip to train without them.",
    ]
    check_bad_files(())


def test_one_bad_file_is_named_in_one_line() -> None:
    with pytest.raises(BadFilesError) as caught:
        check_bad_files([BadFile(path="/data/a.jpg", reason="is empty")])
    assert str(caught.value) == (
        "/data/a.jpg is empty; repair or remove it, or pass --bad-files skip to train without it"
    )


def test_a_name_that_would_break_the_message_is_shown_escaped() -> None:
    with pytest.raises(BadFilesError) as caught:
        check_bad_files([BadFile(path="/a\n\x1b[31m\udcff.jpg", reason="is empty")])
    assert str(caught.value).startswith(r"'/a\n\x1b[31m\udcff.jpg' is empty; ")


def test_the_csv_reads_back_and_holds_no_formula(tmp_path: Path) -> None:
    bad_files = [
        BadFile(path='/a, "b"\n.jpg', reason="is empty"),
        BadFile(path="=cmd|' /C calc'!A0", reason="-1"),
        BadFile(path="/\udcff.jpg", reason="is a folder"),
    ]
    write_bad_files(tmp_path / "bad_files.csv", bad_files)
    with open(tmp_path / "bad_files.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows == [
        ["path", "reason"],
        ['/a, "b"\n.jpg', "is empty"],
        ["'=cmd|' /C calc'!A0", "'-1"],
        ["/\\udcff.jpg", "is a folder"],
    ]


def test_a_csv_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "bad_files.csv"
    write_bad_files(path, [])
    with pytest.raises(AttributeError):
        write_bad_files(path, [None])
    assert path.read_text() == "path,reason\n"
    assert os.listdir(tmp_path) == ["bad_files.csv"]
