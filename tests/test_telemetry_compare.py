import pytest
from telemetry_made_up import document, write_run

from telemetry import RecordError, compare_runs, format_comparison, load_run, render_comparison
from telemetry.compare import flatten, is_better
from telemetry.figures import FIGURES

COMPARISON = """\
Runs: idg (finished), by which the others are measured
      cached (finished)

Configuration: what differs
              idg   cached
  cache       off   ram
  augment.on  host  -
  augment     -     {}

Time, s: the same in every run

Warm-up, s: the same in every run

Images
        ------------- train --------------  ----------- validation -----------
  epoch               idg            cached               idg            cached
      1     1,000             2,500   x2.50       200               500   x2.50
      2     1,000             2,500   x2.50       200               500   x2.50

Throughput, images/s
        ------------- train --------------  ----------- validation -----------
  epoch               idg            cached               idg            cached
      1       100               250   x2.50       100               250   x2.50
      2       100               250   x2.50       100               250   x2.50

Waiting for input, %: the same in every run

Disk busy, %: the same in every run

Disk read, MiB
        ------------- train --------------  ----------- validation -----------
  epoch               idg            cached               idg            cached
      1      40.0              20.0   x0.50       8.0               4.0   x0.50
      2      40.0               0.0   x0.00       8.0               0.0   x0.00

Job reads from disk, MiB
        ------------- train --------------  ----------- validation -----------
  epoch               idg            cached               idg            cached
      1      40.0              20.0   x0.50       8.0               4.0   x0.50
      2      40.0               0.0   x0.00       8.0               0.0   x0.00

Job reads in all, MiB
        ------------- train --------------  ----------- validation -----------
  epoch               idg            cached               idg            cached
      1      40.0              20.0   x0.50       8.0               4.0   x0.50
      2      40.0               0.0   x0.00       8.0               0.0   x0.00

CPU, job, %: the same in every run

CPU, machine, %: the same in every run

Memory of the job, MiB: the same in every run

Loss: the same in every run

Accuracy: the same in every run

Unknown in every run: gpu0_util_percent, gpu0_memory_used_mib, gpu0_job_memory_mib, tf_memory_current_mib,
tf_memory_peak_mib
"""


@pytest.fixture
def two(tmp_path):
    idg = write_run(tmp_path / "idg", read_mib=(48.0, 48.0), config={"cache": "off", "augment": {"on": "host"}})
    cached = write_run(
        tmp_path / "cached", read_mib=(24.0, 0.0), images_per_second=250.0, config={"cache": "ram", "augment": {}}
    )
    return [load_run(idg), load_run(cached)]


def test_the_whole_comparison_of_two_made_up_runs(two):
    assert format_comparison(compare_runs(two)) == COMPARISON


def test_figures_stand_side_by_side_with_their_ratio_to_the_first_run(two):
    figures = {one.figure.column: one for one in compare_runs(two).figures}
    row = figures["disk_read_mib"].rows[2]
    assert (row.epoch, row.phase) == (2, "train")
    assert row.values == pytest.approx((40.0, 0.0))
    assert row.ratios == (None, pytest.approx(0.0))


def test_a_ratio_to_zero_is_unknown(two):
    figures = {one.figure.column: one for one in compare_runs(two[::-1]).figures}
    assert figures["disk_read_mib"].rows[2].ratios == (None, None)


def test_three_runs_fit_the_terminal_whatever_their_names_are(tmp_path):
    folders = [
        write_run(tmp_path / f"a-very-long-name-of-a-run-{number}", images_per_second=number) for number in (1, 2, 3)
    ]
    text = format_comparison(compare_runs([load_run(folder) for folder in folders]))
    assert max(map(len, text.splitlines())) <= 120


def test_eight_runs_have_a_block_a_phase(tmp_path):
    runs = [load_run(write_run(tmp_path / str(number), images_per_second=number)) for number in range(1, 9)]
    text = format_comparison(compare_runs(runs))
    assert "x8.00" in text
    assert max(map(len, text.splitlines())) <= 160


def test_epochs_that_only_one_run_has_are_dashes_in_the_other(tmp_path):
    runs = [load_run(write_run(tmp_path / name, images_per_second=rate)) for name, rate in (("a", 1), ("b", 2))]
    lines = (tmp_path / "b" / "marks.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "b" / "marks.jsonl").write_text("".join(line for line in lines if '"epoch": 1' in line))
    comparison = compare_runs([runs[0], load_run(tmp_path / "b")])
    figure = {one.figure.column: one for one in comparison.figures}["seconds"]
    assert [row.values for row in figure.rows][2:] == [(10.0, None), (2.0, None)]
    assert " - " in format_comparison(comparison) + " "


def test_unlike_data_hardware_and_unfinished_runs_are_warned_of(tmp_path):
    plain = load_run(write_run(tmp_path / "a", data_fingerprint="1"))
    other = write_run(
        tmp_path / "b",
        data_fingerprint="2",
        status="failed",
        hardware=document()["hardware"] | {"cpu": "other", "gpus": [{"name": "x"}]},
    )
    assert compare_runs([plain, load_run(other)]).warnings == (
        "The runs did not see the same data: their fingerprints differ.",
        "The runs had unlike hardware: cpu, gpus.",
        "b is failed: it is compared as far as it came.",
    )
    assert compare_runs([plain, plain]).warnings == ()


def test_differing_versions_are_told_apart_from_the_configuration(tmp_path):
    runs = [load_run(write_run(tmp_path / name, versions={"tensorflow": name})) for name in ("2.15", "2.21")]
    comparison = compare_runs(runs)
    assert comparison.config_differences == ()
    assert [(one.field, one.values) for one in comparison.environment_differences] == [
        ("versions.tensorflow", ("2.15", "2.21"))
    ]
    text = format_comparison(comparison)
    assert "Configuration: no difference" in text
    assert "Versions and hardware: what differs" in text


def test_runs_of_one_name_are_told_apart(tmp_path):
    runs = [load_run(write_run(tmp_path / parent / "x")) for parent in ("a", "b")]
    assert compare_runs(runs).names == ("a/x", "b/x")
    assert compare_runs([runs[0], runs[0]]).names == ("a/x", "a/x (2)")


def test_one_run_makes_no_comparison(two):
    with pytest.raises(RecordError, match="at least two runs, and got 1"):
        compare_runs(two[:1])


def test_better_and_worse_need_a_direction_and_a_notable_change():
    by_column = {figure.column: figure for figure in FIGURES}
    assert is_better(by_column["seconds"], 0.5) is True
    assert is_better(by_column["seconds"], 1.5) is False
    assert is_better(by_column["images_per_second"], 1.5) is True
    assert is_better(by_column["seconds"], 0.99) is None
    assert is_better(by_column["cpu_job_percent"], 2.0) is None
    assert is_better(by_column["seconds"], None) is None


def test_nested_configuration_is_named_with_dots():
    assert flatten({"a": {"b": {"c": 1}, "d": [1, 2]}, "e": "x", "f": {}}) == {
        "a.b.c": "1",
        "a.d": "[1, 2]",
        "e": "x",
        "f": "{}",
    }


def test_a_configuration_cannot_steer_the_terminal(tmp_path):
    runs = [load_run(write_run(tmp_path / name, config={"x\x1b": f"{name}\x1b[2J"})) for name in ("a", "b")]
    text = format_comparison(compare_runs(runs))
    assert "\x1b" not in text
    assert "a?[2J" in text


def test_the_page_shows_the_runs_their_differences_and_figures(two):
    page = render_comparison(compare_runs(two))
    for told in ("idg", "cached", "augment.on", "What differs in the configuration", "x2.50", "Throughput"):
        assert told in page
    assert page.count("plotly.js v") == 1


def test_nothing_from_the_data_becomes_markup_on_the_page(tmp_path):
    evil = "</script><script>alert(1)<"
    runs = [load_run(write_run(tmp_path / name, config={evil: name + evil})) for name in ("a", "<b>")]
    page = render_comparison(compare_runs(runs))
    assert "<script>alert" not in page
    assert "<b>" not in page.replace(page[page.index("plotly.js v") : page.rindex("</script>")], "")
    assert "&lt;b&gt;" in page
