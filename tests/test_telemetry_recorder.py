import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from telemetry import (
    PhaseError,
    RunExistsError,
    RunNotFoundError,
    RunRecorder,
    SamplerConfig,
    create_run_folder,
    epoch_rows,
    load_run,
)
from telemetry.probes.reading import Reading
from telemetry.run_folder import describe_process, write_json

FAST = SamplerConfig(period_seconds=0.02)


def recorder(folder, **changes) -> RunRecorder:
    return RunRecorder(folder, **{"data_path": folder.parent, "config": {"cache": "ram"}, "sampler": FAST} | changes)


def table(folder: Path) -> list[dict[str, str]]:
    with open(folder / "epochs.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_a_finished_run_holds_what_readers_need(tmp_path):
    folder = create_run_folder(tmp_path, "one")
    facts = {"class_names": ["cat", "dog"], "data_fingerprint": "f00"}
    with recorder(folder, facts=facts) as writer:
        assert json.loads((folder / "run.json").read_text())["status"] == "running"
        writer.begin_phase(1, "train")
        writer.end_phase({"loss": 0.5, "accuracy": 0.75})
    told = json.loads((folder / "run.json").read_text())
    assert told["status"] == "finished"
    assert told["config"] == {"cache": "ram"}
    assert (told["class_names"], told["data_fingerprint"]) == (["cat", "dog"], "f00")
    assert told["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert "tensorflow" in told["versions"]
    assert told["hardware"]["cores"] == os.cpu_count()
    assert told["hardware"]["usable_cores"] > 0
    assert told["sessions"][0]["process"]["pid"] == os.getpid()
    assert table(folder)[0]["accuracy"] == "0.75"
    assert len(load_run(folder).samples) > 0


def test_every_unknown_cell_of_the_table_has_its_reason_in_run_json(tmp_path):
    with recorder(tmp_path / "one") as writer:
        writer.begin_phase(1, "train")
        writer.end_phase()
    told = json.loads((tmp_path / "one" / "run.json").read_text())
    (row,) = table(tmp_path / "one")
    unknown = {name for name, cell in row.items() if cell == ""}
    assert {"images", "input_wait_percent", "tf_memory_peak_mib", "loss"} <= unknown
    assert unknown <= set(told["unavailable"])


def test_the_trainers_totals_become_images_and_waiting(tmp_path):
    totals = {"images": 0, "input_wait_seconds": 0.0}
    with recorder(tmp_path / "one", counters=lambda: totals) as writer:
        writer.begin_phase(1, "train")
        totals |= {"images": 32}
        writer.end_warmup()
        totals |= {"images": 160}
        writer.end_phase()
    (row,) = epoch_rows(load_run(tmp_path / "one"))
    assert row["images"] == 160
    assert row["images_per_second"] == pytest.approx(128 / (row["seconds"] - row["warmup_seconds"]))
    assert row["input_wait_percent"] == 0


def test_counters_that_fail_leave_the_training_alone_and_are_named(tmp_path):
    def counters():
        raise KeyError("images")

    with recorder(tmp_path / "one", counters=counters) as writer:
        writer.begin_phase(1, "train")
        writer.end_phase()
    told = json.loads((tmp_path / "one" / "run.json").read_text())
    assert told["unavailable"]["counters"] == "the trainer's counters failed: KeyError: 'images'"


def test_what_this_process_reads_in_a_phase_is_booked_to_that_phase(tmp_path):
    data = tmp_path / "data"
    data.write_bytes(bytes(30 * 2**20))
    with recorder(tmp_path / "one") as writer:
        for epoch in (1, 2):
            writer.begin_phase(epoch, "train")
            if epoch == 1:
                data.read_bytes()
            writer.end_phase()
    rows = epoch_rows(load_run(tmp_path / "one"))
    if rows[0]["job_logical_read_mib"] is None:
        pytest.skip(rows[0].reasons["job_logical_read_mib"])
    assert rows[0]["job_logical_read_mib"] == pytest.approx(30, rel=0.02)
    assert rows[1]["job_logical_read_mib"] < 0.2


def test_the_table_is_on_disk_after_each_phase(tmp_path):
    with recorder(tmp_path / "one") as writer:
        assert table(tmp_path / "one") == []
        writer.begin_phase(1, "train")
        writer.end_phase()
        assert [line["phase"] for line in table(tmp_path / "one")] == ["train"]
        writer.begin_phase(1, "validation")
        writer.end_phase({"loss": 2.0})
        writer.record_metrics(1, "train", {"loss": 1.0})
        assert [line["loss"] for line in table(tmp_path / "one")] == ["1", "2"]
        assert [row["loss"] for row in writer.rows] == [1.0, 2.0]
    assert [line["loss"] for line in table(tmp_path / "one")] == ["1", "2"]


def test_further_readings_of_a_phase_stand_in_its_row(tmp_path):
    with recorder(tmp_path / "one") as writer:
        writer.begin_phase(1, "train")
        writer.end_phase(readings=Reading(values={"tf_memory_peak_mib": 549.0, "tf_memory_current_mib": 80.0}))
    (row,) = table(tmp_path / "one")
    assert (row["tf_memory_current_mib"], row["tf_memory_peak_mib"]) == ("80", "549")


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt, "interrupted"), (RuntimeError, "failed")])
def test_an_error_passes_through_and_is_the_runs_status(tmp_path, error, status):
    def train():
        with recorder(tmp_path / "one") as writer:
            writer.begin_phase(1, "train")
            writer.end_phase()
            writer.begin_phase(1, "validation")
            raise error

    with pytest.raises(error):
        train()
    run = load_run(tmp_path / "one")
    assert run.status == status
    assert [row.phase for row in epoch_rows(run)] == ["train"]


def test_a_configuration_found_out_late_takes_the_place_of_the_first(tmp_path):
    with recorder(tmp_path / "one", facts={"class_names": ["cat", "dog"]}) as writer:
        writer.replace_config({"cache": "disk"})
        told = json.loads((tmp_path / "one" / "run.json").read_text())
        assert (told["config"], told["status"]) == ({"cache": "disk"}, "running")
    told = json.loads((tmp_path / "one" / "run.json").read_text())
    assert (told["config"], told["class_names"], told["status"]) == ({"cache": "disk"}, ["cat", "dog"], "finished")
    with pytest.raises(PhaseError):
        writer.replace_config({})


def test_finishing_twice_changes_nothing(tmp_path):
    with recorder(tmp_path / "one") as writer:
        writer.finish("interrupted")
    assert load_run(tmp_path / "one").status == "interrupted"


def test_phases_out_of_turn_are_errors_that_say_what_to_do(tmp_path):
    writer = recorder(tmp_path / "one")
    with pytest.raises(PhaseError, match=r"call start\(\) first"):
        writer.begin_phase(1, "train")
    with writer:
        for call in (writer.end_phase, writer.end_warmup):
            with pytest.raises(PhaseError, match="no phase is open; call begin_phase"):
                call()
        writer.begin_phase(1, "train")
        assert writer.open_phase == (1, "train")
        with pytest.raises(PhaseError, match="the train phase of epoch 1 is still open; end it before the train phase"):
            writer.begin_phase(2, "train")
        with pytest.raises(PhaseError, match="has not ended"):
            writer.record_metrics(1, "train", {})


def test_arguments_that_make_no_sense_are_refused(tmp_path):
    with pytest.raises(ValueError, match="status"):
        recorder(tmp_path, facts={"status": "mine"})
    with pytest.raises(ValueError, match="resume_epochs is -1"):
        recorder(tmp_path, resume_epochs=-1)


def test_a_run_is_never_overwritten_nor_written_twice_at_once(tmp_path):
    with recorder(tmp_path / "one"):
        pass
    with pytest.raises(RunExistsError, match="holds a run already"):
        recorder(tmp_path / "one").start()
    told = json.loads((tmp_path / "one" / "run.json").read_text())
    told["sessions"][-1]["process"] = describe_process(os.getpid())
    write_json(tmp_path / "one" / "run.json", told | {"status": "running"})
    with pytest.raises(RunExistsError, match="still being written"):
        recorder(tmp_path / "one", resume_epochs=0).start()
    with pytest.raises(RunNotFoundError, match="holds no run"):
        recorder(tmp_path / "none", resume_epochs=1).start()


def test_a_resumed_run_keeps_the_finished_epochs_and_records_the_others_anew(tmp_path):
    with recorder(tmp_path / "one") as writer:
        for epoch in (1, 2):
            writer.begin_phase(epoch, "train")
            writer.end_phase({"loss": epoch / 10})
        writer.finish("interrupted")
    with recorder(tmp_path / "one", resume_epochs=1) as writer:
        assert [line["loss"] for line in table(tmp_path / "one")] == ["0.1"]
        for epoch in (2, 3):
            writer.begin_phase(epoch, "train")
            writer.end_phase({"loss": float(epoch)})
    run = load_run(tmp_path / "one")
    assert run.status == "finished"
    assert [(row.epoch, row["loss"]) for row in epoch_rows(run)] == [(1, 0.1), (2, 2.0), (3, 3.0)]
    assert [line["loss"] for line in table(tmp_path / "one")] == ["0.1", "2", "3"]
    assert {sample.session for sample in run.samples} == {0, 1}
    assert len(run.document["sessions"]) == 2
    assert run.document["started"] == run.document["sessions"][0]["started"]


def test_a_sampler_that_cannot_start_is_named_and_the_run_recorded_without_it(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    with recorder(tmp_path / "one") as writer:
        writer.begin_phase(1, "train")
        writer.end_phase({"loss": 1.0})
    run = load_run(tmp_path / "one")
    assert run.unavailable["sampler"].startswith("the sampler cannot be started:")
    assert run.samples == ()
    assert table(tmp_path / "one")[0]["loss"] == "1"


ELSEWHERE = """
import sys
sys.path.insert(0, sys.argv[2])
from telemetry import RunRecorder
with RunRecorder(sys.argv[1], data_path=None, config={}) as writer:
    writer.begin_phase(1, "train")
    writer.end_phase()
"""


def test_the_sampler_finds_its_package_from_any_folder_and_takes_no_module_of_that_folder(tmp_path):
    for name in ("psutil.py", "telemetry.py", "json.py"):
        (tmp_path / name).write_text("raise RuntimeError('taken from the wrong folder')")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    script = tmp_path / "scripts" / "train.py"
    script.parent.mkdir()
    script.write_text(ELSEWHERE)
    root = str(Path(__file__).parent.parent)
    subprocess.run([sys.executable, script, tmp_path / "run", root], cwd=tmp_path, env=environment, check=True)
    run = load_run(tmp_path / "run")
    assert len(run.samples) > 0
    assert "sampler" not in run.unavailable


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_worker_that_leaves_through_the_recorder_ends_no_run(tmp_path):
    script = """
import os, sys
sys.path.insert(0, sys.argv[2])
from telemetry import RunRecorder, load_run
with RunRecorder(sys.argv[1], data_path=None, config={}) as writer:
    if os.fork() == 0:
        raise SystemExit(1)
    os.wait()
    assert load_run(sys.argv[1]).status == "running"
"""
    root = str(Path(__file__).parent.parent)
    subprocess.run([sys.executable, "-c", script, tmp_path / "one", root], check=True)
    assert load_run(tmp_path / "one").status == "finished"
