"""A comparison as a page: the differences, then a chart and a table a figure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from telemetry.compare import ComparedFigure, ComparedRow, Comparison, is_better
from telemetry.page import render_page
from telemetry.records import PHASES
from telemetry.text import format_number, format_ratio


@dataclass(frozen=True, kw_only=True)
class ComparedCell:
    """One run's value on the page: its text, its ratio to the first run, and whether that is for the better."""

    value: str
    ratio: str
    verdict: str


def render_comparison(comparison: Comparison) -> str:
    """Returns the comparison as one HTML page that needs nothing else and asks nothing of the network."""
    return render_page(
        "compare.html.j2",
        {"names": comparison.names, "figures": [_chart(figure) for figure in comparison.figures]},
        comparison=comparison,
        figures=[_figure(figure, len(comparison.names)) for figure in comparison.figures],
    )


def _chart(compared: ComparedFigure) -> dict[str, Any]:
    figure = compared.figure
    phases = []
    for phase in PHASES:
        rows = [row for row in compared.known_rows if row.phase == phase]
        runs = list(zip(*(row.values for row in rows), strict=True))
        phases.append({"phase": phase, "epochs": [row.epoch for row in rows], "runs": runs})
    return {"title": figure.title, "unit": figure.unit, "decimals": figure.decimals, "phases": phases}


def _figure(compared: ComparedFigure, run_count: int) -> dict[str, Any]:
    known = compared.known_rows
    phases = [phase for phase in PHASES if any(row.phase == phase for row in known)]
    by_place = {(row.epoch, row.phase): row for row in known}
    lines = []
    for epoch in sorted({row.epoch for row in by_place.values()}):
        cells = [_cells(by_place.get((epoch, phase)), compared, run_count) for phase in phases]
        lines.append((epoch, [cell for group in cells for cell in group]))
    return {"figure": compared.figure, "summary": compared.summary, "phases": phases, "lines": lines}


def _cells(row: ComparedRow | None, compared: ComparedFigure, run_count: int) -> Sequence[ComparedCell]:
    if row is None:
        return [ComparedCell(value="–", ratio="", verdict="")] * run_count  # noqa: RUF001 (a dash of its width)
    return [_cell(value, ratio, compared) for value, ratio in zip(row.values, row.ratios, strict=True)]


def _cell(value: float | None, ratio: float | None, compared: ComparedFigure) -> ComparedCell:
    verdict = {True: "better", False: "worse", None: ""}[is_better(compared.figure, ratio)]
    text = format_number(value, compared.figure.decimals) if value is not None else "–"  # noqa: RUF001 (as above)
    return ComparedCell(value=text, ratio="" if ratio is None else format_ratio(ratio), verdict=verdict)
