"""Limits on the GPU's memory: what is asked of TensorFlow, and that it is asked before a device is touched."""

import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from model import DeviceError, GpuMemoryConfig
from model.gpu_memory import apply_gpu_memory

ROOT = Path(__file__).resolve().parents[1]
CARD_BYTES = 16 * 2**30


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple]:
    """What TensorFlow is told about two GPUs; this machine need not have one."""
    told: list[tuple] = []
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["gpu a", "gpu b"])
    monkeypatch.setattr(tf.config.experimental, "set_memory_growth", lambda gpu, on: told.append((gpu, on)))
    monkeypatch.setattr(
        tf.config,
        "set_logical_device_configuration",
        lambda gpu, limits: told.append((gpu, [limit.memory_limit for limit in limits])),
    )
    return told


def test_growth_is_set_on_every_gpu(asked):
    apply_gpu_memory(GpuMemoryConfig(growth=True), None)
    assert asked == [("gpu a", True), ("gpu b", True)]


def test_a_limit_is_given_in_mib(asked):
    apply_gpu_memory(GpuMemoryConfig(limit_bytes=4 * 2**30), None)
    assert asked == [("gpu a", [4096]), ("gpu b", [4096])]


def test_a_share_is_taken_of_the_card(asked):
    apply_gpu_memory(GpuMemoryConfig(limit_fraction=0.5), CARD_BYTES)
    assert asked == [("gpu a", [8192]), ("gpu b", [8192])]


def test_without_a_limit_nothing_is_asked(asked):
    apply_gpu_memory(GpuMemoryConfig(), CARD_BYTES)
    assert asked == []


def test_a_share_of_an_unknown_card_is_refused(asked):
    with pytest.raises(DeviceError, match=r"--gpu-memory-limit 0\.5.*pass a size such as 4GiB"):
        apply_gpu_memory(GpuMemoryConfig(limit_fraction=0.5), None)


def test_growth_and_a_limit_exclude_each_other(asked):
    with pytest.raises(DeviceError, match="--memory-growth and --gpu-memory-limit exclude each other"):
        apply_gpu_memory(GpuMemoryConfig(growth=True, limit_bytes=2**30), None)


def test_the_command_sets_the_limits_before_tensorflow_touches_a_device(photo_folder, tmp_path):
    script = f"""
import sys
sys.argv = ["cli.py", "train", "--data", {str(photo_folder)!r}, "--out", {str(tmp_path)!r}, "--image-size", "24",
            "--epochs", "1", "--memory-growth"]
import model.trainer
from tensorflow.python.eager import context
def apply(config, card_bytes):
    assert config.growth
    print("touched before:", context.context()._initialized)
model.trainer.apply_gpu_memory = apply
import cli
cli.main()
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "touched before: False" in done.stdout
