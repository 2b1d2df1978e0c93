"""A file that turns bad while a run is on its way ends it with one line that names the file."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import tensorflow as tf
from click.testing import CliRunner, Result

import cli
import pipeline
from model.errors import TrainingError
from model.failures import failures_named
from telemetry import load_run

ROOT = Path(__file__).resolve().parents[1]
FLAGS = ("--image-size", "32", "--batch-size", "8", "--epochs", "4", "--no-cache", "--augment-on", "off")


@pytest.fixture
def photos(photo_folder: Path, tmp_path: Path) -> Path:
    """Photos of its own for a test that spoils one."""
    return Path(shutil.copytree(photo_folder, tmp_path / "photos"))


def train(photos: Path, *arguments: object) -> Result:
    given = ("train", "--data", photos, "--out", photos.parent, "--name", "run", *FLAGS, *arguments)
    return CliRunner().invoke(cli.main, [str(argument) for argument in given])


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def assert_failed_on(result: Result, path: Path, reason: str) -> None:
    """One line that names the file, exit code 1, and a run that says that it failed."""
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit), result.exception
    (line,) = (line for line in result.output.splitlines() if line.startswith("Error: "))
    assert f"{path} {reason}" in line
    assert load_run(path.parents[2] / "run").status == "failed"


@pytest.mark.parametrize("source", ["tfdata", "idg"])
@pytest.mark.parametrize(
    ("spoil", "reason"), [(Path.unlink, "does not exist (moved or deleted?)"), (truncate, "is truncated")]
)
def test_a_file_spoiled_after_the_check(photos, monkeypatch, source, spoil, reason):
    spoiled = photos / "dark" / "03.jpg"
    say = cli._say

    def say_and_spoil(line: str) -> None:
        say(line)
        # read-ahead has reached into the next epoch by now, but not through all four
        if "epoch 1/" in line:
            spoil(spoiled)

    monkeypatch.setattr(cli, "_say", say_and_spoil)
    result = train(photos, "--input", source)
    assert "epoch 1/4" in result.output
    assert "epoch 4/4" not in result.output
    assert_failed_on(result, spoiled, reason)


def test_an_unchecked_file_that_is_truncated(photos):
    spoiled = photos / "light" / "05.jpg"
    truncate(spoiled)
    assert_failed_on(train(photos, "--no-verify"), spoiled, "is truncated")


def test_the_way_out_is_not_the_flag_that_was_given(photos):
    spoiled = photos / "light" / "05.jpg"
    truncate(spoiled)
    result = train(photos, "--no-verify", "--bad-files", "skip")
    assert_failed_on(result, spoiled, "is truncated")
    assert "--bad-files" not in result.output
    assert "start a new run with --verify to leave it out" in result.output


def test_an_unchecked_file_that_is_missing_in_a_process_of_its_own(photos):
    names = [str(path.relative_to(photos)) for path in sorted(photos.glob("*/*.jpg"))]
    table = pd.DataFrame({"Photo": names, "Class": [name[:4] for name in names]})
    table.to_csv(photos / "table.csv", index=False)
    (photos / "light" / "02.jpg").unlink()
    out = photos.parent / "runs"
    arguments = ("--csv", photos / "table.csv", "--no-verify", "--out", out, "--name", "run", *FLAGS)
    done = subprocess.run(
        [sys.executable, ROOT / "cli.py", "train", *map(str, arguments)],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"Error: {photos / 'light' / '02.jpg'} does not exist")
    assert json.loads((out / "run" / "run.json").read_text(encoding="utf-8"))["status"] == "failed"


def test_a_folder_that_cannot_be_written_any_more(photos, monkeypatch):
    run = photos.parent / "run"
    say = cli._say

    def say_and_take_away(line: str) -> None:
        say(line)
        if "epoch 1/" in line:
            (run / "epochs.csv").unlink()
            (run / "epochs.csv").mkdir()

    monkeypatch.setattr(cli, "_say", say_and_take_away)
    result = train(photos)
    assert result.exit_code == 1, result.output
    (line,) = (line for line in result.output.splitlines() if line.startswith("Error: "))
    assert "epochs.csv cannot be written" in line


def test_memory_that_does_not_suffice_is_one_line_with_a_way_out(photo_folder):
    data = pipeline.load_data(pipeline.DataConfig(folder=str(photo_folder)), seed=1, workers=1)
    message = r"memory did not suffice.*smaller --batch-size"
    with pytest.raises(TrainingError, match=message), failures_named(data, workers=1):
        raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor with shape[64,1024]")
