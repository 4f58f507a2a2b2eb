"""Mutants of logs: their records, their writers, retention and cursors."""

from .mutant import Mutant

TAIL = "tests/unit/protocol/test_log_tail.py"
HANDLES = "tests/integration/log/test_log_handles.py"
TAKEOVERS = "tests/integration/log/test_log_takeovers.py"
OPENINGS = "tests/integration/log/test_log_openings.py"
UPKEEP = "tests/integration/log/test_log_upkeep.py"
KEPT = "tests/integration/log/test_log_retention.py"
PRESSURE = "tests/integration/log/test_log_back_pressure.py"
REJOINING = "tests/integration/log/test_log_rejoining.py"
FOLLOWING = "tests/integration/log/test_log_following.py"
FRONT = "tests/unit/test_bookkeeper.py"
COMMANDS = "tests/unit/cli/test_log_commands.py"

LIST_NEXT = "                self._tail.list_next(old.handle.metadata)\n"
CLOSE_LAST = "            self._switch(old, following)\n"
STILL_LISTED = (
    "            if seen is None or cluster.logs.is_current(log_name, seen):\n"
    "                raise\n"
)
EMPTY = "tests/integration/log/test_empty_ledgers.py"

MUTANTS = (
    Mutant(
        "a splice goes behind an open tail",
        "LogRecord.with_ledger",
        "if self.tail:\n            raise",
        "if False:\n            raise",
        (f"{TAIL}::test_nothing_is_spliced_behind_an_open_tail",),
    ),
    Mutant(
        "anybody goes behind a tail",
        "LogRecord.with_tail",
        "if self.tail != (() if own is None else (own,)):",
        "if False:",
        (f"{TAIL}::test_nobody_goes_behind_a_tail_that_is_not_theirs",),
    ),
    Mutant(
        "a ledger that was taken over is listed as open",
        "LogRecord.with_tail",
        "if ledger.state is not LedgerState.OPEN:",
        "if False:",
        (f"{TAIL}::test_a_ledger_that_was_taken_over_is_not_listed_as_open",),
    ),
    Mutant(
        "a sealed log takes more",
        "LogRecord._require_unsealed",
        "        if self.is_sealed:\n",
        "        if False:\n",
        (f"{TAIL}::test_a_sealed_log_takes_nothing_any_more",),
    ),
    Mutant(
        "a tail ledger without an end is settled",
        "LogRecord.with_closed",
        "            _require_closed(ledger, self.name)\n            rest",
        "            rest",
        (f"{TAIL}::test_a_ledger_without_an_end_is_not_settled",),
    ),
    Mutant(
        "a ledger is settled behind an open one",
        "LogRecord.with_closed",
        "if known.keys() & set(log.tail):",
        "if False:",
        (f"{TAIL}::test_nothing_is_settled_behind_a_ledger_without_an_end",),
    ),
    Mutant(
        "an empty ledger takes a place",
        "LogRecord._joined",
        " or ledger.last_entry_id == INVALID_ENTRY_ID",
        "",
        (
            f"{TAIL}::test_an_empty_ledger_takes_no_place",
            f"{TAKEOVERS}::test_rb_21_a_writer_that_dies_before_its_first_entry_stops_nobody",
        ),
    ),
    Mutant(
        "settling takes a transaction back",
        "transactions.remembering",
        "if last is None or version > last:",
        "if True:",
        (f"{TAIL}::test_settling_merges_transactions_and_never_goes_back",),
    ),
    Mutant(
        "a deleted log keeps its tail",
        "LogRecord._emptied",
        "LedgerList(first_version=version, source",
        "LedgerList(tail=self.tail, first_version=version, source",
        (f"{TAIL}::test_a_deleted_log_drops_its_tail_too",),
    ),
    Mutant(
        "an older run of a query goes on",
        "with_run",
        "if run.run_id in runs:",
        "if False:",
        (
            f"{TAIL}::test_the_newest_run_of_a_query_takes_over",
            f"{OPENINGS}::test_an_older_run_of_a_query_fences_nobody",
        ),
    ),
    Mutant(
        "truncation goes past the closed ledgers",
        "LogRecord.truncated",
        "if before_offset > end:",
        "if False:",
        (f"{TAIL}::test_truncation_never_goes_past_the_closed_ledgers",),
    ),
    Mutant(
        "truncation drops the last ledger",
        "LogRecord.truncated",
        "if not kept and not self.tail:",
        "if False:",
        (f"{TAIL}::test_whole_ledgers_go_and_the_rest_is_hidden",),
    ),
    Mutant(
        "truncation gives entries back",
        "LogRecord.truncated",
        "if before_offset <= self.first_offset:",
        "if False:",
        (
            f"{TAIL}::test_truncation_gives_nothing_back",
            f"{UPKEEP}::test_truncation_hides_at_once_and_deletes_whole_ledgers",
        ),
    ),
    Mutant(
        "a log is created over another",
        "LogRecord.created",
        "if not self.is_tombstone:",
        "if False:",
        (
            f"{TAIL}::test_an_empty_log_is_created_once",
            f"{HANDLES}::test_a_name_in_use_is_refused",
        ),
    ),
    Mutant(
        "only the last ledger is fenced",
        "with_closed_tail",
        "for ledger_id in log.tail:\n        recover",
        "for ledger_id in log.tail[-1:]:\n        recover",
        (
            f"{TAKEOVERS}::test_rb_20_a_writer_that_rolls_cannot_acknowledge_in_the_ledger_before",
            f"{TAKEOVERS}::test_rb_44_the_tail_of_the_one_before_is_recovered_whole",
        ),
    ),
    Mutant(
        "who gives up opening leaves a ledger behind",
        "open_tail",
        "        opening.give_up()\n",
        "",
        (f"{TAKEOVERS}::test_rb_20b_who_gives_up_leaves_no_orphan_either",),
    ),
    Mutant(
        "an older run fences before it is refused",
        "_Opening._checked",
        "return log if self._run is None else log.with_stream(self._run)",
        "return log",
        (f"{OPENINGS}::test_an_older_run_of_a_query_fences_nobody",),
    ),
    Mutant(
        "a writer fences itself after a lost answer",
        "_Opening.attempt",
        "if self._mine in log.tail:",
        "if False:",
        (
            f"{TAKEOVERS}::test_rb_27_a_lost_answer_of_the_list_does_not_fence_oneself",
            f"{OPENINGS}::test_an_open_ledger_is_adopted_or_refused",
        ),
    ),
    Mutant(
        "a lost list is an error",
        "_Opening.attempt",
        "        except (MetadataVersionError, OutcomeUnknownError):\n            return None\n",
        "        except ZeroDivisionError:\n            return None\n",
        (f"{TAKEOVERS}::test_rb_20b_who_loses_the_list_starts_again_and_leaves_no_orphan",),
    ),
    Mutant(
        "a roll closes before it lists the next",
        "LogWriter._roll",
        LIST_NEXT + CLOSE_LAST,
        "    " + CLOSE_LAST + LIST_NEXT,
        (f"{TAKEOVERS}::test_rb_20_a_roll_lists_the_next_before_it_closes_the_last",),
    ),
    Mutant(
        "a writer is displaced by its own roll",
        "OwnTail._closed_before",
        "before = log.tail[: log.tail.index(ledger_id)]",
        "before: tuple[int, ...] = ()",
        (f"{HANDLES}::test_a_place_that_could_not_be_fixed_is_fixed_by_the_next_roll",),
    ),
    Mutant(
        "what is added while a ledger closes is sent to it",
        "LogWriter._switch",
        "self._waiting = Waiting()",
        "self._waiting = None",
        (f"{TAKEOVERS}::test_rb_20_a_writer_that_rolls_cannot_acknowledge_in_the_ledger_before",),
    ),
    Mutant(
        "offsets begin anew in each ledger",
        "LogWriter._switch",
        "end = old.first_offset + old",
        "end = old",
        (f"{HANDLES}::test_adds_go_on_while_a_writer_rolls",),
    ),
    Mutant(
        "fenced adds do not say what is undecided",
        "LogWriter.undecided",
        "        if count < 1:\n            return None",
        "        if count >= 0:\n            return None",
        (f"{TAKEOVERS}::test_rb_35_what_is_undecided_is_said_and_resolved",),
    ),
    Mutant(
        "what was fenced was not written",
        "undecided.resolve",
        "max(0, end - undecided.first_entry_id)",
        "0",
        (f"{TAKEOVERS}::test_rb_35_what_is_undecided_is_said_and_resolved",),
    ),
    Mutant(
        "a batch goes behind a ledger that is open",
        "_splice",
        "update_with_closed_tail(cluster, request.log_name, request.password, joined)",
        "cluster.logs.update(request.log_name, joined)",
        (f"{OPENINGS}::test_a_batch_displaces_an_open_writer",),
    ),
    Mutant(
        "adds do not wait for a roll",
        "LogWriter._add",
        "            self._wait_for_roll()\n",
        "",
        (f"{HANDLES}::test_no_ledger_gets_more_than_twice_its_limit[memory-limit0]",),
    ),
    Mutant(
        "a ledger that was filled in mid-roll is added to before it is rolled",
        "LogWriter._add",
        "if self._segment.filling.reached():  # while",
        "if False:  # while",
        (
            f"{HANDLES}::test_a_ledger_that_is_full_when_a_roll_ends_is_rolled_before_more_is_added"
            "[memory]",
        ),
    ),
    Mutant(
        "what waited for a roll does not count",
        "LogWriter._send_waiting",
        "                self._segment.filling.add(left[0])\n",
        "",
        (f"{HANDLES}::test_no_ledger_gets_more_than_twice_its_limit[memory-limit0]",),
    ),
    Mutant(
        "what stayed empty is dropped and never deleted",
        "LogRecord._joined",
        "log.dropped.with_more_to_delete([ledger.ledger_id])",
        "log.dropped.with_more([ledger.ledger_id])",
        (
            f"{EMPTY}::test_openings_that_add_nothing_leave_nothing",
            f"{EMPTY}::test_appends_without_rows_leave_nothing",
        ),
    ),
    Mutant(
        "an opener fails where somebody else has deleted an empty tail",
        "_Opening.attempt",
        "            if self._cluster.logs.is_current(self._name, seen):\n                raise\n",
        "            raise\n",
        (
            f"{EMPTY}::test_a_tail_that_somebody_else_finds_empty_and_deletes_is_no_error[memory-opener]",
        ),
    ),
    Mutant(
        "an opener waits for a tail that is gone",
        "_Opening.attempt",
        "            if self._cluster.logs.is_current(self._name, seen):\n                raise\n",
        "",
        (
            f"{EMPTY}::test_a_ledger_that_is_gone_while_it_is_on_the_list_is_an_error[memory-opener]",
        ),
    ),
    Mutant(
        "settling fails where somebody else has deleted an empty tail",
        "update_with_closed_tail",
        STILL_LISTED,
        "            raise\n",
        (
            f"{EMPTY}::test_a_tail_that_somebody_else_finds_empty_and_deletes_is_no_error[memory-settler]",
        ),
    ),
    Mutant(
        "settling waits for a tail that is gone",
        "update_with_closed_tail",
        STILL_LISTED,
        "",
        (
            f"{EMPTY}::test_a_ledger_that_is_gone_while_it_is_on_the_list_is_an_error[memory-settler]",
        ),
    ),
    Mutant(
        "a log writer lets nothing go",
        "OwnTail.list_closed",
        "        retain_after_roll(self._cluster, listed.value)\n",
        "",
        (f"{KEPT}::test_a_writer_lets_old_ledgers_go_when_it_rolls[memory]",),
    ),
    Mutant(
        "a batch append lets nothing go",
        "_splice",
        "    retain_after_roll(cluster, log)\n",
        "",
        (f"{KEPT}::test_batch_appends_let_old_ledgers_go[memory]",),
    ),
    Mutant(
        "a stream lets nothing go",
        "TailWriter.commit",
        "            retain_after_roll(self._cluster, self._rolled)\n",
        "",
        (f"{KEPT}::test_a_stream_lets_old_ledgers_go[memory]",),
    ),
    Mutant(
        "any amount may wait for a ledger to close",
        "LogWriter._add",
        "            self._wait_for_room()\n",
        "",
        (f"{PRESSURE}::test_who_adds_too_much_waits_until_the_ledger_is_closed",),
    ),
    Mutant(
        "a callback waits for what waits for it",
        "LogWriter._wait_for_room",
        "if self._callbacks.is_here or self._lock",
        "if self._lock",
        (f"{PRESSURE}::test_a_callback_does_not_wait_for_what_waits_for_it",),
    ),
    Mutant(
        "every query is remembered",
        "with_run",
        "[-QUERIES_MAX:]",
        "",
        (f"{TAIL}::test_the_queries_are_bounded_and_who_began_a_run_last_stays",),
    ),
    Mutant(
        "a query that goes on is forgotten before one that does not",
        "_optional",
        '"streams_order": _order(committed.streams),',
        '"streams_order": None,',
        ("tests/unit/format/test_small_records.py::test_the_queries_of_a_log_keep_their_order",),
    ),
    Mutant(
        "a ledger of an open tail can be deleted by itself",
        "_require_unlisted",
        "if log.lists(ledger.ledger_id):",
        "if False:",
        (f"{COMMANDS}::test_an_open_log_is_shown",),
    ),
    Mutant(
        "a ledger of the last try to open is not looked at again",
        "_Opening.attempt",
        "        self._look_at_own(log)\n",
        "",
        (f"{REJOINING}::test_rb_20b_a_ledger_that_others_have_dropped_does_not_join_again",),
    ),
    Mutant(
        "a follower looks twice and reads what it saw last",
        "LogHandle.follow",
        "read_view_in_order(self._cluster, view, offset, None, self._password)",
        "read_view_in_order(self._cluster, self._watch.look(), offset, None, self._password)",
        (f"{FOLLOWING}::test_rb_39_a_follower_skips_nothing_when_who_knew_the_end_is_away",),
    ),
    Mutant(
        "a torn end hides the records in front of it",
        "journal_end",
        "    return found\n\n\ndef _reader",
        "    return () if problems else found\n\n\ndef _reader",
        (f"{FOLLOWING}::test_a_record_that_is_torn_behind_the_end_hides_nothing_in_front_of_it",),
    ),
    Mutant(
        "a writer that was fenced says that it has ended",
        "LogWriter._require_usable",
        "if isinstance(self._error, LedgerFencedError):",
        "if False:",
        (f"{TAKEOVERS}::test_rb_20_a_writer_that_rolls_cannot_acknowledge_in_the_ledger_before",),
    ),
    Mutant(
        "a ledger is to hold 0 bytes",
        "RollPolicy.__post_init__",
        '"roll_bytes", self.max_bytes, least=1)',
        '"roll_bytes", self.max_bytes, least=0)',
        (f"{FRONT}::test_a_limit_for_rolling_is_above_0",),
    ),
    Mutant(
        "anything is taken for what is undecided",
        "instance",
        "if not isinstance(given, kind):",
        "if False:",
        (f"{FRONT}::test_only_what_a_writer_says_is_undecided_can_be_resolved",),
    ),
)
