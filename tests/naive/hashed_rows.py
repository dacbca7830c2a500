"""Plain twins of `streamkernel.compute.gaussians`."""

import math
import struct

from tests.naive.gaussians import mix64


def add_row_hashes(values, keys, hashes):
    """The bits of each number that is there, mixed, with its key, mixed again; all of a row added."""
    out = []
    for row, total in zip(values, hashes, strict=True):
        for value, key in zip(row, keys, strict=True):
            if not math.isnan(value):
                (word,) = struct.unpack("<Q", struct.pack("<d", value))
                total += mix64(mix64(word) ^ key)
        out.append(total % 2**64)
    return out
