"""What every probe hands back: values, and a reason for each value that it does not know.

Names are `<what>_<unit>`. A name that ends in `_total` is a running total since some fixed moment: only its differences
mean anything. Every other name is the state at one moment.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

MIB = 2**20


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The values of one moment.

    Attributes:
        values: field -> number, or None where it is unknown.
        reasons: field -> why it is None.
    """

    values: Mapping[str, float | None] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)


class Probe(Protocol):
    """A source of some fields; `read` may raise, the others are then still read."""

    name: str

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that each reading holds."""

    def read(self) -> Reading:
        """Reads every field now."""


def unknown(fields: Sequence[str], reason: str) -> Reading:
    """Returns a reading in which every one of the fields is None for the same reason."""
    return Reading(values=dict.fromkeys(fields), reasons=dict.fromkeys(fields, reason))


def merge_readings(readings: Sequence[Reading]) -> Reading:
    """Returns one reading with the fields of all; a later one wins."""
    values: dict[str, float | None] = {}
    reasons: dict[str, str] = {}
    for reading in readings:
        values.update(reading.values)
        reasons.update(reading.reasons)
    return Reading(values=values, reasons=reasons)


class UnknownValueError(Exception):
    """A value cannot be told; the message is the whole reason. It does not leave the probes."""


def guarded(query: Callable[[], float | None], name: str, values: dict, reasons: dict) -> None:
    """Puts the answer of one query under `name`, or None with the reason when it fails.

    A query fails alone: whatever it raises, the other fields of its probe are still read.
    """
    try:
        values[name] = query()
    except UnknownValueError as error:
        values[name] = None
        reasons[name] = str(error)
    except Exception as error:
        values[name] = None
        reasons[name] = f"{type(error).__name__}: {error}"


def read_probe(probe: Probe) -> Reading:
    """Reads one probe; when it raises, all its fields are None and the reason names it."""
    try:
        return probe.read()
    except Exception as error:
        return unknown(probe.fields, f"the {probe.name} probe failed: {type(error).__name__}: {error}")


def read_probes(probes: Sequence[Probe]) -> Reading:
    """Reads all probes, each on its own."""
    return merge_readings([read_probe(probe) for probe in probes])
