"""A stopped run goes on as if it had not stopped: killed, interrupted or cut off in the middle of saving."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from click.testing import CliRunner, Result
from PIL import Image

import cli
from model.checkpoints import BEST_FILE, LAST_FILE, checkpoint_callback
from pipeline import Feed
from telemetry import load_run

ROOT = Path(__file__).resolve().parents[1]
# every epoch decodes its photos anew, so that one takes long enough to be met in its middle
FLAGS = ("--image-size", "32", "--batch-size", "8", "--epochs", "3", "--no-cache", "--monitor", "val_loss")
IMAGES = {"train": 60, "validation": 16}
STEPS = 8
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
posix_only = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
SAME_LOSS = 1e-4


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seventy-six JPEGs in two classes that differ in brightness, large enough to take a while."""
    folder = tmp_path_factory.mktemp("resume") / "photos"
    numbers = np.random.default_rng(3)
    for name, level in (("dark", 100), ("light", 150)):
        (folder / name).mkdir(parents=True)
        for index in range(38):
            coarse = numbers.integers(level - 60, level + 60, (6, 8, 3), dtype=np.uint8)
            large = Image.fromarray(coarse).resize((800, 600), Image.Resampling.BICUBIC)
            large.save(folder / name / f"{index:02}.jpg")
    return folder


def command(*arguments: object) -> Result:
    return CliRunner().invoke(cli.main, [str(argument) for argument in arguments])


def errors_in(result: Result) -> list[str]:
    return [line for line in result.output.splitlines() if line.startswith("Error: ")]


def refusal_of(run: Path) -> str:
    """What resuming answers, after a check that it is one line and changes nothing."""
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    result = command("train", "--resume", run)
    assert result.exit_code == 2, result.output
    (line,) = errors_in(result)
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before
    return line


def stop_after_epoch_1(*arguments: object) -> Result:
    """Runs the command in this process and sends it SIGTERM as soon as the first epoch is complete."""
    say = cli._say

    def say_and_stop(line: str) -> None:
        say(line)
        if "epoch 1/" in line:
            signal.raise_signal(signal.SIGTERM)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli, "_say", say_and_stop)
        return command(*arguments)


def batches_recorded(patch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """The images of every training batch that is made from now on, in their order."""
    seen: list[np.ndarray] = []
    make = Feed.training

    def keep(images: np.ndarray) -> np.ndarray:
        seen.append(images.copy())
        return images

    def training(feed: Feed, epochs: range) -> tf.data.Dataset:
        def record(images: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            return tf.ensure_shape(tf.numpy_function(keep, [images], tf.float32), images.shape), labels

        return make(feed, epochs).map(record)

    patch.setattr(Feed, "training", training)
    return seen


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A run, and the training batches that its process saw."""

    folder: Path
    batches: list[np.ndarray]


@pytest.fixture(scope="module")
def whole(photos: Path) -> Recorded:
    """A run that nothing interrupted."""
    with pytest.MonkeyPatch.context() as patch:
        batches = batches_recorded(patch)
        result = command("train", "--data", photos, "--out", photos.parent, "--name", "whole", *FLAGS)
    assert result.exit_code == 0, result.output
    return Recorded(folder=photos.parent / "whole", batches=batches)


@pytest.fixture(scope="module")
def stopped(photos: Path) -> tuple[Path, Result]:
    """A run that got SIGTERM behind its first epoch, and what the command said to that."""
    handler = signal.getsignal(signal.SIGTERM)
    result = stop_after_epoch_1("train", "--data", photos, "--out", photos.parent, "--name", "stopped", *FLAGS)
    assert signal.getsignal(signal.SIGTERM) is handler
    return photos.parent / "stopped", result


def copy_of(run: Path, folder: Path) -> Path:
    return Path(shutil.copytree(run, folder / run.name))


def table_of(run: Path) -> pd.DataFrame:
    return pd.read_csv(run / "epochs.csv")


def assert_same_training(run: Path, whole: Path) -> None:
    """Every epoch once, with the losses and the models of the run that nothing interrupted."""
    assert json.loads((run / "run.json").read_text(encoding="utf-8"))["status"] == "finished"
    found, expected = table_of(run), table_of(whole)
    phases = [(epoch, phase) for epoch in (1, 2, 3) for phase in ("train", "validation")]
    assert list(zip(found.epoch, found.phase, strict=True)) == phases
    assert [IMAGES[phase] for phase in found.phase] == found.images.tolist()
    assert found.loss.to_numpy() == pytest.approx(expected.loss.to_numpy(), abs=SAME_LOSS)
    assert found.accuracy.tolist() == expected.accuracy.tolist()
    images = np.random.default_rng(0).uniform(-1, 1, (8, 32, 32, 3)).astype(np.float32)
    for name in (BEST_FILE, LAST_FILE):
        ours, theirs = (tf.keras.models.load_model(folder / name)(images, training=False) for folder in (run, whole))
        assert np.abs(ours - theirs).max() < SAME_LOSS, name


# ---- a process of its own, met in the middle of an epoch


def start(*arguments: object) -> subprocess.Popen:
    # where a shell runs the tests in the background they ignore SIGINT, and what they start would do so too
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            [sys.executable, ROOT / "cli.py", "train", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        )
    finally:
        signal.signal(signal.SIGINT, before)


def marks_of(run: Path) -> list[tuple[int, str, str]]:
    """(epoch, phase, event) of each mark that stands whole in the record."""
    path = run / "marks.jsonl"
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
    marks = [json.loads(line) for line in lines]
    return [(mark["epoch"], mark.get("phase"), mark["event"]) for mark in marks]


def wait_for_training(process: subprocess.Popen, run: Path, epoch: int) -> None:
    """Returns as soon as the process is inside the training phase of that epoch."""
    while marks_of(run)[-1:] not in ([(epoch, "train", "begin")], [(epoch, "train", "warmup_end")]):
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.002)


def end_with(process: subprocess.Popen, number: int) -> str:
    process.send_signal(number)
    output, _ = process.communicate(timeout=120)
    return output


def wait_until_marked_interrupted(run: Path) -> str:
    """What run.json says once the sampler has found its parent dead."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        status = json.loads((run / "run.json").read_text(encoding="utf-8"))["status"]
        if status != "running":
            return status
        time.sleep(0.01)
    return status


@dataclass(frozen=True, kw_only=True)
class Stop:
    """What was found after a process had been ended.

    Attributes:
        marks: those of the record at that moment.
        status: of the run, told without its process.
        written: the status that run.json came to hold.
        files: names in the run's folder.
        output: what the process had printed.
        exit_code: its exit status.
    """

    marks: list
    status: str
    written: str
    files: set
    output: str
    exit_code: int


def stop_of(process: subprocess.Popen, run: Path, number: int) -> Stop:
    output = end_with(process, number)
    return Stop(
        marks=marks_of(run),
        status=load_run(run).status,
        written=wait_until_marked_interrupted(run),
        files={path.name for path in run.iterdir()},
        output=output,
        exit_code=process.returncode,
    )


@dataclass(frozen=True, kw_only=True)
class ThriceStopped:
    """One run in four processes: killed in epoch 1, killed in epoch 2, interrupted in epoch 3, resumed to its end."""

    folder: Path
    while_running: Result
    in_epoch_1: Stop
    in_epoch_2: Stop
    in_epoch_3: Stop
    last: Result


@pytest.fixture(scope="module")
def thrice(photos: Path) -> ThriceStopped:
    run = photos.parent / "thrice"
    # one image after the other: longer epochs, the same images
    slow = ("--parallel", "1", "--no-prefetch")
    process = start("--data", photos, "--out", run.parent, "--name", run.name, *FLAGS, *slow)
    try:
        wait_for_training(process, run, epoch=1)
        process.send_signal(signal.SIGSTOP)  # so that it cannot end meanwhile
        while_running = command("train", "--resume", run)
        in_epoch_1 = stop_of(process, run, KILL)
        process = start("--resume", run)
        wait_for_training(process, run, epoch=2)
        in_epoch_2 = stop_of(process, run, KILL)
        process = start("--resume", run)
        wait_for_training(process, run, epoch=3)
        in_epoch_3 = stop_of(process, run, signal.SIGINT)
    finally:
        process.kill()
        process.communicate()
    return ThriceStopped(
        folder=run,
        while_running=while_running,
        in_epoch_1=in_epoch_1,
        in_epoch_2=in_epoch_2,
        in_epoch_3=in_epoch_3,
        last=command("train", "--resume", run),
    )


@posix_only
def test_a_run_that_is_still_running_is_not_resumed(thrice: ThriceStopped):
    assert thrice.while_running.exit_code == 2
    (line,) = errors_in(thrice.while_running)
    assert "thrice is still running; wait for it or stop it first" in line


@posix_only
def test_a_run_killed_before_its_first_checkpoint_is_interrupted_and_holds_no_model(thrice: ThriceStopped):
    stop = thrice.in_epoch_1
    assert (1, "train", "end") not in stop.marks
    assert (stop.status, stop.written) == ("interrupted", "interrupted")
    assert not {BEST_FILE, LAST_FILE} & stop.files


@posix_only
def test_a_run_killed_in_its_second_epoch_has_the_first_behind_it(thrice: ThriceStopped):
    stop = thrice.in_epoch_2
    assert stop.marks.count((1, "validation", "end")) == 1
    assert (2, "train", "end") not in stop.marks
    assert "continues after epoch 0 of 3" in stop.output
    assert (stop.status, stop.written) == ("interrupted", "interrupted")
    assert {BEST_FILE, LAST_FILE} <= stop.files


@posix_only
def test_ctrl_c_ends_a_run_as_interrupted_with_one_line_that_says_how_to_go_on(thrice: ThriceStopped):
    stop = thrice.in_epoch_3
    assert stop.exit_code == 128 + signal.SIGINT
    assert "continues after epoch 1 of 3" in stop.output
    assert (stop.status, stop.written) == ("interrupted", "interrupted")
    assert "Traceback" not in stop.output
    last = stop.output.splitlines()[-1]
    assert last.startswith("Error: stopped by SIGINT; go on with --resume ")
    assert last.endswith("thrice")


@posix_only
def test_after_two_kills_and_ctrl_c_the_losses_and_models_are_those_of_an_uninterrupted_run(
    thrice: ThriceStopped, whole: Recorded
):
    assert thrice.last.exit_code == 0, thrice.last.output
    assert "continues after epoch 2 of 3" in thrice.last.output
    assert_same_training(thrice.folder, whole.folder)
    assert len(json.loads((thrice.folder / "run.json").read_text(encoding="utf-8"))["sessions"]) == 4


# ---- in this process


def test_sigterm_ends_a_run_as_interrupted_with_one_line_that_says_how_to_go_on(stopped: tuple[Path, Result]):
    run, result = stopped
    assert result.exit_code == 128 + signal.SIGTERM
    (line,) = errors_in(result)
    assert line.startswith("Error: stopped by SIGTERM; go on with --resume ")
    assert "Traceback" not in result.output
    assert load_run(run).status == "interrupted"
    assert table_of(run).epoch.tolist() == [1, 1]


def test_a_signal_before_the_first_epoch_leaves_no_run(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cli, "_say", lambda line: signal.raise_signal(signal.SIGTERM))
    result = command("train", "--data", photos, "--out", tmp_path, "--name", "early", *FLAGS)
    assert result.exit_code == 128 + signal.SIGTERM
    assert errors_in(result) == ["Error: stopped by SIGTERM; no epoch had begun"]
    assert not list(tmp_path.iterdir())


def test_a_resumed_run_sees_the_images_that_an_uninterrupted_one_sees(
    stopped: tuple[Path, Result], whole: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    run = copy_of(stopped[0], tmp_path)
    batches = batches_recorded(monkeypatch)
    assert command("train", "--resume", run).exit_code == 0
    expected = whole.batches[STEPS : 3 * STEPS]
    assert len(expected) == 2 * STEPS
    assert all(np.array_equal(ours, theirs) for ours, theirs in zip(batches, expected, strict=True))
    assert not np.array_equal(expected[0], whole.batches[0])
    assert_same_training(run, whole.folder)


def test_a_run_killed_between_its_best_and_its_last_model_trains_that_epoch_again(
    stopped: tuple[Path, Result], whole: Recorded, tmp_path: Path
):
    # the records and the best model have all three epochs, the last model has one, and a third was being written
    run = copy_of(whole.folder, tmp_path)
    shutil.copy(stopped[0] / LAST_FILE, run / LAST_FILE)
    (run / f".last.{2**22 + 1}.tmp.keras").write_bytes((run / LAST_FILE).read_bytes()[:1000])
    document = json.loads((run / "run.json").read_text(encoding="utf-8"))
    document["status"] = "running"
    document["sessions"][-1]["process"]["pid"] = 2**22 + 1  # above the largest number of a process
    (run / "run.json").write_text(json.dumps(document), encoding="utf-8")
    assert load_run(run).status == "interrupted"
    result = command("train", "--resume", run)
    assert result.exit_code == 0, result.output
    assert "continues after epoch 1 of 3" in result.output
    assert_same_training(run, whole.folder)
    assert not list(run.glob(".*"))


def test_a_resumed_run_remembers_its_best_value(stopped: tuple[Path, Result], tmp_path: Path):
    run = copy_of(stopped[0], tmp_path)
    marks = [json.loads(line) for line in (run / "marks.jsonl").read_text(encoding="utf-8").splitlines()]
    for mark in marks:
        if mark.get("phase") == "validation" and "metrics" in mark:
            mark["metrics"]["loss"] = 0.0  # as if no later epoch could be better
    (run / "marks.jsonl").write_text("".join(json.dumps(mark) + "\n" for mark in marks), encoding="utf-8")
    best, last = ((run / name).read_bytes() for name in (BEST_FILE, LAST_FILE))
    result = command("train", "--resume", run)
    assert result.exit_code == 0, result.output
    assert (run / BEST_FILE).read_bytes() == best
    assert (run / LAST_FILE).read_bytes() != last


def test_a_finished_run_is_not_resumed(whole: Recorded):
    assert "whole has all its 3 epochs; nothing is left to train" in refusal_of(whole.folder)


@pytest.mark.parametrize("part", ["training", "validation"])
def test_a_run_whose_training_or_validation_images_changed_is_not_resumed(
    part: str, stopped: tuple[Path, Result], tmp_path: Path
):
    run = copy_of(stopped[0], tmp_path)
    document = json.loads((run / "run.json").read_text(encoding="utf-8"))
    document["data_fingerprint"]["train" if part == "training" else part] = "0" * 32
    (run / "run.json").write_text(json.dumps(document), encoding="utf-8")
    assert f"the {part} images changed since it stopped; start a new run" in refusal_of(run)


def test_a_run_with_a_file_written_anew_is_not_resumed(stopped: tuple[Path, Result], photos: Path):
    path = photos / "dark" / "07.jpg"
    before = path.stat()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    try:
        assert "images changed since it stopped; start a new run" in refusal_of(stopped[0])
    finally:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_run_whose_last_model_is_damaged_is_not_resumed(stopped: tuple[Path, Result], tmp_path: Path):
    run = copy_of(stopped[0], tmp_path)
    (run / LAST_FILE).write_bytes((run / LAST_FILE).read_bytes()[:1000])
    assert f"{LAST_FILE}: cannot be loaded" in refusal_of(run)


def test_a_run_that_skipped_bad_files_skips_them_again(photo_folder: Path, tmp_path: Path):
    folder = Path(shutil.copytree(photo_folder, tmp_path / "photos"))
    (folder / "light" / "04.jpg").write_bytes(b"")
    flags = ("--image-size", "32", "--batch-size", "8", "--epochs", "2", "--bad-files", "skip", "--augment-on", "off")
    stop = stop_after_epoch_1("train", "--data", folder, "--out", tmp_path, "--name", "run", *flags)
    assert stop.exit_code == 128 + signal.SIGTERM
    result = command("train", "--resume", tmp_path / "run")
    assert result.exit_code == 0, result.output
    assert [Path(path).name for path in pd.read_csv(tmp_path / "run" / "bad_files.csv").path] == ["04.jpg"]
    table = table_of(tmp_path / "run")
    assert table.epoch.tolist() == [1, 1, 2, 2]
    assert table.images.tolist() == table.images[:2].tolist() * 2
    assert table.images[:2].sum() == 22


def test_a_run_on_kerass_own_generator_is_resumed(photo_folder: Path, tmp_path: Path):
    flags = ("--image-size", "32", "--batch-size", "8", "--epochs", "2", "--input", "idg")
    stop = stop_after_epoch_1("train", "--data", photo_folder, "--out", tmp_path, "--name", "run", *flags)
    assert stop.exit_code == 128 + signal.SIGTERM
    result = command("train", "--resume", tmp_path / "run")
    assert result.exit_code == 0, result.output
    images = table_of(tmp_path / "run").images.tolist()
    assert images == images[:2] * 2
    assert sum(images[:2]) == 23


# ---- the checkpoints alone


@pytest.fixture
def tiny() -> tf.keras.Model:
    model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, use_bias=False)])
    model.compile(optimizer="sgd", loss="mse")
    return model


def weight_in(path: Path) -> float:
    return float(tf.keras.models.load_model(path).get_weights()[0][0, 0])


@pytest.mark.parametrize(
    ("monitor", "before", "values", "best_epoch"),
    [
        ("val_accuracy", None, [0.5, 0.8, 0.7], 2),
        ("val_accuracy", None, [0.8, 0.8, 0.8], 1),
        ("val_loss", None, [0.5, 0.2, 0.3], 2),
        ("val_loss", None, [float("nan"), 0.4, float("nan")], 2),
        ("val_accuracy", 0.9, [0.8, 0.85, 0.89], None),
        ("val_accuracy", 0.7, [0.6, 0.8, 0.7], 2),
        ("val_loss", 0.1, [0.2, 0.3, 0.15], None),
    ],
    ids=str,
)
def test_a_worse_epoch_never_replaces_the_best_model(tiny, tmp_path, monitor, before, values, best_epoch):
    callback = checkpoint_callback(tmp_path, monitor, before)
    callback.set_model(tiny)
    for epoch, value in enumerate(values, start=1):
        tiny.set_weights([np.full((1, 1), epoch, np.float32)])
        callback.on_epoch_end(epoch - 1, {monitor: value})
        assert weight_in(tmp_path / LAST_FILE) == epoch
    if best_epoch is None:
        assert not (tmp_path / BEST_FILE).exists()
    else:
        assert weight_in(tmp_path / BEST_FILE) == best_epoch


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_save_that_breaks_off_leaves_the_model_before_and_nothing_else(tiny, tmp_path, monkeypatch, error):
    callback = checkpoint_callback(tmp_path, "val_loss", None)
    callback.set_model(tiny)
    tiny.set_weights([np.full((1, 1), 5, np.float32)])
    callback.on_epoch_end(0, {"val_loss": 1.0})

    def save_half(path: Path) -> None:
        Path(path).write_bytes(b"half")
        raise error

    monkeypatch.setattr(tiny, "save", save_half)
    with pytest.raises(error):
        callback.on_epoch_end(1, {"val_loss": 0.5})
    assert {path.name for path in tmp_path.iterdir()} == {BEST_FILE, LAST_FILE}
    assert weight_in(tmp_path / BEST_FILE) == weight_in(tmp_path / LAST_FILE) == 5
