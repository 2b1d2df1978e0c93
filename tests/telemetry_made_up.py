"""Made-up runs for the tests of telemetry: what a recorder would have written, with round numbers."""

import json
from pathlib import Path

MIB = 2**20


def write_lines(path: Path, lines: list[dict]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def mark(event: str, epoch: int, phase: str | None, seconds: float, *, session: int = 0, **parts) -> dict:
    line = {"event": event, "session": session, "monotonic_seconds": seconds, "epoch": epoch}
    return line | ({"phase": phase} if phase else {}) | parts


def totals(seconds: float, *, read_mib: float = 0.0, logical_mib: float = 0.0, rss_mib: float = 100.0) -> dict:
    """Totals of a machine of 4 cores, half busy, whose job may use 2 and uses one; the disk is busy a quarter."""
    return {
        "disk_read_bytes_total": int(read_mib * MIB),
        "disk_busy_seconds_total": seconds / 4,
        "job_physical_read_bytes_total": int(read_mib * MIB),
        "job_logical_read_bytes_total": int(logical_mib * MIB),
        "job_cpu_seconds_total": seconds,
        "machine_cpu_busy_seconds_total": seconds * 2,
        "machine_cpu_seconds_total": seconds * 4,
        "rss_mib": rss_mib,
        "usable_cores": 2.0,
    }


def document(**changes) -> dict:
    return {
        "status": "finished",
        "started": "2026-01-02T03:04:05+00:00",
        "finished": "2026-01-02T03:05:35+00:00",
        "config": {"cache": "off", "batch_size": 32},
        "versions": {"python": "3.11.0"},
        "hardware": {"cpu": "made up", "usable_cores": 2.0},
        "sessions": [{"started": "2026-01-02T03:04:05+00:00", "monotonic_seconds": 100.0}],
        "unavailable": {"gpu0_util_percent": "no driver"},
    } | changes


def two_epochs(read_mib: tuple[float, float], images_per_second: float) -> tuple[list[dict], list[dict]]:
    """Marks and samples of two epochs of 10 s training and 2 s validation, the first step of each taking 1 s."""
    marks: list[dict] = []
    images = waited = read = 0.0
    now = 100.0
    for epoch in (1, 2):
        for phase, seconds in (("train", 10.0), ("validation", 2.0)):
            for event, at in (("begin", 0.0), ("warmup_end", 1.0), ("end", seconds)):
                if event == "warmup_end" and epoch == 2:
                    continue
                counters = {
                    "images": images + images_per_second * at,
                    "input_wait_seconds": waited + 0.2 * at,
                }
                done = read + read_mib[epoch - 1] * at / 12
                values = totals(now + at, read_mib=done, logical_mib=done)
                metrics = {"loss": 1.0 / epoch, "accuracy": 0.5 + 0.1 * epoch} if event == "end" else {}
                marks.append(mark(event, epoch, phase, now + at, values=values, counters=counters, metrics=metrics))
            now += seconds
            images += images_per_second * seconds
            waited += 0.2 * seconds
            read += read_mib[epoch - 1] * seconds / 12
    samples = [
        {"session": 0, "monotonic_seconds": 100.0 + second, **totals(100.0 + second, rss_mib=100.0 + second)}
        for second in range(25)
    ]
    return marks, samples


def write_run(folder: Path, *, read_mib=(48.0, 0.0), images_per_second=100.0, **changes) -> Path:
    folder.mkdir(parents=True)
    marks, samples = two_epochs(read_mib, images_per_second)
    (folder / "run.json").write_text(json.dumps(document(**changes)))
    write_lines(folder / "marks.jsonl", marks)
    write_lines(folder / "samples.jsonl", samples)
    return folder
