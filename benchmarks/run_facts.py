"""What stands beside the figures of a run: when and on what they were measured."""

from __future__ import annotations

import os
import platform
from datetime import datetime, timezone
from typing import Any

import tensorflow as tf


def run_facts(**measurement: Any) -> dict[str, Any]:
    """Date, versions, cores and what the measurement says of itself."""
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "tensorflow": tf.__version__,
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        **measurement,
    }
