"""The embedded demonstration set: drawn photographs of round and of pointed things, to try Feedline without any data.

Colours, backgrounds, numbers, places and covered areas come from the same draws for both classes, so only shape tells
them apart, and it does so wherever a thing lies and however it is turned: augmentation leaves the classes as they are.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import platformdirs
from PIL import Image, ImageDraw, ImageFilter

# part of the folder's name: raise it whenever a drawing changes
_VERSION = 1
_IMAGES_PER_CLASS = 300
_JPEG_QUALITY = 90
# shapes are drawn this many times larger and shrunk, for smooth edges
_SUPERSAMPLING = 2

# what a thing covers, in squares of its radius: about a disc of that radius for round things
_AREA = 1.9
# how far a thing of that area reaches at most, in its radii: the tips of the thinnest star
_REACH = 1.5

Point = tuple[float, float]


def demonstration_set(cache_directory: Path | None = None) -> Path:
    """The folder of the demonstration set, drawn on the first call: 600 JPEGs of about 400x360 in two class folders.

    The folder is there whole or not at all: it is drawn under another name and renamed. Of several makers at once each
    draws its own, and the first to end wins.

    Args:
        cache_directory: where to keep it; None for the user's cache folder.

    Raises:
        OSError: if the cache folder cannot be written to.
    """
    cache = Path(cache_directory) if cache_directory is not None else Path(platformdirs.user_cache_dir("feedline"))
    folder = cache / f"demonstration-{_VERSION}"
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=cache))
    try:
        _draw_all(draft)
        draft.chmod(0o755)  # mkdtemp's folder is closed to others
        try:
            os.rename(draft, folder)
        except OSError:
            # another maker was faster: its set has the same images
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def draw_image(class_name: str, number: int) -> Image.Image:
    """One image of the set: a function of its arguments, RGB, about 400x360.

    Args:
        class_name: `pointed` or `round`.
        number: which of the class's images, from 0.
    """
    draws = _Draws(stream=number * len(_SHAPES) + sorted(_SHAPES).index(class_name))
    width, height = draws.whole(360, 440), draws.whole(320, 400)
    image = _background(draws, width, height)
    for centre, radius in _places(draws, width, height):
        outlines = draws.choice(_SHAPES[class_name])(draws)
        _paint(image, draws, centre, radius, _of_one_area(outlines))
    return _as_by_a_lens(image, draws)


class _Draws:
    """Random numbers of one image: a counter-based generator's raw stream, the same with every numpy."""

    def __init__(self, stream: int) -> None:
        self._generator = np.random.Philox(key=np.array([stream, _VERSION], np.uint64))

    def uniform(self, low: float, high: float) -> float:
        """A number in [low, high)."""
        return low + (high - low) * (int(self._generator.random_raw()) >> 11) * 2.0**-53

    def whole(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return int(self.uniform(low, high + 1))

    def choice(self, options: tuple) -> Callable[[_Draws], list[list[Point]]]:
        return options[self.whole(0, len(options) - 1)]

    def levels(self, *shape: int) -> np.ndarray:
        """uint8 of this shape, 0 to 255, all alike likely."""
        count = math.prod(shape)
        return self._generator.random_raw(-(-count // 8)).astype("<u8").view(np.uint8)[:count].reshape(shape)


def _draw_all(folder: Path) -> None:
    def draw(class_name: str, number: int) -> None:
        path = folder / class_name / f"{class_name}-{number:03d}.jpg"
        draw_image(class_name, number).save(path, quality=_JPEG_QUALITY)

    for class_name in _SHAPES:
        (folder / class_name).mkdir()
    jobs = [(class_name, number) for class_name in sorted(_SHAPES) for number in range(_IMAGES_PER_CLASS)]
    with ThreadPoolExecutor(os.cpu_count()) as executor:
        # list() so that a full disk raises here
        list(executor.map(draw, *zip(*jobs, strict=True)))


def _background(draws: _Draws, width: int, height: int) -> Image.Image:
    """Soft fields of a few muted colours, around one of all shades."""
    fields = draws.levels(draws.whole(2, 4), draws.whole(2, 4), 3) // 3 + draws.levels(3) // 4
    fields = Image.fromarray(fields)
    return fields.resize((width, height), Image.Resampling.BICUBIC)


def _places(draws: _Draws, width: int, height: int) -> list[tuple[Point, float]]:
    """Centres and radii, pixels, of things that hardly overlap."""
    places: list[tuple[Point, float]] = []
    wanted = draws.whole(5, 9)
    for _ in range(200):
        radius = draws.uniform(26, 60)
        # wholly inside: what touches the border turns into long streaks when the image is moved with its edge repeated
        margin = _REACH * radius + 8
        centre = (draws.uniform(margin, width - margin), draws.uniform(margin, height - margin))
        if all(math.dist(centre, other) > 1.05 * (radius + other_radius) for other, other_radius in places):
            places.append((centre, radius))
        if len(places) == wanted:
            break
    return places


def _paint(image: Image.Image, draws: _Draws, centre: Point, radius: float, outlines: list[list[Point]]) -> None:
    """Paints a thing with a soft shadow into the image; the first outline is the thing, the others are holes."""
    half = math.ceil(_REACH * radius) + 8
    scale = _SUPERSAMPLING * radius
    middle = _SUPERSAMPLING * half
    mask = Image.new("L", (2 * middle, 2 * middle))
    pen = ImageDraw.Draw(mask)
    for index, outline in enumerate(outlines):
        pen.polygon([(middle + scale * x, middle + scale * y) for x, y in outline], fill=0 if index else 255)
    mask = mask.reduce(_SUPERSAMPLING)
    left, top = round(centre[0]) - half, round(centre[1]) - half
    shadow = mask.filter(ImageFilter.BoxBlur(4)).point(lambda level: level * 0.45)
    image.paste((0, 0, 0), (left + 5, top + 6), shadow)
    image.paste(_bright_colour(draws), (left, top), mask)


def _bright_colour(draws: _Draws) -> tuple[int, int, int]:
    """A colour lighter than any background."""
    while True:
        red, green, blue = draws.levels(3).tolist()
        if 0.3 * red + 0.6 * green + 0.1 * blue > 150:
            return red, green, blue


def _as_by_a_lens(image: Image.Image, draws: _Draws) -> Image.Image:
    """Adds a sensor's noise, then blurs a little.

    The blur keeps edges and noise alike when the image is shrunk by nearest, with or without a resampling after it:
    else augmented images would differ from plain ones in more than what augmentation means to change.
    """
    grain = (draws.levels(image.height, image.width) >> 4).astype(np.int16) - 8
    pixels = np.asarray(image).astype(np.int16) + grain[:, :, np.newaxis]
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).filter(ImageFilter.GaussianBlur(1.5))


def _of_one_area(outlines: list[list[Point]]) -> list[list[Point]]:
    """The outlines scaled so that every thing covers the same share of the image, and its mean colour tells nothing."""
    area, *holes = (
        abs(sum(x * v - u * y for (x, y), (u, v) in zip(o, o[1:] + o[:1], strict=True)) / 2) for o in outlines
    )
    scale = math.sqrt(_AREA / (area - sum(holes)))
    return [[(scale * x, scale * y) for x, y in outline] for outline in outlines]


def _ellipse(draws: _Draws, flatness: float) -> list[Point]:
    turn = draws.uniform(0, math.pi)
    around = [2 * math.pi * step / 90 for step in range(90)]
    points = [(math.cos(angle), flatness * math.sin(angle)) for angle in around]
    cos, sin = math.cos(turn), math.sin(turn)
    return [(cos * x - sin * y, sin * x + cos * y) for x, y in points]


def _spikes(draws: _Draws, count: int, inner_radius: float) -> list[Point]:
    turn = draws.uniform(0, 2 * math.pi)
    points = []
    for step in range(2 * count):
        radius = inner_radius if step % 2 else 1.0
        angle = turn + math.pi * step / count
        points.append((radius * math.cos(angle), radius * math.sin(angle)))
    return points


def _with_hole(outline: list[Point], size: float) -> list[list[Point]]:
    return [outline, [(size * x, size * y) for x, y in outline]]


def _disc(draws: _Draws) -> list[list[Point]]:
    return [_ellipse(draws, draws.uniform(0.75, 1))]


def _ring(draws: _Draws) -> list[list[Point]]:
    return _with_hole(_ellipse(draws, draws.uniform(0.75, 1)), draws.uniform(0.4, 0.6))


def _star(draws: _Draws) -> list[list[Point]]:
    return [_spikes(draws, draws.whole(5, 9), draws.uniform(0.4, 0.55))]


def _hollow_star(draws: _Draws) -> list[list[Point]]:
    return _with_hole(_spikes(draws, draws.whole(5, 9), draws.uniform(0.5, 0.6)), draws.uniform(0.4, 0.6))


_SHAPES: dict[str, tuple[Callable[[_Draws], list[list[Point]]], ...]] = {
    "pointed": (_star, _hollow_star),
    "round": (_disc, _ring),
}
