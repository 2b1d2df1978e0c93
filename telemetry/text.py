"""Text for the terminal: numbers, cells, aligned columns.

What comes from data (names of runs, classes, files) loses its control characters, so that no name can steer the
terminal.
"""

import math
import unicodedata
from collections.abc import Sequence

UNKNOWN = "-"


def printable(text: str) -> str:
    """Returns the text with every control, format and line-breaking character replaced by `?`."""
    return "".join("?" if unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") else sign for sign in text)


def format_number(value: float | None, decimals: int) -> str:
    """Returns a number with so many decimals, fewer from 1,000 on; a dash when it is unknown."""
    if value is None:
        return UNKNOWN
    if not math.isfinite(value):
        return str(value)
    return f"{value:,.{decimals if abs(value) < 1000 else 0}f}"


def format_ratio(ratio: float | None) -> str:
    """Returns a ratio as `x0.53`, with three significant digits; a dash when it is unknown."""
    if ratio is None:
        return UNKNOWN
    if ratio >= 1000:
        return f"x{ratio:,.0f}"
    return f"x{ratio:.{2 if ratio < 10 else 1 if ratio < 100 else 0}f}"


def shorten(text: str, width: int) -> str:
    """Returns the text in at most `width` characters, its middle left out: names of runs differ at either end."""
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return text[:head] + "…" + text[len(text) - (width - 1 - head) :]


def align(lines: Sequence[Sequence[str]], *, left: int = 0, gap: str = "  ") -> list[str]:
    """Returns lines of cells under each other.

    Args:
        lines: equally many cells a line.
        left: how many of the first columns are flush left; the others are flush right.
        gap: what stands between two columns.
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        gap.join(
            cell.ljust(width) if index < left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
