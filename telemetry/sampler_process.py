"""The sampler seen from the recorder: starting its process, stopping it, and hearing why it failed."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

STOP = b"stop\n"
READY = b"ready\n"
_STOP_SECONDS = 10


@dataclass(frozen=True, kw_only=True)
class SamplerConfig:
    """How the sampler works.

    Attributes:
        period_seconds: time between two readings, above 0.
        start_timeout_seconds: how long the recorder waits for the first reading before it goes on without.

    Raises:
        ValueError: if a value is not above 0.
    """

    period_seconds: float = 0.2
    start_timeout_seconds: float = 20.0

    def __post_init__(self):
        for name, value in asdict(self).items():
            if not value > 0:
                raise ValueError(f"SamplerConfig.{name} is {value!r}; it must be above 0")


@dataclass(frozen=True, kw_only=True)
class SamplerTask:
    """What the sampler's process is told at its start.

    Attributes:
        folder: the run's folder, absolute.
        session: the number of this session of the recorder.
        period_seconds: time between two readings.
        parent: the process to sample, as run_folder.describe_process gives it.
        device: the block device of the data, or the reason why there is none.
    """

    folder: str
    session: int
    period_seconds: float
    parent: dict[str, Any]
    device: dict[str, str | None] = field(default_factory=dict)


class SamplerProcess:
    """A running sampler.

    Attributes:
        pid: its process number, which is not part of the job.
    """

    def __init__(self, task: SamplerTask, *, start_timeout_seconds: float):
        """Starts the sampler and waits for its first reading.

        Raises:
            OSError: if no process can be started.
        """
        self._owner_pid = os.getpid()
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # a pipe that nobody empties could block it
        try:
            self._process = self._start(task)
        except OSError:
            self._errors.close()
            raise
        self.pid = self._process.pid
        self.is_ready = self._wait_until_ready(start_timeout_seconds)

    def _start(self, task: SamplerTask) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-m", "telemetry.sampler", json.dumps(asdict(task))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,  # so that nothing is left to be written when the sampler has gone
            env=_environment(),
            cwd=_package_parent(),  # `-m` looks there first, so no module of the person's folder is taken for ours
        )

    def _wait_until_ready(self, timeout_seconds: float) -> bool:
        heard: list[bytes] = []
        listener = threading.Thread(target=lambda: heard.append(self._process.stdout.readline()), daemon=True)
        listener.start()
        listener.join(timeout_seconds)
        return heard == [READY]

    def stop(self) -> str | None:
        """Ends the sampler and returns how it had failed; None when it had not.

        In a forked child of the recorder's process this does nothing: the sampler belongs to the parent.
        """
        if os.getpid() != self._owner_pid:
            return None
        had_ended = self._process.poll() is not None
        if not had_ended:
            self._tell_to_stop()
        self._process.stdin.close()
        self._process.stdout.close()
        try:
            # one that is just dying is not over yet when it is asked, so its status counts as well
            failed = had_ended or self._process.returncode != 0
            return self._failure(self._process.returncode) if failed else None
        finally:
            self._errors.close()

    def _tell_to_stop(self) -> None:
        try:
            self._process.stdin.write(STOP)
            self._process.stdin.flush()
        except BrokenPipeError:  # it has just ended by itself
            pass
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:  # stuck in a driver's call
            self._process.kill()
            self._process.wait()

    def _failure(self, status: int) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
        return f"the sampler did not end in order ({how}){': ' + lines[-1] if lines else ''}"


def _package_parent() -> str:
    return str(Path(__file__).resolve().parent.parent)


def _environment() -> dict[str, str]:
    """Returns the environment with our package's folder on the path: PYTHONSAFEPATH would keep `-m` from it."""
    paths = [_package_parent(), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
