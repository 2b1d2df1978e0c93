import ast
import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import telemetry
from telemetry import RecordError, errors

ROOT = Path(__file__).parent.parent


def run_python(code: str, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_telemetry_loads_neither_tensorflow_nor_keras():
    code = "import telemetry, sys; print([name for name in ('tensorflow', 'keras', 'pandas') if name in sys.modules])"
    assert run_python(code) == "[]\n"


def test_telemetry_imports_none_of_the_other_packages():
    for path in (ROOT / "telemetry").rglob("*.py"):
        names = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: imports are absolute"
                names.add(node.module.partition(".")[0])
        assert not names & {"pipeline", "model", "cli"}, path


def test_every_public_name_is_there_and_sorted():
    assert telemetry.__all__ == sorted(telemetry.__all__)
    for name in telemetry.__all__:
        assert getattr(telemetry, name).__doc__ or name == "COLUMNS", name


def test_every_error_has_the_package_error_as_its_base_and_stands_in_the_tree():
    kinds = [value for value in vars(errors).values() if isinstance(value, type)]
    assert len(kinds) == 5
    for kind in kinds:
        assert issubclass(kind, RecordError)
        assert kind.__name__ in errors.__doc__


def test_every_module_can_be_imported():
    for module in pkgutil.walk_packages(telemetry.__path__, "telemetry."):
        importlib.import_module(module.name)


BARE = """
import builtins, os, sys
for name in ("posix_fadvise", "fdatasync", "sched_getaffinity", "POSIX_FADV_DONTNEED"):
    if hasattr(os, name):
        delattr(os, name)
sys.modules["fcntl"] = None
import psutil
import telemetry
from telemetry.probes import cpu, disk, process, process_tree
import telemetry.recorder, telemetry.probe_set
from functools import partial

nowhere = sys.argv[2]  # an empty folder in the place of /proc
telemetry.recorder.find_block_device = partial(disk.find_block_device, proc_root=nowhere)
telemetry.recorder.usable_cores = partial(cpu.usable_cores, proc_root=nowhere, cgroup_root=nowhere)
telemetry.probe_set.build_job_probe = partial(process_tree.build_job_probe, proc_root=nowhere)
data = os.path.join(sys.argv[1], "data")
with telemetry.RunRecorder(os.path.join(sys.argv[1], "run"), data_path=sys.argv[1], config={}) as recorder:
    recorder.begin_phase(1, "train")
    recorder.end_phase({"loss": 1.0})
run = telemetry.load_run(recorder.folder)
(row,) = telemetry.epoch_rows(run)
assert run.status == "finished", run.status
assert row["cpu_job_percent"] is not None and row["rss_mib"] > 1, row
assert row["disk_read_mib"] is None and "no /proc/diskstats" in row.reasons["disk_read_mib"], row.reasons
assert "no posix_fadvise" in telemetry.evict_files([data]).reason
telemetry.render_report(run)
telemetry.format_table([row])
"""


def test_a_run_is_recorded_without_proc_fadvise_affinity_and_fcntl(tmp_path):
    (tmp_path / "nowhere").mkdir()
    run_python(BARE, tmp_path, tmp_path / "nowhere")


def test_a_file_is_dropped_from_the_page_cache_and_one_that_is_missing_is_named(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 10_000)
    result = telemetry.evict_files([tmp_path / "a", tmp_path / "b", tmp_path / "c"])
    if not hasattr(os, "posix_fadvise"):
        assert "no posix_fadvise" in result.reason
        return
    assert result.evicted_files == 1
    assert result.reason == f"{tmp_path / 'b'}: No such file or directory and 1 more"
    assert telemetry.evict_files([tmp_path / "a"]) == telemetry.EvictResult(evicted_files=1)
