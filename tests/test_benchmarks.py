"""Each benchmark script runs at a tiny size and prints what it says."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


def test_every_script_is_tried_here():
    scripts = {path.stem for path in BENCHMARKS.glob("*.py")} - {"run_facts"}  # which the others import
    tried = Path(__file__).read_text(encoding="utf-8")
    assert all(f'"{name}.py"' in tried for name in scripts)
    assert len(scripts) >= 6


@pytest.fixture(scope="module")
def against_keras(photo_folder):
    script = BENCHMARKS / "pipeline_against_keras.py"
    tiny = ["--size", "24", "--batch-size", "8", "--rounds", "1", "--keras-images", "16", "--json"]
    command = [sys.executable, str(script), "--data", str(photo_folder), *tiny]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_the_pipeline_is_measured_beside_keras_in_each_state(against_keras):
    assert against_keras["images"] == 23
    assert set(against_keras["images_per_second"]) == {"augmented", "preprocessed only"}
    for figures in against_keras["images_per_second"].values():
        assert set(figures) == {"keras", "cold", "warm", "cached"}
        assert all(value > 0 for values in figures.values() for value in values)


def test_the_table_for_people_has_a_line_a_state():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        from pipeline_against_keras import format_figures
    finally:
        sys.path.remove(str(BENCHMARKS))
    one = {"keras": [80.0], "cold": [900.0, 800.0, 1000.0], "warm": [1000.0], "cached": [2000.0]}
    lines = format_figures({"augmented": one, "preprocessed only": one}).splitlines()
    assert [line.split()[0] for line in lines] == ["images/s", "keras", "cold", "warm", "cached"]
    assert "900   (800-1,000)   11.2x" in lines[2]


def test_the_drop_in_is_measured_beside_keras_and_by_both_ways_to_fit(photo_folder):
    script = BENCHMARKS / "generator_against_keras.py"
    tiny = ["--size", "24", "--batch-size", "8", "--rounds", "1", "--keras-images", "16", "--json"]
    command = [sys.executable, str(script), "--data", str(photo_folder), *tiny]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    figures = json.loads(printed.splitlines()[-1])["images_per_second"]
    assert set(figures) == {"iterated", "trained, the recipe", "trained, no augmentation"}
    assert set(figures["iterated"]) == {"keras", "cold", "cached"}
    for by_what in figures.values():
        assert all(value > 0 for values in by_what.values() for value in values)


def test_the_variants_of_the_warp_give_the_same_pixels_and_a_time_each():
    command = [
        sys.executable,
        str(BENCHMARKS / "warp_variants.py"),
        "--size",
        "24",
        "--batch-size",
        "2",
        "--rounds",
        "1",
    ]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    assert len(lines) == 9
    assert all("us CPU/image" in line for line in lines[1:])


def test_each_cache_is_measured_in_a_process_of_its_own(photo_folder):
    command = [sys.executable, str(BENCHMARKS / "caches.py"), "--data", str(photo_folder)]
    tiny = ["--size", "24", "--batch-size", "8", "--rounds", "1"]
    lines = subprocess.run([*command, *tiny], check=True, capture_output=True, text=True).stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["cache", "off", "encoded", "ram", "disk", "half", "half"]
    assert lines[4].split()[2] == "1.00"  # ram, of itself


def test_large_photos_are_made_and_decoded_both_ways(photo_folder):
    command = [sys.executable, str(BENCHMARKS / "large_photos.py"), "--data", str(photo_folder)]
    tiny = ["--images", "4", "--width", "120", "--height", "90", "--size", "24", "--rounds", "1"]
    lines = subprocess.run([*command, *tiny], check=True, capture_output=True, text=True).stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["exact", "fast"]
    assert lines[1].endswith("1.00x")


def test_a_table_is_timed_to_its_first_batch(photo_folder):
    command = [sys.executable, str(BENCHMARKS / "first_batch.py"), "--data", str(photo_folder)]
    tiny = ["--rows", "60", "--size", "24", "--batch-size", "8"]
    lines = subprocess.run([*command, *tiny], check=True, capture_output=True, text=True).stdout.splitlines()
    assert [line.split()[-1] for line in lines[1:]] == ["s"] * 5


def test_peers_run_in_their_own_environments_and_one_that_fails_says_why(photo_folder, tmp_path):
    for name in ("feedline", "keras", "spdl"):  # as if made: pip would fetch gigabytes
        python = tmp_path / name / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
        python.chmod(0o755)
        (tmp_path / name / "complete").touch()
    command = [sys.executable, str(BENCHMARKS / "compare_peers.py"), "--data", str(photo_folder)]
    tiny = ["--size", "24", "--batch-size", "8", "--rounds", "1", "--environments", str(tmp_path)]
    chosen = ["--peer", "feedline", "--peer", "keras generator, 1 thread", "--peer", "spdl"]
    lines = subprocess.run([*command, *tiny, *chosen], check=True, capture_output=True, text=True).stdout.splitlines()
    works = [tuple(line.split()[:2]) for line in lines[2:]]
    assert works == [
        ("whole", "feedline"),
        ("whole", "keras"),
        ("decode", "feedline"),
        ("decode", "spdl"),
        ("cached", "feedline"),
    ]
    assert lines[2].endswith("1.00x")
    assert "No module named 'spdl'" in lines[5]
