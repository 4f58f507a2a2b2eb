"""Mutants of what a process remembers of storage that hangs, and of metadata stores that do."""

from .mutant import Mutant

HANG_MEMORY = "tests/unit/cluster/test_hang_memory.py"
METADATA = "tests/integration/faults/test_hanging_metadata.py"
REMEMBERED = "tests/integration/faults/test_remembered_hangs.py"
LANE = "tests/unit/ledger/handles/test_lane.py"
FAN_OUT = "tests/unit/cluster/test_fan_out.py"
DROPPED = "tests/integration/ledger/test_dropped_handles.py"
TIMED = "tests/unit/cluster/test_timed_store.py"
HANDLES = "tests/integration/faults/test_hanging_bookies.py"

MUTANTS = (
    # --- what is remembered of them --------------------------------------------------------------
    Mutant(
        "a bookie that was taken away for ever is never asked again",
        "HangMemory.hangs",
        "now - ASK_AGAIN_SECONDS < at <= now",
        "at <= now",
        (
            f"{HANG_MEMORY}::test_or_a_minute_later_but_at_once_by_who_cannot_do_without",
            f"{HANDLES}::test_a_bookie_whose_question_is_never_answered_is_asked_again_after_a_"
            "while",
        ),
    ),
    Mutant(
        "a slow bookie is taken to hang because others are quicker",
        "HangMemory.did_without",
        "setdefault(answer, environment.monotonic() + seconds)",
        "setdefault(answer, environment.monotonic())",
        (f"{HANG_MEMORY}::test_who_was_done_without_hangs_when_it_has_had_all_its_time",),
    ),
    Mutant(
        "who was given up is taken to be slow",
        "HangMemory.did_without",
        "self._owed.setdefault(place, {}).setdefault(answer, environment.monotonic() + seconds)",
        "self._owed.setdefault(place, {})[answer] = environment.monotonic() + seconds",
        (
            f"{HANG_MEMORY}::test_who_was_given_up_stays_so_if_it_is_done_without_as_well",
            f"{REMEMBERED}::test_what_one_reader_has_met_another_one_does_not_wait_for",
        ),
    ),
    Mutant(
        "a forked process takes over what hung",
        "RealEnvironment._begin_anew",
        "        self.forget()\n",
        "        vars(self).setdefault('_shared', {})\n",
        (f"{HANG_MEMORY}::test_a_forked_process_has_asked_nobody",),
    ),
    Mutant(
        "bookies of all clusters are in one quarantine",
        "HangMemory.quarantine",
        "self._quarantines.setdefault(cluster_id, Quarantine())",
        'self._quarantines.setdefault("", Quarantine())',
        (f"{HANG_MEMORY}::test_bookies_in_quarantine_are_those_of_their_cluster",),
    ),
    Mutant(
        "who asks leaves questions behind and tells nobody",
        "FanOut.ask",
        "                client.do_without()\n",
        "                pass\n",
        (
            f"{FAN_OUT}::test_who_is_interrupted_leaves_no_question_behind_that_nobody_knows_of",
            f"{REMEMBERED}::test_many_read_handles_leave_few_threads[open_root]",
        ),
    ),
    Mutant(
        "who asks gives a bookie up and tells nobody",
        "_Asked._stop_waiting",
        "is_over = not (self._is_enough or self._timeouts.is_cut)",
        "is_over = False",
        (f"{REMEMBERED}::test_what_one_reader_has_met_another_one_does_not_wait_for",),
    ),
    Mutant(
        "who waits for a moment only takes a bookie to hang",
        "_Asked._stop_waiting",
        "is_over = not (self._is_enough or self._timeouts.is_cut)",
        "is_over = not self._is_enough",
        (f"{FAN_OUT}::test_a_shorter_time_may_be_given",),
    ),
    Mutant(
        "who is not waited for because there are enough is taken to hang",
        "_Asked._stop_waiting",
        "is_over = not (self._is_enough or self._timeouts.is_cut)",
        "is_over = not self._timeouts.is_cut",
        (f"{FAN_OUT}::test_when_there_are_enough_the_others_have_little_time",),
    ),
    Mutant(
        "a recovery passes over whom others gave up",
        "running._channel",
        "is_patient=True, name=name)",
        "name=name)",
        (f"{REMEMBERED}::test_a_recovery_asks_whom_others_gave_up_but_not_for_ever",),
    ),
    Mutant(
        "a writer tells nobody of a bookie that it gave up",
        "Lane.abandon",
        "        self._channel.give_up()\n",
        "",
        (f"{LANE}::test_a_lane_that_hangs_is_remembered[True]",),
    ),
    Mutant(
        "a writer that ends tells nobody of a bookie that hangs",
        "Lane.end_within",
        "            self._channel.do_without()\n",
        "            pass\n",
        (f"{LANE}::test_a_lane_that_hangs_is_remembered[False]",),
    ),
    Mutant(
        "a plan waits for spares that it can do without",
        "spares_of",
        "_Pool(cluster, enough=len(ensemble))",
        "_Pool(cluster)",
        (
            f"{REMEMBERED}"
            "::test_a_hanging_bookie_in_no_ensemble_costs_the_planning_of_a_batch_nothing",
        ),
    ),
    Mutant(
        "a plan does without members, too",
        "spares_of",
        "_Pool(cluster, enough=len(ensemble))",
        "_Pool(cluster, enough=1)",
        (f"{REMEMBERED}::test_a_spare_is_waited_for_while_members_are",),
    ),
    Mutant(
        "one simulated process knows what hung for another one",
        "SimulatedEnvironment.the_one",
        "        key = (None if task is None else task.process, kind)",
        "        key = (None, kind)",
        ("tests/simulation/test_other_threads.py::test_each_process_remembers_for_itself",),
    ),
    # --- metadata stores that hang, and forked processes -----------------------------------------
    Mutant(
        "a metadata store that hangs is waited for for ever",
        "TimedStore._ask",
        "answer.comes_within(self.seconds)",
        "answer.comes_within(600)",
        (
            f"{METADATA}::test_a_log_writer_returns_in_time[roll]",
            f"{METADATA}::test_others_return_in_time[list]",
        ),
    ),
    Mutant(
        "all records have the time of one",
        "TimedStore.get_all",
        "                progress.made()\n",
        "",
        (f"{TIMED}::test_each_has_time_of_its_own",),
    ),
    Mutant(
        "one record that hangs is waited for, where others have come",
        "Patience.gets_on",
        "        if before != self._seen:\n",
        "        if self._seen:\n",
        (f"{TIMED}::test_one_that_hangs_is_not_waited_for_longer",),
    ),
    Mutant(
        "what can be no name is asked for all the same",
        "Records.of_all",
        "            self._key(name)  # what can be no name is refused as such\n",
        "",
        (f"{TIMED}::test_what_can_be_no_name_is_refused_as_such",),
    ),
    Mutant(
        "one record that cannot be read hides the others",
        "timed_store._answered",
        "        found.set_exception(error)\n",
        "        raise\n",
        (f"{TIMED}::test_what_is_wrong_with_one_is_told_of_it_alone",),
    ),
    Mutant(
        "everybody waits for a metadata store that hangs",
        "TimedStore._ask",
        "            memory.gave_up(place, answer)\n",
        "",
        (f"{METADATA}::test_a_store_that_hangs_is_not_waited_for_twice",),
    ),
    Mutant(
        "who appends to a log waits for ever",
        "LogWriter._wait_for",
        "            return self._segment.handle.result_within(future, seconds)\n",
        "            return future.result()\n",
        (f"{METADATA}::test_a_log_writer_returns_in_time[append]",),
    ),
    Mutant(
        "a log writer does not tell what is undecided after its time",
        "LogWriter._wait_for",
        "            raise self._with_outcome(\n                OutcomeUnknownError(",
        "            raise (\n                OutcomeUnknownError(",
        (f"{METADATA}::test_what_is_undecided_is_told",),
    ),
    Mutant(
        "a forked process waits for threads that it does not have",
        "BoundToProcess.require_own_process",
        "        if self._process_id != os.getpid():\n",
        "        if False:\n",
        (f"{METADATA}::test_a_forked_process_is_refused_what_another_one_has_open",),
    ),
    Mutant(
        "a forked process appends what nobody sends",
        "WriteHandle.append_at_once",
        "        self.require_own_process()\n",
        "",
        (f"{METADATA}::test_a_forked_process_is_refused_what_another_one_has_open",),
    ),
    Mutant(
        "a block that a forked process leaves hides why",
        "ClosedAtEnd.__exit__",
        "        elif self.is_of_this_process:\n",
        "        else:\n",
        (
            f"{METADATA}"
            "::test_a_block_that_a_forked_process_leaves_by_an_error_ends_with_this_error",
        ),
    ),
    # --- handles that are dropped ----------------------------------------------------------------
    Mutant(
        "a handle that is dropped goes on for ever",
        "WriteHandle.__del__",
        "environment.dropped(self, repr(self), self._writer.stop)",
        "environment.dropped(self, repr(self), lambda: None)",
        (
            f"{DROPPED}::test_many_that_are_dropped_leave_no_descriptors_and_no_threads",
            f"{DROPPED}::test_a_log_writer_that_is_dropped_leaves_nothing[False]",
        ),
    ),
    Mutant(
        "a handle is dropped in silence",
        "RealEnvironment.dropped",
        'f"unclosed {shown}", ResourceWarning',
        'f"unclosed {shown}", DeprecationWarning',
        (
            f"{DROPPED}"
            "::test_what_was_appended_before_is_written_and_the_ledger_is_left_to_recovery",
        ),
    ),
    Mutant(
        "a handle that was released is dropped with a warning",
        "WriteHandle.release",
        "        self._is_let_go = True\n        if self._task",
        "        if self._task",
        (f"{DROPPED}::test_one_that_was_closed_or_released_is_dropped_in_silence",),
    ),
    Mutant(
        "a forked process ends the handles of its parent",
        "WriteHandle.__del__",
        "if not self._is_let_go and self.is_of_this_process:",
        "if not self._is_let_go:",
        (f"{DROPPED}::test_a_forked_process_ends_nothing_of_its_parent",),
    ),
    Mutant(
        "what a writer acknowledged last holds it for ever",
        "Backlog.told",
        "            self.last_promise = None\n",
        "            pass\n",
        (f"{DROPPED}::test_a_log_writer_that_is_dropped_leaves_nothing[False]",),
    ),
    Mutant(
        "a connection that is dropped stays open",
        "TimedStore.__del__",
        'lambda: environment.start(self._inner.close, "close")',
        "lambda: None",
        (f"{DROPPED}::test_a_connection_that_is_dropped_is_closed",),
    ),
)
