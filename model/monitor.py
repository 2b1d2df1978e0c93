"""Which values a training reports, and whether a monitor is one of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from model.errors import MonitorError

__all__ = ["check_monitor", "reported_names"]


def reported_names(metric_names: Iterable[str], has_validation: bool = True) -> tuple[str, ...]:
    """Names of the values that `fit` reports at the end of an epoch.

    Args:
        metric_names: names of the compiled metrics, without the loss.
        has_validation: whether `fit` gets validation data.

    Returns:
        The loss and the metrics, then the same of the validation phase.
    """
    train = tuple(dict.fromkeys(("loss", *metric_names)))
    return train + tuple(f"val_{name}" for name in train) if has_validation else train


def check_monitor(metric_names: Iterable[str], monitor: str, has_validation: bool = True) -> None:
    """Refuses a monitor that would never be reported, before the first epoch rather than after it.

    A model's own `metrics_names` is not asked, since Keras 2 fills it only after the first batch.

    Args:
        metric_names: names of the compiled metrics, without the loss, e.g. `classifier.METRIC_NAMES`.
        monitor: the name to look up, e.g. `val_accuracy`.
        has_validation: whether `fit` gets validation data.

    Raises:
        MonitorError: if `monitor` is not reported; it names the ones that are.
    """
    names = reported_names(metric_names, has_validation)
    if monitor in names:
        return
    nearest = difflib.get_close_matches(monitor, names, n=1)
    hint = f"; did you mean {nearest[0]}?" if nearest else ""
    if not has_validation and monitor.startswith("val_"):
        hint = "; there is no validation data, so pass --monitor accuracy or --monitor loss"
    raise MonitorError(f"monitor {monitor!r} is not reported by this training{hint} (reported: {', '.join(names)})")
