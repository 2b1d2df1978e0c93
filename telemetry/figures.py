"""How the figures of the table are called, counted and shown: one entry a column."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from telemetry.profile import EpochRow, table_columns


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One column of the table as people read it.

    Attributes:
        column: its name in epochs.csv.
        title: in words.
        unit: behind the number; empty for a bare number.
        heading: two short lines for a narrow table.
        decimals: digits behind the point.
        better: which direction a person wants; None where neither is.
    """

    column: str
    title: str
    unit: str
    heading: tuple[str, str]
    decimals: int = 0
    better: Literal["higher", "lower"] | None = None


FIGURES = (
    Figure(column="seconds", title="Time", unit="s", heading=("time", "s"), decimals=1, better="lower"),
    Figure(column="warmup_seconds", title="Warm-up", unit="s", heading=("warm", "s"), decimals=1, better="lower"),
    Figure(column="images", title="Images", unit="", heading=("", "images")),
    Figure(column="images_per_second", title="Throughput", unit="images/s", heading=("images", "/s"), better="higher"),
    Figure(
        column="input_wait_percent",
        title="Waiting for input",
        unit="%",
        heading=("wait", "%"),
        decimals=1,
        better="lower",
    ),
    Figure(column="disk_busy_percent", title="Disk busy", unit="%", heading=("disk", "busy %"), decimals=1),
    Figure(column="disk_read_mib", title="Disk read", unit="MiB", heading=("disk", "MiB"), decimals=1),
    Figure(
        column="job_physical_read_mib",
        title="Job reads from disk",
        unit="MiB",
        heading=("physical", "MiB"),
        decimals=1,
        better="lower",
    ),
    Figure(
        column="job_logical_read_mib",
        title="Job reads in all",
        unit="MiB",
        heading=("logical", "MiB"),
        decimals=1,
        better="lower",
    ),
    Figure(column="cpu_job_percent", title="CPU, job", unit="%", heading=("CPU", "job %"), decimals=0),
    Figure(column="cpu_machine_percent", title="CPU, machine", unit="%", heading=("CPU", "all %"), decimals=0),
    Figure(column="rss_mib", title="Memory of the job", unit="MiB", heading=("memory", "MiB"), better="lower"),
    Figure(column="gpu0_util_percent", title="GPU in use", unit="%", heading=("GPU", "%"), better="higher"),
    Figure(column="gpu0_memory_used_mib", title="GPU memory in use", unit="MiB", heading=("GPU", "MiB")),
    Figure(column="gpu0_job_memory_mib", title="GPU memory of the job", unit="MiB", heading=("GPU job", "MiB")),
    Figure(column="tf_memory_current_mib", title="TensorFlow memory, now", unit="MiB", heading=("TF now", "MiB")),
    Figure(
        column="tf_memory_peak_mib",
        title="TensorFlow memory, peak",
        unit="MiB",
        heading=("TF peak", "MiB"),
        better="lower",
    ),
    Figure(column="loss", title="Loss", unit="", heading=("", "loss"), decimals=4, better="lower"),
    Figure(column="accuracy", title="Accuracy", unit="", heading=("", "acc."), decimals=3, better="higher"),
)
_UNITS = {"percent": "%", "mib": "MiB", "watts": "W", "celsius": "°C", "seconds": "s"}


def shows_zero(figure: Figure, value: float) -> bool:
    """Tells whether a value is 0 in the digits in which it is shown."""
    return abs(value) < 0.5 * 10**-figure.decimals


def figures_of(rows: Sequence[EpochRow]) -> tuple[Figure, ...]:
    """Returns the figures of a table: the fixed ones, then those that only some machines have."""
    known = {figure.column: figure for figure in FIGURES}
    columns = [column for column in table_columns(rows) if column not in ("epoch", "phase")]
    return tuple(known.get(column) or _figure_of_field(column) for column in columns)


def _figure_of_field(column: str) -> Figure:
    """Returns a figure for a field such as `gpu1_power_watts`: its name is what and unit."""
    what, _, unit = column.rpartition("_")
    words = what.replace("_", " ").replace("gpu", "GPU ", 1)
    return Figure(column=column, title=words, unit=_UNITS.get(unit, unit), heading=(words, _UNITS.get(unit, unit)))


def known_figures(figures: Iterable[Figure], rows: Sequence[EpochRow]) -> tuple[Figure, ...]:
    """Returns the figures of which at least one row knows the value."""
    return tuple(figure for figure in figures if any(row[figure.column] is not None for row in rows))
