"""All that a training is made of, as one value: built by the command line, written to run.json, read on resume."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from model.classifier import ClassifierConfig
from model.gpu_memory import GpuMemoryConfig
from pipeline import AugmentRanges, CacheConfig, ChannelAffine, DataConfig, DecodeConfig, FeedConfig

__all__ = ["TrainConfig"]


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """A training, complete: the same value gives the same run.

    Attributes:
        data: where the images come from.
        feed: how they become batches.
        backbone: `small_cnn` or a Keras Application by name.
        weights: `none`, `imagenet` or a file.
        learning_rate: of Adam.
        input: `tfdata` for this pipeline, `idg` for Keras's own generator with the same recipe.
        cache: what is kept of the images from epoch 1 on.
        epochs: how many in all.
        monitor: the value by which the best model is chosen.
        gpu_memory: limits on what TensorFlow reserves.
        evict_page_cache: drop the data's files from the operating system's page cache before the first epoch.
        measure_placement: find out before epoch 1 which place of `feed.augment_on` is the faster; where there is no
            accelerator, or nothing to augment, the one named there stays.
    """

    data: DataConfig
    feed: FeedConfig
    backbone: str = "small_cnn"
    weights: str = "none"
    learning_rate: float = 1e-3
    input: Literal["tfdata", "idg"] = "tfdata"
    cache: CacheConfig = field(default_factory=CacheConfig)
    epochs: int = 3
    monitor: str = "val_accuracy"
    gpu_memory: GpuMemoryConfig = field(default_factory=GpuMemoryConfig)
    evict_page_cache: bool = False
    measure_placement: bool = False

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise ValueError(f"epochs must be 1 or more, not {self.epochs}")
        self.classifier(num_classes=2)  # its own checks, before any data is read

    @property
    def augments_on_device(self) -> bool:
        """Whether the train step gets raw images and augments them itself."""
        return self.input == "tfdata" and self.feed.augment is not None and self.feed.augment_on == "device"

    def classifier(self, num_classes: int) -> ClassifierConfig:
        """The network for that many classes."""
        return ClassifierConfig(
            backbone=self.backbone,
            weights=self.weights,
            height=self.feed.decode.height,
            width=self.feed.decode.width,
            num_classes=num_classes,
            learning_rate=self.learning_rate,
            seed=self.feed.seed,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data: what `from_json` reads again."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> TrainConfig:
        """The value that `to_json` wrote.

        Raises:
            TypeError, ValueError, KeyError: for a document of another version or with values that do not fit.
        """
        document = dict(document)
        feed = dict(document.pop("feed"))
        ranges, affine = feed.pop("augment"), feed.pop("preprocess")
        feed_config = FeedConfig(
            decode=DecodeConfig(**feed.pop("decode")),
            augment=None if ranges is None else AugmentRanges(**_with_tuples(ranges)),
            preprocess=ChannelAffine(**_with_tuples(affine)),
            **feed,
        )
        return cls(
            data=DataConfig(**document.pop("data")),
            feed=feed_config,
            cache=CacheConfig(**document.pop("cache")),
            gpu_memory=GpuMemoryConfig(**document.pop("gpu_memory")),
            **document,
        )


def _with_tuples(document: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in document.items()}
