"""The errors that recording and reading a run can raise.

RecordError                 anything that telemetry refuses or cannot do
├── RunExistsError          a run folder of that name is there already
├── RunNotFoundError        no run lies at that path
├── UnreadableRunError      a run's files are there but cannot be understood
└── PhaseError              phases begun or ended out of turn
"""


class RecordError(Exception):
    """The base of every error that telemetry raises on purpose."""


class RunExistsError(RecordError):
    """A run folder of that name exists, and a run is never overwritten."""


class RunNotFoundError(RecordError):
    """No run folder lies at the path."""


class UnreadableRunError(RecordError):
    """The files of a run folder cannot be read or understood."""


class PhaseError(RecordError):
    """A phase was begun or ended out of turn."""
