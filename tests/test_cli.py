"""The command line as a person meets it: help, refusals, and the whole job from flags to a comparison."""

import ast
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pandas as pd
import pytest
from click.testing import CliRunner
from PIL import Image

import cli
import model
import pipeline
from telemetry import COLUMNS

ROOT = Path(__file__).resolve().parents[1]
SMALL = ["--image-size", "32", "--batch-size", "8", "--epochs", "2"]


def run(*arguments: object):
    return CliRunner().invoke(cli.main, [str(argument) for argument in arguments])


def train(folder: Path, name: str, *arguments: object):
    return run("train", "--out", folder, "--name", name, *SMALL, *arguments)


def write_table(path: Path, photo_folder: Path, **columns: list) -> Path:
    names = [f"{path.parent.name}/{path.name}" for path in sorted(photo_folder.glob("*/*.jpg"))]
    table = {"Photo": names, "Class": [name.split("/")[0] for name in names]} | columns
    pd.DataFrame(table).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def finished(photo_folder, tmp_path_factory):
    """A run folder of the default recipe on the photos."""
    out = tmp_path_factory.mktemp("runs")
    result = train(out, "first", "--data", photo_folder)
    assert result.exit_code == 0, result.output
    return out / "first"


def test_help_is_there_without_tensorflow():
    script = "import sys, cli; assert 'tensorflow' not in sys.modules, 'help would wait for TensorFlow'"
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize("command", ["", "train", "report", "compare", "explain-idg"])
def test_every_command_explains_itself(command):
    result = run(*command.split(), "--help")
    assert result.exit_code == 0
    assert result.output.startswith("Usage:")
    assert all(len(line) <= 110 for line in result.output.splitlines())


def test_the_choices_of_the_flags_are_those_of_the_packages():
    choices = {
        param.name: tuple(param.type.choices)
        for param in cli.main.commands["train"].params
        if isinstance(param.type, click.Choice)
    }
    assert choices["interpolation"] == pipeline.INTERPOLATIONS
    assert choices["method"] == pipeline.METHODS
    assert choices["cache"] == pipeline.CACHE_MODES
    assert choices["fill_mode"] == pipeline.FILL_MODES
    assert choices["resampler"] == tuple(pipeline.RESAMPLERS)


def test_the_defaults_of_the_flags_are_those_of_the_packages():
    defaults = {param.name: param.default for param in cli.main.commands["train"].params}
    ranges = pipeline.AugmentRanges()
    assert defaults["rotation"] == ranges.rotation_degrees
    assert defaults["shear"] == ranges.shear_degrees
    assert cli.RangeType(centre=1.0).convert(defaults["zoom"], None, None) == ranges.zoom
    assert cli.RangeType().convert(defaults["brightness"], None, None) == ranges.brightness
    names = ("width_shift", "height_shift", "horizontal_flip", "vertical_flip", "channel_shift", "fill_mode", "cval")
    for name in names:
        assert defaults[name] == getattr(ranges, name), name
    data = pipeline.DataConfig()
    for name in ("x_column", "y_column", "validation_fraction", "bad_files", "verify"):
        assert defaults[name] == getattr(data, name), name


def test_every_flag_stands_with_its_default_in_the_readme():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = dict(cli.main.commands)
    commands |= {f"cache {name}": command for name, command in commands.pop("cache").commands.items()}
    for name, command in commands.items():
        for param in command.params:
            if isinstance(param, click.Option):
                assert f"`{param.opts[0]}" in readme, f"{name} {param.opts[0]} is not in the README"


def test_only_the_command_line_prints():
    for package in ("pipeline", "model", "telemetry"):
        for path in (ROOT / package).glob("**/*.py"):
            nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            called = [node.func for node in nodes if isinstance(node, ast.Call)]
            assert not any(getattr(function, "id", None) == "print" for function in called), path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "{empty}"], "is empty; give a folder with one sub-folder|is empty; put the images"),
        (["--data", "{one_class}"], "only one class, 'dark', has images"),
        (["--data", "{nowhere}"], "does not exist; give a folder"),
        (["--csv", "{table}", "--y-col", "Label"], r"has no column 'Label'.*'Photo', 'Class'"),
        (["--csv", "{nowhere}.csv"], "does not exist; give a csv file"),
        (["--csv", "{missing_file}"], "gone.jpg does not exist .*--bad-files skip"),
        (["--data", "{photos}", "--backbone", "MobileNetV9"], "no backbone 'MobileNetV9'; did you mean MobileNet"),
        (["--data", "{photos}", "--backbone", "MobileNetV2", "--weights", "{nowhere}.h5"], "nowhere.h5"),
        (["--data", "{photos}", "--monitor", "val_f1"], "monitor 'val_f1' is not reported.*val_accuracy"),
        (["--data", "{photos}", "--val-split", "0"], "no validation data, so pass --monitor accuracy"),
        (["--data", "{photos}", "--val-split", "1.5"], "--val-split must be at least 0 and below 1"),
        (["--data", "{photos}", "--csv", "{table}"], "--data and --csv exclude each other"),
        (["--data", "{photos}", "--image-size", "0x12"], "'0x12' is not an image size"),
        (["--data", "{photos}", "--brightness", "bright"], "'bright' is not a range"),
        (["--data", "{photos}", "--brightness", "1.5,0.5"], "brightness must be two finite numbers"),
        (["--data", "{photos}", "--prefetch", "-1"], "neither auto nor a whole number of 0 or more"),
        (["--data", "{photos}", "--gpu-memory-limit", "4 potatoes"], "neither a size such as 4GiB nor a share"),
        (["--data", "{photos}", "--learning-rate", "-1"], "learning_rate=-1"),
        (["--data", "{photos}", "--input", "idg", "--augment-on", "device"], "Keras's generator augments on the host"),
        (["--data", "{photos}", "--input", "idg", "--decode", "fast", "--parallel", "2"], "--decode, --parallel: does"),
        (["--data", "{photos}", "--input", "idg", "--cache", "ram"], "--cache: does nothing for Keras's generator"),
        (["--data", "{photos}", "--cache", "ram", "--no-cache"], "--cache and --no-cache exclude each other"),
        (["--data", "{photos}", "--prefetch", "5", "--no-prefetch"], "--prefetch and --no-prefetch exclude each other"),
        (["--data", "{photos}", "--fill-mode", "constant", "--cval", "300"], "cval must be a level from 0 to 255"),
        (["--data", "{photos}", "--seed", "5000000000"], "5000000000 is not in the range 0<=x<=4294967295"),
        (["--resume", "{nowhere}", "--epochs", "5"], "--resume takes its flags from the run; leave out --epochs"),
        (["--resume", "{nowhere}"], "nowhere holds no run"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_clear_line_before_any_training(photo_folder, tmp_path, arguments, message):
    places = {name: tmp_path / name for name in ("empty", "one_class", "nowhere", "runs")}
    places["photos"] = photo_folder
    places["empty"].mkdir()
    (places["one_class"] / "dark").mkdir(parents=True)
    Image.new("RGB", (40, 40)).save(places["one_class"] / "dark" / "a.png")
    places["table"] = write_table(tmp_path / "table.csv", photo_folder)
    names = ["dark/00.jpg", "light/00.jpg", "light/01.jpg", "gone.jpg"]
    places["missing_file"] = tmp_path / "missing.csv"
    table = pd.DataFrame({"Photo": [photo_folder / name for name in names], "Class": ["a", "b", "b", "a"]})
    table.to_csv(places["missing_file"], index=False)
    images = ["--images", photo_folder] if "--csv" in arguments and "nowhere" not in str(arguments) else []
    given = [argument.format(**places) for argument in arguments]
    small = [] if "--resume" in arguments else ["--out", places["runs"], *SMALL]
    result = run("train", *small, *given, *images)
    assert result.exit_code == 2
    lines = [line for line in result.output.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1
    assert re.search(message, lines[0]), lines[0]
    assert "Traceback" not in result.output
    assert "epoch 1" not in result.output
    # nothing half-made is left in the way of the next try
    assert not places["runs"].exists() or not list(places["runs"].iterdir())


def test_an_existing_run_folder_is_left_as_it_is(finished, photo_folder):
    before = {path.name: path.read_bytes() for path in finished.iterdir()}
    result = train(finished.parent, "first", "--data", photo_folder)
    assert result.exit_code == 2
    assert "first exists already; choose another name" in result.output
    assert {path.name: path.read_bytes() for path in finished.iterdir()} == before


def test_a_run_leaves_a_complete_folder(finished):
    names = {path.name for path in finished.iterdir()}
    expected = {"run.json", "samples.jsonl", "marks.jsonl", "epochs.csv", "bad_files.csv", "report.html"}
    assert names == expected | {"best.keras", "last.keras"}
    document = json.loads((finished / "run.json").read_text(encoding="utf-8"))
    assert document["status"] == "finished"
    assert document["class_names"] == ["dark", "light"]
    assert document["images"] == {"train": 19, "validation": 4}
    assert document["preprocessing"]["channel_affine"]["offset"] == [-1.0, -1.0, -1.0]
    chosen = {"height": 32, "width": 32, "interpolation": "nearest", "method": "exact", "color_mode": "rgb"}
    assert document["config"]["feed"]["decode"].items() >= chosen.items()


def test_the_table_has_a_row_an_epoch_and_phase_with_the_images_that_were_seen(finished):
    table = pd.read_csv(finished / "epochs.csv")
    assert tuple(table.columns[: len(COLUMNS)]) == COLUMNS
    assert list(zip(table.epoch, table.phase, table.images, strict=True)) == [
        (1, "train", 19), (1, "validation", 4), (2, "train", 19), (2, "validation", 4),
    ]  # fmt: skip
    for column in ("seconds", "input_wait_percent", "rss_mib", "loss", "accuracy"):
        known = table[column][table.epoch == 2] if column == "input_wait_percent" else table[column]
        assert known.notna().all(), column
    assert (table.input_wait_percent.dropna() <= 100).all()


def test_report_prints_the_table_again_and_writes_the_page(finished):
    (finished / "report.html").unlink()
    result = run("report", finished)
    assert result.exit_code == 0
    assert "validation" in result.output
    assert "report.html" in result.output
    assert "<html" in (finished / "report.html").read_text(encoding="utf-8")


def test_two_runs_stand_side_by_side_with_the_flag_that_differs(finished, photo_folder, tmp_path):
    assert train(finished.parent, "second", "--data", photo_folder, "--no-cache", "--no-prefetch").exit_code == 0
    result = run("compare", finished, finished.parent / "second", "--html", tmp_path / "c.html")
    assert result.exit_code == 0, result.output
    for field in ("cache", "feed.prefetch_batches"):
        assert field in result.output
    assert "second" in (tmp_path / "c.html").read_text(encoding="utf-8")


def test_comparing_one_run_is_refused(finished):
    result = run("compare", finished)
    assert result.exit_code == 2
    assert "at least two runs" in result.output


def test_a_table_trains_like_the_folder_it_lists(finished, photo_folder, tmp_path):
    table = write_table(tmp_path / "photos.csv", photo_folder)
    result = train(tmp_path, "table", "--csv", table, "--images", photo_folder)
    assert result.exit_code == 0, result.output
    by_folder, by_table = (pd.read_csv(run / "epochs.csv") for run in (finished, tmp_path / "table"))
    assert abs(by_folder.loss[0] - by_table.loss[0]) < 1e-3


def test_the_same_flags_give_the_same_losses_and_another_seed_others(finished, photo_folder, tmp_path):
    assert train(tmp_path, "again", "--data", photo_folder).exit_code == 0
    assert train(tmp_path, "other", "--data", photo_folder, "--seed", "7").exit_code == 0
    first, again, other = (
        pd.read_csv(folder / "epochs.csv").loss for folder in (finished, tmp_path / "again", tmp_path / "other")
    )
    assert abs(first[0] - again[0]) < 1e-3
    assert abs(first[0] - other[0]) > 1e-3


def test_bad_files_are_skipped_on_request_and_named(photo_folder, tmp_path):
    folder = tmp_path / "photos"
    shutil.copytree(photo_folder, folder)
    whole = (folder / "dark" / "03.jpg").read_bytes()
    (folder / "dark" / "03.jpg").write_bytes(whole[: len(whole) // 2])
    (folder / "light" / "04.jpg").write_bytes(b"")
    refused = train(tmp_path, "refused", "--data", folder)
    assert refused.exit_code == 2
    assert "2 files cannot be used" in refused.output
    assert train(tmp_path, "skipped", "--data", folder, "--bad-files", "skip").exit_code == 0
    named = pd.read_csv(tmp_path / "skipped" / "bad_files.csv")
    assert [Path(path).name for path in named.path] == ["03.jpg", "04.jpg"]
    assert named.reason[1] == "is empty"
    table = pd.read_csv(tmp_path / "skipped" / "epochs.csv")
    assert table.images[:2].sum() == 21


def test_kerass_own_generator_trains_with_the_same_recipe(photo_folder, tmp_path):
    result = train(tmp_path, "idg", "--data", photo_folder, "--input", "idg")
    assert result.exit_code == 0, result.output
    table = pd.read_csv(tmp_path / "idg" / "epochs.csv")
    assert table.images.tolist() == [19, 4, 19, 4]


def test_augmentation_in_the_train_step_gives_the_hosts_losses(finished, photo_folder, tmp_path):
    result = train(tmp_path, "device", "--data", photo_folder, "--augment-on", "device")
    assert result.exit_code == 0, result.output
    host, device = (pd.read_csv(folder / "epochs.csv").loss for folder in (finished, tmp_path / "device"))
    assert abs(host - device).max() < 1e-3


def test_a_run_remembers_its_places_from_the_root_on(photo_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(photo_folder.parent)
    assert train(tmp_path, "relative", "--data", photo_folder.name).exit_code == 0
    document = json.loads((tmp_path / "relative" / "run.json").read_text(encoding="utf-8"))
    assert document["config"]["data"]["folder"] == str(photo_folder)


def test_more_than_two_classes_and_separate_validation_data(photo_folder, tmp_path):
    for part in ("train", "val"):
        for name in ("a", "b", "c"):
            shutil.copytree(photo_folder / ("dark" if name == "a" else "light"), tmp_path / part / name)
    result = train(tmp_path, "three", "--data", tmp_path / "train", "--val-data", tmp_path / "val")
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "three" / "run.json").read_text(encoding="utf-8"))["images"] == {
        "train": 35,
        "validation": 35,
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4GiB", 4 * 2**30),
        ("512 MiB", 512 * 2**20),
        ("2GB", 2 * 10**9),
        ("4294967296", 2**32),
        ("0.5", 0.5),
        ("1", 1.0),
    ],
)
def test_memory_is_given_in_bytes_or_as_a_share(text, expected):
    converted = cli.MemoryType().convert(text, None, None)
    assert converted == expected
    assert isinstance(converted, int) == (expected > 1)


@pytest.mark.parametrize(("text", "expected"), [("299", (299, 299)), ("240x320", (240, 320)), ("240X320", (240, 320))])
def test_sizes_are_height_by_width(text, expected):
    assert cli.SizeType().convert(text, None, None) == expected


def test_the_packages_export_what_they_say():
    for package in (model, pipeline):
        assert sorted(package.__all__) == sorted(set(package.__all__))
        assert all(hasattr(package, name) for name in package.__all__)


def test_what_the_flags_alone_get_wrong_is_told_before_the_files_are_read(photo_folder, tmp_path):
    wrong = [["--backbone", "MobileNetV2", "--weights", "gone.h5"]]
    if importlib.util.find_spec("tensorflow_addons") is None:
        wrong.append(["--resampler", "addons"])
    for flags in wrong:
        result = train(tmp_path, "wrong", "--data", photo_folder, *flags)
        assert result.exit_code == 2
        assert "checking" not in result.output


def test_a_script_is_explained_and_never_run(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "from keras.preprocessing.image import ImageDataGenerator\n"
        "generator = ImageDataGenerator(width_shift_range=0.4)\n"
        "raise SystemExit('this file was run')\n",
        encoding="utf-8",
    )
    result = run("explain-idg", script)
    assert result.exit_code == 0, result.output
    assert "Images moved up and down, not sideways" in result.output


def test_arguments_are_explained_and_wrong_ones_refused():
    result = run("explain-idg", "--shear-range", "0.4", "--horizontal-flip")
    assert result.exit_code == 0, result.output
    assert "0.4 is 0.4 degrees" in result.output
    for arguments, message in (
        ((), "give either a Python file or arguments"),
        (("--zoom-range", "wide"), "--zoom-range: 'wide' is not a number"),
        (("gone.py",), "gone.py"),
    ):
        result = run("explain-idg", *arguments)
        assert result.exit_code == 2
        assert message in result.output.splitlines()[-1]


def test_the_flags_of_explain_idg_are_the_generators_arguments():
    from pipeline.generator.explain import ARGUMENT_FLAGS

    flags = {param.name: param for param in cli.main.commands["explain-idg"].params if param.name != "script"}
    assert list(flags) == [flag.argument for flag in ARGUMENT_FLAGS]
    for flag in ARGUMENT_FLAGS:
        param = flags[flag.argument]
        assert (param.opts, param.is_flag) == ([flag.flag], flag.kind == "flag")
        assert param.help
