import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from telemetry.probes.disk import BlockDevice
from telemetry.probes.reading import Reading, read_probe
from telemetry.records import parse_sample
from telemetry.run_folder import describe_process, load_run, write_json
from telemetry.sampler import SampleWriter, mark_interrupted, next_deadline, sample_until
from telemetry.sampler_process import SamplerConfig, SamplerProcess, SamplerTask

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_a_period_that_is_not_above_zero_is_refused(value):
    with pytest.raises(ValueError, match="period_seconds"):
        SamplerConfig(period_seconds=value)


def test_deadlines_stay_on_their_grid_and_those_missed_are_left_out():
    assert next_deadline(10.0, 10.01, 0.25) == 10.25
    assert next_deadline(10.0, 9.99, 0.25) == 10.25
    assert next_deadline(10.0, 16.3, 0.25) == 16.5  # a suspended machine is not made up for in a burst


def test_samples_are_taken_at_a_steady_pace_whatever_a_reading_takes():
    now = [100.0]
    written = []

    def stop(seconds: float) -> bool:
        now[0] += seconds
        return len(written) == 4

    def read() -> Reading:
        now[0] += 0.05
        return Reading()

    sample_until(stop, read, lambda at, _: written.append(at), period=0.25, clock=lambda: now[0])
    assert written == pytest.approx([100.0, 100.25, 100.5, 100.75])


def test_a_reason_is_written_once_and_a_new_one_again(tmp_path):
    writer = SampleWriter(tmp_path / "samples.jsonl", 3)
    for reason in ("no driver", "no driver", "lost"):
        writer.write(1.0, Reading(values={"x": None}, reasons={"x": reason}))
    writer.close()
    samples = [parse_sample(line) for line in (tmp_path / "samples.jsonl").read_text().splitlines()]
    assert [dict(sample.reasons) for sample in samples] == [{"x": "no driver"}, {}, {"x": "lost"}]
    assert {sample.session for sample in samples} == {3}


class Broken:
    name = "disk"
    fields = ("a", "b")

    def read(self) -> Reading:
        raise RuntimeError("boom")


def test_a_probe_that_fails_is_null_with_its_name_in_the_reason():
    reading = read_probe(Broken())
    assert reading.values == {"a": None, "b": None}
    assert reading.reasons["b"] == "the disk probe failed: RuntimeError: boom"


def test_only_a_running_run_of_the_same_session_becomes_interrupted(tmp_path):
    def status_after(status: str, sessions: int) -> str:
        write_json(tmp_path / "run.json", {"status": status, "sessions": [{}] * sessions})
        mark_interrupted(tmp_path, 0)
        return json.loads((tmp_path / "run.json").read_text())["status"]

    assert status_after("running", 1) == "interrupted"
    assert status_after("finished", 1) == "finished"
    assert status_after("running", 2) == "running"


def start_sampler(folder: Path, period: float = 0.02) -> SamplerProcess:
    write_json(folder / "run.json", {"status": "running", "sessions": [{}]})
    task = SamplerTask(
        folder=str(folder),
        session=0,
        period_seconds=period,
        parent=describe_process(os.getpid()),
        device={"name": BlockDevice(reason="none").name, "reason": "none"},
    )
    return SamplerProcess(task, start_timeout_seconds=60)


def test_the_sampler_writes_readings_of_this_process_and_stops_when_told(tmp_path):
    sampler = start_sampler(tmp_path)
    assert sampler.is_ready
    assert sampler.stop() is None
    assert not psutil.pid_exists(sampler.pid)
    samples = [parse_sample(line) for line in (tmp_path / "samples.jsonl").read_text().splitlines()]
    # the job's total holds its reaped children, those of the tests before this one included
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    upper = sum(usage.ru_utime + usage.ru_stime for usage in used)
    assert 0 < samples[-1].values["job_cpu_seconds_total"] <= upper + 1
    assert samples[0].values["disk_read_bytes_total"] is None
    assert samples[0].reasons["disk_read_bytes_total"] == "none"
    assert abs(samples[-1].monotonic_seconds - time.monotonic()) < 60  # one clock for both processes
    assert load_run(tmp_path).document["status"] == "running"  # told to stop: the recorder says how it ended


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_whole_group_does_not_end_the_sampler(tmp_path, number):
    sampler = start_sampler(tmp_path)
    os.kill(sampler.pid, number)
    assert sampler.stop() is None


def test_a_sampler_that_was_killed_says_so_when_it_is_stopped(tmp_path):
    sampler = start_sampler(tmp_path)
    psutil.Process(sampler.pid).kill()
    assert wait_until_gone(psutil.Process(sampler.pid))
    assert sampler.stop() == "the sampler did not end in order (killed by signal 9)"


def test_a_sampler_that_cannot_write_says_why(tmp_path):
    (tmp_path / "samples.jsonl").mkdir()
    sampler = start_sampler(tmp_path)
    assert not sampler.is_ready
    assert wait_until_gone(psutil.Process(sampler.pid))
    assert "the sampler did not end in order (exit status 1)" in sampler.stop()


TRAINER = """
import os, sys
from telemetry import RunRecorder, SamplerConfig
recorder = RunRecorder(sys.argv[1], data_path=None, config={}, sampler=SamplerConfig(period_seconds=0.02))
recorder.start()
recorder.begin_phase(1, "train")
recorder.end_phase({"loss": 0.5})
recorder.begin_phase(1, "validation")
if len(sys.argv) > 2 and os.fork() == 0:  # a worker that outlives its parent and holds the sampler's input open
    os.read(0, 1)
    os._exit(0)
print(recorder._sampler.pid, flush=True)
sys.stdin.read()
"""


def start_trainer(folder: Path, *arguments: str) -> tuple[subprocess.Popen, psutil.Process]:
    trainer = subprocess.Popen(
        [sys.executable, "-c", TRAINER, folder, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        cwd=folder.parent,
    )
    return trainer, psutil.Process(int(trainer.stdout.readline()))


def wait_until_gone(process: psutil.Process) -> bool:
    """Waits for a process that is no child of ours; a zombie that nobody collects counts as gone."""
    waiter = threading.Event()
    for _ in range(600):
        if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
            return True
        waiter.wait(0.05)
    return False


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills as POSIX does")
@pytest.mark.parametrize("arguments", [(), ("with a forked worker",)])
def test_when_the_trainer_is_killed_the_sampler_ends_and_the_records_say_interrupted(tmp_path, arguments):
    folder = tmp_path / "run"
    trainer, sampler = start_trainer(folder, *arguments)
    with trainer:
        trainer.kill()
        trainer.wait()
        assert wait_until_gone(sampler)
    run = load_run(folder)
    assert run.document["status"] == "interrupted"
    assert run.unreadable_lines == 0
    assert len(run.samples) > 0
    assert [(record.epoch, record.phase, record.end is None) for record in run.phases] == [
        (1, "train", False),
        (1, "validation", True),
    ]
    assert (folder / "epochs.csv").read_text().splitlines()[1].startswith("1,train,")


@pytest.mark.skipif(os.name != "posix", reason="kills as POSIX does")
def test_when_both_are_killed_readers_still_see_that_the_run_is_interrupted(tmp_path):
    trainer, sampler = start_trainer(tmp_path / "run")
    with trainer:
        sampler.kill()
        trainer.kill()
        trainer.wait()
    run = load_run(tmp_path / "run")
    assert run.document["status"] == "running"
    assert run.status == "interrupted"


def test_a_trainer_that_leaves_without_finishing_is_interrupted(tmp_path):
    trainer, sampler = start_trainer(tmp_path / "run")
    trainer.communicate()
    assert wait_until_gone(sampler)
    assert load_run(tmp_path / "run").document["status"] == "interrupted"
