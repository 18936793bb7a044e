"""Out-of-core data: arrays in memory-mapped files, scratch folders and the memory budget."""

from aprec_like.out_of_core.array_file import digest_named, load_arrays, save_arrays
from aprec_like.out_of_core.arrays import (
    ArrayWriter,
    digest_arrays,
    empty_array,
    map_array,
    release,
    select_kth,
    slices,
    stack_arrays,
    take,
)
from aprec_like.out_of_core.budget import MEMORY_VARIABLE, memory_budget, parse_bytes
from aprec_like.out_of_core.known_digests import known_sha256
from aprec_like.out_of_core.scratch import SCRATCH_VARIABLE, scratch_folder, scratch_root
from aprec_like.out_of_core.strings import Ids, StringArray, StringWriter, to_series
from aprec_like.out_of_core.tensors import share_tensor

__all__ = [
    "MEMORY_VARIABLE",
    "SCRATCH_VARIABLE",
    "ArrayWriter",
    "Ids",
    "StringArray",
    "StringWriter",
    "digest_arrays",
    "digest_named",
    "empty_array",
    "known_sha256",
    "load_arrays",
    "map_array",
    "memory_budget",
    "parse_bytes",
    "release",
    "save_arrays",
    "scratch_folder",
    "scratch_root",
    "select_kth",
    "share_tensor",
    "slices",
    "stack_arrays",
    "take",
    "to_series",
]
