"""Mutants of the write handle: what a writer counts, tells, waits for and replaces."""

from .mutant import Mutant

ADDING = "tests/unit/protocol/test_adding.py"
LAC = "tests/integration/ledger/test_explicit_lac.py"
HANDLES = "tests/integration/ledger/test_handles.py"
CALLBACKS = "tests/integration/ledger/test_callbacks.py"
HANGING = "tests/integration/faults/test_hanging_bookies.py"
METADATA = "tests/integration/faults/test_hanging_metadata.py"
PRESSURE = "tests/integration/log/test_log_back_pressure.py"
CHANGES = "tests/integration/ledger/test_ensemble_changes.py"
DEFERRED = "tests/integration/ledger/test_deferred_sync.py"
LANE = "tests/unit/ledger/handles/test_lane.py"
PROMISE = "tests/unit/ledger/handles/test_promise.py"
SCRIPTS = "tests/protocol/test_scripts.py::test_the_machine_does_what_the_script_says"
CHANGE = "tests/unit/protocol/test_ensemble_change.py"
PLACEMENT = "tests/unit/protocol/test_placement.py"
QUARANTINE = "tests/unit/protocol/test_quarantine.py"
LEDGERS = "tests/unit/ledger/test_ledger_requests.py"
START = "tests/unit/ledger/handles/test_start_of_handles.py"
SMALL = "tests/unit/format/test_small_records.py"
METRICS = "tests/integration/ledger/test_client_metrics.py"

MUTANTS = (
    # --- explicit LAC ----------------------------------------------------------------------------
    Mutant(
        "a confirmation is said while adds are on their way",
        "PendingAdds.has_unsaid_lac",
        "return not self._pending and self.last_add_confirmed > self._said",
        "return self.last_add_confirmed > self._said",
        (
            f"{ADDING}::test_a_lac_is_said_by_the_next_record_or_by_a_confirmation_when_nothing_is_pending",
        ),
    ),
    Mutant(
        "a confirmation is said again and again",
        "PendingAdds.confirmed",
        '        """A confirmation says the LAC now."""\n'
        "        self._said = self.last_add_confirmed\n",
        '        """A confirmation says the LAC now."""\n',
        (
            f"{ADDING}::test_a_lac_is_said_by_the_next_record_or_by_a_confirmation_when_nothing_is_pending",
        ),
    ),
    Mutant(
        "a confirmation goes to no bookie",
        "LedgerWriter._confirm",
        "return [steps.Confirm(self.changes.all_live)]",
        "return [steps.Confirm(())]",
        (f"{LAC}::test_it_is_told_once_to_every_bookie_of_the_ensemble",),
    ),
    Mutant(
        "a confirmation counts as a copy of the add behind it",
        "Lane._store",
        "if not record.is_confirmation:  # it would be taken for the add behind it",
        "if True:",
        (f"{LAC}::test_it_does_not_count_as_a_copy_of_the_entry_behind_it",),
    ),
    Mutant(
        "a confirmation is a group",
        "JournalContent.records",
        "return tuple(f.record for f in self.frames if not f.record.is_confirmation)",
        "return tuple(f.record for f in self.frames)",
        (f"{SMALL}::test_a_confirmation_comes_back_and_is_no_group",),
    ),
    Mutant(
        "recovery takes a confirmation for a group",
        "_summed_up",
        "tuple(stored for stored in committing if stored.record.first_entry_id > floor)",
        "tuple(stored for stored in found if stored.record.first_entry_id > floor)",
        (f"{LAC}::test_the_end_of_a_journal_has_its_lac_and_no_group_for_it",),
    ),
    Mutant(
        "a confirmation may say anything",
        "is_coherent",
        "says_its_lac = first - 1 == last == record.last_add_confirmed >= -1",
        "says_its_lac = True",
        (f"{SMALL}::test_a_confirmation_says_its_lac_and_nothing_else",),
    ),
    Mutant(
        "every record is made for the start of a journal",
        "Lane.framed",
        "        self._framed_bytes += sum(memoryview(piece).nbytes for piece in frame)\n",
        "",
        (f"{HANDLES}::test_what_was_appended_is_read_back_in_order",),
    ),
    Mutant(
        "nothing is sent before callers fall silent",
        "Writer.submit",
        "            if is_next and self._may_send:",
        "            if False:",
        (f"{HANDLES}::test_callers_that_never_fall_silent_get_their_acknowledgements",),
    ),
    Mutant(
        "what waits behind a callback waits for another append",
        "Writer._told",
        "self._go_on()",
        "pass",
        (f"{CALLBACKS}::test_what_is_added_beside_a_callback_is_sent_when_that_has_ended",),
    ),
    # --- bookies that hang -----------------------------------------------------------------------
    Mutant(
        "a bookie may hang for ever",
        "Deadlines.next",
        "if due is None or lane.since + limit < due.at:",
        "if False:",
        (f"{HANGING}::test_bookies_that_hang_are_replaced[1-append]",),
    ),
    Mutant(
        "a late answer of a bookie that was replaced counts",
        "LedgerWriter._count",
        "event.bookie_id):\n            self.pending.count(",
        "event.bookie_id) or True:\n            self.pending.count(",
        (
            f"{HANGING}::test_a_late_answer_of_a_bookie_that_was_replaced_counts_for_nothing",
            f"{SCRIPTS}[ensemble_changes]",
        ),
    ),
    Mutant(
        "answers do not end the wait for a bookie",
        "Lane.answered",
        "            self.waiting_bytes -= self._sent.popleft()[1]\n",
        "            break\n",
        (f"{HANGING}::test_a_slow_bookie_slows_its_writer_down_and_does_not_fill_the_memory",),
    ),
    Mutant(
        "what waits for a slow bookie fills the memory",
        "Writer._may_send",
        "not self._teller.is_busy and not self._lanes.is_congested",
        "not self._teller.is_busy",
        (f"{HANGING}::test_a_slow_bookie_slows_its_writer_down_and_does_not_fill_the_memory",),
    ),
    Mutant(
        "a caller waits for ever for room",
        "Backlog.wait_for_room",
        "self._room.wait_for(lambda: not self.is_full, seconds)",
        "self._room.wait_for(lambda: not self.is_full)",
        (f"{CALLBACKS}::test_a_caller_does_not_wait_for_ever_for_a_callback[room]",),
    ),
    Mutant(
        "a caller waits for ever for an acknowledgement",
        "WriteHandle._wait_for",
        "return self.result_within(future, self._settings.wait_seconds_max)",
        "return future.result()",
        (f"{CALLBACKS}::test_a_caller_does_not_wait_for_ever_for_a_callback[append]",),
    ),
    Mutant(
        "closing waits for ever for the writer",
        "WriteHandle.release",
        "        is_there_within(self._has_ended_within, seconds, self._writer.backlog)\n",
        "        self._task.join()\n",
        (f"{CALLBACKS}::test_a_caller_does_not_wait_for_ever_for_a_callback[close]",),
    ),
    Mutant(
        "a ledger is sealed although its writer has not ended",
        "WriteHandle.leave",
        "if self._task.is_alive():\n            raise",
        "if False:\n            raise",
        (f"{CALLBACKS}::test_a_caller_does_not_wait_for_ever_for_a_callback[close]",),
    ),
    Mutant(
        "a bookie is slow while its lane does something else",
        "Lanes.slowest",
        "if not lane.is_away and lane.since",
        "if lane.since",
        (f"{METADATA}::test_a_metadata_store_that_hangs_is_no_bookie_that_hangs",),
    ),
    Mutant(
        "a bookie has no time for what was sent while its lane did something else",
        "Lane.come_back",
        "        self.begin_anew()\n",
        "",
        (f"{LANE}::test_what_was_sent_while_its_task_was_away_is_begun_when_it_comes_back",),
    ),
    # --- callbacks -------------------------------------------------------------------------------
    Mutant(
        "a callback waits for room",
        "WriteHandle.wait_for_room",
        "if self._writer.backlog.is_full and not self._writer.is_telling_here:",
        "if self._writer.backlog.is_full:",
        (f"{CALLBACKS}::test_a_callback_may_append_too",),
    ),
    Mutant(
        "a callback may wait for itself",
        "WriteHandle._require_may_wait",
        "if self._writer.is_telling_here:",
        "if False:",
        (f"{CALLBACKS}::test_what_would_wait_for_itself_in_a_callback_is_refused[append]",),
    ),
    Mutant(
        "room is waited for under the lock that callbacks take",
        "LogWriter._send",
        "sent = segment.handle.append_at_once(add.entries)",
        "sent = segment.handle.append_many_async(add.entries)",
        (f"{PRESSURE}::test_what_waited_for_a_ledger_to_close_does_not_wait_for_room_again",),
    ),
    Mutant(
        "a log writer takes more than has room",
        "LogWriter._add",
        "            self._segment.handle.wait_for_room()",
        "            pass",
        (f"{PRESSURE}::test_room_is_not_waited_for_under_the_lock_that_callbacks_take",),
    ),
    Mutant(
        "what cannot be sent behind a roll is passed by others",
        "LogWriter._send_late",
        "except InvalidRequestError as error:",
        "except BookKeeperError as error:",
        (f"{PRESSURE}::test_nothing_passes_what_could_not_be_sent",),
    ),
    Mutant(
        "an entry that is none ends the writer",
        "LogWriter._send_late",
        "except InvalidRequestError as error:",
        "except ZeroDivisionError as error:",
        (f"{PRESSURE}::test_an_entry_that_is_none_stops_nobody",),
    ),
    Mutant(
        "what is left behind a roll waits for ever",
        "LogWriter._send_waiting",
        "            self._waiting = Waiting(left)\n",
        "",
        (f"{PRESSURE}::test_nothing_passes_what_could_not_be_sent",),
    ),
    Mutant(
        "an unexpected error leaves others waiting",
        "LogWriter._switch",
        "        except BaseException as error:  # whatever",
        "        except ZeroDivisionError as error:  # whatever",
        (f"{PRESSURE}::test_whatever_ends_a_roll_ends_the_wait",),
    ),
    # --- what an append is answered --------------------------------------------------------------
    Mutant(
        "who waits for an append is not woken",
        "_settle_unawaited",
        "if promise.is_awaited:",
        "if False:",
        (f"{PROMISE}::test_callbacks_run_once_each_before_and_after",),
    ),
    Mutant(
        "an append that nobody looks at is never done",
        "_settle_unawaited",
        "            promise._state = _FINISHED\n    return None",
        "            continue\n    return None",
        (f"{PROMISE}::test_they_complete_in_order_whether_awaited_or_not",),
    ),
    Mutant(
        "an append is answered before it is durable",
        "WriteHandle._submit",
        "return kept(last) if self._settings.is_sync_deferred else promise",
        "return kept(last)",
        (f"{HANDLES}::test_a_writer_learns_that_it_was_fenced_with_its_next_entry",),
    ),
    Mutant(
        "a writer hopes for bookies that it does not have",
        "LedgerWriter._require_hope",
        "        if self.changes.is_looking or not self.changes.failed:\n",
        "        if True:\n",
        (f"{DEFERRED}::test_force_without_enough_bookies_fails_and_so_does_the_next_append",),
    ),
    # --- what an append takes --------------------------------------------------------------------
    Mutant(
        "null is an entry of bytes",
        "TableIntake.rows_of",
        "arrow_schema.require_values(rows, everywhere=self._is_of_bytes)",
        "arrow_schema.require_values(rows)",
        (f"{LEDGERS}::test_null_is_no_entry_of_a_ledger_of_bytes",),
    ),
    Mutant(
        "null is stored where the schema does not allow it",
        "require_values",
        "if column.null_count and (everywhere or not field.nullable):",
        "if column.null_count and everywhere:",
        (f"{LEDGERS}::test_null_is_stored_only_where_the_schema_allows_it",),
    ),
    Mutant(
        "what cannot be counted is an error of Python",
        "entries.count_of",
        "    if isinstance(entries, Sized):\n        return len(entries)\n",
        "    return len(entries)\n",
        (f"{LEDGERS}::test_many_entries_have_a_count",),
    ),
    Mutant(
        "the first append loads pandas",
        "batch_of",
        "[plain_arrays.of_bytes(values)]",
        "[__import__('pyarrow').array(values, 'binary')]",
        (f"{START}::test_handles_of_bytes_load_no_pandas",),
    ),
    Mutant(
        "the first read of striped entries loads pandas",
        "decode_parts",
        "pc.sort_indices(plain_arrays.of_integers(entries))",
        "pc.sort_indices(__import__('pyarrow').array(list(entries)))",
        (f"{START}::test_handles_of_bytes_load_no_pandas",),
    ),
    # --- whom a writer replaces and chooses ------------------------------------------------------
    Mutant(
        "with delay a write set below its ack quorum is good enough",
        "members_to_replace",
        "if is_delayed and quorum.is_ack_quorum_of_all(live):",
        "if is_delayed and len(live) >= quorum.ack_quorum_size:",
        (f"{CHANGE}::test_with_delay_all_are_as_soon_as_some_entry_would_miss_its_ack_quorum",),
    ),
    Mutant(
        "a delay nobody asked for",
        "members_to_replace",
        "if is_delayed and quorum.is_ack_quorum_of_all(live):",
        "if quorum.is_ack_quorum_of_all(live):",
        (f"{CHANGE}::test_without_delay_all_are",),
    ),
    Mutant(
        "with delay only the last that failed is replaced",
        "EnsembleChanges.fail",
        "self._quorum, self.failed, is_delayed",
        "self._quorum, {index}, is_delayed",
        (
            f"{CHANGES}::"
            "test_with_delay_nobody_is_replaced_while_every_entry_reaches_its_ack_quorum",
        ),
    ),
    Mutant(
        "failures are not noted",
        "Membership.released",
        "        self._cluster.note_failure(step.member)\n",
        "",
        (f"{CHANGES}::test_a_failure_is_noted_with_the_bookie",),
    ),
    Mutant(
        "bookies that keep failing are chosen like others",
        "placement.choose",
        "pool = [c for c in open_ if c.member.bookie_id not in last] or open_",
        "pool = open_",
        (
            f"{CHANGES}::test_bookies_that_keep_failing_are_chosen_last",
            f"{PLACEMENT}::test_bookies_to_be_taken_last_are_taken_only_where_there_is_no_other",
        ),
    ),
    Mutant(
        "a quarantine never ends",
        "Quarantine.bookie_ids",
        "            and now - times[-1] < QUARANTINE_SECONDS\n",
        "",
        (f"{QUARANTINE}::test_it_ends_and_the_next_failure_alone_does_not_renew_it",),
    ),
    Mutant(
        "failures far apart count together",
        "Quarantine.bookie_ids",
        "            and times[-1] - times[0] <= WINDOW_SECONDS\n",
        "",
        (f"{QUARANTINE}::test_failures_far_apart_are_none",),
    ),
    Mutant(
        "each question of a patient reader counts as a speculative one",
        "_Asked.begin",
        "            if self.waited and later is not None:\n",
        "            if later is not None:\n",
        (f"{METRICS}::test_a_speculative_read_is_counted_and_others_are_not",),
    ),
    Mutant(
        "entries that are in no record yet are not in flight",
        "Backlog.entry_count",
        "        return sent + sum(submitted.row_count for submitted in list(self.gathered))\n",
        "        return sent\n",
        (f"{METRICS}::test_what_waits_for_its_acknowledgement_is_counted_and_then_no_more",),
    ),
    Mutant(
        "rows of a write are not counted",
        "RecordWriter._acknowledged",
        "            self._counts.committed(self._commit.committed(self.metadata, add))\n",
        "            pass\n",
        (f"{METRICS}::test_rows_of_a_write_are_counted_when_they_are_committed",),
    ),
    Mutant(
        "rows of a write that failed wait for ever",
        "RecordWriter.entry_count",
        "sent = () if self._machine.has_ended else tuple(self._machine.pending)",
        "sent = tuple(self._machine.pending)",
        (f"{METRICS}::test_rows_of_a_write_that_failed_wait_for_nothing",),
    ),
    Mutant(
        "changes of ensembles are not counted",
        "ensemble_log.replaced",
        "    environment.the_one(ClientCounts).changed()\n",
        "",
        (f"{METRICS}::test_a_bookie_that_takes_the_place_of_another_is_counted",),
    ),
    Mutant(
        "what takes as long as a class allows counts as longer",
        "ClientCounts.added",
        "self.latencies[bisect_left(BOUNDS, seconds)]",
        "self.latencies[sum(bound <= seconds for bound in BOUNDS)]",
        (f"{METRICS}::test_classes_hold_what_took_no_longer",),
    ),
)
