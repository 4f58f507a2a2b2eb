"""Mutants of what a log remembers of applications, and of the bounds of what is stored."""

from .change import Drop, Replace
from .mutant import Mutant

TRANSACTIONS = "tests/unit/protocol/test_transactions.py"
FRONT = "tests/unit/test_bookkeeper.py"
RECORDS = "tests/unit/cluster/test_records.py"
HOSTILE = "tests/unit/format/test_hostile_records.py"
STORED = "tests/unit/format/test_stored_is_read.py"
REMEMBERED = "tests/integration/log/test_remembered_transactions.py"

MUTANTS = (
    Mutant(
        "a version that no record holds is taken",
        "Transaction.__post_init__",
        Replace(
            "not bounds.is_stored_number(self.version) or self.version < 0", "self.version < 0"
        ),
        (f"{TRANSACTIONS}::test_a_version_that_no_record_holds_is_refused",),
    ),
    Mutant(
        "the name of an application has any length",
        "Transaction.__post_init__",
        Replace("0 < size <= bounds.APPLICATION_ID_BYTES_MAX", "0 < size"),
        (f"{TRANSACTIONS}::test_a_name_that_is_none_or_too_long_is_refused",),
    ),
    Mutant(
        "every application is remembered by name",
        "transactions._shrink",
        Replace("_oldest(kind.named, most)", "()"),
        (f"{TRANSACTIONS}::test_the_newest_applications_are_remembered_by_name",),
    ),
    Mutant(
        "applications displace queries",
        "transactions.kinds_of",
        Replace("queries if key.startswith(QUERY) else applications", "applications"),
        (f"{TRANSACTIONS}::test_no_number_of_applications_displaces_a_query",),
    ),
    Mutant(
        "an application that is known by a digest is a new one",
        "last_version",
        Replace("transactions.get(digest_of(app_id)) if version is None else version", "version"),
        (f"{TRANSACTIONS}::test_of_those_before_them_the_version_is_known_by_a_digest",),
    ),
    Mutant(
        "a digest and its name say two versions",
        "transactions.remembering",
        Replace("names.get(given, given)", "given"),
        (f"{TRANSACTIONS}::test_a_digest_of_a_tail_is_of_the_name_that_the_log_knows[7-7]",),
    ),
    Mutant(
        "all digests are kept",
        "transactions._shrink",
        Replace("_oldest([*kind.digests, *new], digests_most)", "[]"),
        (f"{TRANSACTIONS}::test_no_number_of_applications_takes_more_than_its_room",),
    ),
    Mutant(
        "a query that may be forgotten is taken for a new one",
        "transactions.version_before",
        Replace("last is None and is_query and (transaction.version > 0) and forgotten", "False"),
        (
            f"{TRANSACTIONS}"
            "::test_a_batch_of_a_query_that_may_be_forgotten_is_not_taken_for_a_new_one",
        ),
    ),
    Mutant(
        "an application may take the name of a query",
        "resolve_settings",
        Drop("require_of_application"),
        (f"{REMEMBERED}::test_an_application_takes_no_name_of_a_query",),
    ),
    Mutant(
        "a record forgets which application committed last",
        "format.transactions.encode",
        Replace("named.items()", "sorted(named.items())"),
        (f"{REMEMBERED}::test_the_order_of_applications_is_stored[True]",),
    ),
    Mutant(
        "an append remembers every application",
        "RecordWriter.write",
        Replace(
            "remembering(self.transactions, done, is_of_tail=True)",
            "{**self.transactions, **done}",
        ),
        (f"{REMEMBERED}::test_an_id_for_each_run_never_ends_a_log[True]",),
    ),
    Mutant(
        "what no reader would read is stored",
        "Records._put",
        Replace("self._encoded(name, value)", "self._made(name, value, environment.token(8))"),
        (f"{RECORDS}::test_what_no_reader_would_read_as_it_is_is_not_stored",),
    ),
    Mutant(
        "what a reader would read as another value is stored",
        "Records._encoded",
        Replace("found != value and self._made(name, found, nonce) != data", "False"),
        (f"{RECORDS}::test_what_no_reader_would_read_as_it_is_is_not_stored[8]",),
    ),
    Mutant(
        "an add record that no reader would read is stored",
        "journal.encode",
        Drop("add_record.require_readable"),
        (f"{STORED}::test_what_is_stored_is_what_a_reader_reads",),
    ),
    Mutant(
        "a record of entry logs is not decoded before it is stored",
        "require_readable",
        Replace("record.attempts", "False"),
        (f"{STORED}::test_a_record_of_entry_logs_is_stored_if_it_is_read",),
    ),
    Mutant(
        "settings may fill a record",
        "ledger.creating._require_storable",
        Drop("require_room"),
        (f"{FRONT}::test_settings_that_leave_a_record_no_room_are_refused",),
    ),
    Mutant(
        "the schema of a log may fill its record",
        "log.creating.create_log",
        Drop("require_room"),
        (f"{FRONT}::test_settings_that_leave_a_record_no_room_are_refused",),
    ),
    Mutant(
        "a limit too large to be one is stored",
        "retention_of",
        Replace(
            "arguments.limit_or_none('max_bytes', max_bytes, least=0)",
            "arguments.whole_number_or_none('max_bytes', max_bytes, least=0, most=None)",
        ),
        (f"{FRONT}::test_a_time_or_a_number_that_is_too_large_is_for_ever",),
    ),
    Mutant(
        "a time too long to be a limit is stored",
        "seconds_or_none",
        Replace("bounds.time_limit(number)", "number"),
        (f"{FRONT}::test_a_time_or_a_number_that_is_too_large_is_for_ever",),
    ),
    Mutant(
        "each record of an unbounded log's rows has thousands of applications",
        "RecordWriter.write",
        Replace(
            "remembering(self.transactions, done, is_of_tail=True)",
            "remembering(self.transactions, done)",
        ),
        (f"{REMEMBERED}::test_an_id_for_each_run_never_ends_a_log[True]",),
    ),
    Mutant(
        "what a record of rows has no room for is forgotten",
        "LogTail._confirm_in_log_record",
        Replace("remembering(log.transactions, done)", "log.transactions"),
        (f"{REMEMBERED}::test_an_id_for_each_run_never_ends_a_log[True]",),
    ),
    Mutant(
        "digests that are damaged are believed",
        "format.transactions._unpacked",
        Replace("len(found) != count or min(versions, default=0) < 0", "False"),
        (f"{TRANSACTIONS}::test_digests_that_are_damaged_are_refused",),
    ),
    Mutant(
        "what is no digest is packed as one",
        "format.transactions._packed",
        Replace(
            "digests.hex() != digits or "
            "any(len(key) != len(prefix) + DIGEST_LENGTH for key in keys)",
            "False",
        ),
        (f"{TRANSACTIONS}::test_what_is_no_digest_is_not_stored[#0123456789ABCDEF]",),
    ),
    Mutant(
        "a digest stands among the names",
        "format.transactions.decode",
        Replace(
            "type(name) is str and name not in found and (not is_digest(name))",
            "type(name) is str and name not in found",
        ),
        (f"{HOSTILE}::test_a_record_that_cannot_be_is_refused",),
    ),
)
