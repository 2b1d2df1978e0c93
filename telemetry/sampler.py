"""The sampler's process: appends a reading to samples.jsonl each period until it is told to stop or its parent ends.

It is started as `python -m telemetry.sampler TASK`, TASK being a SamplerTask as JSON. It is told to stop by the word
`stop` on its standard input; an input that ends without that word means that the parent has died, and then it writes
the status `interrupted` into run.json, because nobody else can.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from telemetry.probe_set import ProbeSet
from telemetry.probes.disk import BlockDevice
from telemetry.probes.reading import Reading
from telemetry.records import LineWriter, Sample, sample_line
from telemetry.run_folder import RUN_FILE, SAMPLES_FILE, is_alive, read_document, write_json
from telemetry.sampler_process import READY, STOP, SamplerTask


def next_deadline(deadline: float, now: float, period: float) -> float:
    """Returns the first deadline after now on the last one's grid; what a suspended machine missed is left out."""
    return deadline + period * (max(now - deadline, 0) // period + 1)


def sample_until(
    stop: Callable[[float], bool],
    read: Callable[[], Reading],
    write: Callable[[float, Reading], None],
    *,
    period: float,
    clock: Callable[[], float],
) -> None:
    """Reads and writes at a steady pace.

    Args:
        stop: waits for the given seconds and returns True as soon as sampling must end.
        read: reads all probes.
        write: keeps one reading and its monotonic time.
        period: seconds between two readings.
        clock: the monotonic clock.
    """
    deadline = clock()
    while True:
        now = clock()
        write(now, read())
        deadline = next_deadline(deadline, clock(), period)
        if stop(deadline - clock()):
            return


class SampleWriter:
    """Appends samples; a reason is written once, with the first sample that needs it."""

    def __init__(self, path: Path, session: int):
        self._lines = LineWriter(path)
        self._session = session
        self._told: set[tuple[str, str]] = set()

    def write(self, now: float, reading: Reading) -> None:
        """Appends one reading."""
        fresh = {name: reason for name, reason in reading.reasons.items() if (name, reason) not in self._told}
        self._told |= set(fresh.items())
        sample = Sample(session=self._session, monotonic_seconds=now, values=reading.values, reasons=fresh)
        self._lines.write(sample_line(sample))

    def close(self) -> None:
        """Closes the file."""
        self._lines.close()


class ParentWatch:
    """Waits for the parent's word, or its death."""

    def __init__(self, parent: dict[str, Any]):
        self._parent = parent
        self._ended = threading.Event()
        self.told_to_stop = False
        threading.Thread(target=self._listen, daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Waits at most so long; returns True when sampling must end."""
        return self._ended.wait(max(seconds, 0)) or not self._parent_lives()

    def _listen(self) -> None:
        received = b""
        # not sys.stdin: a thread inside its lock would break the interpreter's shutdown
        while data := os.read(0, 64):
            received += data
            if STOP in received:
                self.told_to_stop = True
                break
        self._ended.set()

    def _parent_lives(self) -> bool:
        # the input stays open while forked children of a dead parent hold its other end, so that alone is not enough
        if os.name == "posix":
            return os.getppid() == self._parent["pid"]
        return is_alive(self._parent)


def mark_interrupted(folder: Path, session: int) -> None:
    """Writes the status `interrupted`, unless the run has ended in order or has been taken up again."""
    document = read_document(folder)
    if document.get("status") == "running" and len(document.get("sessions", [])) == session + 1:
        write_json(folder / RUN_FILE, {**document, "status": "interrupted"})


def main(arguments: list[str]) -> int:
    """Runs the sampler's process and returns its exit status."""
    # the terminal sends Ctrl-C, and a closing one SIGHUP, to the whole group: the sampler ends by itself, afterwards
    for name in ("SIGINT", "SIGHUP", "SIGTERM"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    task = SamplerTask(**json.loads(arguments[0]))
    folder = Path(task.folder)
    watch = ParentWatch(task.parent)
    probes = ProbeSet(pid=task.parent["pid"], device=BlockDevice(**task.device), excluded_pids=[os.getpid()])
    writer = SampleWriter(folder / SAMPLES_FILE, task.session)
    announce = threading.Event()

    def write(now: float, reading: Reading) -> None:
        if watch.wait(0):  # what is read of a parent that has ended is not the job's any more
            return
        writer.write(now, reading)
        if not announce.is_set():
            announce.set()
            os.write(1, READY)

    try:
        sample_until(watch.wait, probes.read, write, period=task.period_seconds, clock=time.monotonic)
    finally:
        writer.close()
        probes.close()
    if not watch.told_to_stop:
        mark_interrupted(folder, task.session)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
