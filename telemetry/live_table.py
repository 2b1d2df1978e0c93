"""The table of a run that is being recorded: epochs.csv grows by a row whenever a phase ends."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from telemetry.profile import EpochRow, epoch_rows, phase_row, rows_csv, unknown_reasons
from telemetry.records import Phase, PhaseRecord, Sample, SampleTail
from telemetry.run_folder import EPOCHS_FILE, SAMPLES_FILE, load_run, write_text

_METRICS = ("loss", "accuracy")


class LiveTable:
    """Keeps the rows of the phases that have ended, and epochs.csv in step with them.

    Samples are read from the sampler's file once each, so that a phase's end costs the same late in a long run.

    Args:
        folder: the run's folder.
        rows: those that a resumed run keeps.
    """

    def __init__(self, folder: Path, rows: Sequence[EpochRow] = ()):
        self._folder = folder
        self._rows = {(row.epoch, row.phase): row for row in rows}
        samples_path = folder / SAMPLES_FILE
        self._tail = SampleTail(samples_path, offset=samples_path.stat().st_size if samples_path.exists() else 0)
        self._last_sample: Sample | None = None
        self._sampled_reasons: dict[str, str] = {}

    @property
    def rows(self) -> tuple[EpochRow, ...]:
        """The rows in the order of epoch and phase."""
        return tuple(self._rows[key] for key in sorted(self._rows))  # "train" sorts before "validation"

    def add(self, record: PhaseRecord) -> None:
        """Adds the row of a phase that has ended and writes epochs.csv."""
        self._put(phase_row(record, self._new_samples()))

    def set_metrics(self, record: PhaseRecord) -> None:
        """Takes over the metrics that became known after the phase's end, and writes epochs.csv."""
        row, fresh = self._rows[record.epoch, record.phase], phase_row(record, [])
        reasons = {name: reason for name, reason in row.reasons.items() if name not in _METRICS}
        reasons |= {name: reason for name, reason in fresh.reasons.items() if name in _METRICS}
        values = {**row.values, **{name: fresh.values[name] for name in _METRICS}}
        self._put(replace(row, values=values, reasons=reasons))

    def read_again(self) -> None:
        """Makes all rows anew from the files, now that the last samples are written, and writes epochs.csv."""
        self._new_samples()
        self._rows = {(row.epoch, row.phase): row for row in epoch_rows(load_run(self._folder))}
        self.write()

    def reasons(self) -> Mapping[str, str]:
        """Returns field -> why it is unknown, of the table's columns and the samples' states."""
        known = {} if self._last_sample is None else self._last_sample.values
        sampled = {
            name: f"at times: {reason}" if known.get(name) is not None else reason
            for name, reason in self._sampled_reasons.items()
        }
        return {**sampled, **unknown_reasons(self.rows)}

    def write(self) -> None:
        """Writes epochs.csv whole."""
        write_text(self._folder / EPOCHS_FILE, rows_csv(self.rows))

    def _put(self, row: EpochRow) -> None:
        place: tuple[int, Phase] = (row.epoch, row.phase)
        self._rows[place] = row
        self.write()

    def _new_samples(self) -> Sequence[Sample]:
        samples = self._tail.read()
        for sample in samples:
            self._sampled_reasons |= sample.reasons
            self._last_sample = sample
        return samples
