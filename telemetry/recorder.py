"""Recording one run: its folder, its sampler, its marks, its table."""

import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from telemetry.errors import PhaseError, RecordError
from telemetry.live_table import LiveTable
from telemetry.machine_facts import describe_machine
from telemetry.marks import MarkLog
from telemetry.probe_set import ProbeSet
from telemetry.probes.cpu import usable_cores
from telemetry.probes.disk import BlockDevice, find_block_device
from telemetry.probes.reading import Reading, merge_readings
from telemetry.profile import EpochRow
from telemetry.records import Phase, PhaseRecord
from telemetry.run_folder import MARKS_FILE, RUN_FILE, write_json
from telemetry.sampler_process import SamplerConfig, SamplerProcess, SamplerTask
from telemetry.session import document_before, kept_rows, session_fields, utc_now

Status = Literal["finished", "interrupted", "failed"]
_OWN_FIELDS = frozenset(
    ("status", "started", "finished", "config", "versions", "hardware", "sampler", "sessions", "unavailable")
)
_NO_READING = Reading()


class RunRecorder:
    """Writes the records of one run into its folder.

    Between `start` and `finish` a process of its own samples the machine; each phase is framed by `begin_phase` and
    `end_phase`, which read all counters at that very moment. As a context manager it starts, and finishes with the
    status that fits: `failed` after an error, `interrupted` after Ctrl-C.

    Start it before the first call that touches a GPU, so that the GPU's memory is known from before the job.

    Args:
        folder: the run's folder, from create_run_folder; made when it is missing.
        data_path: where the data lies; the disk that holds it is watched. None when it is on none.
        config: what the person chose, as plain data; compared between runs.
        facts: further plain data for run.json (class names, preprocessing, `data_fingerprint`).
        sampler: how the sampler works.
        counters: returns the trainer's running totals, `images` and `input_wait_seconds`; those it lacks stay unknown.
        resume_epochs: the number of finished epochs to keep when a stopped run goes on; None for a new run.

    Raises:
        ValueError: if a fact has the name of a field that run.json has anyway, or resume_epochs is below 0.
    """

    def __init__(
        self,
        folder: str | os.PathLike,
        *,
        data_path: str | os.PathLike | None,
        config: Mapping[str, Any],
        facts: Mapping[str, Any] | None = None,
        sampler: SamplerConfig | None = None,
        counters: Callable[[], Mapping[str, float]] | None = None,
        resume_epochs: int | None = None,
    ):
        facts = {} if facts is None else facts
        _check_facts(facts)
        if resume_epochs is not None and resume_epochs < 0:
            raise ValueError(f"resume_epochs is {resume_epochs}; it counts finished epochs")
        self.folder = Path(folder).absolute()
        self._data_path = data_path
        self._about = {**facts, "config": dict(config)}
        self._sampler_config = SamplerConfig() if sampler is None else sampler
        self._counters = counters
        self._resume_epochs = resume_epochs
        self._lock = threading.RLock()  # Keras 3 calls batch hooks from a thread of its own
        self._is_recording = False
        self._open: PhaseRecord | None = None
        self._ended: dict[tuple[int, Phase], PhaseRecord] = {}
        self._failures: dict[str, str] = {}  # of the recorder's own parts: the sampler, the trainer's counters

    @property
    def open_phase(self) -> tuple[int, Phase] | None:
        """Epoch and phase that have begun and not ended; None between phases."""
        with self._lock:
            return None if self._open is None else (self._open.epoch, self._open.phase)

    @property
    def rows(self) -> tuple[EpochRow, ...]:
        """The table so far."""
        with self._lock:
            return self._table.rows

    def start(self) -> None:
        """Writes run.json and starts the sampler.

        A sampler that cannot start leaves its reason in run.json; the run is recorded without it.

        Raises:
            RunExistsError: if the folder holds a run and none is resumed, or the run is still being written.
            RunNotFoundError: if a run is to be resumed that is not there.
            RecordError: if the folder cannot be written.
        """
        before = document_before(self.folder, self._resume_epochs)
        _make_folder(self.folder)
        device = find_block_device(self._data_path)
        session = len(before.get("sessions", []))
        self._pid = os.getpid()
        self._probes = ProbeSet(pid=os.getpid(), device=device)
        self._table = LiveTable(self.folder, kept_rows(self.folder, self._resume_epochs))
        machine = describe_machine(self._probes.gpu.facts(), device)
        self._document = {**session_fields(before), **self._about, **machine, "sampler": asdict(self._sampler_config)}
        self._write_document("running")
        self._marks = MarkLog(self.folder / MARKS_FILE, session=session, clock=time.monotonic)
        if self._resume_epochs is not None:
            self._marks.resume(self._resume_epochs)
        self._table.write()
        self._sampler = self._start_sampler(session, device)
        self._is_recording = True

    def add_facts(self, facts: Mapping[str, Any]) -> None:
        """Merges plain data into run.json that was not known at the start.

        Raises:
            ValueError: if a fact has the name of a field that run.json has anyway.
            PhaseError: if the recorder is not recording.
            RecordError: if the folder cannot be written.
        """
        _check_facts(facts)
        with self._lock:
            self._check_recording()
            self._document |= dict(facts)
            self._write_document("running")

    def replace_config(self, config: Mapping[str, Any]) -> None:
        """Writes the configuration anew, for a part of it that was found out only now.

        Raises:
            PhaseError: if the recorder is not recording.
            RecordError: if the folder cannot be written.
        """
        with self._lock:
            self._check_recording()
            self._document |= {"config": dict(config)}
            self._write_document("running")

    def begin_phase(self, epoch: int, phase: Phase) -> None:
        """Marks the begin of a phase.

        Args:
            epoch: from 1.
            phase: train or validation.

        Raises:
            PhaseError: if another phase is open.
        """
        with self._lock:
            self._check_recording()
            if self._open is not None:
                raise PhaseError(
                    f"{_name(self._open.epoch, self._open.phase)} is still open; end it before {_name(epoch, phase)}"
                )
            mark = self._marks.phase("begin", (epoch, phase), self._read(), counters=self._read_counters())
            self._open = PhaseRecord(begin=mark)

    def end_warmup(self) -> None:
        """Marks the end of the open phase's first step, which traces and compiles; a second call changes nothing.

        Raises:
            PhaseError: if no phase is open.
        """
        with self._lock:
            record = self._check_open()
            if record.warmup_end is not None:
                return
            place = (record.epoch, record.phase)
            mark = self._marks.phase("warmup_end", place, self._read(), counters=self._read_counters())
            self._open = replace(record, warmup_end=mark)

    def end_phase(self, metrics: Mapping[str, float] | None = None, *, readings: Reading = _NO_READING) -> None:
        """Marks the end of the open phase and writes epochs.csv anew.

        Args:
            metrics: loss, accuracy and others, as far as they are known now.
            readings: further values of the phase (tf_memory_current_mib, tf_memory_peak_mib), or why they are unknown.

        Raises:
            PhaseError: if no phase is open.
            RecordError: if the folder cannot be written.
        """
        with self._lock:
            record = self._check_open()
            place, metrics = (record.epoch, record.phase), _numbers(metrics or {})
            counters, reading = self._read_counters(), merge_readings([self._read(), readings])
            mark = self._marks.phase("end", place, reading, counters=counters, metrics=metrics)
            self._open = None
            self._ended[place] = replace(record, end=mark, metrics=metrics)
            self._table.add(self._ended[place])

    def record_metrics(self, epoch: int, phase: Phase, metrics: Mapping[str, float]) -> None:
        """Adds metrics to a phase that has ended; Keras tells those of training only after the validation.

        Raises:
            PhaseError: if that phase has not ended in this session.
            RecordError: if the folder cannot be written.
        """
        with self._lock:
            self._check_recording()
            place, metrics = (epoch, phase), _numbers(metrics)
            record = self._ended.get(place)
            if record is None:
                raise PhaseError(f"{_name(epoch, phase)} has not ended, so it has no metrics yet")
            self._marks.metrics(place, metrics)
            self._ended[place] = replace(record, metrics={**record.metrics, **metrics})
            self._table.set_metrics(self._ended[place])

    def finish(self, status: Status = "finished") -> None:
        """Stops the sampler and writes epochs.csv and run.json for the last time; a second call changes nothing.

        A phase that is still open stays without an end and has no row.

        Raises:
            RecordError: if the folder cannot be written.
        """
        with self._lock:
            if not self._is_recording or os.getpid() != self._pid:  # a forked worker that leaves ends no run
                return
            self._is_recording = False
            self._stop_sampler()
            self._marks.close()
            self._probes.close()
            self._table.read_again()
            self._document["finished"] = utc_now()
            self._write_document(status)

    def __enter__(self) -> "RunRecorder":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish("finished")
        else:
            self.finish("interrupted" if issubclass(kind, KeyboardInterrupt) else "failed")

    def _start_sampler(self, session: int, device: BlockDevice) -> SamplerProcess | None:
        task = SamplerTask(
            folder=str(self.folder),
            session=session,
            period_seconds=self._sampler_config.period_seconds,
            parent=self._document["sessions"][-1]["process"],
            device=asdict(device),
        )
        try:
            sampler = SamplerProcess(task, start_timeout_seconds=self._sampler_config.start_timeout_seconds)
        except OSError as error:
            self._failures["sampler"] = f"the sampler cannot be started: {error}"
            return None
        self._probes.exclude(sampler.pid)
        return sampler

    def _stop_sampler(self) -> None:
        failure = None if self._sampler is None else self._sampler.stop()
        if failure is not None:
            self._failures["sampler"] = failure

    def _read(self) -> Reading:
        cores = Reading(values={"usable_cores": usable_cores(os.getpid())})
        return merge_readings([self._probes.read(), cores])

    def _read_counters(self) -> dict[str, float]:
        if self._counters is None:
            return {}
        try:
            return _numbers(self._counters())
        except Exception as error:  # a record that lacks a column is better than a training that dies for it
            self._failures["counters"] = f"the trainer's counters failed: {type(error).__name__}: {error}"
            return {}

    def _write_document(self, status: str) -> None:
        unavailable = {**self._table.reasons(), **self._failures}
        self._document |= {"status": status, "unavailable": unavailable}
        write_json(self.folder / RUN_FILE, self._document)

    def _check_recording(self) -> None:
        if not self._is_recording:
            raise PhaseError("the recorder is not recording; call start() first, and nothing after finish()")

    def _check_open(self) -> PhaseRecord:
        self._check_recording()
        if self._open is None:
            raise PhaseError("no phase is open; call begin_phase(epoch, phase) first")
        return self._open


def _check_facts(facts: Mapping[str, Any]) -> None:
    if clashing := sorted(_OWN_FIELDS & set(facts)):
        raise ValueError(f"facts: {', '.join(clashing)} are fields that the recorder writes; choose other names")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RecordError(f"{folder} cannot be made: {error.strerror}") from error


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """Returns the values as Python's numbers: arrays' and tensors' scalars come from anywhere."""
    return {name: float(value) for name, value in values.items()}


def _name(epoch: int, phase: str) -> str:
    return f"the {phase} phase of epoch {epoch}"
