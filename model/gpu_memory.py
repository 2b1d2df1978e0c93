"""How much GPU memory TensorFlow may reserve; has to be said before it first touches a GPU."""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow as tf

from model.errors import DeviceError

__all__ = ["GpuMemoryConfig", "apply_gpu_memory", "visible_gpus"]

_MIB = 2**20


@dataclass(frozen=True, kw_only=True)
class GpuMemoryConfig:
    """A limit on what TensorFlow reserves; with neither, it takes nearly the whole card whatever the model needs.

    Attributes:
        growth: reserve only as much as is needed, growing.
        limit_bytes: reserve this much at most, or None.
        limit_fraction: the same as a share of the card, in (0, 1], or None.
    """

    growth: bool = False
    limit_bytes: int | None = None
    limit_fraction: float | None = None


def visible_gpus() -> int:
    """Number of GPUs that TensorFlow sees; asking does not touch them."""
    return len(tf.config.list_physical_devices("GPU"))


def apply_gpu_memory(config: GpuMemoryConfig, card_bytes: int | None) -> None:
    """Sets the limits on every visible GPU.

    Args:
        config: the limits.
        card_bytes: memory of the (smallest) card, of which a share is taken; None where it is not known.

    Raises:
        DeviceError: if TensorFlow has touched the GPU already, both kinds of limit are given, or a share is asked of a
            card whose size is not known.
    """
    has_limit = config.limit_bytes is not None or config.limit_fraction is not None
    if has_limit and config.growth:
        raise DeviceError("--memory-growth and --gpu-memory-limit exclude each other in TensorFlow; choose one")
    try:
        for gpu in tf.config.list_physical_devices("GPU"):
            if config.growth:
                tf.config.experimental.set_memory_growth(gpu, True)
            elif has_limit:
                limit = tf.config.LogicalDeviceConfiguration(memory_limit=_limit_mib(config, card_bytes))
                tf.config.set_logical_device_configuration(gpu, [limit])
    except RuntimeError as error:
        raise DeviceError(f"the GPU's memory can no longer be limited: {error}") from error


def _limit_mib(config: GpuMemoryConfig, card_bytes: int | None) -> int:
    if config.limit_bytes is not None:
        return config.limit_bytes // _MIB
    if card_bytes is None:
        raise DeviceError(
            f"--gpu-memory-limit {config.limit_fraction:g}: the driver does not tell the card's memory, so no share "
            "of it can be taken; pass a size such as 4GiB"
        )
    return int(card_bytes * config.limit_fraction) // _MIB
