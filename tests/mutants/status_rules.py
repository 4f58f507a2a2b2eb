"""Mutants of what ``bkspark status`` says is well."""

from .mutant import Mutant

STATUS = "tests/unit/cli/test_status.py"
LEAVES = "tests/unit/cli/test_lost.py::test_a_lost_bookie_leaves_status_once_nothing_is_left_on_it"
KEPT = f"{STATUS}::test_of_dropped_and_deleted_ledgers_no_copies_are_missing"
NEEDS = f"{STATUS}::test_a_log_that_needs_more_bookies_than_there_are_cannot_be_written_to"

MUTANTS = (
    Mutant(
        "a bookie that was declared lost stays in status for ever",
        "bookie_findings",
        "        if status.member in named:\n",
        "        if status.member in lost:\n",
        (LEAVES,),
    ),
    Mutant(
        "a lost bookie leaves status while a ledger names it",
        "named_members",
        "        if member in lost\n    }",
        "        if member is None\n    }",
        (LEAVES,),
    ),
    Mutant(
        "what cannot be read names no lost bookie",
        "named_members",
        "    if cluster.unreadable:\n        return set(lost)\n",
        "",
        (LEAVES,),
    ),
    Mutant(
        "a deleted ledger keeps a lost bookie in status",
        "named_members",
        "        if ledger.state is not LedgerState.DELETING\n        for",
        "        if ledger is not None\n        for",
        (LEAVES,),
    ),
    Mutant(
        "no bookie at all is all of them",
        "bookie_findings",
        "Level.OK if usable and len(usable) == len(alive)",
        "Level.OK if len(usable) == len(alive)",
        (f"{STATUS}::test_a_cluster_without_bookies_is_not_well",),
    ),
    Mutant(
        "what was dropped is missed",
        "health._kept",
        "LedgerState.DELETING and ledger.ledger_id not in dropped\n",
        "LedgerState.DELETING\n",
        (KEPT,),
    ),
    Mutant(
        "what was deleted is missed",
        "health._kept",
        "if ledger.state is not LedgerState.DELETING and ledger.ledger_id not in dropped\n",
        "if ledger.ledger_id not in dropped\n",
        (KEPT,),
    ),
    Mutant(
        "a ledger whose bookies are gone is well",
        "health._copies",
        "        if not members <= set(usable):\n",
        "        if not members & set(usable) and not members:\n",
        (KEPT,),
    ),
    Mutant(
        "status looks at every copy",
        "health.examine",
        "    kept = _kept(read, ledgers)\n",
        "    kept = _kept(read, ledgers)\n    views.underreplicated(cluster, None)\n",
        (f"{STATUS}::test_bookies_are_asked_no_more_and_records_read_once_however_many_ledgers",),
    ),
    Mutant(
        "a ledger whose record is gone is not missed",
        "health.examine",
        "    found += _missing_ledgers(cluster, ledgers)\n",
        "",
        (
            f"{STATUS}::test_a_ledger_of_a_log_without_a_record_is_missed",
            f"{STATUS}::test_a_ledger_of_a_log_that_is_deleted_is_missed",
        ),
    ),
    Mutant(
        "a ledger that was let go of is missed",
        "gone_from_lists",
        "        if gone:  # unless",
        "        if False:  # unless",
        (f"{STATUS}::test_what_a_log_lets_go_of_between_two_looks_is_not_missed",),
    ),
    Mutant(
        "a log that cannot be written to is well",
        "log_findings",
        "        if log.quorum.ensemble_size > count:\n",
        "        if False:\n",
        (NEEDS,),
    ),
    Mutant(
        "a sealed log needs bookies",
        "log_findings",
        " or seen.value.is_sealed:",
        ":",
        (NEEDS,),
    ),
    Mutant(
        "a ledger that is stuck is hidden by others that are not",
        "_unclosed_findings",
        "    found.sort(key=lambda finding: finding.level is not Level.FAIL)\n",
        "",
        (f"{STATUS}::test_the_worst_is_told_however_much_is_not_closed",),
    ),
    Mutant(
        "ledgers of a log that cannot be read are said to be left behind",
        "_in_no_log",
        'layout.log_key(x["log"]) not in unreadable',
        "True",
        (
            "tests/unit/cli/test_damaged_records.py"
            "::test_ledgers_of_a_log_that_cannot_be_read_are_not_said_to_be_left_behind",
        ),
    ),
    Mutant(
        "an audit is believed for ever",
        "_last_audit",
        "    is_old = environment.now_ms() - report.ended_ms > AUDIT_DAYS_MAX * DAY_MS\n",
        "    is_old = False\n",
        ("tests/unit/cli/test_audit.py::test_an_audit_of_long_ago_says_little",),
    ),
)
