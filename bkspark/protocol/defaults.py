"""Defaults of commands. The command line shows them without loading what uses them."""

ABANDONED_AFTER_SECONDS = 7 * 86_400.0
"""A longer write may count as abandoned, and then fails at commit."""

OPEN_GRACE_SECONDS = 3600.0
"""Seconds before the unchanged OPEN ledger of a possibly living writer is recovered."""

TARGET_BYTES = 64 * 2**20
"""Payload of a ledger that is large enough not to be merged."""

THRESHOLD = 0.1
"""Distance from the mean that a rebalance leaves, as a fraction of the mean."""

SEGMENT_BYTES = 8 * 2**30
"""Payload that an offload copies by one commit: an interrupted commit is made again."""

OFFLOAD_GRACE_SECONDS = 86_400.0
"""From an offload to the first look after it, and from that to the look before the deletion."""
