"""The pipeline beside other ways to feed a network, side by side in one session.

    python benchmarks/compare_peers.py --data photos --environments FOLDER

Each peer has a script in benchmarks/peers and a virtual environment of its own, which is made in FOLDER with pip where
it is missing (PyTorch's takes 6 GB). Then, round by round, each peer runs in a process of its own: one epoch of the
folder, out of the page cache, in the same order, with the recipe of the pipeline's defaults, resized bilinearly. The
medians are printed with the pipeline's ratio to each. `decode` is reading, decoding and resizing alone, `cached` the
augmentation of pixels that are in memory. SPDL needs FFmpeg's libraries (the package ffmpeg on Debian). A peer that
fails has its last line in place of a figure.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

import click

_ROOT = Path(__file__).resolve().parents[1]
_SCRIPTS = Path(__file__).resolve().parent / "peers"


@dataclass(frozen=True)
class Peer:
    """A way to make batches.

    Attributes:
        script: in benchmarks/peers, without suffix.
        environment: name of its virtual environment.
        works: what it can do: `whole`, `decode`, `cached`.
        workers: threads or processes; None for one a core.
    """

    script: str
    environment: str
    works: tuple[str, ...] = ("whole",)
    workers: int | None = None


_REQUIREMENTS = {
    "feedline": ("--editable", str(_ROOT)),
    "dali": ("nvidia-dali-cuda120>=1.40",),
    "grain": ("grain>=0.2.10", "opencv-python-headless>=4.10"),
    "keras": ("tensorflow>=2.15", "scipy>=1.10,<2", "pandas>=2.0", "pillow>=10.3"),
    "spdl": ("spdl>=0.1", "numpy"),
    "torchvision": ("torch>=2.4", "torchvision>=0.19"),
    "turbo": ("simplejpeg>=1.8", "opencv-python-headless>=4.10"),
}
PEERS = {
    "feedline": Peer("feedline_feed", "feedline", ("whole", "decode", "cached")),
    "keras generator, 1 thread": Peer("keras_generator", "keras", workers=1),
    "keras generator, processes": Peer("keras_generator", "keras"),
    "keras layers": Peer("keras_layers", "keras", ("whole", "decode")),
    "torchvision": Peer("torchvision_loader", "torchvision", ("whole", "decode")),
    "dali": Peer("dali_cpu", "dali", ("whole", "decode")),
    "grain + opencv": Peer("grain_opencv", "grain", ("whole", "decode")),
    "spdl": Peer("spdl_decode", "spdl", ("decode",)),
    "libjpeg-turbo + opencv": Peer("turbo_loop", "turbo", ("whole", "decode", "cached")),
}
_OURS = "feedline"


def python_of(environment: str, folder: Path) -> Path:
    """The interpreter of an environment, made if it is missing."""
    place = folder / environment
    python = place / "bin" / "python"
    complete = place / "complete"
    if not complete.exists():
        print(f"making {place}", file=sys.stderr)
        venv.create(place, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "--quiet", *_REQUIREMENTS[environment]]
        subprocess.run(install, check=True)
        complete.touch()
    return python


def measured(peer: Peer, python: Path, work: str, arguments: list[str], workers: int) -> float | str:
    """Images per second, or the last line of what went wrong."""
    command = [str(python), str(_SCRIPTS / f"{peer.script}.py"), *arguments, "--work", work]
    command += ["--workers", str(peer.workers or workers)]
    # a GPU would change what is compared
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    if result.returncode:
        return (result.stderr.strip().splitlines() or [f"exit code {result.returncode}"])[-1]
    return json.loads(result.stdout.splitlines()[-1])["images_per_second"]


def format_figures(figures: dict[tuple[str, str], list[float | str]]) -> str:
    """A line a peer and work: the median, the range, and the pipeline's figure for this work as a multiple of it."""
    lines = [f"{'work':8}{'by':28}{'images/s':>10}{'range':>18}{'ours':>8}"]
    for (work, name), values in sorted(figures.items(), key=lambda item: item[0][0], reverse=True):
        speeds = [value for value in values if isinstance(value, float)]
        if len(speeds) < len(values):
            lines.append(f"{work:8}{name:28}  {next(value for value in values if isinstance(value, str))}")
            continue
        median, spread = statistics.median(speeds), f"({min(speeds):,.0f}-{max(speeds):,.0f})"
        ours = [value for value in figures.get((work, _OURS), []) if isinstance(value, float)]
        ratio = f"{statistics.median(ours) / median:.2f}x" if ours else ""
        lines.append(f"{work:8}{name:28}{median:>10,.0f}{spread:>18}{ratio:>8}")
    return "\n".join(lines)


@click.command()
@click.option("--data", type=click.Path(exists=True, file_okay=False), required=True, help="One sub-folder a class.")
@click.option("--environments", type=click.Path(file_okay=False, path_type=Path), required=True)
@click.option("--peer", "peers", multiple=True, type=click.Choice(list(PEERS)), help="Only these. [default: all]")
@click.option("--size", default=299, show_default=True)
@click.option("--batch-size", default=32, show_default=True)
@click.option("--rounds", default=3, show_default=True)
@click.option("--workers", default=os.cpu_count(), show_default=True, help="Threads or processes of each peer.")
def main(
    data: str, environments: Path, peers: tuple[str, ...], size: int, batch_size: int, rounds: int, workers: int
) -> None:
    """Prints each peer's images/s and the pipeline's ratio to it."""
    chosen = {name: PEERS[name] for name in peers or PEERS}
    pythons = {name: python_of(peer.environment, environments.resolve()) for name, peer in chosen.items()}
    arguments = ["--data", data, "--size", str(size), "--batch-size", str(batch_size)]
    figures: dict[tuple[str, str], list[float | str]] = {}
    for _ in range(rounds):
        for name, peer in chosen.items():
            for work in peer.works:
                value = measured(peer, pythons[name], work, arguments, workers)
                figures.setdefault((work, name), []).append(value)
    print(f"{size}x{size}, batch {batch_size}, {workers} workers, medians of {rounds} rounds")
    print(format_figures(figures))


if __name__ == "__main__":
    main()
