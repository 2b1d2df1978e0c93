import json
import re
from html.parser import HTMLParser

import pytest
from telemetry_made_up import write_lines, write_run

from telemetry import load_run, render_report, write_report
from telemetry.page import script_json

EVIL = "</script><script>alert(1)</script>"


class Page(HTMLParser):
    """What a browser would see: elements, their attributes, the visible text and the scripts."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self._inside: str | None = None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts[-1] += data
        else:
            self.texts.append(data)

    @property
    def data(self) -> dict:
        return json.loads(self.scripts[0])

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Page:
    return Page(render_report(load_run(write_run(tmp_path_factory.mktemp("runs") / "one"))))


def test_the_page_names_the_run_its_status_and_what_it_was_made_with(page):
    assert "one finished started 2026-01-02 03:04:05 UTC" in page.text
    for told in ("batch_size", "32", "made up", "3.11.0", "1 min 30 s"):
        assert told in page.text


def test_the_table_has_a_line_a_phase(page):
    assert "1 train 10.0 1.0 1,000 100 20.0 25.0 40.0" in page.text
    assert "2 validation 2.0 \N{EN DASH} 200 100" in page.text


def test_every_unknown_field_is_named_with_its_reason(page):
    assert "no driver gpu0_util_percent" not in page.text  # the table's own reason is the later one
    assert (
        "only the Keras callback reads TensorFlow's allocator tf_memory_current_mib , tf_memory_peak_mib" in page.text
    )


def test_the_charts_data_are_the_phases_the_load_and_the_epochs(page):
    assert [(band["epoch"], band["phase"]) for band in page.data["load"]["bands"]] == [
        (1, "train"),
        (1, "validation"),
        (2, "train"),
        (2, "validation"),
    ]
    assert [panel["title"] for panel in page.data["load"]["panels"]] == ["Reading", "Disk busy", "CPU", "Memory"]
    loss = page.data["epochs"][0]
    assert loss["title"] == "Loss"
    assert loss["series"][1] == {"name": "validation", "x": [1, 2], "y": [1.0, 0.5]}


def test_the_page_asks_nothing_of_the_network_and_forbids_it(page):
    for tag, attributes in page.tags:
        for name in ("src", "href", "action"):
            assert attributes.get(name, "data:").startswith("data:"), (tag, attributes)
    (policy,) = [one["content"] for tag, one in page.tags if tag == "meta" and "http-equiv" in one]
    assert policy.startswith("default-src 'none'")


def test_the_chart_library_is_there_once_and_the_page_stays_small(page):
    assert sum("plotly.js v" in script for script in page.scripts) == 1
    assert len(page.scripts) == 3


def test_nothing_from_the_data_becomes_markup(tmp_path):
    folder = write_run(
        tmp_path / "one",
        class_names=[EVIL],
        config={EVIL: EVIL, "weights": "{{ 7 * 7 }}"},
        unavailable={EVIL: EVIL},
        status=EVIL,
    )
    lines = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    write_lines(folder / "samples.jsonl", [line | {f"gpu0{EVIL}_util_percent": 5.0} for line in lines])
    shown = Page(render_report(load_run(folder)))
    assert len(shown.scripts) == 3
    assert "<" not in shown.scripts[0]
    assert shown.text.count(EVIL) >= 4
    assert "{{ 7 * 7 }}" in shown.text


def test_json_in_a_script_cannot_end_it_and_comes_back_whole():
    data = {"a": EVIL + "&\u2028<!--", "b": [float("nan"), float("inf"), 1.0]}
    text = script_json(data)
    assert not re.search("[<>&\u2028]", text)
    assert json.loads(text) == {"a": EVIL + "&\u2028<!--", "b": [None, None, 1.0]}


@pytest.mark.parametrize(
    ("status", "words"),
    [("interrupted", "was cut off"), ("failed", "ended with an error"), ("running", "still going on")],
)
def test_a_run_that_did_not_finish_is_shown_and_says_so(tmp_path, status, words):
    folder = write_run(tmp_path / "one", status=status, finished=None)
    (folder / "marks.jsonl").write_text((folder / "marks.jsonl").read_text()[:-30])
    shown = Page(render_report(load_run(folder))).text
    assert words in shown
    assert "1 damaged line(s) of the records were left out" in shown


def test_a_run_that_was_killed_before_its_first_phase_has_a_page(tmp_path):
    (tmp_path / "run.json").write_text('{"status": "running"}')
    shown = Page(render_report(load_run(tmp_path)))
    assert "No phase has ended, so there is no table." in shown.text
    assert shown.data == {"load": {"bands": [], "panels": []}, "epochs": []}


def test_an_hour_of_samples_stays_small_and_keeps_its_peak(tmp_path):
    folder = write_run(tmp_path / "one")
    line = json.loads((folder / "samples.jsonl").read_text().splitlines()[0])
    samples = [
        line | {"monotonic_seconds": 100.0 + at / 5, "page_cache_mib": 2048.0, "rss_mib": 1024.0}
        for at in range(18_000)
    ]
    samples[7777]["rss_mib"] = 51_200.0
    write_lines(folder / "samples.jsonl", samples)
    shown = Page(render_report(load_run(folder)))
    assert len(shown.scripts[0]) < 400_000
    (memory,) = [panel for panel in shown.data["load"]["panels"] if panel["title"] == "Memory"]
    assert max(memory["series"][0]["y"]) == 50.0


def test_the_report_is_written_into_the_runs_folder(tmp_path):
    run = load_run(write_run(tmp_path / "one"))
    assert write_report(run) == tmp_path / "one" / "report.html"
    assert (tmp_path / "one" / "report.html").read_text(encoding="utf-8") == render_report(run)
