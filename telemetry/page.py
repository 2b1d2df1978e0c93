"""What both pages share: the templates, the chart library, and data put into a page safely."""

import importlib.resources
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2

# inside a <script> element a parser looks only for these; written this way they are the same characters to JSON
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def render_page(template: str, data: Mapping[str, Any], **values: Any) -> str:
    """Returns a self-contained page.

    Args:
        template: its file's name in telemetry/templates.
        data: what the page's script draws, as plain data.
        **values: what the template shows; every one is escaped.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template(template)
    return page.render(data_json=script_json(data), plotly_js=_plotly_js(), **values)


def script_json(data: Any) -> str:
    """Returns JSON that can stand in a <script> element whatever the data holds; nan and infinity become null."""
    text = json.dumps(_finite(data), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign, escape in _ESCAPES.items():
        text = text.replace(sign, escape)
    return text


def _finite(value: Any) -> Any:
    """Returns the data with its numbers cut to five digits, which is more than a screen shows."""
    if isinstance(value, float):
        return float(f"{value:.5g}") if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def _plotly_js() -> str:
    """Returns the chart library that the plotly package carries, without importing the package's slow rest."""
    return (importlib.resources.files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
