"""The panels of the report's load over time: which curves share an axis."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from telemetry.probes.reading import MIB
from telemetry.run_folder import Run
from telemetry.timeline import Series, rate_series, share_series, state_series


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Curves that share one axis.

    Attributes:
        title: in words.
        unit: of the vertical axis.
        series: the curves; at least one has a value.
        most: the axis's upper end; None for what the values need.
    """

    title: str
    unit: str
    series: tuple[Series, ...]
    most: float | None = None


def load_panels(run: Run) -> list[Panel]:
    """Returns the panels of load over time, those of which nothing is known left out."""
    return [known for panel in (*_host_panels(run), *_gpu_panels(run)) if (known := _only_known(panel)).series]


def _host_panels(run: Run) -> list[Panel]:
    cores = run.document.get("hardware", {}).get("usable_cores") or 1
    return [
        Panel(
            title="Reading",
            unit="MiB/s",
            series=(
                rate_series(run, "disk_read_bytes_total", "disk, by anybody", scale=1 / MIB),
                rate_series(run, "job_physical_read_bytes_total", "job, from the disk", scale=1 / MIB),
                rate_series(run, "job_logical_read_bytes_total", "job, in all", scale=1 / MIB),
            ),
        ),
        Panel(
            title="Disk busy",
            unit="%",
            series=(_capped(rate_series(run, "disk_busy_seconds_total", "disk", scale=100)),),
            most=100,
        ),
        Panel(
            title="CPU",
            unit="%",
            series=(
                share_series(run, "machine_cpu_busy_seconds_total", "machine_cpu_seconds_total", "machine"),
                rate_series(run, "job_cpu_seconds_total", "job, of the cores it may use", scale=100 / cores),
            ),
            most=100,
        ),
        Panel(
            title="Memory",
            unit="GiB",
            series=(
                state_series(run, "rss_mib", "job", scale=1 / 1024),
                state_series(run, "page_cache_mib", "page cache", scale=1 / 1024),
            ),
        ),
    ]


def _gpu_panels(run: Run) -> list[Panel]:
    gpus = sorted({name.partition("_")[0] for sample in run.samples[:1] for name in sample.values if name[:3] == "gpu"})
    return [
        _gpu_panel(run, gpus, "GPU in use", "%", {"util_percent": ""}, 100),
        _gpu_panel(run, gpus, "GPU memory", "GiB", {"memory_used_mib": ", all", "job_memory_mib": ", job"}, None),
        _gpu_panel(run, gpus, "GPU power", "W", {"power_watts": ""}, None),
        _gpu_panel(run, gpus, "GPU temperature", "°C", {"temperature_celsius": ""}, None),
    ]


def _gpu_panel(
    run: Run, gpus: Sequence[str], title: str, unit: str, fields: Mapping[str, str], most: float | None
) -> Panel:
    scale = 1 / 1024 if unit == "GiB" else 1.0
    series = tuple(
        state_series(run, f"{gpu}_{field}", f"{gpu.upper()}{suffix}", scale=scale)
        for gpu in gpus
        for field, suffix in fields.items()
    )
    return Panel(title=title, unit=unit, series=series, most=most)


def _capped(series: Series) -> Series:
    return Series(name=series.name, x=series.x, y=[None if y is None else min(y, 100.0) for y in series.y])


def _only_known(panel: Panel) -> Panel:
    known = tuple(series for series in panel.series if series.is_known)
    return Panel(title=panel.title, unit=panel.unit, series=known, most=panel.most)
