"""Mutants of what ``bkspark status`` says is well."""

from .change import Replace
from .mutant import Mutant

STATUS = "tests/unit/cli/test_status.py"
LEAVES = "tests/unit/cli/test_lost.py::test_a_lost_bookie_leaves_status_once_nothing_is_left_on_it"
KEPT = f"{STATUS}::test_of_dropped_and_deleted_ledgers_no_copies_are_missing"

MUTANTS = (
    Mutant(
        "a bookie that was declared lost stays in status for ever",
        "bookie_findings",
        Replace("status.member in named", "status.member in lost"),
        (LEAVES,),
    ),
    Mutant(
        "a lost bookie leaves status while a ledger names it",
        "named_members",
        Replace("member in lost", "member is None"),
        (LEAVES,),
    ),
    Mutant(
        "a deleted ledger keeps a lost bookie in status",
        "named_members",
        Replace("ledger.state is not LedgerState.DELETING", "ledger is not None"),
        (LEAVES,),
    ),
    Mutant(
        "a ledger whose bookies are gone is well",
        "health._copies",
        Replace("not members <= set(usable)", "not members & set(usable) and (not members)"),
        (KEPT,),
    ),
    Mutant(
        "status looks at every copy",
        "health.examine",
        Replace(
            "kept = _kept(read, ledgers)",
            "kept = _kept(read, ledgers)\nviews.underreplicated(cluster, None)",
        ),
        (f"{STATUS}::test_bookies_are_asked_no_more_and_records_read_once_however_many_ledgers",),
    ),
    Mutant(
        "ledgers of a log that cannot be read are said to be left behind",
        "_in_no_log",
        Replace("layout.log_key(x['log']) not in unreadable", "True"),
        (
            "tests/unit/cli/test_damaged_records.py"
            "::test_ledgers_of_a_log_that_cannot_be_read_are_not_said_to_be_left_behind",
        ),
    ),
    Mutant(
        "an audit is believed for ever",
        "_last_audit",
        Replace("environment.now_ms() - report.ended_ms > AUDIT_DAYS_MAX * DAY_MS", "False"),
        ("tests/unit/cli/test_audit.py::test_an_audit_of_long_ago_says_little",),
    ),
)
