import pytest
from telemetry_made_up import MIB, mark, write_lines, write_run

from telemetry import load_run
from telemetry.panels import load_panels
from telemetry.timeline import Series, keep_peaks, phase_bands, rate_series, share_series, state_series


def sampled(tmp_path, *samples: dict):
    folder = write_run(tmp_path / "one")
    write_lines(folder / "marks.jsonl", [])
    write_lines(folder / "samples.jsonl", list(samples))
    return load_run(folder)


def sample(seconds: float, session: int = 0, **values) -> dict:
    return {"session": session, "monotonic_seconds": seconds, **values}


def test_a_rate_is_the_growth_between_neighbours_by_their_distance(tmp_path):
    run = sampled(tmp_path, sample(5, read=0), sample(5.5, read=MIB), sample(7.5, read=2 * MIB))
    series = rate_series(run, "read", "reading", scale=1 / MIB)
    assert list(series.x) == [0.5, 2.5]
    assert list(series.y) == [2.0, 0.5]


def test_a_total_that_falls_or_is_unknown_and_a_new_session_are_gaps(tmp_path):
    run = sampled(
        tmp_path,
        sample(0, read=5),
        sample(1, read=3),
        sample(2, read=None),
        sample(3, read=9),
        sample(1, session=1, read=100),
        sample(2, session=1, read=101),
    )
    assert list(rate_series(run, "read", "reading").y) == [None, None, None, None, 1.0]


def test_the_pause_before_a_resume_and_another_boots_clock_leave_no_hole(tmp_path):
    run = sampled(tmp_path, sample(1000), sample(1010), sample(3, session=1), sample(4, session=1))
    assert list(state_series(run, "rss_mib", "memory").x) == [0, 10, 10, 11]


def test_a_share_is_of_the_other_totals_growth(tmp_path):
    run = sampled(tmp_path, sample(0, busy=1, all=4), sample(1, busy=2, all=8), sample(2, busy=2, all=8))
    assert list(share_series(run, "busy", "all", "cpu").y) == [25.0, None]


def test_phases_have_their_time_and_one_that_was_cut_off_lasts_to_the_last_sample(tmp_path):
    folder = write_run(tmp_path / "one")
    write_lines(
        folder / "marks.jsonl",
        [mark("begin", 1, "train", 101.0), mark("end", 1, "train", 104.0), mark("begin", 1, "validation", 104.0)],
    )
    bands = phase_bands(load_run(folder))
    assert [(band.phase, band.start_seconds, band.end_seconds) for band in bands] == [
        ("train", 1.0, 4.0),
        ("validation", 4.0, 24.0),
    ]


def test_thinning_keeps_every_peak_and_hole():
    values: list[float | None] = [1.0] * 10_000
    values[4321], values[777], values[5000] = 99.0, -7.0, None
    thin = keep_peaks(Series(name="x", x=list(range(10_000)), y=values), 100)
    assert len(thin.x) <= 102
    assert {99.0, -7.0, None} <= set(thin.y)
    assert thin.x[thin.y.index(99.0)] == 4321
    assert list(thin.x) == sorted(thin.x)


def test_a_short_series_is_left_as_it_is():
    series = Series(name="x", x=[1, 2], y=[None, 3.0])
    assert keep_peaks(series, 2) is series


def test_the_panels_show_the_load_of_the_made_up_machine(tmp_path):
    panels = {panel.title: panel for panel in load_panels(load_run(write_run(tmp_path / "one")))}
    assert list(panels) == ["Reading", "Disk busy", "CPU", "Memory"]
    assert panels["Disk busy"].series[0].y == pytest.approx([25.0] * 24)
    machine, job = panels["CPU"].series
    assert machine.y == pytest.approx([50.0] * 24)
    assert job.y == pytest.approx([50.0] * 24)
    assert [series.name for series in panels["Memory"].series] == ["job"]  # its page cache was not recorded


def test_each_gpu_has_its_curves(tmp_path):
    fields = {
        "gpu0_util_percent": 30,
        "gpu0_memory_used_mib": 6656,
        "gpu1_util_percent": 5,
        "gpu1_memory_used_mib": None,
    }
    panels = {panel.title: panel for panel in load_panels(sampled(tmp_path, sample(0, **fields), sample(1, **fields)))}
    assert [series.name for series in panels["GPU in use"].series] == ["GPU0", "GPU1"]
    assert [list(series.y) for series in panels["GPU memory"].series] == [[6.5, 6.5]]
