"""The maintenance commands as Python calls, each declared once.

Arguments shared by several calls:
    metadata_uri: URI of the cluster's metadata store. Default: ``BKSPARK_METADATA_URI``.
    dry_run: print the plan; change nothing.
    password, password_file, password_env: password of ledgers with a password.
    max_bytes_per_second: limit of reads and of writes on each bookie. Default: unlimited.
    no_lease: run even beside another run of the command.
    spark: run the work in tasks of the session instead of threads of the process.
    tell: receives a line about delays by bookies.
    progress: receives the number of finished ledgers, copies or places, and the total.
"""

from bkspark.verbs.commands import (
    audit,
    collect,
    compact,
    decommission,
    offload,
    rebalance,
    recover,
    repair,
    retain,
    scrub,
)

__all__ = [
    "audit",
    "collect",
    "compact",
    "decommission",
    "offload",
    "rebalance",
    "recover",
    "repair",
    "retain",
    "scrub",
]
