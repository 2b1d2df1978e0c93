"""A comparison as plain text for the terminal."""

import textwrap
from collections.abc import Sequence

from telemetry.compare import ComparedFigure, ComparedRow, Comparison, Difference
from telemetry.records import PHASES
from telemetry.text import UNKNOWN, align, format_number, format_ratio, printable, shorten

WIDTH = 120
_NAME_WIDTH = 17
_RATIO_WIDTH = 8
_SIDE_BY_SIDE = 3  # so many runs of both phases fit beside each other


def format_comparison(comparison: Comparison) -> str:
    """Returns the comparison, for two or three runs at most 120 columns wide.

    First what differs in the configuration, then a block a figure with a line an epoch; behind each value stands its
    ratio to the first run's. A dash is an unknown value.
    """
    blocks = [_title(comparison), *_differences_blocks(comparison)]
    blocks += [_figure_block(figure, comparison.names) for figure in comparison.figures]
    if comparison.unknown:
        blocks.append([textwrap.fill(f"Unknown in every run: {', '.join(comparison.unknown)}", WIDTH)])
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _title(comparison: Comparison) -> list[str]:
    lines = [f"{name} ({status})" for name, status in zip(comparison.names, comparison.statuses, strict=True)]
    numbered = ["Runs: " + lines[0] + ", by which the others are measured", *("      " + line for line in lines[1:])]
    warnings = [textwrap.fill(f"Warning: {printable(text)}", WIDTH) for text in comparison.warnings]
    return [*numbered, *warnings]


def _differences_blocks(comparison: Comparison) -> list[list[str]]:
    config = _difference_lines(comparison.config_differences, comparison.names)
    blocks = [["Configuration: what differs", *config] if config else ["Configuration: no difference"]]
    environment = _difference_lines(comparison.environment_differences, comparison.names)
    return [*blocks, ["Versions and hardware: what differs", *environment]] if environment else blocks


def _difference_lines(differences: Sequence[Difference], names: Sequence[str]) -> list[str]:
    if not differences:
        return []
    width = max(_NAME_WIDTH, (WIDTH - 40) // len(names) - 2)
    head = ["", *(shorten(name, width) for name in names)]
    lines = [
        [shorten(printable(difference.field), 36), *(_difference_cell(value, width) for value in difference.values)]
        for difference in differences
    ]
    return ["  " + line for line in align([head, *lines], left=len(head))]


def _difference_cell(value: str | None, width: int) -> str:
    return UNKNOWN if value is None else shorten(printable(value), width)


def _figure_block(compared: ComparedFigure, names: Sequence[str]) -> list[str]:
    figure = compared.figure
    title = f"{figure.title}{f', {figure.unit}' if figure.unit else ''}"
    if compared.summary is not None:
        return [f"{title}: {compared.summary}"]
    groups = [PHASES] if len(names) <= _SIDE_BY_SIDE else [(phase,) for phase in PHASES]
    lines = [title]
    for phases in groups:
        lines += _group_lines(compared, phases, names)
    return lines


def _group_lines(compared: ComparedFigure, phases: Sequence[str], names: Sequence[str]) -> list[str]:
    known = compared.known_rows
    by_place = {(row.epoch, row.phase): row for row in known}
    shown = [phase for phase in phases if any(row.phase == phase for row in known)]
    head = ["epoch", *(shorten(name, _NAME_WIDTH).rjust(_NAME_WIDTH) for _ in shown for name in names)]
    lines = [head]
    for epoch in sorted({row.epoch for row in known}):
        cells = [_cells(by_place.get((epoch, phase)), compared, len(names)) for phase in shown]
        lines.append([str(epoch), *(cell for group in cells for cell in group)])
    # the phase's name stands over the first of its runs
    width = (_NAME_WIDTH + 1) * len(names)
    phase_line = " " * 8 + "".join(f" {phase} ".center(width - 2, "-").ljust(width) for phase in shown)
    return ["  " + line.rstrip() for line in (phase_line[2:], *align(lines, gap=" "))]


def _cells(row: ComparedRow | None, compared: ComparedFigure, count: int) -> list[str]:
    if row is None:
        return [UNKNOWN] * count
    return [
        f"{format_number(value, compared.figure.decimals)}{_ratio_text(ratio)}"
        for value, ratio in zip(row.values, row.ratios, strict=True)
    ]


def _ratio_text(ratio: float | None) -> str:
    return " " * _RATIO_WIDTH if ratio is None else format_ratio(ratio).rjust(_RATIO_WIDTH)
