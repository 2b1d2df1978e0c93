"""The sessions of a run: each start of the recorder on its folder is one; a resumed run has several."""

import os
import time
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from telemetry.errors import RunExistsError
from telemetry.profile import EpochRow, epoch_rows
from telemetry.run_folder import RUN_FILE, current_status, describe_process, load_run, read_document


def document_before(folder: Path, resume_epochs: int | None) -> dict[str, Any]:
    """Returns run.json of the run to resume; empty for a new run.

    Args:
        folder: the run's folder.
        resume_epochs: the number of finished epochs to keep; None for a new run.

    Raises:
        RunExistsError: if a new run's folder holds one, or the run to resume is still being written.
        RunNotFoundError: if there is no run to resume.
        UnreadableRunError: if its run.json is damaged.
    """
    if resume_epochs is None:
        if (folder / RUN_FILE).exists():
            raise RunExistsError(f"{folder} holds a run already; choose another folder, or resume that run")
        return {}
    document = read_document(folder)
    if current_status(folder, document) == "running":
        raise RunExistsError(f"{folder} is still being written by another process; wait for it or end it")
    return document


def kept_rows(folder: Path, resume_epochs: int | None) -> list[EpochRow]:
    """Returns the rows of the epochs that a resumed run keeps; none for a new run."""
    if resume_epochs is None:
        return []
    return [row for row in epoch_rows(load_run(folder)) if row.epoch <= resume_epochs]


def session_fields(before: Mapping[str, Any]) -> dict[str, Any]:
    """Returns run.json with one more session, begun now by this process.

    Args:
        before: run.json so far; empty for a new run.
    """
    session = {
        "started": utc_now(),
        "monotonic_seconds": time.monotonic(),
        "process": describe_process(os.getpid()),
    }
    return {
        **before,
        "started": before.get("started", session["started"]),
        "finished": None,
        "sessions": [*before.get("sessions", []), session],
    }


def utc_now() -> str:
    """Returns the moment by the wall clock, in UTC, as ISO 8601."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
