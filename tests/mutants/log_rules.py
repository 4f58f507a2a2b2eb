"""Mutants of logs: their records, their writers, retention and cursors."""

from .mutant import Mutant

TAIL = "tests/unit/protocol/test_log_tail.py"
RETENTION = "tests/unit/protocol/test_retention.py"
CURSOR = "tests/unit/protocol/test_cursor.py"
HANDLES = "tests/integration/test_log_handles.py"
TAKEOVERS = "tests/integration/test_log_takeovers.py"
OPENINGS = "tests/integration/test_log_openings.py"
UPKEEP = "tests/integration/test_log_upkeep.py"
KEPT = "tests/integration/test_log_retention.py"
PRESSURE = "tests/integration/test_log_back_pressure.py"
REJOINING = "tests/integration/test_log_rejoining.py"
FOLLOWING = "tests/integration/test_log_following.py"
COMMANDS = "tests/unit/cli/test_log_commands.py"

LIST_NEXT = (
    "            self._cluster.logs.update(self.log_name, self._listed_behind(old, following))\n"
    "            self._next = None\n"
)
CLOSE_LAST = "            self._switch(old, following)\n"

MUTANTS = (
    Mutant(
        "a splice goes behind an open tail",
        "protocol/log.py",
        "if self.tail:\n            raise",
        "if False:\n            raise",
        (f"{TAIL}::test_nothing_is_spliced_behind_an_open_tail",),
    ),
    Mutant(
        "anybody goes behind a tail",
        "protocol/log.py",
        "if self.tail != (() if own is None else (own,)):",
        "if False:",
        (f"{TAIL}::test_nobody_goes_behind_a_tail_that_is_not_theirs",),
    ),
    Mutant(
        "a ledger that was taken over is listed as open",
        "protocol/log.py",
        "if ledger.state is not LedgerState.OPEN:",
        "if False:",
        (f"{TAIL}::test_a_ledger_that_was_taken_over_is_not_listed_as_open",),
    ),
    Mutant(
        "a sealed log takes more",
        "protocol/log.py",
        "        if self.is_sealed:\n",
        "        if False:\n",
        (f"{TAIL}::test_a_sealed_log_takes_nothing_any_more",),
    ),
    Mutant(
        "a tail ledger without an end is settled",
        "protocol/log.py",
        "            _require_closed(ledger, self.name)\n            log",
        "            log",
        (f"{TAIL}::test_a_ledger_without_an_end_is_not_settled",),
    ),
    Mutant(
        "a ledger is settled behind an open one",
        "protocol/log.py",
        "if known.keys() & set(log.tail):",
        "if False:",
        (f"{TAIL}::test_nothing_is_settled_behind_a_ledger_without_an_end",),
    ),
    Mutant(
        "an empty ledger takes a place",
        "protocol/log.py",
        " or ledger.last_entry_id == INVALID_ENTRY_ID",
        "",
        (
            f"{TAIL}::test_an_empty_ledger_takes_no_place",
            f"{TAKEOVERS}::test_rb_21_a_writer_that_dies_before_its_first_entry_stops_nobody",
        ),
    ),
    Mutant(
        "settling takes a transaction back",
        "protocol/log.py",
        "max(version, merged.get(app_id, version))",
        "version",
        (f"{TAIL}::test_settling_merges_transactions_and_never_goes_back",),
    ),
    Mutant(
        "a deleted log keeps its tail",
        "protocol/log.py",
        "ledgers=(), tail=(), first_offset=0",
        "ledgers=(), first_offset=0",
        (f"{TAIL}::test_a_deleted_log_drops_its_tail_too",),
    ),
    Mutant(
        "an older run of a query goes on",
        "protocol/stream_run.py",
        "if run.run_id in runs:",
        "if False:",
        (
            f"{TAIL}::test_the_newest_run_of_a_query_takes_over",
            f"{OPENINGS}::test_an_older_run_of_a_query_fences_nobody",
        ),
    ),
    Mutant(
        "truncation goes past the closed ledgers",
        "protocol/log.py",
        "if before_offset > self.end_offset:",
        "if False:",
        (f"{TAIL}::test_truncation_never_goes_past_the_closed_ledgers",),
    ),
    Mutant(
        "truncation drops the last ledger",
        "protocol/log.py",
        "if not kept and not self.tail:",
        "if False:",
        (f"{TAIL}::test_whole_ledgers_go_and_the_rest_is_hidden",),
    ),
    Mutant(
        "truncation gives entries back",
        "protocol/log.py",
        "if before_offset <= self.first_offset:",
        "if False:",
        (
            f"{TAIL}::test_truncation_gives_nothing_back",
            f"{UPKEEP}::test_truncation_hides_at_once_and_deletes_whole_ledgers",
        ),
    ),
    Mutant(
        "a log is founded over another",
        "protocol/log.py",
        "if not self.is_vacant:",
        "if False:",
        (
            f"{TAIL}::test_an_empty_log_is_founded_once",
            f"{HANDLES}::test_a_name_in_use_is_refused",
        ),
    ),
    Mutant(
        "retention compares each ledger with the whole log",
        "protocol/retention.py",
        "        rest -= ledger.length_bytes\n",
        "",
        (
            f"{RETENTION}::test_size_is_counted_ledger_by_ledger",
            f"{UPKEEP}::test_retention_by_size_keeps_what_it_says",
        ),
    ),
    Mutant(
        "retention takes what a cursor has to read",
        "protocol/retention.py",
        " or ledger.end_offset > unread",
        "",
        (
            f"{RETENTION}::test_what_a_cursor_has_not_read_stays",
            f"{UPKEEP}::test_retention_respects_cursors_if_asked",
        ),
    ),
    Mutant(
        "retention takes the last ledger",
        "protocol/retention.py",
        "log.ledgers if log.tail else log.ledgers[:-1]",
        "log.ledgers",
        (f"{RETENTION}::test_size_is_counted_ledger_by_ledger",),
    ),
    Mutant(
        "a ledger of unknown age is old",
        "protocol/retention.py",
        " or not ledger.closed_ms",
        "",
        (f"{RETENTION}::test_a_ledger_of_unknown_age_is_not_old_and_ends_it",),
    ),
    Mutant(
        "a cursor goes back",
        "protocol/cursor.py",
        "self.offset <= offset <= end_offset",
        "offset <= end_offset",
        (f"{CURSOR}::test_a_cursor_goes_neither_back_nor_past_the_end",),
    ),
    Mutant(
        "only the last ledger is fenced",
        "client/logs/settling.py",
        "for ledger_id in log.tail:\n        recover",
        "for ledger_id in log.tail[-1:]:\n        recover",
        (
            f"{TAKEOVERS}::test_rb_20_a_writer_that_rolls_cannot_acknowledge_in_the_ledger_before",
            f"{TAKEOVERS}::test_rb_44_the_tail_of_the_one_before_is_recovered_whole",
        ),
    ),
    Mutant(
        "who gives up opening leaves a ledger behind",
        "client/logs/opening.py",
        "        opening.give_up()\n",
        "",
        (f"{TAKEOVERS}::test_rb_20b_who_gives_up_leaves_no_orphan_either",),
    ),
    Mutant(
        "an older run fences before it is refused",
        "client/logs/opening.py",
        "return log if self._run is None else log.with_stream(self._run)",
        "return log",
        (f"{OPENINGS}::test_an_older_run_of_a_query_fences_nobody",),
    ),
    Mutant(
        "a writer fences itself after a lost answer",
        "client/logs/opening.py",
        "if self._mine in log.tail:",
        "if False:",
        (
            f"{TAKEOVERS}::test_rb_27_a_lost_answer_of_the_list_does_not_fence_oneself",
            f"{OPENINGS}::test_an_open_ledger_is_adopted_or_refused",
        ),
    ),
    Mutant(
        "a lost list is an error",
        "client/logs/opening.py",
        "        except (MetadataVersionError, OutcomeUnknownError):\n            return None\n",
        "        except ZeroDivisionError:\n            return None\n",
        (f"{TAKEOVERS}::test_rb_20b_who_loses_the_list_starts_again_and_leaves_no_orphan",),
    ),
    Mutant(
        "a roll closes before it lists the next",
        "client/logs/log_writer.py",
        LIST_NEXT + CLOSE_LAST,
        CLOSE_LAST + LIST_NEXT,
        (f"{TAKEOVERS}::test_rb_20_a_roll_lists_the_next_before_it_closes_the_last",),
    ),
    Mutant(
        "a writer is displaced by its own roll",
        "client/logs/log_writer.py",
        "before = log.tail[: log.tail.index(segment.ledger_id)]",
        "before: tuple[int, ...] = ()",
        (f"{HANDLES}::test_a_place_that_could_not_be_fixed_is_fixed_by_the_next_roll",),
    ),
    Mutant(
        "what is added while a ledger closes is sent to it",
        "client/logs/log_writer.py",
        "self._waiting = deque()",
        "self._waiting = None",
        (f"{TAKEOVERS}::test_rb_20_a_writer_that_rolls_cannot_acknowledge_in_the_ledger_before",),
    ),
    Mutant(
        "offsets begin anew in each ledger",
        "client/logs/log_writer.py",
        "end = old.first_offset + old",
        "end = old",
        (f"{HANDLES}::test_adds_go_on_while_a_writer_rolls",),
    ),
    Mutant(
        "fenced adds do not say what is undecided",
        "client/logs/log_writer.py",
        "        if count < 1:\n            return None",
        "        if count >= 0:\n            return None",
        (f"{TAKEOVERS}::test_rb_35_what_is_undecided_is_said_and_resolved",),
    ),
    Mutant(
        "what was fenced was not written",
        "client/logs/undecided.py",
        "max(0, end - undecided.first_entry_id)",
        "0",
        (f"{TAKEOVERS}::test_rb_35_what_is_undecided_is_said_and_resolved",),
    ),
    Mutant(
        "a batch goes behind a ledger that is open",
        "client/batch/commit.py",
        "update_settled(cluster, target.log_name, target.password, joined)",
        "cluster.logs.update(target.log_name, joined)",
        (f"{OPENINGS}::test_a_batch_displaces_an_open_writer",),
    ),
    Mutant(
        "a log writer lets nothing go",
        "client/logs/log_writer.py",
        "            retain_after_roll(self._cluster, settled.value)\n",
        "            pass\n",
        (f"{KEPT}::test_a_writer_lets_old_ledgers_go_when_it_rolls[memory]",),
    ),
    Mutant(
        "a batch append lets nothing go",
        "client/batch/commit.py",
        "    retain_after_roll(cluster, log)\n",
        "",
        (f"{KEPT}::test_batch_appends_let_old_ledgers_go[memory]",),
    ),
    Mutant(
        "a stream lets nothing go",
        "client/streams/tail_writer.py",
        "            retain_after_roll(self._cluster, self._rolled)\n",
        "",
        (f"{KEPT}::test_a_stream_lets_old_ledgers_go[memory]",),
    ),
    Mutant(
        "what goes wrong with retention is the writer's error",
        "client/logs/trimming.py",
        "        with suppress(BookKeeperError):\n",
        "        with suppress(ZeroDivisionError):\n",
        (f"{KEPT}::test_a_writer_goes_on_when_nothing_can_be_let_go[memory]",),
    ),
    Mutant(
        "all old ledgers go at once",
        "protocol/retention.py",
        "for ledger in candidates[:ledger_count_max]:",
        "for ledger in candidates:",
        (
            f"{RETENTION}::test_only_so_many_ledgers_go_at_a_time",
            f"{KEPT}::test_a_cursor_is_respected_and_a_few_ledgers_go_at_a_time[memory]",
        ),
    ),
    Mutant(
        "any amount may wait for a ledger to close",
        "client/logs/log_writer.py",
        "            self._wait_for_room()\n",
        "",
        (f"{PRESSURE}::test_who_adds_too_much_waits_until_the_ledger_is_closed",),
    ),
    Mutant(
        "a callback waits for what waits for it",
        "client/logs/log_writer.py",
        "if self._is_telling_here or self._lock",
        "if self._lock",
        (f"{PRESSURE}::test_a_callback_does_not_wait_for_what_waits_for_it",),
    ),
    Mutant(
        "every query is remembered",
        "protocol/stream_run.py",
        "[-QUERIES_MAX:]",
        "",
        (f"{TAIL}::test_the_queries_are_bounded_and_who_began_a_run_last_stays",),
    ),
    Mutant(
        "a query that goes on is forgotten before one that does not",
        "format/log_record.py",
        '"streams_order": _order(record.streams),',
        '"streams_order": None,',
        ("tests/unit/format/test_small_records.py::test_the_queries_of_a_log_keep_their_order",),
    ),
    Mutant(
        "retention is not told of cursors",
        "client/logs/trimming.py",
        "positions_of(cluster, log) if respects_cursors else []",
        "[]",
        (f"{UPKEEP}::test_retention_respects_cursors_if_asked",),
    ),
    Mutant(
        "a cursor of another generation holds a log back",
        "client/logs/cursors.py",
        " if cursor.generation == log.generation]",
        "]",
        (f"{UPKEEP}::test_a_cursor_of_another_generation_is_recognised",),
    ),
    Mutant(
        "a cursor reads another generation",
        "client/logs/cursors.py",
        "if log.generation != record.generation:",
        "if False:",
        (f"{UPKEEP}::test_a_cursor_of_another_generation_is_recognised",),
    ),
    Mutant(
        "a ledger of an open tail can be deleted by itself",
        "client/upkeep/maintenance.py",
        "if ledger.ledger_id in log.listed_ids:",
        "if False:",
        (f"{COMMANDS}::test_an_open_log_is_shown",),
    ),
    Mutant(
        "a ledger of the last try to open is not looked at again",
        "client/logs/opening.py",
        "        self._look_at_own()\n",
        "",
        (f"{REJOINING}::test_rb_20b_a_ledger_that_others_have_dropped_does_not_join_again",),
    ),
    Mutant(
        "a follower looks twice and reads what it saw last",
        "client/logs/log_handle.py",
        "read_view_in_order(self._cluster, view, offset, None, self._password)",
        "read_log_in_order(self._cluster, view.record, offset, None, self._password)",
        (f"{FOLLOWING}::test_rb_39_a_follower_skips_nothing_when_who_knew_the_end_is_away",),
    ),
    Mutant(
        "a torn end hides the records in front of it",
        "client/journals/journal_end.py",
        "            return content.records\n        length *=",
        "            return ()\n        length *=",
        (f"{FOLLOWING}::test_a_record_that_is_torn_behind_the_end_hides_nothing_in_front_of_it",),
    ),
)
