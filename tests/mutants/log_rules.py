"""Mutants of logs: their records, their writers, retention and cursors."""

from .change import Replace
from .mutant import Mutant

TAIL = "tests/unit/protocol/test_log_tail.py"
HANDLES = "tests/integration/log/test_log_handles.py"
TAKEOVERS = "tests/integration/log/test_log_takeovers.py"
OPENINGS = "tests/integration/log/test_log_openings.py"
FOLLOWING = "tests/integration/log/test_log_following.py"

EMPTY = "tests/integration/log/test_empty_ledgers.py"
VERSIONS = "tests/unit/spark/test_time_travel.py"

MUTANTS = (
    Mutant(
        "a deleted log keeps its tail",
        "LogRecord._emptied",
        Replace(
            "LedgerList(first_version=version, source=self.source)",
            "LedgerList(tail=self.tail, first_version=version, source=self.source)",
        ),
        (f"{TAIL}::test_a_deleted_log_drops_its_tail_too",),
    ),
    Mutant(
        "only the last ledger is fenced",
        "with_closed_tail",
        Replace("for ledger_id in log.tail:\n    ...", "for ledger_id in log.tail[-1:]:\n    ..."),
        (
            f"{TAKEOVERS}::test_rb_20_a_writer_that_rolls_cannot_acknowledge_in_the_ledger_before",
            f"{TAKEOVERS}::test_rb_44_the_tail_of_the_one_before_is_recovered_whole",
        ),
    ),
    Mutant(
        "a lost list is an error",
        "LogTail._try_open",
        Replace("(MetadataVersionError, OutcomeUnknownError)", "ZeroDivisionError"),
        (f"{TAKEOVERS}::test_rb_20b_who_loses_the_list_starts_again_and_leaves_no_orphan",),
    ),
    Mutant(
        "a roll closes before it lists the next",
        "LogWriter._roll",
        Replace(
            "with old.handle.explaining():\n    following = self._tail.roll(old.handle.metadata)",
            "with old.handle.explaining():\n"
            "    old.handle.close()\n"
            "    following = self._tail.roll(old.handle.metadata)",
        ),
        (f"{TAKEOVERS}::test_rb_20_a_roll_lists_the_next_before_it_closes_the_last",),
    ),
    Mutant(
        "a writer is displaced by its own roll",
        "LogTail._closed_before",
        Replace("before = log.tail[:log.tail.index(ledger_id)]", "before: tuple[int, ...] = ()"),
        (f"{HANDLES}::test_a_place_that_could_not_be_fixed_is_fixed_by_the_next_roll",),
    ),
    Mutant(
        "what is added while a ledger closes is sent to it",
        "LogWriter._switch",
        Replace("WaitingAdds()", "None"),
        (f"{TAKEOVERS}::test_rb_20_a_writer_that_rolls_cannot_acknowledge_in_the_ledger_before",),
    ),
    Mutant(
        "fenced adds do not say what is undecided",
        "undecided_of",
        Replace("left.entry_count < 1", "left.entry_count >= 0"),
        (f"{TAKEOVERS}::test_rb_35_what_is_undecided_is_said_and_resolved",),
    ),
    Mutant(
        "a batch goes behind a ledger that is open",
        "_splice",
        Replace(
            "update_with_closed_tail(cluster, request.log_name, request.password, joined, began)",
            "cluster.logs.update(request.log_name, joined)",
        ),
        (f"{OPENINGS}::test_a_batch_displaces_an_open_writer",),
    ),
    Mutant(
        "what stayed empty is dropped and never deleted",
        "LogRecord._joined",
        Replace("log.dropped.with_more_to_delete", "log.dropped.with_more"),
        (
            f"{EMPTY}::test_openings_that_add_nothing_leave_nothing",
            f"{EMPTY}::test_appends_without_rows_leave_nothing",
        ),
    ),
    Mutant(
        "a query that goes on is forgotten before one that does not",
        "log_record.encode",
        Replace("committed.streams.items()", "sorted(committed.streams.items())"),
        ("tests/unit/format/test_small_records.py::test_the_queries_of_a_log_keep_their_order",),
    ),
    Mutant(
        "a follower looks twice and reads what it saw last",
        "LogHandle.follow",
        Replace(
            "(self._cluster, view, offset, None, self._password)",
            "(self._cluster, self._watch.look(), offset, None, self._password)",
        ),
        (f"{FOLLOWING}::test_rb_39_a_follower_skips_nothing_when_who_knew_the_end_is_away",),
    ),
    Mutant(
        "a torn end hides the records in front of it",
        "journals.journal_pages",
        Replace("return found", "return () if problems else found", at=0),
        (f"{FOLLOWING}::test_a_record_that_is_torn_behind_the_end_hides_nothing_in_front_of_it",),
    ),
    # --- versions --------------------------------------------------------------------------------
    Mutant(
        "a version in the middle of a compacted ledger is read to the ledger's end",
        "LogContents.end_of_version",
        Replace("found[1] == version", "True", at=0),
        (f"{VERSIONS}::test_versions_that_were_compacted_are_read_by_time",),
    ),
    Mutant(
        "a version whose rows are truncated is read as if it had none",
        "LogContents.end_of_version",
        Replace("found[0].end_offset > self.first_offset", "True"),
        (f"{VERSIONS}::test_versions_that_were_truncated_or_overwritten_away",),
    ),
    Mutant(
        "versions on a page are counted from the first page",
        "place_of_version",
        Replace(
            "place_of_version(source.contents(one).stretches, first, version, source)",
            "place_of_version(source.contents(one).stretches, first_version, version, source)",
        ),
        (f"{VERSIONS}::test_a_version_is_found_on_pages_and_in_compacted_places",),
    ),
    Mutant(
        "a log is empty as of a time before its oldest rows",
        "reader._require_end",
        Replace("end <= log.first_offset and commits.ending_ms is not None", "False"),
        (f"{VERSIONS}::test_versions_that_were_truncated_or_overwritten_away",),
    ),
)
