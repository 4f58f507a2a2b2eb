"""Arrow arrays of plain values, made from their bytes.

``pa.array`` asks pandas whether it knows the values, and loads it for that: a second and more of a
process's first append or read, which its caller waits for.
"""

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate

import pyarrow as pa


def of_bytes(values: Sequence[bytes]) -> pa.Array:
    """Binary values, none of them null.

    Raises:
        OverflowError: together they have 2 GiB or more.
    """
    ends = array("i", accumulate(map(len, values), initial=0))
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers)


def of_integers(values: Iterable[int]) -> pa.Array:
    """64-bit signed integers, none of them null.

    Raises:
        OverflowError: one of them has more bits.
    """
    integers = array("q", values)
    return pa.Array.from_buffers(pa.int64(), len(integers), [None, pa.py_buffer(integers)])
