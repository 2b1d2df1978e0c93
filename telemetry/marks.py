"""Writing the marks: what happens in the run, when, and all counters at that moment."""

from collections.abc import Callable, Mapping
from pathlib import Path

from telemetry.probes.reading import Reading
from telemetry.records import Event, LineWriter, Mark, Phase, mark_line

_NOTHING: Mapping[str, float] = {}


class MarkLog:
    """Appends marks to marks.jsonl, each handed to the system at once.

    Args:
        path: the file.
        session: the number of this session of the recorder.
        clock: the monotonic clock.
    """

    def __init__(self, path: Path, *, session: int, clock: Callable[[], float]):
        self._lines = LineWriter(path)
        self._session = session
        self._clock = clock

    def phase(
        self,
        event: Event,
        place: tuple[int, Phase],
        reading: Reading,
        *,
        counters: Mapping[str, float],
        metrics: Mapping[str, float] = _NOTHING,
    ) -> Mark:
        """Appends an event of a phase and returns its mark.

        Args:
            event: begin, warmup_end or end.
            place: epoch and phase.
            reading: the probes' fields, read just now.
            counters: the trainer's totals, read just now.
            metrics: of the phase, as far as they are known.
        """
        epoch, phase = place
        return self._append(
            Mark(
                event=event,
                session=self._session,
                monotonic_seconds=self._clock(),
                epoch=epoch,
                phase=phase,
                values=reading.values,
                counters=counters,
                metrics=metrics,
                reasons=reading.reasons,
            )
        )

    def metrics(self, place: tuple[int, Phase], metrics: Mapping[str, float]) -> Mark:
        """Appends metrics of a phase that has ended."""
        epoch, phase = place
        now = self._clock()
        return self._append(
            Mark(
                event="metrics",
                session=self._session,
                monotonic_seconds=now,
                epoch=epoch,
                phase=phase,
                metrics=metrics,
            )
        )

    def resume(self, kept_epochs: int) -> Mark:
        """Appends the begin of a further session that goes on behind so many epochs."""
        return self._append(
            Mark(event="resume", session=self._session, monotonic_seconds=self._clock(), epoch=kept_epochs)
        )

    def close(self) -> None:
        """Closes the file."""
        self._lines.close()

    def _append(self, mark: Mark) -> Mark:
        self._lines.write(mark_line(mark))
        return mark
