"""Two or more runs side by side: how their configurations differ, then each figure and its ratio to the first run."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from telemetry.errors import RecordError
from telemetry.figures import Figure, figures_of, known_figures, shows_zero
from telemetry.profile import EpochRow, epoch_rows
from telemetry.records import PHASES, Phase
from telemetry.run_folder import Run
from telemetry.text import printable

# the least run-to-run difference that a mark of better or worse stands for
NOTABLE_FRACTION = 0.05


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A field in which the runs differ.

    Attributes:
        field: its name, with dots into what is nested.
        values: one a run, as JSON text; None where the run lacks the field.
    """

    field: str
    values: tuple[str | None, ...]


@dataclass(frozen=True, kw_only=True)
class ComparedRow:
    """One figure of one epoch and phase.

    Attributes:
        epoch: from 1.
        phase: train or validation.
        values: one a run; None where it is unknown, or the run has no such epoch.
        ratios: each value over the first run's; None for the first run, and where either is unknown or the first is 0
            in the digits in which it is shown.
    """

    epoch: int
    phase: Phase
    values: tuple[float | None, ...]
    ratios: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class ComparedFigure:
    """One figure in all epochs and phases."""

    figure: Figure
    rows: tuple[ComparedRow, ...]

    @property
    def summary(self) -> str | None:
        """What says it all in a few words; None when it takes the table."""
        values = [value for row in self.rows for value in row.values]
        if all(value is not None and shows_zero(self.figure, value) for value in values):
            return "0 in every run"
        return "the same in every run" if all(len(set(row.values)) == 1 for row in self.rows) else None

    @property
    def known_rows(self) -> tuple[ComparedRow, ...]:
        """The rows in which at least one run knows the value."""
        return tuple(row for row in self.rows if any(value is not None for value in row.values))


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Runs side by side.

    Attributes:
        names: one a run, no two the same.
        statuses: one a run.
        warnings: why the runs may not be comparable, a sentence each.
        config_differences: what differs in the configuration.
        environment_differences: what differs in versions and hardware.
        figures: those that at least one run knows.
        unknown: the columns that no run knows.
    """

    names: tuple[str, ...]
    statuses: tuple[str, ...]
    warnings: tuple[str, ...]
    config_differences: tuple[Difference, ...]
    environment_differences: tuple[Difference, ...]
    figures: tuple[ComparedFigure, ...]
    unknown: tuple[str, ...]


def compare_runs(runs: Sequence[Run]) -> Comparison:
    """Returns the comparison of runs; the first is what the others are measured by.

    Raises:
        RecordError: if there are fewer than two.
    """
    if len(runs) < 2:
        raise RecordError(f"a comparison needs at least two runs, and got {len(runs)}")
    tables = [{(row.epoch, row.phase): row for row in epoch_rows(run)} for run in runs]
    rows = [row for table in tables for row in table.values()]
    known = known_figures(figures_of(rows), rows)
    environment = [{part: run.document.get(part, {}) for part in ("versions", "hardware")} for run in runs]
    return Comparison(
        names=_names(runs),
        statuses=tuple(run.status for run in runs),
        warnings=tuple(_warnings(runs)),
        config_differences=_differences([run.document.get("config", {}) for run in runs]),
        environment_differences=_differences(environment),
        figures=tuple(_compare_figure(figure, tables) for figure in known),
        unknown=tuple(figure.column for figure in figures_of(rows) if figure not in known),
    )


def _compare_figure(figure: Figure, tables: Sequence[Mapping[tuple[int, Phase], EpochRow]]) -> ComparedFigure:
    places = sorted(
        {place for table in tables for place in table}, key=lambda place: (place[0], PHASES.index(place[1]))
    )
    rows = []
    for place in places:
        values = tuple(table[place][figure.column] if place in table else None for table in tables)
        ratios = (None, *(_ratio(figure, value, values[0]) for value in values[1:]))
        rows.append(ComparedRow(epoch=place[0], phase=place[1], values=values, ratios=ratios))
    return ComparedFigure(figure=figure, rows=tuple(rows))


def _ratio(figure: Figure, value: float | None, first: float | None) -> float | None:
    return None if value is None or first is None or shows_zero(figure, first) else value / first


def is_better(figure: Figure, ratio: float | None) -> bool | None:
    """Tells whether a ratio is for the better; None when it is hardly a change or no direction is the better one."""
    if ratio is None or figure.better is None or abs(ratio - 1) < NOTABLE_FRACTION:
        return None
    return (ratio > 1) == (figure.better == "higher")


def _names(runs: Sequence[Run]) -> tuple[str, ...]:
    """Returns the folders' names, with as much of the path before them as tells them apart."""
    names = [printable(run.name) for run in runs]
    if len(set(names)) < len(names):
        names = [printable(f"{run.folder.parent.name}/{run.name}") for run in runs]
    return tuple(name if names.index(name) == index else f"{name} ({index + 1})" for index, name in enumerate(names))


def flatten(document: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Returns the leaves of nested mappings, named with dots, as JSON text."""
    leaves: dict[str, str] = {}
    for name, value in document.items():
        if isinstance(value, Mapping) and value:
            leaves |= flatten(value, f"{prefix}{name}.")
        else:
            leaves[f"{prefix}{name}"] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return leaves


def _differences(documents: Sequence[Mapping[str, Any]]) -> tuple[Difference, ...]:
    leaves = [flatten(document) for document in documents]
    fields = dict.fromkeys(field for one in leaves for field in one)
    rows = [(field, tuple(one.get(field) for one in leaves)) for field in fields]
    return tuple(Difference(field=field, values=values) for field, values in rows if len(set(values)) > 1)


def _warnings(runs: Sequence[Run]) -> list[str]:
    warnings = []
    if len({json.dumps(run.document.get("data_fingerprint"), sort_keys=True) for run in runs}) > 1:
        warnings.append("The runs did not see the same data: their fingerprints differ.")
    hardware = _differences([run.document.get("hardware", {}) for run in runs])
    if hardware:
        warnings.append(f"The runs had unlike hardware: {', '.join(difference.field for difference in hardware)}.")
    warnings += [
        f"{name} is {run.status}: it is compared as far as it came."
        for name, run in zip(_names(runs), runs, strict=True)
        if run.status != "finished"
    ]
    return warnings
