"""The cache of samples: file bytes or decoded pixels, in memory or on disk, kept from the first visit on."""

from pipeline.cache.folders import CacheFolder, clear_cache, default_cache_directory, list_caches
from pipeline.cache.opening import CACHE_MODES, CacheConfig, CacheMode, open_cache, usable_cache_bytes
from pipeline.cache.plan import CachePlan, plan_cache
from pipeline.cache.sample_cache import SampleCache

__all__ = [
    "CACHE_MODES",
    "CacheConfig",
    "CacheFolder",
    "CacheMode",
    "CachePlan",
    "SampleCache",
    "clear_cache",
    "default_cache_directory",
    "list_caches",
    "open_cache",
    "plan_cache",
    "usable_cache_bytes",
]
