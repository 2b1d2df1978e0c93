"""Load over time: rates and states from the samples, on one axis of seconds since the run's start."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from telemetry.records import Mark, Sample
from telemetry.run_folder import Run


@dataclass(frozen=True, kw_only=True)
class Series:
    """A curve.

    Attributes:
        name: what it shows.
        x: seconds since the run's start, or epochs; increasing.
        y: one value each, None for a gap.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float | None]

    @property
    def is_known(self) -> bool:
        """Whether it holds any value at all."""
        return any(value is not None for value in self.y)


@dataclass(frozen=True, kw_only=True)
class Band:
    """The time of one phase.

    Attributes:
        epoch: from 1.
        phase: train or validation.
        start_seconds: since the run's start.
        end_seconds: since the run's start; of a phase that was cut off, the last thing known.
    """

    epoch: int
    phase: str
    start_seconds: float
    end_seconds: float


class RunClock:
    """Turns the monotonic times of a run's sessions into seconds since its start, without the pauses between them."""

    def __init__(self, run: Run):
        places = [(sample.session, sample.monotonic_seconds) for sample in run.samples]
        for record in run.phases:
            places += [(mark.session, mark.monotonic_seconds) for mark in (record.begin, record.end) if mark]
        self._offsets: dict[int, float] = {}
        self._ends: dict[int, float] = {}
        elapsed = 0.0
        for session in sorted({session for session, _ in places}):
            times = [seconds for other, seconds in places if other == session]
            self._offsets[session] = elapsed - min(times)
            elapsed += max(times) - min(times)
            self._ends[session] = elapsed

    def seconds(self, record: Mark | Sample) -> float:
        """Returns when a record was written."""
        return record.monotonic_seconds + self._offsets[record.session]

    def end(self, session: int) -> float:
        """Returns when the last record of a session was written."""
        return self._ends[session]


def phase_bands(run: Run) -> list[Band]:
    """Returns the times of all phases, one that was cut off included."""
    clock = RunClock(run)
    return [
        Band(
            epoch=record.epoch,
            phase=record.phase,
            start_seconds=clock.seconds(record.begin),
            end_seconds=clock.seconds(record.end) if record.end else clock.end(record.begin.session),
        )
        for record in run.phases
    ]


def state_series(run: Run, field: str, name: str, *, scale: float = 1.0) -> Series:
    """Returns the curve of a state such as `rss_mib`.

    Args:
        run: the run.
        field: the sampled field.
        name: the curve's name.
        scale: what each value is multiplied by.
    """
    clock = RunClock(run)
    values = [sample.values.get(field) for sample in run.samples]
    return Series(
        name=name,
        x=[clock.seconds(sample) for sample in run.samples],
        y=[None if value is None else value * scale for value in values],
    )


def rate_series(run: Run, field: str, name: str, *, scale: float = 1.0) -> Series:
    """Returns by how much a total grows a second, at the end of each interval between two samples.

    The interval between two sessions, and one in which the total fell, is a gap.
    """

    def rate(before: Sample, after: Sample) -> float | None:
        grown = _growth(before, after, field)
        seconds = after.monotonic_seconds - before.monotonic_seconds
        return None if grown is None or seconds <= 0 else scale * grown / seconds

    return _pair_series(run, name, rate)


def share_series(run: Run, part: str, whole: str, name: str) -> Series:
    """Returns the share, 0 to 100, that one total's growth has in another's."""

    def share(before: Sample, after: Sample) -> float | None:
        ends = _growth(before, after, part), _growth(before, after, whole)
        return None if None in ends or ends[1] <= 0 else min(100 * ends[0] / ends[1], 100.0)

    return _pair_series(run, name, share)


def _pair_series(run: Run, name: str, value: Callable[[Sample, Sample], float | None]) -> Series:
    clock = RunClock(run)
    pairs = list(pairwise(run.samples))
    return Series(
        name=name,
        x=[clock.seconds(after) for _, after in pairs],
        y=[value(before, after) if before.session == after.session else None for before, after in pairs],
    )


def _growth(before: Sample, after: Sample, field: str) -> float | None:
    ends = before.values.get(field), after.values.get(field)
    return None if None in ends or ends[1] < ends[0] else ends[1] - ends[0]


def keep_peaks(series: Series, points: int) -> Series:
    """Returns the series with at most about so many points: the lowest and the highest of each stretch.

    A gap stays visible: a stretch that has one keeps its first.
    """
    if len(series.x) <= points:
        return series
    size = -(-2 * len(series.x) // points)
    kept: list[int] = []
    for start in range(0, len(series.x), size):
        stretch = range(start, min(start + size, len(series.x)))
        known = [index for index in stretch if series.y[index] is not None]
        gaps = [index for index in stretch if series.y[index] is None][:1]
        ends = {min(known, key=series.y.__getitem__), max(known, key=series.y.__getitem__)} if known else set()
        kept += sorted(ends | set(gaps))
    return Series(name=series.name, x=[series.x[index] for index in kept], y=[series.y[index] for index in kept])
