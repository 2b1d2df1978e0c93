from telemetry_made_up import write_run

from telemetry import epoch_rows, format_table, load_run
from telemetry.profile import EpochRow
from telemetry.text import align, format_number, format_ratio, printable, shorten

TABLE = """\
                   time  warm  images  wait    disk  disk  physical  logical    CPU    CPU  memory
epoch  phase          s     s      /s     %  busy %   MiB       MiB      MiB  job %  all %     MiB    loss   acc.
1      train       10.0   1.0     100  20.0    25.0  40.0      40.0     40.0     50     50     110  1.0000  0.600
1      validation   2.0   1.0     100  20.0    25.0   8.0       8.0      8.0     50     50     112  1.0000  0.600
2      train       10.0     -     100  20.0    25.0   0.0       0.0      0.0     50     50     122  0.5000  0.700
2      validation   2.0     -     100  20.0    25.0   0.0       0.0      0.0     50     50     124  0.5000  0.700

unknown: gpu0_util_percent: gpu0_util_percent was not recorded
unknown: gpu0_memory_used_mib: gpu0_memory_used_mib was not recorded
unknown: gpu0_job_memory_mib: gpu0_job_memory_mib was not recorded
unknown: tf_memory_current_mib, tf_memory_peak_mib: only the Keras callback reads TensorFlow's allocator
"""


def test_the_whole_table_of_a_made_up_run(tmp_path):
    assert format_table(epoch_rows(load_run(write_run(tmp_path / "one")))) == TABLE


def gpu_row(**changes: float | None) -> EpochRow:
    values = dict.fromkeys(
        ("seconds", "images_per_second", "input_wait_percent", "cpu_job_percent", "cpu_machine_percent", "rss_mib"),
        100.0,
    )
    values |= dict.fromkeys(("disk_busy_percent", "disk_read_mib", "warmup_seconds", "loss", "accuracy"), 12.5)
    values |= {"job_physical_read_mib": 46000.0, "job_logical_read_mib": 46000.0, "gpu0_util_percent": 30.0}
    values |= {"gpu0_memory_used_mib": 6500.0, "gpu0_job_memory_mib": 6000.0, "tf_memory_peak_mib": 549.0}
    return EpochRow(epoch=100, phase="validation", values=values | {"gpu1_power_watts": 70.0} | changes)


def test_with_a_gpu_the_table_still_fits_the_terminal():
    text = format_table([gpu_row()])
    assert max(map(len, text.splitlines()[:3])) <= 120
    assert "6,500" in text
    assert "549" in text


def test_a_single_unknown_cell_is_a_dash():
    text = format_table([gpu_row(), gpu_row(gpu0_util_percent=None)])
    assert text.splitlines()[3].count(" - ") == 1


def test_no_rows_is_said_in_words():
    assert format_table([]) == "No phase has ended, so there is no table.\n"


def test_a_reason_cannot_steer_the_terminal():
    row = EpochRow(epoch=1, phase="train", values={"rss_mib": None}, reasons={"rss_mib": "\x1b[31mred\x07\r\nx"})
    assert "\x1b" not in format_table([row])
    assert "?[31mred???x" in format_table([row])


def test_control_and_direction_signs_are_replaced_and_letters_of_all_scripts_kept():
    assert printable("Hund 犬 é\x1b\u202e\u2028\x9b") == "Hund 犬 é????"


def test_numbers_ratios_and_names_are_short():
    assert [format_number(value, 2) for value in (None, 0.0, 1234.5, float("nan"))] == ["-", "0.00", "1,234", "nan"]
    assert [format_ratio(value) for value in (None, 0.5, 12.34, 123.4, 12345.6)] == [
        "-",
        "x0.50",
        "x12.3",
        "x123",
        "x12,346",
    ]
    assert shorten("tfdata-cache-off", 9) == "tfda…-off"
    assert align([["a", "1"], ["bcd", "22"]], left=1) == ["a     1", "bcd  22"]
