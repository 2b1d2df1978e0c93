"""Where the system tells less than Linux does, training goes on and the record says what is not known, and why."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Read by Python at its start, in the command's process and in its sampler's: takes away what only Linux or POSIX has.
# /proc and /sys are gone for Python code, for psutil (which has calls of its own elsewhere) only on request.
BARE = """
import builtins, os, sys

import psutil  # on Linux it imports `resource` for itself

for name in (
    "posix_fadvise", "POSIX_FADV_DONTNEED", "fdatasync", "sched_getaffinity", "sched_setaffinity", "major", "minor",
):
    if hasattr(os, name):
        delattr(os, name)
for name in ("fcntl", "resource"):
    sys.modules[name] = None


def is_hidden(path):
    if not isinstance(path, (str, bytes, os.PathLike)):
        return False
    text = os.fsdecode(path)
    if text not in ("/proc", "/sys") and not text.startswith(("/proc/", "/sys/")):
        return False
    caller = sys._getframe(2).f_globals.get("__name__", "")
    return "FEEDLINE_TEST_PSUTIL" not in os.environ or not caller.startswith("psutil")


def hidden_from(function):
    def call(path, *arguments, **keywords):
        if is_hidden(path):
            raise FileNotFoundError(2, "No such file or directory", path)
        return function(path, *arguments, **keywords)

    return call


import io

builtins.open = io.open = hidden_from(io.open)
for name in ("open", "listdir", "scandir", "stat", "lstat", "readlink", "access"):
    setattr(os, name, hidden_from(getattr(os, name)))
"""

# the command as a person starts it, after a look at what is really gone
COMMAND = """
import os, sys
assert "cli" not in sys.modules
assert not hasattr(os, "posix_fadvise") and not hasattr(os, "sched_getaffinity")
assert not os.path.exists("/proc/self/stat") and not os.path.exists("/sys/fs")
for name in ("fcntl", "resource"):
    try:
        __import__(name)
    except ImportError:
        continue
    raise AssertionError(name)
import pipeline, model, telemetry
import cli
cli.main(sys.argv[1:])
"""
UNKNOWN = {
    "disk_busy_percent", "disk_read_mib", "gpu0_util_percent", "gpu0_memory_used_mib", "gpu0_job_memory_mib",
    "tf_memory_current_mib", "tf_memory_peak_mib",
}  # fmt: skip
# what psutil tells on every system, and Linux's only through /proc
FROM_PSUTIL = {"cpu_job_percent", "cpu_machine_percent", "rss_mib"}
KNOWN = {"epoch", "phase", "seconds", "images", "images_per_second", "loss", "accuracy"}


def train_bare(photos: Path, folder: Path, *, with_psutil: bool) -> tuple[list[dict], dict, str]:
    """Trains one epoch on such a system; returns the table, run.json and what was printed."""
    (folder / "bare").mkdir()
    (folder / "bare" / "sitecustomize.py").write_text(BARE, encoding="utf-8")
    arguments = ["train", "--data", photos, "--out", folder / "runs", "--name", "run", "--evict-page-cache"]
    arguments += ["--image-size", "32", "--batch-size", "2", "--epochs", "1", "--augment-on", "off"]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(folder / "bare")}
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *map(str, arguments)],
        cwd=ROOT,
        env=environment | ({"FEEDLINE_TEST_PSUTIL": "1"} if with_psutil else {}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with open(folder / "runs" / "run" / "epochs.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    document = json.loads((folder / "runs" / "run" / "run.json").read_text(encoding="utf-8"))
    return rows, document, done.stderr


@pytest.mark.parametrize("with_psutil", [True, False], ids=["psutil", "nothing"])
def test_a_run_without_what_only_linux_has(photo_folder, tmp_path, with_psutil):
    rows, document, printed = train_bare(photo_folder, tmp_path, with_psutil=with_psutil)
    assert document["status"] == "finished"
    assert [row["phase"] for row in rows] == ["train", "validation"]
    for row in rows:
        unknown = {name for name, cell in row.items() if cell == ""}
        assert unknown >= UNKNOWN | (set() if with_psutil else FROM_PSUTIL)
        assert not unknown & (KNOWN | (FROM_PSUTIL if with_psutil else set()))
        # a single step is all warm-up, of which no share of waiting is told
        assert unknown - {"input_wait_percent"} <= set(document["unavailable"]), unknown
    reasons = document["unavailable"]
    assert "no /proc/diskstats" in reasons["disk_read_mib"]
    assert "dropped 0 of 23 files from the page cache" in printed
    assert "has no posix_fadvise to drop a file's pages with" in printed
    assert document["hardware"]["usable_cores"] > 0
