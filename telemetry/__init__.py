"""Telemetry: records what disk, CPU, memory and GPU do in each epoch and phase of a training.

Importing it needs neither TensorFlow nor Keras.
"""

from telemetry.compare import Comparison, compare_runs
from telemetry.compare_page import render_comparison
from telemetry.compare_text import format_comparison
from telemetry.errors import PhaseError, RecordError, RunExistsError, RunNotFoundError, UnreadableRunError
from telemetry.keras_callback import phase_callback
from telemetry.page_cache import EvictResult, evict_files
from telemetry.probes.gpu import smallest_gpu_memory_bytes
from telemetry.profile import COLUMNS, EpochRow, epoch_rows, rows_csv
from telemetry.recorder import RunRecorder
from telemetry.report import render_report, write_report
from telemetry.run_folder import Run, create_run_folder, load_run, write_json, write_text
from telemetry.sampler_process import SamplerConfig
from telemetry.table import format_table

__all__ = [
    "COLUMNS",
    "Comparison",
    "EpochRow",
    "EvictResult",
    "PhaseError",
    "RecordError",
    "Run",
    "RunExistsError",
    "RunNotFoundError",
    "RunRecorder",
    "SamplerConfig",
    "UnreadableRunError",
    "compare_runs",
    "create_run_folder",
    "epoch_rows",
    "evict_files",
    "format_comparison",
    "format_table",
    "load_run",
    "phase_callback",
    "render_comparison",
    "render_report",
    "rows_csv",
    "smallest_gpu_memory_bytes",
    "write_json",
    "write_report",
    "write_text",
]
