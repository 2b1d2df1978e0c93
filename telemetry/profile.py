"""The epoch x phase table: what each phase of each epoch did to the machine, from its marks and samples."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from telemetry.probes.reading import MIB
from telemetry.records import Mark, Phase, PhaseRecord, Sample
from telemetry.run_folder import Run

COLUMNS = (
    "epoch",
    "phase",
    "seconds",
    "warmup_seconds",
    "images",
    "images_per_second",
    "input_wait_percent",
    "disk_busy_percent",
    "disk_read_mib",
    "job_physical_read_mib",
    "job_logical_read_mib",
    "cpu_job_percent",
    "cpu_machine_percent",
    "rss_mib",
    "gpu0_util_percent",
    "gpu0_memory_used_mib",
    "gpu0_job_memory_mib",
    "tf_memory_current_mib",
    "tf_memory_peak_mib",
    "loss",
    "accuracy",
)
_FRAMEWORK = ("tf_memory_current_mib", "tf_memory_peak_mib")
_METRICS = ("loss", "accuracy")
_MEANS = ("util_percent", "power_watts")  # the rest of a GPU's figures, and the resident memory, are the highest


@dataclass(frozen=True, kw_only=True)
class EpochRow:
    """One row of the table.

    Attributes:
        epoch: from 1.
        phase: train or validation.
        values: column -> number, or None where it is unknown; without `epoch` and `phase`.
        reasons: column -> why it is None.
    """

    epoch: int
    phase: Phase
    values: Mapping[str, float | None]
    reasons: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, column: str) -> float | str | None:
        """Returns the cell of a column; None when it is unknown."""
        if column in ("epoch", "phase"):
            return getattr(self, column)
        return self.values.get(column)


class _UnknownError(Exception):
    """A figure cannot be told; the message says why."""


@dataclass(frozen=True, kw_only=True)
class _Interval:
    """The time between two marks of one phase, with the samples inside."""

    before: Mark
    after: Mark
    samples: Sequence[Sample]

    @property
    def seconds(self) -> float:
        return self.after.monotonic_seconds - self.before.monotonic_seconds

    def growth(self, name: str) -> float:
        """Returns by how much a total grew; a total that fell (a device taken away, a counter reset) is unknown."""
        ends = [mark.values.get(name, mark.counters.get(name)) for mark in (self.before, self.after)]
        if None in ends:
            raise _UnknownError(self._reason(name))
        if ends[1] < ends[0]:
            raise _UnknownError(f"{name} fell from {ends[0]:g} to {ends[1]:g}")
        return ends[1] - ends[0]

    def states(self, name: str) -> list[float]:
        """Returns the known values of a state inside the interval, both marks included."""
        readings = [self.before, *self.samples, self.after]
        known = [value for reading in readings if (value := reading.values.get(name)) is not None]
        if not known:
            raise _UnknownError(self._reason(name))
        return known

    def sampled_mean(self, name: str) -> float:
        """Returns the mean over the samples alone: a mark falls where the load changes."""
        known = [value for sample in self.samples if (value := sample.values.get(name)) is not None]
        if known:
            return sum(known) / len(known)
        self.states(name)  # says why when the value is never known
        raise _UnknownError("no sample fell into the phase; take a shorter sampling period")

    def _reason(self, name: str) -> str:
        told = [
            reading.reasons[name] for reading in (self.after, self.before, *self.samples) if name in reading.reasons
        ]
        return told[0] if told else f"{name} was not recorded"


def phase_row(record: PhaseRecord, samples: Iterable[Sample]) -> EpochRow:
    """Returns the row of a phase that has ended.

    `images_per_second` and `input_wait_percent` leave the warm-up out; every other figure is of the whole phase.

    Args:
        record: the phase; its `end` is not None.
        samples: readings, those outside the phase included.
    """
    whole = _interval(record.begin, record.end, samples)
    steady = whole if record.warmup_end is None else _interval(record.warmup_end, record.end, samples)
    figures: dict[str, Callable[[], float]] = {
        "seconds": lambda: whole.seconds,
        "warmup_seconds": lambda: _warmup_seconds(record),
        "images": lambda: whole.growth("images"),
        "images_per_second": lambda: _images_per_second(steady),
        "input_wait_percent": lambda: _share(steady.growth("input_wait_seconds"), steady.seconds, most=100),
        # the device's clock ticks in milliseconds: a short phase may count one too many
        "disk_busy_percent": lambda: _share(whole.growth("disk_busy_seconds_total"), whole.seconds, most=100),
        "disk_read_mib": lambda: whole.growth("disk_read_bytes_total") / MIB,
        "job_physical_read_mib": lambda: whole.growth("job_physical_read_bytes_total") / MIB,
        "job_logical_read_mib": lambda: whole.growth("job_logical_read_bytes_total") / MIB,
        "cpu_job_percent": lambda: _share(
            whole.growth("job_cpu_seconds_total"), whole.seconds * whole.states("usable_cores")[0]
        ),
        "cpu_machine_percent": lambda: _share(
            whole.growth("machine_cpu_busy_seconds_total"), whole.growth("machine_cpu_seconds_total"), most=100
        ),
        "rss_mib": lambda: max(whole.states("rss_mib")),
    }
    figures |= {name: partial(_gpu_figure, whole, name) for name in _gpu_columns(whole)}
    figures |= {name: partial(_end_value, record.end, name) for name in _FRAMEWORK}
    figures |= {name: partial(_metric, record, name) for name in _METRICS}
    return _row(record, figures)


def _interval(before: Mark, after: Mark, samples: Iterable[Sample]) -> _Interval:
    inside = [
        sample
        for sample in samples
        if sample.session == before.session
        and before.monotonic_seconds <= sample.monotonic_seconds <= after.monotonic_seconds
    ]
    return _Interval(before=before, after=after, samples=inside)


def _row(record: PhaseRecord, figures: Mapping[str, Callable[[], float]]) -> EpochRow:
    values: dict[str, float | None] = {}
    reasons: dict[str, str] = {}
    for name, figure in figures.items():
        try:
            values[name] = figure()
        except _UnknownError as error:
            values[name], reasons[name] = None, str(error)
    return EpochRow(epoch=record.epoch, phase=record.phase, values=values, reasons=reasons)


def _warmup_seconds(record: PhaseRecord) -> float:
    if record.warmup_end is None:
        raise _UnknownError("the phase has no warm-up: its step was compiled before")
    return record.warmup_end.monotonic_seconds - record.begin.monotonic_seconds


def _images_per_second(steady: _Interval) -> float:
    images = steady.growth("images")
    if images <= 0 or steady.seconds <= 0:
        raise _UnknownError("no image came behind the warm-up step")
    return images / steady.seconds


def _share(part: float, whole: float, *, most: float | None = None) -> float:
    if whole <= 0:
        raise _UnknownError("the interval is too short for its clock")
    share = 100 * part / whole
    return share if most is None else min(share, most)


def _gpu_columns(whole: _Interval) -> list[str]:
    """Returns the GPU columns: three of gpu0 in any case, and whatever else the probes know, in their order."""
    fixed = [name for name in COLUMNS if name.startswith("gpu0_")]
    known = [name for name in whole.after.values if name.startswith("gpu") and name not in fixed]
    has_gpu = any(whole.after.values.get(name) is not None for name in (*fixed, *known))
    return fixed + (known if has_gpu else [])


def _gpu_figure(whole: _Interval, name: str) -> float:
    return whole.sampled_mean(name) if name.endswith(_MEANS) else max(whole.states(name))


def _end_value(end: Mark, name: str) -> float:
    value = end.values.get(name)
    if value is None:
        raise _UnknownError(end.reasons.get(name, "only the Keras callback reads TensorFlow's allocator"))
    return value


def _metric(record: PhaseRecord, name: str) -> float:
    if name not in record.metrics:
        raise _UnknownError(f"no {name} was reported for the phase")
    return record.metrics[name]


def epoch_rows(run: Run) -> tuple[EpochRow, ...]:
    """Returns the table of a run: a row for each phase that has ended."""
    ended = [record for record in run.phases if record.end is not None]
    return tuple(
        phase_row(record, samples) for record, samples in zip(ended, _samples_by_phase(ended, run), strict=True)
    )


def _samples_by_phase(records: Sequence[PhaseRecord], run: Run) -> list[list[Sample]]:
    """Returns the samples inside each phase in one pass, however many phases there are."""
    ordered = sorted(range(len(records)), key=lambda index: _place(records[index].begin))
    inside: list[list[Sample]] = [[] for _ in records]
    remaining = iter(sorted(run.samples, key=_place))
    sample = next(remaining, None)
    for index in ordered:
        begin, end = _place(records[index].begin), _place(records[index].end)
        while sample is not None and _place(sample) <= end:
            if _place(sample) >= begin:
                inside[index].append(sample)
            sample = next(remaining, None)
    return inside


def _place(record: Mark | Sample) -> tuple[int, float]:
    return record.session, record.monotonic_seconds


def table_columns(rows: Iterable[EpochRow]) -> tuple[str, ...]:
    """Returns the columns of a table: the fixed ones first, then those that only some machines have."""
    columns = dict.fromkeys(COLUMNS)
    for row in rows:
        columns |= dict.fromkeys(row.values)
    return tuple(columns)


def rows_csv(rows: Sequence[EpochRow]) -> str:
    """Returns the table as CSV with a header; an empty cell is an unknown value."""
    columns = table_columns(rows)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([[_cell(row[column]) for column in columns] for row in rows])
    return text.getvalue()


def _cell(value: float | str | None) -> str:
    if isinstance(value, float):
        return f"{value:.6g}" if abs(value) < 1e5 else f"{value:.1f}"
    return "" if value is None else str(value)


def unknown_reasons(rows: Iterable[EpochRow]) -> dict[str, str]:
    """Returns column -> why at least one of its cells is empty."""
    rows = tuple(rows)
    reasons: dict[str, str] = {}
    for row in rows:
        for name, reason in row.reasons.items():
            is_partial = any(other[name] is not None for other in rows)
            reasons.setdefault(name, f"in some phases: {reason}" if is_partial else reason)
    return reasons
