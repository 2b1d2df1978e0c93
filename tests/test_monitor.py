"""A monitor that the training would never report is refused before it starts."""

from __future__ import annotations

import pytest

from model.errors import MonitorError
from model.monitor import check_monitor, reported_names


@pytest.mark.parametrize("monitor", ["loss", "accuracy", "val_loss", "val_accuracy"])
def test_a_reported_value_may_be_monitored(monitor):
    check_monitor(["accuracy"], monitor)


def test_an_unknown_monitor_is_answered_with_the_nearest_and_all_of_them():
    message = "monitor 'val_acc' is not .* did you mean val_accuracy.*reported: loss, accuracy, val_loss, val_accuracy"
    with pytest.raises(MonitorError, match=message):
        check_monitor(["accuracy"], "val_acc")


def test_nothing_of_the_validation_is_reported_where_there_is_none():
    assert reported_names(["accuracy"], has_validation=False) == ("loss", "accuracy")
    with pytest.raises(MonitorError, match=r"reported: loss, accuracy\)"):
        check_monitor(["accuracy"], "val_accuracy", has_validation=False)
