"""Feedline's command line: train with one flag changed, then compare what disk, CPU and GPU did.

Each command is a thin shell over one function. TensorFlow is imported only by the commands that train, so that help and
reports are there at once; the flags' choices are therefore spelled here, and a test holds them to the packages' own.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from telemetry import (
    RecordError,
    compare_runs,
    epoch_rows,
    evict_files,
    format_comparison,
    format_table,
    load_run,
    render_comparison,
    write_report,
    write_text,
)

if TYPE_CHECKING:
    from model import TrainConfig
    from pipeline import AugmentRanges, CacheFolder, FeedConfig

_UNIT_BYTES = {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "KB": 10**3, "MB": 10**6, "GB": 10**9}
_AUTO = "auto"
# flags that only the tf.data pipeline can follow; --cache off and --no-cache say what Keras's generator does anyway
_TFDATA_ONLY = (
    "--decode",
    "--prefetch",
    "--no-prefetch",
    "--parallel",
    "--resampler",
    "--cache-budget",
    "--cache-dir",
)


class SizeType(click.ParamType):
    """Image size: one number for a square, or HEIGHTxWIDTH."""

    name = "N|HxW"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Returns (height, width) in pixels."""
        if isinstance(value, tuple):
            return value
        found = re.fullmatch(r"(\d+)(?:x(\d+))?", value.strip().lower())
        if not found or "0" in (found[1].lstrip("0") or "0", (found[2] or "1").lstrip("0") or "0"):
            self.fail(f"{value!r} is not an image size; give one such as 299 or 240x320 (height x width)", param, ctx)
        return int(found[1]), int(found[2] or found[1])


class RangeType(click.ParamType):
    """A lower and an upper bound, or one amount around a centre, or none."""

    name = "LOW,HIGH"

    def __init__(self, centre: float | None = None, optional: bool = False) -> None:
        self._centre = centre
        self._optional = optional

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns (low, high), or None for `none`."""
        if not isinstance(value, str):
            return value
        if self._optional and value == "none":
            return None
        try:
            numbers = [float(part) for part in value.split(",")]
        except ValueError:
            numbers = []
        if len(numbers) == 1 and self._centre is not None:
            return self._centre - numbers[0], self._centre + numbers[0]
        if len(numbers) != 2:
            self.fail(f"{value!r} is not a range; give two numbers such as 0.5,1.5", param, ctx)
        return tuple(numbers)


class CountType(click.ParamType):
    """A whole number, or auto."""

    name = "auto|N"

    def __init__(self, least: int) -> None:
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """Returns the number, or `auto`."""
        if value == _AUTO or isinstance(value, int):
            return value
        if not value.isdecimal() or int(value) < self._least:
            self.fail(f"{value!r} is neither auto nor a whole number of {self._least} or more", param, ctx)
        return int(value)


class BytesType(click.ParamType):
    """An amount of memory or disk: bytes, perhaps with a unit."""

    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Returns bytes."""
        if not isinstance(value, str):
            return value
        size = _bytes(value)
        return self.fail(f"{value!r} is not a size; give one such as 4GiB", param, ctx) if size is None else size


class MemoryType(click.ParamType):
    """An amount of memory: bytes, perhaps with a unit, or a share between 0 and 1."""

    name = "SIZE|SHARE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | float:
        """Returns bytes as an int, or a share as a float."""
        if not isinstance(value, str):
            return value
        if re.fullmatch(r"0?\.\d+|1(\.0*)?", value.strip()) and float(value) > 0:
            return float(value)
        size = _bytes(value)
        message = f"{value!r} is neither a size such as 4GiB nor a share such as 0.5"
        return self.fail(message, param, ctx) if size is None else size


def _bytes(text: str) -> int | None:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]i?b)?", text.strip().lower())
    if not found or float(found[1]) == 0 or not (found[2] or float(found[1]).is_integer()):
        return None
    return int(float(found[1]) * _UNIT_BYTES[found[2].upper()]) if found[2] else int(float(found[1]))


@contextmanager
def _errors_as_one_line() -> Iterator[None]:
    """Turns what the packages refuse into one clear line: exit code 2 for bad input or usage, 1 for a failure later."""
    try:
        yield
    except click.ClickException:
        raise
    except Exception as error:
        if not _is_refusal(error):
            raise
        refusal = click.ClickException(str(error))
        refusal.exit_code = 1 if _is_failure_on_the_way(error) else 2
        raise refusal from error


@contextmanager
def _stopped_in_one_line() -> Iterator[None]:
    """Turns Ctrl-C, and a job scheduler's SIGTERM, into one line that says how to go on; exit code 128 + signal."""
    received = [signal.SIGINT]

    def stop(number: int, frame: Any) -> None:
        received.append(signal.Signals(number))
        raise KeyboardInterrupt

    is_main = threading.current_thread() is threading.main_thread()  # no other may set handlers
    before = signal.signal(signal.SIGTERM, stop) if is_main else None
    try:
        yield
    except KeyboardInterrupt as error:
        folder = getattr(error, "folder", None)
        how = f"go on with --resume {shlex.quote(_shown(folder))}" if folder else "no epoch had begun"
        stopped = click.ClickException(f"stopped by {received[-1].name}; {how}")
        stopped.exit_code = 128 + received[-1]
        raise stopped from error
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


def _is_refusal(error: Exception) -> bool:
    refusals: list[type[Exception]] = [RecordError]
    # what was never imported cannot have raised
    if "pipeline" in sys.modules:
        from pipeline import DataError

        refusals.append(DataError)
    if "model" in sys.modules:
        from model import ModelError

        refusals.append(ModelError)
    return isinstance(error, tuple(refusals))


def _is_failure_on_the_way(error: BaseException | None) -> bool:
    if "model" not in sys.modules:
        return False
    from model import TrainingError

    # where records cannot be written, closing them fails as well: the first failure stands behind that one
    while error is not None and not isinstance(error, TrainingError):
        error = error.__context__
    return error is not None


def _say(line: str) -> None:
    """Progress goes to stderr; a line that replaces the one before has no end."""
    click.echo(line, err=True, nl=not line.startswith("\r") or "(" in line)


_HELP = """Keep a training accelerator fed, and see why when it is not.

Train twice with one flag changed, then compare what disk, CPU and GPU did in each epoch and phase:

\b
  python cli.py train --name cached
  python cli.py train --name uncached --no-cache
  python cli.py compare runs/cached runs/uncached
"""


@click.group(help=_HELP, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="feedline")
def main() -> None:
    """The group of all commands."""


_SOURCE_OPTIONS = (
    click.option(
        "--data", "folder", metavar="DIR", help="Images, one sub-folder a class.  [default: a demonstration set]"
    ),
    click.option("--csv", metavar="FILE", help="A table of image paths and classes, in place of --data."),
    click.option(
        "--x-col", "x_column", metavar="NAME", default="Photo", show_default=True, help="The table's column of paths."
    ),
    click.option(
        "--y-col", "y_column", metavar="NAME", default="Class", show_default=True, help="The table's column of classes."
    ),
    click.option("--images", metavar="DIR", help="Where relative paths start.  [default: the table's folder]"),
)
_SPLIT_OPTIONS = (
    click.option("--val-data", "validation_folder", metavar="DIR", help="Validation images, laid out as --data."),
    click.option("--val-csv", "validation_csv", metavar="FILE", help="Validation table, laid out as --csv."),
    click.option(
        "--val-split",
        "validation_fraction",
        metavar="SHARE",
        default=0.2,
        show_default=True,
        help="Share of each class that becomes validation data if none is named; 0 for no validation "
        "(then with --monitor accuracy).",
    ),
    click.option(
        "--bad-files",
        type=click.Choice(["error", "skip"]),
        default="error",
        show_default=True,
        help="What to do with files that cannot be decoded: stop, naming them, or leave them out.",
    ),
    click.option(
        "--verify/--no-verify",
        default=None,
        help="Decode every file once before the start.  [default: for up to 50,000 files]",
    ),
)
_INPUT_OPTIONS = (
    click.option(
        "--input",
        type=click.Choice(["tfdata", "idg"]),
        default="tfdata",
        show_default=True,
        help="tfdata: this pipeline. idg: Keras's own ImageDataGenerator with the same recipe, for a "
        "comparison (there --width-shift moves images up and down and --height-shift sideways).",
    ),
    click.option(
        "--image-size",
        type=SizeType(),
        metavar="N|HxW",
        help="Size that images are decoded to.  [default: 128 for small_cnn, else the backbone's own]",
    ),
)
_DECODE_OPTIONS = (
    click.option(
        "--interpolation",
        type=click.Choice(["nearest", "bilinear", "bicubic", "lanczos", "box", "hamming"]),
        default="nearest",
        show_default=True,
        help="Filter of the resize, the same for both inputs (nearest is Keras's default).",
    ),
    click.option(
        "--decode",
        "method",
        type=click.Choice(["exact", "fast"]),
        default="exact",
        show_default=True,
        help="exact: Pillow's pixels (bilinear: within one level). fast: a few levels off.",
    ),
)
_CACHE_OPTIONS = (
    click.option(
        "--cache",
        type=click.Choice(["off", "encoded", "ram", "disk"]),
        default="ram",
        show_default=True,
        help="What to keep of the images from epoch 1 on, as far as it fits. encoded: the files' bytes in memory. ram, "
        "disk: decoded pixels, in memory or in a folder that the next run finds again. off: read and decode anew in "
        "every epoch, as --input idg always does.",
    ),
    click.option("--no-cache", is_flag=True, help="Short for --cache off."),
    click.option(
        "--cache-budget",
        type=BytesType(),
        help="The most that the cache may take, such as 4GiB.  [default: 60 % of the usable memory, 90 % of the free "
        "disk]",
    ),
    click.option("--cache-dir", metavar="DIR", help="Folder of --cache disk.  [default: the user's cache folder]"),
)
_BATCH_OPTIONS = (
    click.option(
        "--batch-size", type=click.IntRange(min=1), metavar="N", default=32, show_default=True, help="Images a step."
    ),
    click.option(
        "--prefetch",
        type=CountType(0),
        metavar="auto|N",
        default=_AUTO,
        show_default=True,
        help="Batches made ahead of the model; 0 makes each only when it is asked for. auto: 2.",
    ),
    click.option("--no-prefetch", is_flag=True, help="Short for --prefetch 0."),
    click.option(
        "--parallel",
        type=CountType(1),
        metavar="auto|N",
        default=_AUTO,
        show_default=True,
        help="Images that are read and decoded at once. auto: four times the usable cores.",
    ),
)
_RANGE_OPTIONS = (
    click.option("--rotation", metavar="NUMBER", default=30.0, show_default=True, help="Degrees, to either side."),
    click.option(
        "--width-shift",
        metavar="NUMBER",
        default=0.4,
        show_default=True,
        help="Sideways; below 1 a share of the width, else pixels.",
    ),
    click.option(
        "--height-shift",
        metavar="NUMBER",
        default=0.4,
        show_default=True,
        help="Up and down; below 1 a share of the height, else pixels.",
    ),
    click.option(
        "--shear",
        metavar="NUMBER",
        default=0.4,
        show_default=True,
        help="Degrees (as in Keras: 0.4 does next to nothing).",
    ),
    click.option(
        "--zoom",
        type=RangeType(centre=1.0),
        metavar="Z|LOW,HIGH",
        default="0.25",
        show_default=True,
        help="Z for 1-Z to 1+Z, or LOW,HIGH; below 1 enlarges.",
    ),
    click.option(
        "--horizontal-flip/--no-horizontal-flip", default=True, show_default=True, help="Mirror every second image."
    ),
    click.option(
        "--vertical-flip/--no-vertical-flip",
        default=False,
        show_default=True,
        help="Turn every second image upside down.",
    ),
    click.option(
        "--channel-shift",
        metavar="NUMBER",
        default=0.0,
        show_default=True,
        help="Levels of 255 added to all channels, to either side.",
    ),
    click.option(
        "--brightness",
        type=RangeType(optional=True),
        metavar="LOW,HIGH|none",
        default="0.5,1.5",
        show_default=True,
        help="Range of the factor, or none.",
    ),
    click.option(
        "--fill-mode",
        type=click.Choice(["nearest", "constant", "reflect", "wrap"]),
        default="nearest",
        show_default=True,
        help="What stands outside the image.",
    ),
    click.option(
        "--cval", metavar="NUMBER", default=0.0, show_default=True, help="Level outside for --fill-mode constant."
    ),
)
_PLACE_OPTIONS = (
    click.option(
        "--augment-on",
        type=click.Choice(["auto", "host", "device", "off"]),
        default="auto",
        show_default=True,
        help="host: in the pipeline. device: in the compiled train step. auto: the faster, by a few batches of each, "
        "where there is a GPU, else host.",
    ),
    click.option(
        "--resampler",
        type=click.Choice(["fused", "addons"]),
        default="fused",
        show_default=True,
        help="fused: one XLA function. addons: tfa.image.transform (TensorFlow 2.15 with the extra `addons`).",
    ),
)
_MODEL_OPTIONS = (
    click.option(
        "--backbone",
        metavar="NAME",
        default="small_cnn",
        show_default=True,
        help="small_cnn, or a Keras Application, e.g. MobileNetV2.",
    ),
    click.option(
        "--weights",
        metavar="imagenet|none|FILE",
        help="Of the backbone, without top; with weights it is frozen.  [default: none for small_cnn, else imagenet]",
    ),
    click.option("--learning-rate", metavar="NUMBER", default=1e-3, show_default=True, help="Of Adam."),
    click.option(
        "--epochs", type=click.IntRange(min=1), metavar="N", default=3, show_default=True, help="Epochs in all."
    ),
    click.option(
        "--seed",
        type=click.IntRange(0, 2**32 - 1),
        metavar="N",
        default=42,
        show_default=True,
        help="Of split, order, augmentation and initial weights.",
    ),
    click.option(
        "--monitor",
        metavar="NAME",
        default="val_accuracy",
        show_default=True,
        help="Value by which best.keras is chosen.",
    ),
    click.option(
        "--memory-growth/--no-memory-growth",
        "growth",
        default=False,
        show_default=True,
        help="Let TensorFlow reserve GPU memory as it needs it, not all at once.",
    ),
    click.option(
        "--gpu-memory-limit",
        type=MemoryType(),
        metavar="SIZE|SHARE",
        help="The most that TensorFlow reserves: 4GiB, plain bytes, or 0.5 of the card.",
    ),
)
_RUN_OPTIONS = (
    click.option(
        "--evict-page-cache",
        is_flag=True,
        help="Drop the data's files from the page cache first, so that epoch 1 reads the disk.",
    ),
    click.option("--out", default="runs", show_default=True, metavar="DIR", help="Folder of all runs."),
    click.option("--name", metavar="NAME", help="Name of this run's folder.  [default: a time stamp]"),
    click.option("--resume", "resumed", metavar="RUN", help="Continue a stopped run; all other flags come from it."),
)
_TRAIN_OPTIONS = (
    *_SOURCE_OPTIONS,
    *_SPLIT_OPTIONS,
    *_INPUT_OPTIONS,
    *_DECODE_OPTIONS,
    *_CACHE_OPTIONS,
    *_BATCH_OPTIONS,
    *_RANGE_OPTIONS,
    *_PLACE_OPTIONS,
    *_MODEL_OPTIONS,
    *_RUN_OPTIONS,
)


def _with_options(options: tuple[Callable, ...]) -> Callable[[Callable], Callable]:
    def decorate(command: Callable) -> Callable:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@main.command()
@_with_options(_TRAIN_OPTIONS)
@click.pass_context
def train(ctx: click.Context, out: str, name: str | None, resumed: str | None, **flags: Any) -> None:
    """Train a classifier and record the load on disk, CPU and GPU.

    Without flags it trains a small network on a demonstration set, in about a minute.
    """
    with _stopped_in_one_line(), _errors_as_one_line():
        if resumed:
            _refuse_other_flags(ctx)
        _refuse_crossed_flags(_flags_given(ctx), flags)
        with _start_up_messages_held():
            import tensorflow as tf

            import model

            model.visible_gpus()  # the first look at the devices is what the rest of the messages are about
        is_terminal = sys.stderr.isatty()
        config = model.resumed_config(Path(resumed)) if resumed else _train_config(flags)
        # this process is the command's own: what takes its weights from Keras's global state is reproducible too
        tf.keras.utils.set_random_seed(config.feed.seed)
        if resumed:
            result = model.resume(Path(resumed), report=_say, is_terminal=is_terminal)
        else:
            result = model.train(config, out=Path(out), name=name, report=_say, is_terminal=is_terminal)
    click.echo(format_table(result.rows))
    click.echo(f"\n{_shown(result.report)}")


@contextmanager
def _start_up_messages_held() -> Iterator[None]:
    """Keeps what TensorFlow's libraries write at their start off the terminal; an error brings it all back."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.stderr.flush()
    terminal = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        except BaseException:
            held.seek(0)
            os.write(terminal, held.read())
            raise
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)


def _flags_given(ctx: click.Context) -> list[str]:
    return [
        param.opts[0]
        for param in ctx.command.params
        if ctx.get_parameter_source(param.name) is click.core.ParameterSource.COMMANDLINE
    ]


def _refuse_other_flags(ctx: click.Context) -> None:
    given = [flag for flag in _flags_given(ctx) if flag != "--resume"]
    if given:
        raise click.UsageError(f"--resume takes its flags from the run; leave out {', '.join(given)}")


def _refuse_crossed_flags(given: list[str], flags: dict[str, Any]) -> None:
    """Refuses flags of which one would be ignored without a word."""
    for long, short in (("--cache", "--no-cache"), ("--prefetch", "--no-prefetch")):
        if long in given and short in given:
            raise click.UsageError(f"{long} and {short} exclude each other; leave one out")
    idle = [flag for flag in given if flag in _TFDATA_ONLY or (flag == "--cache" and flags["cache"] != "off")]
    if flags["input"] == "idg" and idle:
        raise click.UsageError(f"{', '.join(idle)}: does nothing for Keras's generator; leave out with --input idg")
    mode = "off" if flags["no_cache"] else flags["cache"]
    if "--cache-budget" in given and mode == "off":
        raise click.UsageError("--cache-budget: there is no cache to limit; leave it out with --cache off")
    if "--cache-dir" in given and mode != "disk":
        raise click.UsageError(f"--cache-dir: --cache {mode} keeps nothing on disk; leave it out, or pass --cache disk")


def _train_config(flags: dict[str, Any]) -> TrainConfig:
    """The flags as one checked value; every problem of theirs is a usage error."""
    import model
    import pipeline

    def chosen(*names: str) -> dict[str, Any]:
        return {name: flags[name] for name in names}

    def paths(*names: str) -> dict[str, str | None]:
        # absolute, so that a run can be resumed from any folder
        return {name: flags[name] and os.path.abspath(flags[name]) for name in names}

    is_small = flags["backbone"] == "small_cnn"
    model.check_backbone(flags["backbone"])
    size = flags["image_size"] or ((128, 128) if is_small else (model.default_image_size(flags["backbone"]),) * 2)
    augment_on = _augment_on(flags)
    try:
        return model.TrainConfig(
            data=pipeline.DataConfig(
                **paths("folder", "csv", "images", "validation_folder", "validation_csv"),
                **chosen("x_column", "y_column", "validation_fraction", "bad_files", "verify"),
            ),
            feed=_feed_config(
                flags,
                size,
                augment=None if augment_on == "off" else _augment_ranges(flags),
                augment_on="device" if augment_on == "device" else "host",
                preprocess=model.preprocessing_of(flags["backbone"]),
                seed=flags["seed"],
                resampler=flags["resampler"],
            ),
            weights=_weights(flags["weights"], is_small),
            cache=pipeline.CacheConfig(
                mode="off" if flags["no_cache"] or flags["input"] == "idg" else flags["cache"],
                budget_bytes=flags["cache_budget"],
                directory=paths("cache_dir")["cache_dir"],
            ),
            gpu_memory=_gpu_memory(flags),
            measure_placement=augment_on == _AUTO,
            **chosen("backbone", "learning_rate", "input", "epochs", "monitor", "evict_page_cache"),
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _feed_config(flags: dict[str, Any], size: tuple[int, int], **others: Any) -> FeedConfig:
    import pipeline

    height, width = size
    return pipeline.FeedConfig(
        decode=pipeline.DecodeConfig(
            height=height, width=width, interpolation=flags["interpolation"], method=flags["method"]
        ),
        batch_size=flags["batch_size"],
        prefetch_batches=0
        if flags["no_prefetch"]
        else _resolved(flags["prefetch"], pipeline.AUTOMATIC_PREFETCH_BATCHES),
        parallel_images=_resolved(flags["parallel"], pipeline.automatic_parallel_images()),
        **others,
    )


def _weights(given: str | None, is_small: bool) -> str:
    if given is None:
        return "none" if is_small else "imagenet"
    return given if given in ("none", "imagenet") else os.path.abspath(given)


def _augment_on(flags: dict[str, Any]) -> str:
    """Where augmentation runs, or auto to find out; Keras's generator knows the host only."""
    asked, is_idg = flags["augment_on"], flags["input"] == "idg"
    if is_idg and asked == "device":
        raise click.UsageError(
            "--augment-on device: Keras's generator augments on the host; leave it out with --input idg"
        )
    return "host" if is_idg and asked == _AUTO else asked


def _augment_ranges(flags: dict[str, Any]) -> AugmentRanges:
    import pipeline

    names = ("width_shift", "height_shift", "zoom", "horizontal_flip", "vertical_flip", "channel_shift", "brightness")
    return pipeline.AugmentRanges(
        rotation_degrees=flags["rotation"],
        shear_degrees=flags["shear"],
        fill_mode=flags["fill_mode"],
        cval=flags["cval"],
        **{name: flags[name] for name in names},
    )


def _gpu_memory(flags: dict[str, Any]) -> Any:
    import model

    limit = flags["gpu_memory_limit"]
    kind = {} if limit is None else {"limit_bytes" if isinstance(limit, int) else "limit_fraction": limit}
    return model.GpuMemoryConfig(growth=flags["growth"], **kind)


def _resolved(value: int | str, automatic: int) -> int:
    return automatic if value == _AUTO else int(value)


@main.command()
@_with_options((*_SOURCE_OPTIONS, *_DECODE_OPTIONS, *_BATCH_OPTIONS, *_RANGE_OPTIONS))
@click.option(
    "--image-size",
    type=SizeType(),
    metavar="N|HxW",
    default="224",
    show_default=True,
    help="Size that images are decoded to.",
)
@click.option(
    "--most",
    type=click.IntRange(min=1),
    metavar="N",
    default=1000,
    show_default=True,
    help="Images to measure with: a random part of the data.",
)
@click.option("--rounds", type=click.IntRange(min=1), metavar="N", default=3, show_default=True, help="Repetitions.")
@click.option(
    "--step-ms",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="Play an accelerator that needs N ms a batch.",
)
def bench(most: int, rounds: int, step_ms: float | None, image_size: tuple[int, int], **flags: Any) -> None:
    """Measure how fast each stage of the pipeline is on your data, and say which flags to set."""
    with _stopped_in_one_line(), _errors_as_one_line():
        with _start_up_messages_held():
            import pipeline
        sources = {name: flags[name] for name in ("folder", "csv", "images", "x_column", "y_column")}
        try:
            config = _feed_config(flags, image_size, augment=_augment_ranges(flags))
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        result = pipeline.run_bench(
            pipeline.DataConfig(**sources, validation_fraction=0.0),
            config,
            most=most,
            rounds=rounds,
            step_seconds=None if step_ms is None else step_ms / 1000,
            evict=lambda paths: evict_files(paths).reason,
            report=_say,
        )
    click.echo(result)


def _explain_options(command: Callable) -> Callable:
    """A flag for each argument of ImageDataGenerator; what its text means is settled where arguments are explained."""
    for name, has_value, text in reversed(_GENERATOR_FLAGS):
        option = click.option(
            f"--{name.replace('_', '-')}",
            name,
            is_flag=not has_value,
            default=None,
            metavar="VALUE" if has_value else None,
            help=text,
        )
        command = option(command)
    return command


# name, whether it takes a value, help
_GENERATOR_FLAGS = (
    ("featurewise_center", False, "Subtract the data set's mean."),
    ("samplewise_center", False, "Subtract each image's mean."),
    ("featurewise_std_normalization", False, "Divide by the data set's deviation."),
    ("samplewise_std_normalization", False, "Divide by each image's deviation."),
    ("zca_whitening", False, "Whiten."),
    ("zca_epsilon", True, "Epsilon of the whitening."),
    ("rotation_range", True, "Degrees."),
    ("width_shift_range", True, "As in the script: 1 is not 1.0; several values with commas."),
    ("height_shift_range", True, "As in the script: 1 is not 1.0; several values with commas."),
    ("brightness_range", True, "LOW,HIGH of the factor."),
    ("shear_range", True, "Degrees."),
    ("zoom_range", True, "Z, or LOW,HIGH."),
    ("channel_shift_range", True, "Levels."),
    ("fill_mode", True, "nearest, constant, reflect or wrap."),
    ("cval", True, "Level for fill mode constant."),
    ("horizontal_flip", False, "Mirror at random."),
    ("vertical_flip", False, "Turn upside down at random."),
    ("rescale", True, "Factor, such as 1/255."),
    ("preprocessing_function", True, "Any name: that there is one."),
    ("data_format", True, "channels_last or channels_first."),
    ("validation_split", True, "Share of the validation subset."),
    ("interpolation_order", True, "0 to 5."),
    ("dtype", True, "Of the batches."),
)


@main.command("explain-idg")
@click.argument("script", metavar="[SCRIPT.py]", required=False)
@_explain_options
def explain_idg(script: str | None, **arguments: Any) -> None:
    """Say what the settings of an ImageDataGenerator really do in Keras, and what they do here.

    Give a Python file, which is parsed and never run, or the generator's arguments as flags.
    """
    given = {name: value for name, value in arguments.items() if value is not None}
    if bool(script) == bool(given):
        raise click.UsageError("give either a Python file or arguments such as --shear-range 0.4")
    with _errors_as_one_line():
        with _start_up_messages_held():
            from pipeline.generator.explain import explain_arguments, explain_file
        text = explain_file(script) if script else explain_arguments(given)
    click.echo(text)


@main.command()
@click.argument("run", metavar="RUN")
def report(run: str) -> None:
    """Print a run's table and write its report.html."""
    with _errors_as_one_line():
        found = load_run(run)
        path = write_report(found)
    click.echo(format_table(epoch_rows(found)))
    click.echo(f"\n{_shown(path)}")


@main.command()
@click.argument("runs", metavar="RUN RUN [...]", nargs=-1, required=True)
@click.option("--html", "page", default="compare.html", show_default=True, metavar="FILE", help="Page to write.")
def compare(runs: tuple[str, ...], page: str) -> None:
    """Print runs side by side, and write them as a page."""
    with _errors_as_one_line():
        comparison = compare_runs([load_run(run) for run in runs])
        write_text(Path(page).absolute(), render_comparison(comparison))
    click.echo(format_comparison(comparison))
    click.echo(f"\n{_shown(Path(page))}")


@main.group()
def cache() -> None:
    """Look at and remove what --cache disk keeps."""


_cache_directory = click.option(
    "--cache-dir", metavar="DIR", help="Folder of --cache disk.  [default: the user's cache folder]"
)


@cache.command("ls")
@_cache_directory
def list_caches(cache_dir: str | None) -> None:
    """List the caches, the last used first."""
    directory, found = _caches(cache_dir)
    for each in found:
        about = each.about
        size = f"{about.get('height')}x{about.get('width')} {about.get('interpolation')} {about.get('method')}"
        used = datetime.fromtimestamp(each.used).isoformat(" ", "minutes")
        images = f"{each.complete} of {about.get('samples')} images"
        click.echo(f"{each.path.name[:12]}  {_size(each.bytes):>9}  {images}  {size}  used {used}  {_data_of(each)}")
    total = _size(sum(each.bytes for each in found))
    click.echo(f"{len(found)} caches, {total}, in {directory}" if found else f"no caches in {directory}")


@cache.command("clear")
@click.argument("keys", metavar="[KEY...]", nargs=-1)
@_cache_directory
def clear_caches(keys: tuple[str, ...], cache_dir: str | None) -> None:
    """Remove the caches, or only those whose names begin with a KEY of `cache ls`."""
    import pipeline

    directory, found = _caches(cache_dir)
    unknown = [key for key in keys if not any(each.path.name.startswith(key) for each in found)]
    if unknown:
        raise click.UsageError(f"no cache in {directory} begins with {unknown[0]!r}; `cache ls` lists them")
    chosen = [each for each in found if not keys or each.path.name.startswith(keys)]
    try:
        freed = pipeline.clear_cache(chosen)
    except OSError as error:
        raise click.ClickException(f"{error.filename}: cannot be removed ({error.strerror})") from error
    click.echo(f"removed {len(chosen)} caches, {_size(freed)}, from {directory}")


def _caches(cache_dir: str | None) -> tuple[Path, list[CacheFolder]]:
    with _start_up_messages_held():
        import pipeline
    directory = Path(cache_dir) if cache_dir else pipeline.default_cache_directory()
    return directory, pipeline.list_caches(directory)


def _data_of(found: CacheFolder) -> str:
    folder = str(found.about.get("data"))
    # it may hold what a terminal would obey
    return folder if folder.isprintable() else repr(folder)


def _size(count: int) -> str:
    return f"{count / 2**30:,.1f} GiB" if count >= 2**30 else f"{count / 2**20:,.1f} MiB"


def _shown(path: Path) -> str:
    """A path as short as it can be given from here."""
    return os.path.relpath(path)


if __name__ == "__main__":
    main()
