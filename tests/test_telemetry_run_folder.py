import json
import multiprocessing
import os
import re
import socket
from pathlib import Path

import numpy as np
import pytest
from telemetry_made_up import document, write_run

from telemetry.errors import RecordError, RunExistsError, RunNotFoundError, UnreadableRunError
from telemetry.run_folder import (
    create_run_folder,
    current_status,
    describe_process,
    load_run,
    write_json,
    write_text,
)


def test_the_default_name_is_a_time_stamp(tmp_path):
    folder = create_run_folder(tmp_path / "runs")
    assert re.fullmatch(r"\d{8}-\d{6}", folder.name)
    assert folder.is_dir()
    assert folder.is_absolute()


def test_a_name_that_is_taken_is_an_error_that_names_the_folder(tmp_path):
    create_run_folder(tmp_path, "one")
    with pytest.raises(RunExistsError, match=r"one exists already; choose another name"):
        create_run_folder(tmp_path, "one")


def test_a_file_in_place_of_the_folder_of_runs_is_named(tmp_path):
    (tmp_path / "runs").write_text("", encoding="utf-8")
    with pytest.raises(RecordError, match=r"runs is a file; name a folder for the runs"):
        create_run_folder(tmp_path / "runs", "one")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "/abs"])
def test_a_name_that_leaves_the_folder_of_runs_is_refused(tmp_path, name):
    with pytest.raises(RecordError, match="is no name for a run"):
        create_run_folder(tmp_path, name)


def test_a_parent_that_is_a_file_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match="file"):
        create_run_folder(tmp_path / "file", "one")


def _write_often(path: Path, times: int) -> None:
    for number in range(times):
        write_json(path, {"number": number, "padding": "x" * 50_000})


def test_a_reader_sees_only_whole_files_while_another_process_writes(tmp_path):
    path = tmp_path / "run.json"
    write_json(path, {"number": -1})
    writer = multiprocessing.get_context("spawn").Process(target=_write_often, args=(path, 150))
    writer.start()
    seen = set()
    while writer.is_alive():
        seen.add(json.loads(path.read_text())["number"])
    writer.join()
    assert writer.exitcode == 0
    assert len(seen) > 1
    assert os.listdir(tmp_path) == ["run.json"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path, monkeypatch):
    path = tmp_path / "run.json"
    write_json(path, {"a": 1})

    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(RecordError, match="No space left"):
        write_text(path, "new")
    assert json.loads(path.read_text()) == {"a": 1}
    assert os.listdir(tmp_path) == ["run.json"]


def test_paths_arrays_and_numbers_that_json_lacks_become_plain(tmp_path):
    write_json(
        tmp_path / "x", {"path": Path("a"), "array": np.arange(2), "one": np.float32(0.5), "nan": float("nan"), 1: (2,)}
    )
    told = json.loads((tmp_path / "x").read_text())
    assert told == {"path": "a", "array": [0, 1], "one": 0.5, "nan": "nan", "1": [2]}


def test_a_run_is_read_with_its_phases_and_samples(tmp_path):
    run = load_run(write_run(tmp_path / "one"))
    assert (run.name, run.status, len(run.phases), len(run.samples), run.unreadable_lines) == (
        "one",
        "finished",
        4,
        25,
        0,
    )
    assert run.unavailable == {"gpu0_util_percent": "no driver"}


def test_a_run_whose_last_lines_were_cut_is_read_but_for_them(tmp_path):
    folder = write_run(tmp_path / "one")
    for name in ("marks.jsonl", "samples.jsonl"):
        text = (folder / name).read_text()
        (folder / name).write_text(text[:-20])
    run = load_run(folder)
    assert (len(run.samples), run.unreadable_lines) == (24, 2)
    assert run.phases[-1].end is None


def test_a_run_without_records_yet_is_read(tmp_path):
    (tmp_path / "run.json").write_text("{}")
    run = load_run(tmp_path)
    assert (run.status, run.phases, run.samples) == ("interrupted", (), ())


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"', '{"config": []}', '{"sessions": {}}'])
def test_a_damaged_run_json_is_a_clear_error(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(UnreadableRunError, match=r"run\.json"):
        load_run(tmp_path)


def test_a_folder_without_a_run_is_a_clear_error(tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(RunNotFoundError, match="holds no run"):
            load_run(folder)


def running(**process) -> dict:
    return document(status="running", sessions=[{"process": process}])


def test_a_run_whose_process_lives_is_running(tmp_path):
    assert current_status(tmp_path, running(**describe_process(os.getpid()))) == "running"


def test_a_run_whose_process_is_gone_or_another_one_now_is_interrupted(tmp_path):
    here = describe_process(os.getpid())
    assert current_status(tmp_path, running(**here | {"pid": 2**22 + 7})) == "interrupted"
    assert current_status(tmp_path, running(**here | {"created": here["created"] - 1000})) == "interrupted"
    assert current_status(tmp_path, running(host=socket.gethostname())) == "interrupted"


def test_the_age_of_the_last_sample_decides_for_a_run_of_another_machine(tmp_path):
    elsewhere = running(pid=1, created=0, host="another machine")
    (tmp_path / "run.json").write_text("{}")
    assert current_status(tmp_path, elsewhere) == "running"
    os.utime(tmp_path / "run.json", (1e9, 1e9))
    assert current_status(tmp_path, elsewhere) == "interrupted"
    (tmp_path / "samples.jsonl").write_text("")
    assert current_status(tmp_path, elsewhere) == "running"


def test_unnamed_runs_of_one_second_get_a_folder_each(tmp_path):
    folders = [create_run_folder(tmp_path) for _ in range(5)]
    assert len(set(folders)) == 5
    assert all(re.fullmatch(r"\d{8}-\d{6}(-\d+)?", folder.name) for folder in folders)
