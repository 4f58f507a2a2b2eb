"""The columns of reports' tables for people."""

from bkspark.verbs.declaring import Columns

COPIES: Columns = {
    "ledger": "ledger_id",
    "entries": lambda row: f"{row['first_entry_id']} to {row['last_entry_id']}",
    "bookie": "bookie_id",
    "copies": "copies",
    "missing": "missing",
    "reason": "reason",
}
FREED: Columns = {
    "ledger": "ledger_id",
    "log": "log",
    "files": "files",
    "bytes": "bytes",
    "bookie": "bookie_id",
    "reason": "reason",
}
COMPACTED: Columns = {
    "new ledger": "ledger_id",
    "first offset": "first_offset",
    "entries": "entries",
    "bytes": "bytes",
    "in place of ledgers": "ledgers",
}
DAMAGE: Columns = {
    "ledger": "ledger_id",
    "bookie": "bookie_id",
    "file": "file",
    "offset": "offset",
    "block": "block",
    "reason": "reason",
}
STEPS: Columns = {
    "ledger": "ledger_id",
    "from entry": "fragment",
    "bookie": "bookie_id",
    "copies left": "copies_left",
    "way": "way",
    "reason": "reason",
}
RECOVERED: Columns = {
    "ledger": "ledger_id",
    "last entry": "last_entry_id",
    "state": "state",
    "groups kept": "groups_kept",
    "losses": "losses",
}
MOVED: Columns = {
    "ledger": "ledger_id",
    "from entry": "fragment",
    "bookie": "bookie_id",
    "to": "to",
}
LEVELS: Columns = {
    "bookie": "bookie_id",
    "used": "used_bytes",
    "after": "bytes_after",
    "disk": "disk_bytes",
    "takes": "takes",
}
