"""Found by Spark itself: it looks for ``DefaultSource`` in installed modules named ``pyspark_*``.

One such module that fails to import disables all of them, also other people's, so this one never
fails: what is wrong comes out as a warning, and ``bkspark doctor`` tells more.
"""

import warnings

try:
    from bkspark.spark.source import BookKeeperDataSource as DefaultSource
except Exception as error:
    warnings.warn(f"format('bookkeeper') is not available: {error}", stacklevel=2)

__all__ = ["DefaultSource"]
