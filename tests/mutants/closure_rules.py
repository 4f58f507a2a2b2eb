"""Mutants of what is decided inside the closure of a compare-and-set."""

from .change import Drop, Replace
from .mutant import Mutant

PAIRS = "tests/closures/test_pairs.py::test_where_a_guard_decides"


def pair(outer: str, inner: str) -> tuple[str, ...]:
    """The test in which ``inner`` acts inside ``outer``."""
    return (f"{PAIRS}[{outer}|{inner}]".replace(" ", "-"),)


MUTANTS = (
    Mutant(
        "a truncation means whatever the log has by then",
        "truncation.truncate",
        Drop("log.still_of"),
        pair("truncate rows", "overwrite rows"),
    ),
    Mutant(
        "a deleted log is truncated",
        "truncation._truncate",
        Replace("record is None or record.is_tombstone", "record is None"),
        pair("truncate chained", "delete chained"),
    ),
    Mutant(
        "a log is sealed that has other contents by then",
        "LogHandle.seal",
        Replace("self._existing(record).still_of(generation)", "self._existing(record)"),
        pair("seal rows", "overwrite rows"),
    ),
    Mutant(
        "settings of a deleted log are changed",
        "LogHandle._existing",
        Replace("record is None or record.is_tombstone", "record is None"),
        pair("keep chained", "delete chained") + pair("seal chained", "delete chained"),
    ),
    Mutant(
        "a log is deleted that has other contents by then",
        "deleting.delete_log",
        Drop("record.still_of"),
        pair("delete rows", "overwrite rows"),
    ),
    Mutant(
        "a deletion ends where a collection was quicker",
        "deleting.make_tombstone",
        Replace("NoSuchLedgerError", "ZeroDivisionError", at=1),
        pair("delete chained", "collect"),
    ),
    Mutant(
        "a ledger is deleted that has joined a log",
        "deleting._without",
        Drop("_require_unlisted"),
        pair("delete the ledger of a commit", "commit rows"),
    ),
    Mutant(
        "a ledger joins that its log has dropped meanwhile",
        "LogRecord._require_joinable",
        Replace("self.has_dropped(ledger.ledger_id)", "False"),
        pair("commit rows", "abort a commit"),
    ),
    Mutant(
        "a ledger joins a log that was sealed meanwhile",
        "LogRecord._require_joinable",
        Drop("self._require_unsealed"),
        pair("commit rows", "seal rows"),
    ),
    Mutant(
        "a cursor begins where the log was truncated meanwhile",
        "cursors.open_cursor",
        Replace(
            "touched.generation == log.generation and offset >= touched.first_offset",
            "touched.generation == log.generation",
        ),
        pair("make a cursor of chained", "retain chained"),
    ),
    Mutant(
        "a roll goes on in a ledger as it was made",
        "LogTail._listed_after",
        Replace("self._cluster.ledger(made.ledger_id).value", "made"),
        (
            "tests/integration/upkeep/test_killed_drivers.py"
            "::test_a_roll_does_not_list_a_ledger_that_was_collected",
        ),
    ),
    Mutant(
        "a writer is not told that its log is gone",
        "LogTail._listed_after",
        Replace("record is None or own not in record.tail", "record is None"),
        pair("roll chained", "delete chained"),
    ),
    Mutant(
        "a recovery goes on in a ledger that was deleted meanwhile",
        "Recoverer._update",
        Replace("metadata is None or metadata.state is LedgerState.DELETING", "metadata is None"),
        pair("recover a ledger", "delete a left ledger"),
    ),
    Mutant(
        "a bookie is removed without a look behind its last word",
        "removing._take_out",
        Replace("() if force else _in_the_way(cluster, bookie_id)", "()"),
        pair("remove a new bookie", "write a ledger on a new bookie"),
    ),
    Mutant(
        "a new ledger has a bookie that is going",
        "creating.create_ledger",
        Replace("not is_going", "True"),
        pair("write a ledger on a new bookie", "remove a new bookie"),
    ),
    Mutant(
        "a bookie is begun anew that somebody else has begun anew",
        "reinitialising._instead_of",
        Replace(
            "now is None or (now.place, now.incarnation) != (before.place, before.incarnation)",
            "now is None",
        ),
        pair("begin a bookie anew", "begin a bookie anew"),
    ),
    Mutant(
        "a place that a repair gave to a bookie that is going stays there",
        "Repair._swap",
        Replace("self._cluster.is_going(target.member)", "False"),
        pair("decommission all", "remove a new bookie"),
    ),
    Mutant(
        "a member that a widening gave to a ledger stays, though it is going",
        "Widening._name_all",
        Replace("f'bookie {bookie_name} is being removed' if self._is_going(fill) else ''", "''"),
        pair("widen a ledger", "remove a new bookie"),
    ),
    Mutant(
        "a sink ends because a recovery has closed its batch's own ledger",
        "commit._headed",
        Replace("LedgerClosedError", "ZeroDivisionError"),
        pair("stream again", "repair damage"),
    ),
    Mutant(
        "a sink says that a log refused a batch that the log has",
        "TailWriterCache._committed",
        (
            Replace("LedgerClosedError", "ZeroDivisionError", at=0),
            Replace(
                "problem is not None and _is_in_sealed_log(request, batch)", "problem is not None"
            ),
        ),
        pair("stream on", "seal rows"),
    ),
)
