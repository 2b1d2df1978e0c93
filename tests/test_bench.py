"""`cli.py bench`: what it measures, and what it concludes from the figures."""

import re
import shutil
from dataclasses import replace

import pytest
from click.testing import CliRunner

import cli
from pipeline.stage_advice import format_stages, stage_advice
from pipeline.stages import Occupation, StageSpeeds

# 1 ms to read, 2 to decode, 1 to resize, then 1 to preprocess or 4 to augment
SPEEDS = StageSpeeds(
    images=100,
    file_mib=2.0,
    warm={"read": 1000.0, "decode": 1000 / 3, "resize": 250.0, "preprocess": 200.0, "augment": 125.0},
    cold={"read": 500.0, "augment": 110.0},
    cold_reason=None,
    cached={"preprocess": 900.0, "augment": 250.0},
    fast=200.0,
)
ASKED = {"images": 1000, "row_bytes": 2**20, "usable_bytes": 2**31, "batch_size": 32}


def advice(speeds=SPEEDS, **changes):
    return list(stage_advice(speeds, **{**ASKED, **changes}))


def bench(*arguments):
    return CliRunner().invoke(cli.main, ["bench", *(str(argument) for argument in arguments)])


def test_what_a_stage_adds_is_the_difference_of_the_times():
    assert SPEEDS.added_ms == pytest.approx({"read": 1, "decode": 2, "resize": 1, "preprocess": 1, "augment": 4})
    assert SPEEDS.slowest == "augment"


def test_noise_never_makes_a_stage_cost_less_than_nothing():
    noisy = replace(SPEEDS, warm=SPEEDS.warm | {"resize": 400.0})
    assert noisy.added_ms["resize"] == 0


def test_the_table_has_a_line_a_stage_and_a_dash_for_what_was_not_measured():
    header, *lines = format_stages(SPEEDS).splitlines()
    assert header.split() == ["images/s", "cold", "disk", "page", "cache", "pixel", "cache", "adds", "ms/image"]
    assert [line.split() for line in lines] == [
        ["read", "500", "1,000", "-", "1.00"],
        ["decode", "-", "333", "-", "2.00"],
        ["resize", "-", "250", "-", "1.00"],
        ["preprocess", "-", "200", "900", "1.00"],
        ["augment", "110", "125", "250", "4.00"],
    ]


def test_the_slowest_stage_the_disk_the_cache_and_fast_decoding_are_named_with_their_figures():
    slowest, disk, cache, fast = advice()
    assert slowest == "Without a cache most of a training epoch goes into augmentation: 4.00 of 8.00 ms an image."
    assert disk.startswith("The disk gives 500 images/s (10 MiB/s), more than the rest of the pipeline takes")
    assert cache.startswith("--cache ram makes 250 images/s from epoch 2 on (2.0x): 1,000 MiB of pixels for 1,000")
    assert fast.startswith("--decode fast makes 200 images/s of 125")


def test_a_slow_disk_is_said_to_limit_the_first_epoch():
    slow = replace(SPEEDS, cold={"read": 120.0, "augment": 100.0})
    assert "limits epoch 1" in advice(slow)[1]
    unknown = replace(SPEEDS, cold=None, cold_reason="this system has no posix_fadvise")
    assert advice(unknown)[1] == "How fast the disk is was not measured: this system has no posix_fadvise."


def test_pixels_that_do_not_fit_are_left_to_the_disk_and_files_that_do_to_memory():
    sentences = advice(usable_bytes=250 * 2**20)
    assert "only 25% fit into memory; --cache disk keeps all" in sentences[2]
    assert sentences[3] == "--cache encoded keeps the disk quiet from epoch 2 on: the files take 20 MiB."
    assert not any("encoded" in sentence for sentence in advice(usable_bytes=10 * 2**20))


def test_a_gain_within_the_noise_is_not_sold_as_one():
    flat = replace(SPEEDS, cached=SPEEDS.cached | {"augment": 130.0}, fast=128.0)
    sentences = advice(flat)
    assert "gains little here (1.0x)" in sentences[2]
    assert not any("--decode fast" in sentence for sentence in sentences)


def test_the_accelerator_is_told_in_images_and_shares():
    occupation = Occupation(uncached=0.51, cached=0.98)
    *_, last = advice(step_seconds=0.04, occupation=occupation)
    assert "needs 40 ms for 32 images takes 800 images/s" in last
    assert "busy 51% of the time without a cache, 98% with --cache ram" in last


def test_the_command_measures_a_folder(photo_folder):
    result = bench("--data", photo_folder, "--image-size", 24, "--batch-size", 4, "--rounds", 1, "--step-ms", 5)
    assert result.exit_code == 0, result.output
    assert "23 images, 24x24, batch 4, medians of 1 rounds" in result.output
    for stage in ("read", "decode", "resize", "preprocess", "augment"):
        (line,) = [line for line in result.output.splitlines() if line.startswith(stage)]
        figures = [float(figure.replace(",", "")) for figure in re.findall(r"[\d,]+(?:\.\d+)?", line)]
        assert all(figure > 0 for figure in figures[:-1])
    assert "An accelerator that needs 5 ms for 4 images takes 800 images/s" in result.output


def test_a_part_of_a_large_set_is_measured(photo_folder):
    result = bench("--data", photo_folder, "--image-size", 24, "--batch-size", 4, "--rounds", 1, "--most", 9)
    assert "9 of 23 images" in result.output


def test_a_bad_file_is_named_before_anything_is_measured(photo_folder, tmp_path):
    shutil.copytree(photo_folder, tmp_path / "photos")
    (tmp_path / "photos" / "dark" / "00.jpg").write_bytes(b"nothing")
    result = bench("--data", tmp_path / "photos", "--image-size", 24)
    assert result.exit_code == 2
    assert "00.jpg is not an image" in result.output
    assert "compiling" not in result.output
