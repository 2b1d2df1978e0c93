"""The epoch x phase table as plain text for the terminal."""

import textwrap
from collections.abc import Sequence

from telemetry.figures import Figure, figures_of, known_figures
from telemetry.profile import EpochRow, unknown_reasons
from telemetry.text import align, format_number, printable

WIDTH = 120
# what fits; the rest stands in epochs.csv and in the report
_LEFT_OUT = frozenset(("images", "tf_memory_current_mib"))
_DROPPED_FIRST = ("warmup_seconds", "cpu_machine_percent", "gpu0_job_memory_mib", "disk_read_mib")
_ALWAYS = ("seconds", "images_per_second", "input_wait_percent", "loss", "accuracy")


def format_table(rows: Sequence[EpochRow]) -> str:
    """Returns the table, at most about 120 columns wide, with a dash for an unknown value.

    A column of which nothing is known is left out and named below with the reason, but for the ones of every training.
    """
    if not rows:
        return "No phase has ended, so there is no table.\n"
    shown = [figure for figure in figures_of(rows) if _is_shown(figure, rows)]
    lines = _lines(rows, shown, gap="  ")
    for column in ("", *_DROPPED_FIRST):  # with a GPU there is more to tell than fits
        if _width(lines) <= WIDTH:
            break
        shown = [figure for figure in shown if figure.column != column]
        lines = _lines(rows, shown, gap=" ")
    return "\n".join([*lines, *_notes(rows)]) + "\n"


def _lines(rows: Sequence[EpochRow], shown: Sequence[Figure], *, gap: str) -> list[str]:
    headings = [["epoch", "phase", *(figure.heading[line] for figure in shown)] for line in (0, 1)]
    headings[0][:2] = ["", ""]
    cells = [[str(row.epoch), row.phase, *(_cell(row, figure) for figure in shown)] for row in rows]
    return align([*headings, *cells], left=2, gap=gap)


def _width(lines: Sequence[str]) -> int:
    return max(map(len, lines))


def _is_shown(figure: Figure, rows: Sequence[EpochRow]) -> bool:
    if figure.column in _ALWAYS:
        return True
    extra = figure.column.startswith("gpu") and figure not in figures_of([])
    return figure.column not in _LEFT_OUT and not extra and bool(known_figures([figure], rows))


def _cell(row: EpochRow, figure: Figure) -> str:
    return format_number(row[figure.column], figure.decimals)


def _notes(rows: Sequence[EpochRow]) -> list[str]:
    """Returns a paragraph for each reason for which whole columns are unknown."""
    reasons = unknown_reasons(rows)
    by_reason: dict[str, list[str]] = {}
    for figure in figures_of(rows):
        if not known_figures([figure], rows):
            by_reason.setdefault(reasons.get(figure.column, "not recorded"), []).append(figure.column)
    notes = [f"unknown: {', '.join(names)}: {printable(why)}" for why, names in by_reason.items()]
    return ["", *(textwrap.fill(note, WIDTH, subsequent_indent="  ") for note in notes)] if notes else []
