import csv
import io
import json

import pytest
from telemetry_made_up import mark, totals, write_lines, write_run

from telemetry.profile import COLUMNS, epoch_rows, rows_csv, table_columns, unknown_reasons
from telemetry.run_folder import load_run


@pytest.fixture
def rows(tmp_path):
    return epoch_rows(load_run(write_run(tmp_path / "one")))


def changed_row(tmp_path, values=None, counters=None, **changes):
    """The row of a phase of 10 s in which nothing is known but what the test gives, as pairs of before and after."""
    folder = write_run(tmp_path / "one", **changes)
    before = {name: pair[0] for name, pair in (values or {}).items()}
    after = {name: pair[1] for name, pair in (values or {}).items()}
    counts = [{name: pair[end] for name, pair in (counters or {}).items()} for end in (0, 1)]
    lines = [
        mark("begin", 1, "train", 0.0, values=before, counters=counts[0]),
        mark("end", 1, "train", 10.0, values=after, counters=counts[1]),
    ]
    write_lines(folder / "marks.jsonl", lines)
    (row,) = epoch_rows(load_run(folder))
    return row


def test_the_rows_are_the_phases_in_order(rows):
    assert [(row.epoch, row.phase) for row in rows] == [
        (1, "train"),
        (1, "validation"),
        (2, "train"),
        (2, "validation"),
    ]


def test_a_phase_is_measured_from_its_counters_at_both_ends(rows):
    train = rows[0]
    assert train["seconds"] == 10.0
    assert train["disk_read_mib"] == pytest.approx(40.0)
    assert train["job_physical_read_mib"] == pytest.approx(40.0)
    assert train["job_logical_read_mib"] == pytest.approx(40.0)
    assert train["disk_busy_percent"] == pytest.approx(25.0)
    assert train["cpu_job_percent"] == pytest.approx(50.0)  # one of the two cores that it may use
    assert train["cpu_machine_percent"] == pytest.approx(50.0)  # two of four
    assert (train["loss"], train["accuracy"]) == (1.0, 0.6)


def test_the_warmup_is_told_and_left_out_of_throughput_and_waiting(tmp_path):
    folder = write_run(tmp_path / "one")
    lines = [
        mark("begin", 1, "train", 0.0, counters={"images": 0, "input_wait_seconds": 0.0}),
        mark("warmup_end", 1, "train", 6.0, counters={"images": 32, "input_wait_seconds": 3.0}),
        mark("end", 1, "train", 10.0, counters={"images": 432, "input_wait_seconds": 4.0}),
    ]
    write_lines(folder / "marks.jsonl", lines)
    (row,) = epoch_rows(load_run(folder))
    assert (row["seconds"], row["warmup_seconds"], row["images"]) == (10.0, 6.0, 432)
    assert row["images_per_second"] == 100.0
    assert row["input_wait_percent"] == 25.0


def test_a_phase_without_warmup_has_none_and_says_so(rows):
    assert rows[0]["warmup_seconds"] == 1.0
    assert rows[2]["warmup_seconds"] is None
    assert "no warm-up" in rows[2].reasons["warmup_seconds"]
    assert rows[2]["images_per_second"] == pytest.approx(100.0)


def test_nothing_behind_the_only_step_is_unknown_and_not_zero(tmp_path):
    folder = write_run(tmp_path / "one")
    counters = {"images": 32, "input_wait_seconds": 0.0}
    lines = [
        mark("begin", 1, "train", 0.0, counters={"images": 0, "input_wait_seconds": 0.0}),
        mark("warmup_end", 1, "train", 6.0, counters=counters),
        mark("end", 1, "train", 6.5, counters=counters),
    ]
    write_lines(folder / "marks.jsonl", lines)
    (row,) = epoch_rows(load_run(folder))
    assert row["images_per_second"] is None
    assert row.reasons["images_per_second"] == "no image came behind the warm-up step"


def test_memory_is_the_highest_of_samples_and_marks(rows):
    assert rows[0]["rss_mib"] == 110.0  # the sample of second 10
    assert rows[1]["rss_mib"] == 112.0


def test_a_phase_shorter_than_the_sampling_period_is_right_too(tmp_path):
    folder = write_run(tmp_path / "one")
    lines = [
        mark("begin", 1, "validation", 100.01, values=totals(100.01, read_mib=5)),
        mark("end", 1, "validation", 100.11, values=totals(100.11, read_mib=8)),
    ]
    write_lines(folder / "marks.jsonl", lines)
    (row,) = epoch_rows(load_run(folder))
    assert row["seconds"] == pytest.approx(0.1)
    assert row["disk_read_mib"] == pytest.approx(3.0)
    assert row["cpu_job_percent"] == pytest.approx(50.0)
    assert row["rss_mib"] == 100.0


def test_a_busy_share_never_exceeds_the_whole(tmp_path):
    row = changed_row(
        tmp_path, values={"disk_busy_seconds_total": (0.0, 10.4)}, counters={"input_wait_seconds": (0, 11)}
    )
    assert (row["disk_busy_percent"], row["input_wait_percent"]) == (100, 100)


def test_a_total_that_fell_is_unknown_and_not_negative(tmp_path):
    row = changed_row(tmp_path, values={"disk_read_bytes_total": (500, 100)})
    assert row["disk_read_mib"] is None
    assert "fell from 500 to 100" in row.reasons["disk_read_mib"]


def test_what_was_not_recorded_is_unknown_with_the_probes_reason(tmp_path):
    folder = write_run(tmp_path / "one")
    reasons = {"disk_read_bytes_total": "on tmpfs", "tf_memory_peak_mib": "no GPU"}
    ends = [mark(event, 1, "train", at, reasons=reasons) for event, at in (("begin", 0.0), ("end", 1.0))]
    write_lines(folder / "marks.jsonl", ends)
    (row,) = epoch_rows(load_run(folder))
    assert row.reasons["disk_read_mib"] == "on tmpfs"
    assert row.reasons["tf_memory_peak_mib"] == "no GPU"
    assert row.reasons["images"] == "images was not recorded"
    assert row.reasons["loss"] == "no loss was reported for the phase"


def test_gpu_use_is_the_mean_of_the_samples_and_its_memory_the_highest(tmp_path):
    folder = write_run(tmp_path / "one")
    gpu = {"gpu0_util_percent": 0.0, "gpu0_memory_used_mib": 10.0, "gpu1_power_watts": 7.0}
    write_lines(
        folder / "marks.jsonl",
        [mark("begin", 1, "train", 100.0, values=gpu), mark("end", 1, "train", 110.0, values=gpu)],
    )
    samples = [
        {"session": 0, "monotonic_seconds": 100.0 + at, **gpu, "gpu0_util_percent": use, "gpu0_memory_used_mib": used}
        for at, use, used in ((1, 20, 500), (2, 40, 6500), (11, 99, 9000))
    ]
    write_lines(folder / "samples.jsonl", samples)
    (row,) = epoch_rows(load_run(folder))
    assert (row["gpu0_util_percent"], row["gpu0_memory_used_mib"], row["gpu1_power_watts"]) == (30.0, 6500, 7.0)
    assert table_columns([row])[-1] == "gpu1_power_watts"


def test_gpu_use_without_a_sample_in_the_phase_is_unknown(tmp_path):
    row = changed_row(tmp_path, values={"gpu0_util_percent": (50.0, 50.0)})
    assert row["gpu0_util_percent"] is None
    assert "shorter sampling period" in row.reasons["gpu0_util_percent"]


def test_a_sample_of_another_session_does_not_count(tmp_path):
    folder = write_run(tmp_path / "one")
    lines = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    stranger = lines[5] | {"session": 1, "rss_mib": 9999.0}
    write_lines(folder / "samples.jsonl", [*lines, stranger])
    assert epoch_rows(load_run(folder))[0]["rss_mib"] == 110.0


def test_the_csv_has_the_columns_of_the_design_in_order_and_empty_cells_for_what_is_unknown(rows):
    table = list(csv.reader(io.StringIO(rows_csv(rows))))
    assert tuple(table[0]) == COLUMNS
    assert table[0][:5] == ["epoch", "phase", "seconds", "warmup_seconds", "images"]
    assert [line[:3] for line in table[1:]] == [
        ["1", "train", "10"],
        ["1", "validation", "2"],
        ["2", "train", "10"],
        ["2", "validation", "2"],
    ]
    assert dict(zip(table[0], table[3], strict=True))["gpu0_util_percent"] == ""


def test_an_empty_table_still_has_its_header():
    assert rows_csv([]) == ",".join(COLUMNS) + "\n"


def test_each_unknown_column_has_a_reason(rows):
    reasons = unknown_reasons(rows)
    unknown = {name for row in rows for name, value in row.values.items() if value is None}
    assert set(reasons) == unknown
    assert reasons["warmup_seconds"].startswith("in some phases: the phase has no warm-up")
    assert reasons["gpu0_util_percent"] == "gpu0_util_percent was not recorded"
