"""A script that stops in the middle of an epoch comes to its end."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FLOW = """
from pipeline import ImageDataGenerator
generator = ImageDataGenerator(rotation_range=30)
flow = generator.flow_from_directory({photos!r}, target_size=(160, 160), batch_size=2, cache="ram")
for _ in range(4):
    next(flow)
"""
FEED = """
from pipeline import CacheConfig, DecodeConfig, Feed, FeedConfig, open_cache, samples_from_folder
samples = samples_from_folder({photos!r})
cache = open_cache(CacheConfig(mode="ram"), samples.paths, DecodeConfig(height=160, width=160))
feed = Feed(samples, FeedConfig(decode=DecodeConfig(height=160, width=160), batch_size=2), cache)
batches = iter(feed.training(range(1, 99)))
next(batches)
"""


@pytest.mark.parametrize("script", [FLOW, FEED], ids=["flow", "feed"])
def test_a_script_ends_while_its_pipeline_runs(photo_folder, script):
    for _ in range(2):  # it depends on what the pipeline does at that moment
        command = [sys.executable, "-c", script.format(photos=str(photo_folder))]
        assert subprocess.run(command, cwd=ROOT, timeout=120, capture_output=True, check=False).returncode == 0
