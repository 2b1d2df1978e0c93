"""The cache on disk: found again, never stale, whole after a kill, and no trouble where the disk makes some."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

import cli
from pipeline import (
    CacheConfig,
    DecodeConfig,
    Feed,
    FeedConfig,
    InputError,
    list_caches,
    open_cache,
    samples_from_folder,
    split_samples,
)
from pipeline.cache.disk_store import DiskStore
from pipeline.cache.folders import cache_key

ROOT = Path(__file__).resolve().parents[1]
SIZE = 24
CONFIG = FeedConfig(decode=DecodeConfig(height=SIZE, width=SIZE), batch_size=8)
SHAPE = (SIZE, SIZE, 3)
posix_only = pytest.mark.skipif(os.name != "posix", reason="forks and mounts")


@pytest.fixture
def photos(photo_folder, tmp_path):
    shutil.copytree(photo_folder, tmp_path / "photos")
    return tmp_path / "photos"


def disk_cache(samples, folder, decode=CONFIG.decode, **changes):
    return open_cache(CacheConfig(mode="disk", directory=str(folder), **changes), samples.paths, decode)


def pixels(samples, cache=None, config=CONFIG):
    return np.concatenate(list(Feed(samples, config, cache).decoded().as_numpy_iterator()))


def rows_in(folder):
    (found,) = list_caches(folder)
    return (found.path / "rows").read_bytes()


# --- found again, and only where it is right


def test_the_next_run_finds_every_pixel(photos, tmp_path):
    samples = samples_from_folder(photos)
    expected = pixels(samples, disk_cache(samples, tmp_path / "cache"))
    again = disk_cache(samples, tmp_path / "cache")
    assert again.complete == len(samples)
    assert again.missing(np.arange(len(samples))).size == 0
    assert np.array_equal(pixels(samples, again), expected)
    assert np.array_equal(expected, pixels(samples))


def test_a_file_that_changed_is_decoded_anew_even_under_its_old_time_and_size(photos, tmp_path):
    samples = samples_from_folder(photos)
    pixels(samples, disk_cache(samples, tmp_path / "cache"))
    path = Path(samples.paths[5])
    before = path.stat()
    Image.new("RGB", (40, 36)).save(path, "JPEG", quality=5)
    path.write_bytes(path.read_bytes().ljust(before.st_size, b"\0"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert np.array_equal(pixels(samples, disk_cache(samples, tmp_path / "cache")), pixels(samples))


@pytest.mark.parametrize(
    "change",
    [
        {"height": 25},
        {"width": 25},
        {"interpolation": "bilinear"},
        {"method": "fast"},
        {"color_mode": "rgba"},
        {"keep_aspect_ratio": True},
        {"saturate_sixteen_bit": True},
    ],
)
def test_another_way_to_decode_has_another_cache(photos, change):
    paths = samples_from_folder(photos).paths
    assert cache_key(paths, CONFIG.decode) == cache_key(paths, CONFIG.decode)
    assert cache_key(paths, CONFIG.decode) != cache_key(paths, replace(CONFIG.decode, **change))


def test_other_files_or_another_order_have_another_cache(photos):
    paths = samples_from_folder(photos).paths
    keys = {cache_key(part, CONFIG.decode) for part in (paths, paths[:-1], paths[::-1], paths[1:], (paths[0],) * 2)}
    assert len(keys) == 5


def test_training_and_validation_never_meet_in_one_cache(photos, tmp_path):
    train, validation = split_samples(samples_from_folder(photos), 0.4, seed=1)
    for part in (train, validation, train, validation):
        assert np.array_equal(pixels(part, disk_cache(part, tmp_path / "cache")), pixels(part))
    assert sorted(found.complete for found in list_caches(tmp_path / "cache")) == sorted([len(train), len(validation)])


def test_a_greater_budget_goes_on_with_the_rows_that_are_there(photos, tmp_path):
    samples = samples_from_folder(photos)
    row = int(np.prod(SHAPE))
    small = disk_cache(samples, tmp_path / "cache", budget_bytes=5 * row)
    pixels(samples, small)
    assert (small.plan.kept, small.complete) == (5, 5)
    large = disk_cache(samples, tmp_path / "cache", budget_bytes=12 * row)
    assert (large.plan.kept, large.complete) == (12, 5)
    assert np.array_equal(pixels(samples, large), pixels(samples))
    assert large.complete == 12


# --- whole after a kill

WRITERS = """
import os, random, signal, sys, time
import numpy as np
from pipeline import DecodeConfig, CacheConfig, open_cache, samples_from_folder
from pipeline.decode import decode_whole_in_python

photos, folder, action = sys.argv[1:]
samples = samples_from_folder(photos)
decode = DecodeConfig(height=96, width=96)

def fill(order, pause=0.0):
    cache = open_cache(CacheConfig(mode="disk", directory=folder), samples.paths, decode)
    for start in range(0, len(order), 3):
        batch = np.array(order[start : start + 3])
        missing = cache.missing(batch)
        made = [decode_whole_in_python(open(samples.paths[k], "rb").read(), decode) for k in batch[missing]]
        cache.merge(batch, missing, np.array(made, np.uint8).reshape(-1, 96, 96, 3))
        time.sleep(pause)

def child(seed, pause):
    process = os.fork()
    if process == 0:
        order = list(range(len(samples)))
        random.Random(seed).shuffle(order)
        try:
            fill(order, pause)
        except BaseException:
            os._exit(1)
        os._exit(0)
    return process

numbers = random.Random(5)
if action == "killed":
    for attempt in range(10):
        process = child(attempt, 0.002)
        time.sleep(numbers.uniform(0.0, 0.03))
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    fill(range(len(samples)))
elif action == "together":
    ended = [os.waitpid(process, 0)[1] for process in [child(seed, 0.0) for seed in range(3)]]
    assert ended == [0, 0, 0], ended
    fill(range(len(samples)))
else:
    fill(range(len(samples)))
"""


@posix_only
@pytest.mark.parametrize("action", ["killed", "together"])
def test_writers_that_are_killed_or_work_together_leave_the_same_bytes(photos, tmp_path, action):
    for what in ("alone", action):
        command = [sys.executable, "-c", WRITERS, str(photos), str(tmp_path / what), what]
        subprocess.run(command, cwd=ROOT, check=True, timeout=300)
    assert rows_in(tmp_path / action) == rows_in(tmp_path / "alone")
    samples = samples_from_folder(photos)
    decode = DecodeConfig(height=96, width=96)
    cache = disk_cache(samples, tmp_path / action, decode)
    assert cache.complete == len(samples)
    config = replace(CONFIG, decode=decode)
    assert np.array_equal(pixels(samples, cache, config), pixels(samples, None, config))


KILLED_RUN = """
import sys
from pipeline import CacheConfig, DecodeConfig, Feed, FeedConfig, open_cache, samples_from_folder
photos, folder = sys.argv[1:]
samples = samples_from_folder(photos)
decode = DecodeConfig(height=96, width=96)
cache = open_cache(CacheConfig(mode="disk", directory=folder), samples.paths, decode)
for step, _ in enumerate(Feed(samples, FeedConfig(decode=decode, batch_size=2), cache).training(range(1, 2))):
    print("step", step, flush=True)
    if step == 3:
        sys.stdin.read()
"""


@posix_only
def test_a_feed_that_is_killed_is_continued(photos, tmp_path):
    command = [sys.executable, "-c", KILLED_RUN, str(photos), str(tmp_path / "cache")]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert any(line == "step 3\n" for line in process.stdout)
        process.kill()
    samples = samples_from_folder(photos)
    config = replace(CONFIG, decode=DecodeConfig(height=96, width=96))
    cache = disk_cache(samples, tmp_path / "cache", config.decode)
    assert 8 <= cache.complete < len(samples)
    assert np.array_equal(pixels(samples, cache, config), pixels(samples, None, config))
    assert cache.complete == len(samples)


@pytest.mark.skipif(not os.path.exists("/proc/sys/kernel/random/boot_id"), reason="boots have no names here")
def test_after_a_crash_of_the_machine_only_rows_that_were_settled_count(tmp_path, monkeypatch):
    """The system may have written a row's mark and not the row; here it forgot row 1, which was never settled."""
    rows = np.random.default_rng(0).integers(0, 256, (2, *SHAPE), np.uint8)
    store = DiskStore(tmp_path, 2, SHAPE)
    store.write(np.array([0]), rows[:1])
    del store  # settles
    store = DiskStore(tmp_path, 2, SHAPE)
    store.write(np.array([1]), rows[1:])
    with open(tmp_path / "rows", "r+b") as file:
        file.seek(rows[0].nbytes)
        file.write(bytes(rows[0].nbytes))
    other_boot = tmp_path / "boot_id"
    other_boot.write_text("another")
    monkeypatch.setattr("pipeline.cache.disk_store._BOOT_ID", other_boot)
    after = DiskStore(tmp_path, 2, SHAPE)
    assert after.complete(np.arange(2)).tolist() == [True, False]
    assert np.array_equal(after.read(np.array([0])), rows[:1])


# --- disks that make trouble


@contextlib.contextmanager
def small_disk(folder, size):
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@posix_only
def test_a_disk_too_small_keeps_a_part(photos, tmp_path):
    samples = samples_from_folder(photos)
    lines = []
    config = replace(CONFIG, decode=DecodeConfig(height=96, width=96))  # 27 KiB an image
    with small_disk(tmp_path / "small", "256k") as folder:
        place = CacheConfig(mode="disk", directory=str(folder))
        cache = open_cache(place, samples.paths, config.decode, report=lines.append)
        assert 0 < cache.plan.kept < len(samples)
        for _ in range(2):
            assert np.array_equal(pixels(samples, cache, config), pixels(samples, None, config))
        assert cache.complete == cache.plan.kept
    assert "no more fit: 90% of the free disk" in lines[0]


@posix_only
def test_a_full_disk_keeps_nothing_new_and_loses_nothing(photos, tmp_path):
    samples = samples_from_folder(photos)
    with small_disk(tmp_path / "small", "4m") as folder:
        pixels(samples, disk_cache(samples, folder / "cache"))
        with contextlib.suppress(OSError), open(folder / "rest", "wb") as file:
            while True:
                file.write(bytes(2**16))
        whole = disk_cache(samples, folder / "cache")  # needs no room
        assert whole.complete == len(samples)
        assert np.array_equal(pixels(samples, whole), pixels(samples))
        with pytest.raises(InputError, match=r"--cache disk: .* cannot hold it .*name another folder with --cache-dir"):
            disk_cache(samples, folder / "other")


@posix_only
def test_a_disk_that_refuses_later_is_said_once_and_the_epoch_goes_on(photos, tmp_path):
    import resource

    samples = samples_from_folder(photos)
    cache = disk_cache(samples, tmp_path / "cache")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5 * int(np.prod(SHAPE)), before[1]))  # the rest of the file is refused
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = [pixels(samples, cache) for _ in range(2)]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert all(np.array_equal(each, pixels(samples)) for each in found)
    assert cache.complete == 5
    said = [str(warning.message) for warning in caught if "cache folder" in str(warning.message)]
    assert len(said) == 1
    assert "cannot be written to any more (File too large)" in said[0]


@posix_only
def test_a_read_only_folder_is_read_and_one_without_a_cache_refused(photos, tmp_path):
    samples, filled = samples_from_folder(photos), tmp_path / "filled"
    pixels(samples, disk_cache(samples, filled))
    with small_disk(tmp_path / "small", "4m") as folder:
        shutil.copytree(filled, folder, dirs_exist_ok=True)
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        whole = disk_cache(samples, folder)
        assert whole.complete == len(samples)
        assert np.array_equal(pixels(samples, whole), pixels(samples))
        with pytest.raises(InputError, match="cannot hold it"):
            disk_cache(samples, folder, replace(CONFIG.decode, height=9))


def test_a_place_that_is_no_folder_is_refused_by_the_flags_name(photos, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"--cache disk: .*file cannot hold it \(Not a directory\).*--cache-dir"):
        disk_cache(samples_from_folder(photos), tmp_path / "file")


def test_rows_that_another_program_cut_off_are_an_error_that_names_them(tmp_path):
    store = DiskStore(tmp_path, 2, SHAPE)
    store.write(np.arange(2), np.zeros((2, *SHAPE), np.uint8))
    os.truncate(tmp_path / "rows", 10)
    with pytest.raises(OSError, match="rows was cut off by another program; remove its folder"):
        store.read(np.arange(2))


def test_a_cache_that_is_cleared_while_a_run_uses_it_stays_open(photos, tmp_path):
    samples = samples_from_folder(photos)
    cache = disk_cache(samples, tmp_path / "cache")
    pixels(samples, cache)
    assert command("cache", "clear", "--cache-dir", tmp_path / "cache").exit_code == 0
    assert list_caches(tmp_path / "cache") == []
    assert np.array_equal(pixels(samples, cache), pixels(samples))


# --- the commands


def command(*arguments):
    return CliRunner().invoke(cli.main, [str(argument) for argument in arguments])


def test_ls_tells_what_there_is_and_clear_removes_only_that(photos, tmp_path):
    samples, folder = samples_from_folder(photos), tmp_path / "cache"
    assert f"no caches in {folder}" in command("cache", "ls", "--cache-dir", folder).output
    for decode in (CONFIG.decode, replace(CONFIG.decode, interpolation="bilinear")):
        pixels(samples, disk_cache(samples, folder, decode))
    (folder / "notes.txt").write_text("mine")
    first, second = list_caches(folder)
    (second.path / "mine.txt").write_text("mine")
    listed = command("cache", "ls", "--cache-dir", folder).output
    assert listed.count("23 of 23 images  24x24") == 2
    assert "bilinear exact" in listed
    assert str(photos) in listed
    assert "2 caches" in listed
    assert command("cache", "clear", "--cache-dir", folder, "ffff_no_such").exit_code == 2
    assert command("cache", "clear", "--cache-dir", folder, first.path.name[:12]).exit_code == 0
    assert [found.path for found in list_caches(folder)] == [second.path]
    assert command("cache", "clear", "--cache-dir", folder).exit_code == 0
    assert list_caches(folder) == []
    assert (folder / "notes.txt").read_text() == (second.path / "mine.txt").read_text() == "mine"


def test_a_folder_made_to_mislead_removes_nothing_outside_and_writes_no_terminal_codes(tmp_path):
    folder, outside = tmp_path / "cache", tmp_path / "outside"
    outside.mkdir()
    for name in ("about.json", "rows", "complete"):
        (outside / name).write_text(json.dumps({"format": 1, "data": "x"}))
    folder.mkdir()
    os.symlink(outside, folder / ("a" * 32))
    (folder / ("b" * 32)).mkdir()
    (folder / ("b" * 32) / "about.json").write_text(json.dumps({"format": 1, "data": "\x1b[2J<b>", "samples": 2}))
    (folder / ("b" * 32) / "complete").write_bytes(bytes(16))
    listed = command("cache", "ls", "--cache-dir", folder).output
    assert "\x1b" not in listed
    assert "1 caches" in listed
    command("cache", "clear", "--cache-dir", folder)
    assert sorted(path.name for path in outside.iterdir()) == ["about.json", "complete", "rows"]


def test_a_second_training_finds_the_first_ones_pixels(photos, tmp_path):
    flags = ("--data", photos, "--image-size", SIZE, "--epochs", 1, "--batch-size", 8, "--cache", "disk")
    place = ("--cache-dir", tmp_path / "cache", "--out", tmp_path / "runs", "--monitor", "accuracy")
    first = command("train", *flags, *place, "--name", "first")
    assert first.exit_code == 0, first.output
    assert "cache disk: pixels of 19 of 19 train images" in first.output
    second = command("train", *flags, *place, "--name", "second")
    assert second.output.count("MiB, all there") == 2
