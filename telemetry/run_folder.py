"""A run's folder on disk: making it, writing into it whole or not at all, and reading it back."""

import json
import math
import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import psutil

from telemetry.errors import RecordError, RunExistsError, RunNotFoundError, UnreadableRunError
from telemetry.records import PhaseRecord, Sample, group_phases, parse_lines, parse_mark, parse_sample

RUN_FILE = "run.json"
MARKS_FILE = "marks.jsonl"
SAMPLES_FILE = "samples.jsonl"
EPOCHS_FILE = "epochs.csv"

_KINDS = {"config": dict, "versions": dict, "hardware": dict, "unavailable": dict, "sessions": list}

# a run on another machine's disk: its process cannot be looked up, so the age of what it wrote last decides
_SILENT_SECONDS = 60
# psutil derives a start time from the wall clock, which may be set in between
_SAME_START_SECONDS = 5
# unnamed runs of one second that get a folder each; more is a loop gone wild
_RUNS_A_SECOND = 100


@dataclass(frozen=True, kw_only=True)
class Run:
    """A recorded run.

    Attributes:
        folder: where it lies.
        document: run.json as it was read.
        status: running, finished, interrupted or failed; a run that says running while its process is gone is
            interrupted.
        phases: the phases of all epochs in order; one without an end was cut off or still runs.
        samples: the sampler's readings in order.
        unreadable_lines: lines of the records that were left out because they were cut off or damaged.
    """

    folder: Path
    document: Mapping[str, Any]
    status: str
    phases: tuple[PhaseRecord, ...]
    samples: tuple[Sample, ...]
    unreadable_lines: int = 0

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name

    @property
    def unavailable(self) -> Mapping[str, str]:
        """Field -> why it could not be read."""
        return self.document.get("unavailable", {})


def create_run_folder(parent: str | os.PathLike, name: str | None = None) -> Path:
    """Makes a new, empty run folder and returns its absolute path.

    Args:
        parent: the folder of all runs; made when it is missing.
        name: one path component; a time stamp when None.

    Raises:
        RunExistsError: if that folder is there already.
        RecordError: if the name is not one path component, or the folder cannot be made.
    """
    if name is None:
        return _create_stamped_folder(parent)
    if name in ("", ".", "..") or Path(name).name != name:
        raise RecordError(f"{name!r} is no name for a run; give one folder name without separators")
    folder = Path(parent).absolute() / name
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir()
    except FileExistsError as error:
        if folder.exists():
            raise RunExistsError(f"{folder} exists already; choose another name") from error
        raise RecordError(f"{folder.parent} is a file; name a folder for the runs") from error
    except OSError as error:
        raise RecordError(f"{folder} cannot be made: {error.strerror}") from error
    return folder


def _create_stamped_folder(parent: str | os.PathLike) -> Path:
    """Makes a folder named by the time; runs begun in the same second are numbered from the second on."""
    stamp = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    for number in range(1, _RUNS_A_SECOND):
        with suppress(RunExistsError):
            return create_run_folder(parent, stamp if number == 1 else f"{stamp}-{number}")
    return create_run_folder(parent, f"{stamp}-{_RUNS_A_SECOND}")


def write_text(path: Path, text: str) -> None:
    """Writes a file so that any reader, at any moment, sees the old text or the new one whole.

    Raises:
        RecordError: if it cannot be written.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(beside, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        raise RecordError(f"{path} cannot be written: {error.strerror}") from error


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Writes a JSON file whole or not at all.

    Raises:
        RecordError: if it cannot be written.
    """
    write_text(path, json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def plain(value: Any) -> Any:
    """Returns the value as JSON can hold it: paths and others as text, arrays' scalars as numbers, nan as "nan"."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if hasattr(value, "tolist"):  # numpy, without importing it
        return plain(value.tolist())
    return str(value)


def read_document(folder: Path) -> dict[str, Any]:
    """Returns run.json.

    Raises:
        RunNotFoundError: if the folder holds no run.
        UnreadableRunError: if the file is damaged.
    """
    path = folder / RUN_FILE
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise RunNotFoundError(f"{folder} holds no run (no {RUN_FILE}); name a run's folder") from error
    except (OSError, ValueError) as error:
        raise UnreadableRunError(f"{path} cannot be read: {error}") from error
    if not isinstance(document, dict):
        raise UnreadableRunError(f"{path} holds {type(document).__name__}, not an object")
    for name, kind in _KINDS.items():
        if not isinstance(document.get(name, kind()), kind):
            raise UnreadableRunError(f"{path}: {name} is {document[name]!r}, not of type {kind.__name__}")
    return document


def load_run(folder: str | os.PathLike) -> Run:
    """Returns a run as far as it was written, whether it finished, was killed or still runs.

    Raises:
        RunNotFoundError: if the folder holds no run.
        UnreadableRunError: if run.json is damaged.
    """
    folder = Path(folder).absolute()
    document = read_document(folder)
    marks, bad_marks = _read_records(folder / MARKS_FILE, parse_mark)
    samples, bad_samples = _read_records(folder / SAMPLES_FILE, parse_sample)
    return Run(
        folder=folder,
        document=document,
        status=current_status(folder, document),
        phases=group_phases(marks),
        samples=tuple(samples),
        unreadable_lines=bad_marks + bad_samples,
    )


def _read_records(path: Path, parse: Any) -> tuple[Sequence[Any], int]:
    try:
        return parse_lines(path.read_text(encoding="utf-8", errors="replace"), parse)
    except FileNotFoundError:
        return [], 0
    except OSError as error:
        raise UnreadableRunError(f"{path} cannot be read: {error.strerror}") from error


def current_status(folder: Path, document: Mapping[str, Any]) -> str:
    """Returns the status of a run; `running` only while something still writes it."""
    status = str(document.get("status", "interrupted"))
    if status != "running":
        return status
    sessions = document.get("sessions") or [{}]
    process = sessions[-1].get("process", {})
    if process.get("host") == socket.gethostname():
        return "running" if is_alive(process) else "interrupted"
    age_seconds = datetime.now(timezone.utc).timestamp() - _last_written(folder)
    return "running" if age_seconds < _SILENT_SECONDS else "interrupted"


def describe_process(pid: int) -> dict[str, Any]:
    """Returns what finds a process again: its number, its start (None where the system does not tell), its machine."""
    try:
        created = psutil.Process(pid).create_time()
    except psutil.Error:
        created = None
    return {"pid": pid, "created": created, "host": socket.gethostname()}


def is_alive(process: Mapping[str, Any]) -> bool:
    """Tells whether a process that describe_process described on this machine still runs."""
    try:
        found = psutil.Process(int(process["pid"]))
        same = abs(found.create_time() - float(process["created"])) < _SAME_START_SECONDS
        return same and found.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, KeyError, ValueError, TypeError):
        return False


def _last_written(folder: Path) -> float:
    paths = (folder / name for name in (RUN_FILE, MARKS_FILE, SAMPLES_FILE))
    return max(path.stat().st_mtime for path in paths if path.exists())
