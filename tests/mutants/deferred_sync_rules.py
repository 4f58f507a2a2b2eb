"""Mutants of deferred sync: what a writer keeps to itself until it is told to force it."""

from .mutant import Mutant

DEFERRED = "tests/integration/ledger/test_deferred_sync.py"

MUTANTS = (
    Mutant(
        "with deferred sync everything is sent at once",
        "Gathered.add",
        "        if not self._is_held:",
        "        if True:",
        (
            f"{DEFERRED}::test_2_1_7_an_append_is_answered_although_no_bookie_has_it",
            f"{DEFERRED}::test_force_writes_few_records",
        ),
    ),
    Mutant(
        "a deferred append is given the id of another entry",
        "Backlog.add",
        "        self.last_taken += submitted.row_count\n",
        "        self.last_taken += 1\n",
        (f"{DEFERRED}::test_2_1_7_an_append_is_answered_although_no_bookie_has_it",),
    ),
    Mutant(
        "force does not wait",
        "WriteHandle.force",
        "        if last is not None:\n            self._wait_for(last)\n",
        "",
        (
            f"{DEFERRED}::test_2_1_8_force_makes_all_of_it_durable_in_order",
            f"{DEFERRED}::test_force_returns_behind_the_ack_quorum_and_not_before",
            f"{DEFERRED}::test_a_writer_fenced_before_force_loses_what_was_not_forced",
        ),
    ),
    Mutant(
        "force leaves what is held where it is",
        "Writer.force",
        "            self.backlog.gathered.let_go()\n",
        "",
        (f"{DEFERRED}::test_force_writes_few_records",),
    ),
    Mutant(
        "the end of a writer leaves what is held where it is",
        "Writer._stop",
        "            self.backlog.gathered.hold_no_more()\n",
        "",
        (f"{DEFERRED}::test_the_end_of_a_writer_writes_what_it_took",),
    ),
    Mutant(
        "what is held may have any size",
        "Gathered.add",
        "self._byte_count >= HELD_BYTES_MAX or ",
        "",
        (f"{DEFERRED}::test_what_is_too_much_is_written_unasked",),
    ),
    Mutant(
        "any number of small entries is held",
        "Gathered.add",
        " or len(self._waiting) >= HELD_SUBMISSIONS_MAX",
        "",
        (f"{DEFERRED}::test_what_is_too_much_is_written_unasked",),
    ),
    Mutant(
        "what was sent is still counted as held",
        "Gathered._remove_first",
        "        self._byte_count -= submitted.byte_count\n",
        "",
        (f"{DEFERRED}::test_what_is_too_much_is_written_unasked",),
    ),
    Mutant(
        "a writer that goes on never tells what was forced",
        "Deadlines._of_entries",
        "at = self._acknowledged_at + self._settings",
        "at = environment.monotonic() + self._settings",
        (f"{DEFERRED}::test_readers_learn_of_a_force_although_the_writer_goes_on",),
    ),
)
