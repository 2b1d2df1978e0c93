"""The lines of marks.jsonl and samples.jsonl: what they hold, how they are written and read.

Each line is one JSON object. `monotonic_seconds` is the system's monotonic clock, the same for all processes of one
start of the machine; `session` counts the starts of the recorder on one run folder (0, then one more a resume), and
times of two sessions are not comparable.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

Phase = Literal["train", "validation"]
PHASES: tuple[Phase, ...] = ("train", "validation")
Event = Literal["begin", "warmup_end", "end", "metrics", "resume"]


@dataclass(frozen=True, kw_only=True)
class Mark:
    """An event of the run, with all counters at that moment.

    Attributes:
        event: what happens; `metrics` adds figures to a phase that has ended, `resume` starts a further session.
        session: which start of the recorder wrote it.
        monotonic_seconds: when.
        epoch: from 1; for `resume` the last epoch whose records are kept (0: none).
        phase: None for `resume`.
        values: the probes' fields (see telemetry.probes).
        counters: the trainer's own running totals.
        metrics: loss, accuracy and others of the phase.
        reasons: field -> why it is None.
    """

    event: Event
    session: int
    monotonic_seconds: float
    epoch: int
    phase: Phase | None = None
    values: Mapping[str, float | None] = field(default_factory=dict)
    counters: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One reading of the sampler.

    Attributes:
        session: which start of the recorder it belongs to.
        monotonic_seconds: when.
        values: the probes' fields (see telemetry.probes).
        reasons: field -> why it is None, in the first sample that lacks it only.
    """

    session: int
    monotonic_seconds: float
    values: Mapping[str, float | None]
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PhaseRecord:
    """One phase of one epoch, from its marks.

    Attributes:
        begin: its first mark.
        warmup_end: the mark behind its first step; None when the phase has no warm-up.
        end: its last mark; None while it runs, or when the run was cut off inside.
        metrics: loss, accuracy and others, from whichever mark brought them.
    """

    begin: Mark
    warmup_end: Mark | None = None
    end: Mark | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)

    @property
    def epoch(self) -> int:
        """The epoch, from 1."""
        return self.begin.epoch

    @property
    def phase(self) -> Phase:
        """The phase."""
        return self.begin.phase


def mark_line(mark: Mark) -> str:
    """Returns the line of a mark, without what is empty."""
    return json.dumps({name: value for name, value in asdict(mark).items() if value not in (None, {})})


def sample_line(sample: Sample) -> str:
    """Returns the line of a sample: flat, so that a line is a row of a table."""
    line = {"session": sample.session, "monotonic_seconds": round(sample.monotonic_seconds, 4)}
    line |= {name: round(value, 3) if isinstance(value, float) else value for name, value in sample.values.items()}
    return json.dumps(line | ({"reasons": dict(sample.reasons)} if sample.reasons else {}))


def parse_mark(line: str) -> Mark:
    """Returns the mark of a line.

    Raises:
        ValueError: if the line is not a mark.
    """
    fields = _object(line)
    try:
        mark = Mark(**fields)
    except TypeError as error:
        raise ValueError(f"not a mark: {error}") from error
    if mark.event != "resume" and mark.phase not in PHASES:
        raise ValueError(f"not a mark: phase {mark.phase!r}")
    return mark


def parse_sample(line: str) -> Sample:
    """Returns the sample of a line.

    Raises:
        ValueError: if the line is not a sample.
    """
    fields = _object(line)
    try:
        session, seconds = int(fields.pop("session")), float(fields.pop("monotonic_seconds"))
    except KeyError as error:
        raise ValueError(f"not a sample: {error} is missing") from error
    return Sample(session=session, monotonic_seconds=seconds, reasons=fields.pop("reasons", {}), values=fields)


def _object(line: str) -> dict[str, Any]:
    fields = json.loads(line)
    if not isinstance(fields, dict):
        raise ValueError(f"not an object: {line[:60]!r}")
    return fields


def parse_lines(text: str, parse: Any) -> tuple[list[Any], int]:
    """Returns the records of all lines that can be read, and how many cannot.

    Args:
        text: whole lines, the last one perhaps cut off when the writer was killed.
        parse: parse_mark or parse_sample.
    """
    records, unreadable = [], 0
    for line in filter(None, text.split("\n")):
        try:
            records.append(parse(line))
        except (ValueError, TypeError):
            unreadable += 1
    return records, unreadable


def group_phases(marks: Iterable[Mark]) -> tuple[PhaseRecord, ...]:
    """Returns the phases that the marks tell of, in the order of epoch and phase.

    Of an epoch's phase that was recorded more than once the newest counts; a `resume` drops every phase of the epochs
    behind the ones it keeps.
    """
    phases: dict[tuple[int, Phase], PhaseRecord] = {}
    for mark in marks:
        key = (mark.epoch, mark.phase)
        known = phases.get(key)
        if mark.event == "resume":
            phases = {key: record for key, record in phases.items() if key[0] <= mark.epoch and record.end}
        elif mark.event == "begin":
            phases[key] = PhaseRecord(begin=mark)
        elif known is not None:
            phases[key] = _with_mark(known, mark)
    return tuple(sorted(phases.values(), key=lambda record: (record.epoch, PHASES.index(record.phase))))


def _with_mark(record: PhaseRecord, mark: Mark) -> PhaseRecord:
    return PhaseRecord(
        begin=record.begin,
        warmup_end=mark if mark.event == "warmup_end" else record.warmup_end,
        end=mark if mark.event == "end" else record.end,
        metrics={**record.metrics, **mark.metrics},
    )


class LineWriter:
    """Appends lines to a file and hands each to the system at once, so that a kill loses none that was written."""

    def __init__(self, path: Path):
        needs_break = _ends_inside_a_line(path)
        self._file = open(path, "a", encoding="utf-8", newline="\n")
        if needs_break:  # the last writer was killed: keep its broken line apart from the next
            self._file.write("\n")

    def write(self, line: str) -> None:
        """Appends one line."""
        self._file.write(line + "\n")
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def _ends_inside_a_line(path: Path) -> bool:
    try:
        with open(path, "rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    except OSError:  # not there, or empty
        return False


class SampleTail:
    """Reads the samples that have been added to a file since the last look."""

    def __init__(self, path: Path, *, offset: int = 0):
        self._path = path
        self._offset = offset

    def read(self) -> Sequence[Sample]:
        """Returns the new whole lines' samples; a line that is still being written waits for the next call."""
        try:
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return parse_lines(whole.decode("utf-8", errors="replace"), parse_sample)[0]
