"""Mutants of what happens to a micro-batch whose number comes again."""

from .change import Drop, Replace
from .mutant import Mutant

WENT_BACK = "tests/integration/stream/test_checkpoints_that_went_back.py"

MUTANTS = (
    Mutant(
        "a query whose name is forgotten is not compared",
        "_find_record",
        Replace("last_version(one.transactions, done.app_id)", "one.transactions.get(done.app_id)"),
        (f"{WENT_BACK}::test_a_query_that_is_known_by_its_digest_is_compared[restarted-chained]",),
    ),
    Mutant(
        "a query whose name is forgotten is not looked for in older ledgers",
        "_find_committed",
        Replace(
            "last_version(ledger.transactions, done.app_id)", "ledger.transactions.get(done.app_id)"
        ),
        (
            f"{WENT_BACK}::test_a_query_that_is_known_by_its_digest_is_compared[closed_behind-chained]",
        ),
    ),
    Mutant(
        "a batch below the last one counts as written",
        "is_repeated",
        Replace("batch_id < last_batch_id", "False"),
        (
            f"{WENT_BACK}::test_a_batch_below_the_last_one_is_refused[chained-held]",
            f"{WENT_BACK}::test_a_batch_below_the_last_one_is_refused[unbounded-closed_behind]",
        ),
    ),
    Mutant(
        "a batch that comes again is not looked at",
        "TailWriter.commit",
        Drop("self._require_retry"),
        (f"{WENT_BACK}::test_a_batch_below_the_last_one_is_refused[chained-restarted]",),
    ),
    Mutant(
        "a transaction of a batch write has to have the same rows",
        "TailWriter._require_retry",
        Replace(
            "done is None or run is None or (not any((one.row_count for one in batch.reports)))",
            "done is None or not any((one.row_count for one in batch.reports))",
        ),
        ("tests/integration/log/test_unbounded_appends.py::test_a_transaction_is_there_once",),
    ),
    Mutant(
        "a batch without rows is compared",
        "TailWriter._require_retry",
        Replace(
            "done is None or run is None or (not any((one.row_count for one in batch.reports)))",
            "done is None or run is None",
        ),
        (f"{WENT_BACK}::test_a_batch_without_rows_loses_none",),
    ),
    Mutant(
        "the last batch again is never compared",
        "TailWriter._require_retry",
        Replace("is_last and request.compares_repeats", "False"),
        (f"{WENT_BACK}::test_the_last_batch_with_other_rows_is_refused[chained-restarted]",),
    ),
    Mutant(
        "the last batch again is compared although it is not to be",
        "TailWriter._require_retry",
        Replace("is_last and request.compares_repeats", "is_last"),
        (f"{WENT_BACK}::test_a_repeated_batch_is_kept_where_that_is_set",),
    ),
    Mutant(
        "rows that are as many are the same",
        "repeated_batch._difference",
        Replace("'' if are_same(committed, given) else f'{count} each time'", "''"),
        (f"{WENT_BACK}::test_the_difference_is_said[one other]",),
    ),
    Mutant(
        "a retry has its rows in the same order",
        "repeated_batch.are_same",
        Replace(
            "_are_aligned(one(), other()) or _sum_of_digests(one()) == _sum_of_digests(other())",
            "_are_aligned(one(), other())",
        ),
        (f"{WENT_BACK}::test_a_retry_may_have_another_order_and_other_partitions[shuffled]",),
    ),
    Mutant(
        "the batch is looked for in the log's open ledger only",
        "repeated_batch._find_committed",
        Replace("last_version(ledger.transactions, done.app_id) == done.version", "False"),
        (f"{WENT_BACK}::test_the_batch_is_found_behind_ledgers_and_batches_of_others",),
    ),
    Mutant(
        "the newest record that says a batch is taken for the one that committed it",
        "repeated_batch._find_record",
        Replace("return ours[0]", "return ours[-1]"),
        (f"{WENT_BACK}::test_the_batch_is_found_far_from_its_ledger_s_end",),
    ),
    Mutant(
        "each row counts once",
        "repeated_batch._sum_of_digests",
        Replace(
            "total += int.from_bytes(digest, 'little')", "total |= int.from_bytes(digest, 'little')"
        ),
        (f"{WENT_BACK}::test_each_row_counts_as_often_as_it_is_there",),
    ),
)
