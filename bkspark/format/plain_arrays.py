"""Makes Arrow arrays of plain values from their bytes.

``pa.array`` asks pandas whether pandas knows the values, and loads pandas first: more than a second
of a process's first append or read, for which its caller waits.
"""

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate

import pyarrow as pa


def of_bytes(values: Sequence[bytes]) -> pa.Array:
    """Return binary values without nulls.

    Raises:
        OverflowError: together they have 2 GiB or more.
    """
    ends = array("i", accumulate(map(len, values), initial=0))
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers)


def of_integers(values: Iterable[int]) -> pa.Array:
    """Return 64-bit signed integers without nulls.

    Raises:
        OverflowError: an integer has more bits.
    """
    integers = array("q", values)
    return pa.Array.from_buffers(pa.int64(), len(integers), [None, pa.py_buffer(integers)])
