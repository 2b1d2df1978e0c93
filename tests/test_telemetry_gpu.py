import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from telemetry.probes.gpu import GpuProbe, gpu_fields

SOURCE = Path(__file__).with_name("telemetry_fake_nvml.c")
READ = """
import json, os, sys
from telemetry.probes.gpu import GpuProbe
probe = GpuProbe(lambda: [os.getpid()])
reading = probe.read()
facts = [[fact.name, fact.memory_mib, fact.driver] for fact in probe.facts()]
json.dump({"values": reading.values, "reasons": reading.reasons, "facts": facts}, sys.stdout)
probe.close()
"""


@pytest.fixture(scope="module")
def driver_folder(tmp_path_factory) -> Path:
    """A folder with a real shared library in the place of NVIDIA's."""
    if shutil.which("gcc") is None or sys.platform != "linux":
        pytest.skip("needs gcc and Linux to build a library in the driver's place")
    folder = tmp_path_factory.mktemp("driver")
    target = folder / "libnvidia-ml.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", target, SOURCE], check=True)
    return folder


def read_with(folder: Path, fault: str = "") -> dict:
    environment = os.environ | {"LD_LIBRARY_PATH": str(folder), "FAULT": fault}
    root = str(Path(__file__).parent.parent)
    done = subprocess.run([sys.executable, "-c", READ], env=environment, cwd=root, capture_output=True, check=True)
    return json.loads(done.stdout)


def test_every_gpu_is_read_in_the_units_of_its_fields(driver_folder):
    told = read_with(driver_folder)
    assert told["values"] == {
        "gpu0_util_percent": 30.0,
        "gpu0_memory_used_mib": 6500.0,
        "gpu0_job_memory_mib": 6000.0,
        "gpu0_power_watts": 70.5,
        "gpu0_temperature_celsius": 60.0,
        "gpu1_util_percent": 31.0,
        "gpu1_memory_used_mib": 6501.0,
        "gpu1_job_memory_mib": 0.0,
        "gpu1_power_watts": 70.501,
        "gpu1_temperature_celsius": 61.0,
    }
    assert told["reasons"] == {}
    assert told["facts"] == [["Test GPU", 8192.0, "1.2.3"]] * 2


def test_a_query_that_the_device_does_not_support_leaves_the_others(driver_folder):
    told = read_with(driver_folder, "util")
    assert told["values"]["gpu0_util_percent"] is None
    assert "Not Supported" in told["reasons"]["gpu0_util_percent"]
    assert told["values"]["gpu0_power_watts"] == 70.5
    assert set(told["reasons"]) == {"gpu0_util_percent", "gpu1_util_percent"}


def test_process_memory_that_is_not_available_is_null_and_not_a_huge_number(driver_folder):
    told = read_with(driver_folder, "no_process_memory")
    assert told["values"]["gpu0_job_memory_mib"] is None
    assert "does not tell the memory of single processes" in told["reasons"]["gpu0_job_memory_mib"]


def test_a_list_without_the_job_is_null_and_not_zero(driver_folder):
    told = read_with(driver_folder, "stranger")
    assert told["values"]["gpu0_job_memory_mib"] is None
    assert "none of the 2 processes on the GPU is known as the job's" in told["reasons"]["gpu0_job_memory_mib"]


def test_a_lost_device_leaves_the_other_one(driver_folder):
    told = read_with(driver_folder, "lost")
    assert [name for name, value in told["values"].items() if value is None] == [
        name for name in gpu_fields(2) if name.startswith("gpu1")
    ]
    assert "lost" in told["reasons"]["gpu1_power_watts"].lower()


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("init", "the NVIDIA driver cannot be used"), ("empty", "the NVIDIA driver lists no GPU")],
)
def test_a_driver_that_cannot_be_used_gives_null_with_its_reason(driver_folder, fault, reason):
    told = read_with(driver_folder, fault)
    assert told["values"] == dict.fromkeys(gpu_fields(1))
    assert all(reason in text for text in told["reasons"].values())


def test_without_a_driver_every_field_of_the_first_gpu_is_null_with_the_reason(tmp_path, monkeypatch):
    import pynvml

    def no_library():
        raise pynvml.NVMLError_LibraryNotFound

    monkeypatch.setattr(pynvml, "nvmlInit", no_library)
    reading = GpuProbe(list).read()
    assert reading.values == dict.fromkeys(gpu_fields(1))
    assert set(reading.reasons.values()) == {
        "no NVIDIA driver on this machine (its library libnvidia-ml was not found)"
    }


def test_without_the_binding_the_reason_names_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert "nvidia-ml-py is not installed" in GpuProbe(list).read().reasons["gpu0_util_percent"]
