"""The page of one run: what was run, the table, load over time, loss, accuracy and throughput."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from telemetry.figures import Figure, figures_of, known_figures
from telemetry.page import render_page
from telemetry.panels import Panel, load_panels
from telemetry.profile import EpochRow, epoch_rows, unknown_reasons
from telemetry.run_folder import Run, write_text
from telemetry.text import format_number
from telemetry.timeline import Series, keep_peaks, phase_bands

REPORT_FILE = "report.html"
# a screen has fewer columns of pixels; at 20 curves this is some 500 kB
_POINTS = 1200
_EPOCH_CHARTS = ("loss", "accuracy", "images_per_second", "input_wait_percent")
_SHOWN_FACTS = frozenset(("config", "versions", "hardware", "unavailable", "sessions", "status", "started", "finished"))


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell of the page's table: its text, and why it is unknown."""

    text: str
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class HeaderFigure:
    """One of the few figures on top of the page."""

    label: str
    value: str


def render_report(run: Run) -> str:
    """Returns the run's report as one HTML page that needs nothing else and asks nothing of the network."""
    rows = epoch_rows(run)
    figures = known_figures(figures_of(rows), rows)
    return render_page(
        "report.html.j2",
        {"load": _load_data(run), "epochs": [_epoch_chart(rows, figure) for figure in _charted(figures)]},
        run=run,
        started=_moment(run.document.get("started")),
        headline=_headline(run, rows),
        figures=figures,
        table=[(row, [_cell(row, figure) for figure in figures]) for row in rows],
        details=_details(run.document),
        unknown=_reasons_with_fields({**run.unavailable, **unknown_reasons(rows)}),
    )


def write_report(run: Run) -> Path:
    """Writes report.html into the run's folder and returns its path.

    Raises:
        RecordError: if it cannot be written.
    """
    path = run.folder / REPORT_FILE
    write_text(path, render_report(run))
    return path


def _load_data(run: Run) -> dict[str, Any]:
    bands = [
        {"epoch": band.epoch, "phase": band.phase, "start": band.start_seconds, "end": band.end_seconds}
        for band in phase_bands(run)
    ]
    return {"bands": bands, "panels": [_panel_data(panel) for panel in load_panels(run)]}


def _panel_data(panel: Panel) -> dict[str, Any]:
    series = [_series_data(keep_peaks(series, _POINTS)) for series in panel.series]
    return {"title": panel.title, "unit": panel.unit, "most": panel.most, "series": series}


def _series_data(series: Series) -> dict[str, Any]:
    return {"name": series.name, "x": list(series.x), "y": list(series.y)}


def _charted(figures: Sequence[Figure]) -> list[Figure]:
    by_column = {figure.column: figure for figure in figures}
    return [by_column[column] for column in _EPOCH_CHARTS if column in by_column]


def _epoch_chart(rows: Sequence[EpochRow], figure: Figure) -> dict[str, Any]:
    series = []
    for phase in ("train", "validation"):
        own = [row for row in rows if row.phase == phase]
        curve = Series(name=phase, x=[row.epoch for row in own], y=[row[figure.column] for row in own])
        series += [_series_data(curve)] if curve.is_known else []
    return {"title": figure.title, "unit": figure.unit, "series": series}


def _cell(row: EpochRow, figure: Figure) -> Cell:
    value = row[figure.column]
    text = format_number(value, figure.decimals) if value is not None else "–"  # noqa: RUF001 (a dash of its width)
    return Cell(text=text, reason=row.reasons.get(figure.column))


def _headline(run: Run, rows: Sequence[EpochRow]) -> list[HeaderFigure]:
    """Returns what a person wants to know first: how far it came, how well, how fast, how long."""
    last = {row.phase: row for row in rows}
    accuracies = [row["accuracy"] for row in rows if row.phase == "validation" and row["accuracy"] is not None]
    train = last.get("train")
    told = [
        ("epochs", str(max(row.epoch for row in rows)) if rows else None),
        ("best validation accuracy", format_number(max(accuracies), 3) if accuracies else None),
        ("images/s in the last training", _told(train, "images_per_second", 0, "")),
        ("of it waiting for input", _told(train, "input_wait_percent", 0, " %")),
        ("duration", _duration(run.document)),
    ]
    return [HeaderFigure(label=label, value=value) for label, value in told if value is not None]


def _told(row: EpochRow | None, column: str, decimals: int, unit: str) -> str | None:
    value = None if row is None else row[column]
    return None if value is None else format_number(value, decimals) + unit


def _duration(document: Mapping[str, Any]) -> str | None:
    """Returns the time from start to finish by the wall clock, pauses of a resumed run included."""
    try:
        started, finished = (datetime.fromisoformat(document[name]) for name in ("started", "finished"))
    except (KeyError, TypeError, ValueError):
        return None
    seconds = round((finished - started).total_seconds())
    hours, minutes = seconds // 3600, seconds % 3600 // 60
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds % 60} s" if minutes else f"{seconds} s"


def _moment(text: str | None) -> str | None:
    """Returns a moment as people write it, or whatever stands there when it is none."""
    try:
        return f"{datetime.fromisoformat(text).astimezone(timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    except (TypeError, ValueError):
        return text


def _details(document: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Returns the lists below the charts: configuration, data, versions, hardware."""
    facts = {name: value for name, value in document.items() if name not in _SHOWN_FACTS}
    groups = {
        "Configuration": document.get("config", {}),
        "Data and recording": facts,
        "Versions": document.get("versions", {}),
        "Hardware": document.get("hardware", {}),
    }
    return [(title, [(str(name), _shown(value)) for name, value in group.items()]) for title, group in groups.items()]


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _reasons_with_fields(reasons: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    """Returns each reason with the fields that it explains."""
    fields: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        fields.setdefault(reason, []).append(name)
    return list(fields.items())
