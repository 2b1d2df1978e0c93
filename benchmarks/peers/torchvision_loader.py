"""torchvision's v2 transforms in a DataLoader with worker processes."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from protocol import RECIPE, Job, run
from torchvision.io import ImageReadMode, decode_image
from torchvision.transforms import InterpolationMode, v2


class Photos(torch.utils.data.Dataset):
    """The files, decoded and transformed one by one."""

    def __init__(self, job: Job) -> None:
        resize = v2.Resize((job.size, job.size), InterpolationMode.BILINEAR, antialias=True)
        shift, zoom = RECIPE["shift"], RECIPE["zoom"]
        warp = v2.RandomAffine(
            RECIPE["rotation"],
            translate=(shift, shift),
            scale=(1 - zoom, 1 + zoom),
            shear=(-math.degrees(RECIPE["shear"]), math.degrees(RECIPE["shear"])),
            interpolation=InterpolationMode.BILINEAR,
        )
        augment = [warp, v2.RandomHorizontalFlip(), v2.ColorJitter(brightness=RECIPE["brightness"])]
        self._transform = v2.Compose(
            [resize, *(augment if job.work == "whole" else []), v2.ToDtype(torch.float32, scale=True)]
        )
        self._paths, self._labels = job.paths, job.labels

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        image = decode_image(self._paths[index], mode=ImageReadMode.RGB)
        return self._transform(image), self._labels[index]


def batches(job: Job) -> Iterator[int]:
    loader = torch.utils.data.DataLoader(Photos(job), batch_size=job.batch_size, num_workers=job.workers)
    for images, _ in loader:
        yield len(images)


if __name__ == "__main__":
    run(batches)
