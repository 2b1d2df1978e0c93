"""What each cache is worth, and what it takes: images per second with augmentation, and anonymous memory.

    python benchmarks/caches.py --data photos

Every cache runs in its own process, one after the other, round by round: one dataset over all epochs, of which the
third and later are counted, from the last batch of the second to the last of all. `half` is `ram` with half the budget;
it is compared with the mean time of `off` and `ram`. Memory is RssAnon + RssShmem of the process: its peak, and at the
end of the last epoch as a multiple of that at the end of the third. The model is left out: the loop drops the batches.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import click

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from run_facts import run_facts

from pipeline import CacheConfig, ChannelAffine, DecodeConfig, Feed, FeedConfig, open_cache, samples_from_folder

_MODES = ("off", "encoded", "ram", "disk", "half")
_SCALE = ChannelAffine(scale=(1 / 255,) * 3)
_MIB = 2**20


def anonymous_mib() -> float:
    """RssAnon + RssShmem of this process, MiB."""
    with open("/proc/self/status", encoding="ascii") as file:
        lines = dict(line.split(":", 1) for line in file)
    return sum(int(lines[name].split()[0]) for name in ("RssAnon", "RssShmem")) / 1024


class _Peak:
    """The largest value that a reading had, taken in a thread of its own."""

    def __init__(self) -> None:
        self.mib = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.wait(0.02):
            self.mib = max(self.mib, anonymous_mib())

    def stop(self) -> float:
        self._ended.set()
        self._thread.join()
        return self.mib


def measure(data: str, mode: str, size: int, batch_size: int, epochs: int, directory: str) -> dict[str, float]:
    """Images per second from the third epoch on, anonymous memory and what the cache planned for."""
    samples = samples_from_folder(data)
    decode = DecodeConfig(height=size, width=size)
    rows = len(samples) * size * size * 3
    budget = rows // 2 if mode == "half" else None
    config = CacheConfig(mode="ram" if mode == "half" else mode, budget_bytes=budget, directory=directory)
    cache = open_cache(config, samples.paths, decode)
    feed = Feed(samples, FeedConfig(decode=decode, batch_size=batch_size, preprocess=_SCALE), cache)
    peak, ends, memory = _Peak(), [], []
    for step, _ in enumerate(feed.training(range(1, epochs + 1)), start=1):
        if step % feed.steps_per_epoch == 0:
            ends.append(time.perf_counter())
            memory.append(anonymous_mib())
    return {
        "images_per_second": (epochs - 2) * len(samples) / (ends[-1] - ends[1]),
        "peak_mib": peak.stop(),
        "growth": memory[-1] / memory[2],
        "planned_mib": cache.plan.kept_bytes / _MIB if cache else 0.0,
    }


@click.command()
@click.option("--data", type=click.Path(exists=True, file_okay=False), required=True, help="One sub-folder a class.")
@click.option("--size", default=299, show_default=True)
@click.option("--batch-size", default=32, show_default=True)
@click.option("--rounds", default=3, show_default=True)
@click.option("--epochs", type=click.IntRange(min=3), default=4, show_default=True)
@click.option("--mode", type=click.Choice(_MODES), help="Measure one, once, and print it as JSON.")
def main(data: str, size: int, batch_size: int, rounds: int, epochs: int, mode: str | None) -> None:
    """Prints what each cache is worth."""
    if mode:
        with tempfile.TemporaryDirectory(dir=".") as directory:
            print(json.dumps(measure(data, mode, size, batch_size, epochs, directory)))
        return
    asked = {"--data": data, "--size": size, "--batch-size": batch_size, "--epochs": epochs}
    command = [sys.executable, __file__, *(str(part) for pair in asked.items() for part in pair)]
    found: dict[str, list[dict[str, float]]] = {each: [] for each in _MODES}
    for _ in range(rounds):
        for each in _MODES:
            printed = subprocess.run([*command, "--mode", each], check=True, capture_output=True, text=True).stdout
            found[each].append(json.loads(printed.splitlines()[-1]))
    median = {
        each: {name: statistics.median(run[name] for run in runs) for name in runs[0]} for each, runs in found.items()
    }
    about = run_facts(
        images=len(samples_from_folder(data)), size=size, batch_size=batch_size, rounds=rounds, epochs=epochs
    )
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    titles = f"{'cache':10}{'images/s':>10}{'of ram':>9}{'peak MiB':>11}{'planned MiB':>13}"
    print(f"{titles}{'peak - off - planned':>23}{'growth':>9}")
    for each, values in median.items():
        speed, peak, planned = values["images_per_second"], values["peak_mib"], values["planned_mib"]
        in_memory = 0.0 if each == "disk" else planned
        print(
            f"{each:10}{speed:>10,.0f}{speed / median['ram']['images_per_second']:>9.2f}{peak:>11,.0f}{planned:>13,.0f}"
            f"{peak - median['off']['peak_mib'] - in_memory:>23,.0f}{values['growth']:>9.3f}"
        )
    times = {each: 1 / values["images_per_second"] for each, values in median.items()}
    mean = (times["off"] + times["ram"]) / 2
    print(f"half the budget: {times['half'] / mean:.2f} of the mean time of off and ram")


if __name__ == "__main__":
    main()
