"""The maintenance commands, each declared once, as Python calls.

What those have in common that take it:
    metadata_uri: which cluster; ``BKSPARK_METADATA_URI`` if it is empty.
    dry_run: only plans, and changes nothing.
    password, password_file, password_env: of ledgers that have one; others do without.
    max_bytes_per_second: reads from, and writes to, each bookie no more than that.
    no_lease: runs also beside another run of this command.
    spark: works by tasks of this session, not by threads of this process.
    tell: told a line about bookies that are waited for.
    progress: told how many of how many ledgers, copies or places are done.
"""

from bkspark.verbs.logs import compact, retain
from bkspark.verbs.places import decommission, rebalance
from bkspark.verbs.upkeep import audit, collect, recover, repair, scrub

__all__ = [
    "audit",
    "collect",
    "compact",
    "decommission",
    "rebalance",
    "recover",
    "repair",
    "retain",
    "scrub",
]
