"""Freed batches stay in the process: the next one asks the kernel for no new pages."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# the page faults of ten blocks of 64 MiB, each allocated, written and freed, after a first one
COUNT_FAULTS = """
import ctypes, resource, sys
from pipeline.allocation import keep_freed_memory
made = keep_freed_memory() if sys.argv[1] == "keep" else None
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
def block():
    address = libc.malloc(2**26)
    ctypes.memset(address, 1, 2**26)
    libc.free(address)
block()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    block()
print(made, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the setting is glibc's")


def count_faults(how: str, **environment: str) -> tuple[str, int]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    done = subprocess.run(
        [sys.executable, "-c", COUNT_FAULTS, how],
        cwd=ROOT,
        env={**own, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    made, faults = done.stdout.split()
    return made, int(faults)


def test_a_freed_block_is_used_again():
    _, faults = count_faults("leave")
    made, faults_kept = count_faults("keep")
    assert made == "True"
    # a page is 4 KiB at least, up to 2 MiB where the kernel gives huge ones
    assert faults >= 10 * 2**26 // 2**21
    assert faults_kept < faults / 10


def test_a_persons_own_settings_of_the_allocator_are_left_alone():
    assert count_faults("keep", MALLOC_TRIM_THRESHOLD_="131072")[0] == "False"
