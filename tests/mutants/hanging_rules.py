"""Mutants of what is done about bookies that hang, and of whose fault a copy is."""

from .mutant import Mutant

HANGING = "tests/integration/faults/test_hanging_batches.py"
HANDLES = "tests/integration/faults/test_hanging_bookies.py"
LARGE = "test_a_large_record_may_take_long_and_so_may_one_behind_it"
ENDED = "tests/simulation/test_simulation.py::test_a_signal_ends_it_behind_the_schedule_under_way"
LATE = "tests/integration/ledger/test_late_bookies.py"
JOB = "tests/unit/spark/test_job.py"
CLIENT = "tests/unit/cluster/test_bookie_client.py"
FAN_OUT = "tests/unit/cluster/test_fan_out.py"
HANG_MEMORY = "tests/unit/cluster/test_hang_memory.py"
REMEMBERED = "tests/integration/faults/test_remembered_hangs.py"
LANE = "tests/unit/ledger/handles/test_lane.py"
ENVIRONMENT = "tests/unit/test_environment.py"
REPLICAS = (
    "tests/integration/recovery/test_recovery_spares.py"
    "::test_a_source_that_is_no_good_is_not_blamed_on_the_bookie_that_needs_a_copy"
)

MUTANTS = (
    # --- copies ----------------------------------------------------------------------------------
    Mutant(
        "a target is blamed for its sources",
        "RecordWriter._copy",
        "self._note(error.problems)",
        "self._note({name: str(error)})",
        (
            f"{HANGING}::test_where_no_source_is_good_nothing_is_committed_and_the_sources_are_named",
        ),
    ),
    Mutant(
        "a source that turned out bad counts as a copy",
        "RecordWriter._copy",
        "step.add.first_entry_id, tuple(bad.items()))",
        "step.add.first_entry_id)",
        (f"{HANGING}::test_a_source_that_is_no_good_is_named_and_not_the_target[damaged]",),
    ),
    Mutant(
        "a task counts a source that turned out bad",
        "_Replicas._is_copied",
        "        self.failures.update(bad)\n",
        "",
        (f"{HANGING}::test_a_task_does_not_count_a_source_that_is_no_good",),
    ),
    Mutant(
        "a recovery blames a target for its sources",
        "WriteBack.run",
        "            return Unreadable(str(error.args[0]))\n",
        "            return Failure(str(error.args[0]))\n",
        (f"{REPLICAS}[2]",),
    ),
    # --- bookies that are late -------------------------------------------------------------------
    Mutant(
        "bookies that are late are not waited for when they are looked at",
        "Cluster.probe",
        "            enough=enough,\n            needed=needed,\n",
        "            enough=enough,\n",
        (f"{LATE}::test_they_are_waited_for_where_there_are_no_others[open_root]",),
    ),
    Mutant(
        "bookies that are late are not waited for when they are to join",
        "enlisting.enlist",
        "        needed=needed,\n    )\n",
        "    )\n",
        (f"{LATE}::test_they_are_waited_for_where_there_are_no_others[put_new]",),
    ),
    Mutant(
        "a new ledger waits for bookies that it can do without",
        "ensembles._place",
        "needed=len(ensemble) - others",
        "needed=len(ensemble)",
        (f"{LATE}::test_they_are_not_waited_for_where_there_are_others[put_new]",),
    ),
    # --- bookies that hang -----------------------------------------------------------------------
    Mutant(
        "whoever asks waits for ever",
        "Answer.is_there_within",
        "        self._task.join(seconds)\n",
        "        self._task.join()\n",
        (
            f"{CLIENT}::test_who_owes_an_answer_is_asked_again_when_it_has_come",
            f"{HANGING}::test_a_read_goes_on_at_another_replica[0-read]",
            f"{HANDLES}::test_a_caller_does_not_wait_for_ever_for_a_metadata_store_that_hangs[seal]",
        ),
    ),
    Mutant(
        "a large read has no more time than a small one",
        "seconds_to_read",
        "    return READ_SECONDS + byte_count / SLOWEST_BYTES_PER_SECOND\n",
        "    return READ_SECONDS\n",
        (f"{CLIENT}::test_to_decode_what_was_read_is_no_waiting",),
    ),
    Mutant(
        "a bookie has no more time for a large record than for a small one",
        "Deadlines.next",
        "self._settings.add_entry_timeout_seconds + lane.extra_seconds",
        "self._settings.add_entry_timeout_seconds",
        (f"{HANDLES}::{LARGE}",),
    ),
    Mutant(
        "a bookie has no time for what was sent before",
        "Lane.send",
        "            extra = seconds_for(self.waiting_bytes)\n",
        "            extra = seconds_for(size)\n",
        (f"{LANE}::test_a_bookie_has_time_for_what_was_sent_to_it_before",),
    ),
    Mutant(
        "a large group must be acknowledged as soon as a small one",
        "Deadlines.seconds_to_acknowledge",
        "        extra = seconds_for(length_bytes - self._machine.pending.length_bytes)\n",
        "        extra = 0.0\n",
        (f"{HANDLES}::{LARGE}",),
    ),
    Mutant(
        "everybody waits for a bookie that hangs",
        "HangMemory.hangs",
        "        if place not in self._owed:\n",
        "        if True:\n",
        (
            f"{HANG_MEMORY}::test_who_was_given_up_is_not_asked_before_it_has_answered",
            f"{CLIENT}::test_who_owes_an_answer_is_asked_again_when_it_has_come",
            f"{HANGING}::test_few_threads_are_left_behind_however_often_a_bookie_is_asked_that_hangs",
            f"{REMEMBERED}::test_what_one_reader_has_met_another_one_does_not_wait_for",
            f"{REMEMBERED}::test_each_plan_of_a_new_ledger_knows_what_hung_before",
        ),
    ),
    Mutant(
        "a bookie that hangs is asked again and again",
        "HangMemory.hangs",
        "(is_recent and not is_patient) or len(owed) >= UNANSWERED_MAX",
        "(is_recent and not is_patient)",
        (
            f"{HANG_MEMORY}::test_who_owes_many_answers_is_not_asked_at_all",
            f"{REMEMBERED}::test_many_read_handles_leave_few_threads[open_root]",
            f"{REMEMBERED}::test_a_recovery_asks_whom_others_gave_up_but_not_for_ever",
            f"{HANGING}::test_few_threads_are_left_behind_however_often_a_bookie_is_asked_that_hangs",
        ),
    ),
    Mutant(
        "a bookie that has hung is never asked again",
        "HangMemory.hangs",
        "for answer, at in self._owed[place].items() if not answer.done()}",
        "for answer, at in self._owed[place].items()}",
        (f"{CLIENT}::test_who_owes_an_answer_is_asked_again_when_it_has_come",),
    ),
    Mutant(
        "a journal is used while a call to it hangs",
        "BookieClient.begin",
        "        if is_busy or memory",
        "        if memory",
        (f"{CLIENT}::test_after_a_while_others_ask_again_but_never_the_channel_that_is_busy",),
    ),
    Mutant(
        "a file is closed under a call that hangs",
        "BookieClient.begin_close",
        "        if not last.done():\n",
        "        if False:\n",
        (f"{CLIENT}::test_what_is_open_is_closed_behind_the_last_answer",),
    ),
    Mutant(
        "an error of the storage is taken for silence",
        "Answer.__init__",
        "                self.set_exception(error)\n",
        "                del error\n",
        (f"{CLIENT}::test_an_answer_is_what_was_found_or_raised",),
    ),
    Mutant(
        "members store a record one after the other",
        "_Asked.begin",
        "later is None or not self.waited or now >= self._next_at",
        "not self.waited",
        (
            f"{HANGING}::test_all_members_store_a_record_at_once[append]",
            f"{HANGING}::test_all_members_are_told_of_a_micro_batch_at_once",
        ),
    ),
    Mutant(
        "who is asked together with others has his time behind theirs",
        "_Asked.begin",
        "now + self._timeouts.seconds, beat",
        "now + self._timeouts.seconds * (1 + len(self.waited)), beat",
        (f"{FAN_OUT}::test_who_are_asked_together_have_their_time_together",),
    ),
    Mutant(
        "who is silent is forgotten if another one raises an error",
        "_Asked._count",
        "        if self._usable >= self._quota.enough or is_of_no_bookie:\n",
        "        if error is not None and is_of_no_bookie:\n            raise error\n"
        "        if self._usable >= self._quota.enough:\n",
        (
            f"{FAN_OUT}::test_who_is_silent_is_remembered_whatever_another_one_raises",
            f"{FAN_OUT}::test_an_error_is_raised_when_all_have_ended",
        ),
    ),
    Mutant(
        "which of several errors is raised is chance",
        "_Asked.end",
        "[member for member in self._members if member in self._ended]",
        "list(self._ended)",
        (f"{FAN_OUT}::test_of_several_errors_that_of_the_first_is_raised",),
    ),
    Mutant(
        "whoever asks several waits for ever",
        "FanOut._next",
        "self._inbox.get(timeout=max(0.0, until - environment.monotonic()))",
        "self._inbox.get()",
        (
            f"{FAN_OUT}::test_a_bookie_that_hangs_is_given_up_and_named",
            f"{HANDLES}::test_a_spare_that_hangs_is_passed_over",
            f"{HANGING}::test_bookies_that_hang_during_a_write_are_replaced[1-append]",
        ),
    ),
    Mutant(
        "who is needed has no more time than others",
        "_Asked.time_out",
        "self._timeouts.slow_factor if self._usable < self._quota.needed else 1",
        "1",
        (
            f"{FAN_OUT}::test_those_that_are_needed_have_more_time",
            f"{LATE}::test_they_are_waited_for_where_there_are_no_others[open_root]",
        ),
    ),
    Mutant(
        "who is not needed has as much time as who is",
        "_Asked.time_out",
        "self._timeouts.slow_factor if self._usable < self._quota.needed else 1",
        "self._timeouts.slow_factor",
        (f"{FAN_OUT}::test_nobody_who_is_not_needed_has_more_time",),
    ),
    Mutant(
        "an answer that is of no use is one of those that are enough",
        "_Asked._count",
        "self._usable += bool(self._quota.is_usable(member, answer.result()))",
        "self._usable += 1",
        (f"{FAN_OUT}::test_answers_that_are_not_usable_are_not_enough",),
    ),
    # --- soaks and jobs --------------------------------------------------------------------------
    Mutant(
        "who ends a soak is not heard",
        "_run_some",
        "if heard.poll() or (",
        "if (",
        (ENDED,),
    ),
    Mutant(
        "one lock for the sizes of all journals, also while a bookie is asked",
        "_Bytes.size",
        "    @property\n    def size(self) -> int:\n"
        '        """Of the journal when it was looked at first."',
        '    @__import__("functools").cached_property\n'
        '    def size(self) -> int:\n        """Of the journal when it was looked at first."',
        (
            "tests/unit/ledger/test_journal_reader.py::"
            "test_a_bookie_that_hangs_holds_up_no_reader_of_another_one",
        ),
    ),
    Mutant(
        "who ends a soak twice waits all the same",
        "End.on_signal",
        "            signal.signal(each, signal.SIG_DFL)",
        "            pass",
        (ENDED,),
    ),
    Mutant(
        "what a job tells goes among its data",
        "run_job",
        "redirect_stderr(_SparksStderr()) if is_submitted else nullcontext()",
        "nullcontext()",
        (f"{JOB}::test_where_spark_has_turned_stderr_away_it_is_turned_back",),
    ),
    Mutant(
        "to a job all errors are alike",
        "job._failed",
        "2 if isinstance(ours, USERS_MISTAKES) else 1",
        "1",
        (f"{JOB}::test_what_went_wrong_is_told_in_one_line",),
    ),
    Mutant(
        "a job hides errors that are not ours",
        "job._failed",
        "        raise error\n",
        "        return 1\n",
        (f"{JOB}::test_what_is_not_ours_is_raised_on",),
    ),
    # --- threads ---------------------------------------------------------------------------------
    Mutant(
        "a forked process hands work to threads that it does not have",
        "RealEnvironment.__init__",
        "        os.register_at_fork(after_in_child=self._begin_anew)\n",
        "",
        (f"{ENVIRONMENT}::test_a_forked_process_starts_threads_of_its_own",),
    ),
    Mutant(
        "each task has a new thread",
        "RealEnvironment.start",
        "self._idle.pop() if self._idle else None",
        "None",
        (f"{ENVIRONMENT}::test_a_thread_that_has_come_back_serves_the_next_task_under_its_name",),
    ),
    Mutant(
        "a task has not the environment of its starter",
        "_Work.run",
        "        _here.environment = self._environment\n",
        "",
        (
            f"{ENVIRONMENT}::test_an_environment_holds_for_its_thread_and_the_tasks_that_begin_there",
            f"{ENVIRONMENT}::test_a_thread_that_served_one_environment_serves_no_other_with_it",
        ),
    ),
    Mutant(
        "what went wrong in shared work is not told",
        "for_each",
        "    if errors:\n        raise errors[0]\n    return [found[number]",
        "    return [found[number]",
        (f"{ENVIRONMENT}::test_what_goes_wrong_in_shared_work_is_raised_and_the_rest_left_out",),
    ),
    # --- turns -----------------------------------------------------------------------------------
    Mutant(
        "who has the turn and hangs is waited for",
        "_Courtesy.turn",
        "if row.acquire(timeout=COURTESY_SECONDS):",
        "if row.acquire():",
        (f"{ENVIRONMENT}::test_who_never_comes_back_from_his_turn_is_waited_for_once",),
    ),
    Mutant(
        "who has the turn and hangs is waited for each time",
        "_Courtesy.turn",
        "            self._row = threading.Lock()\n            yield\n",
        "            yield\n",
        (f"{ENVIRONMENT}::test_who_never_comes_back_from_his_turn_is_waited_for_once",),
    ),
    Mutant(
        "nobody waits for his turn",
        "_Courtesy.turn",
        "if row.acquire(timeout=COURTESY_SECONDS):",
        "if row.acquire(blocking=False):",
        (f"{ENVIRONMENT}::test_turns_are_taken_one_behind_the_other",),
    ),
    Mutant(
        "bookies are written to one behind the other, however slow",
        "Appender.turn",
        "self._courtesy() if self._is_quick else nullcontext()",
        "self._courtesy()",
        (f"{LANE}::test_only_quick_bookies_are_written_to_in_turn[0.5-0]",),
    ),
    Mutant(
        "each lane takes turns with itself alone",
        "Lanes.join",
        "self._open_lane(index, address, self._courtesy)",
        "self._open_lane(index, address, environment.courtesy())",
        (f"{LANE}::test_the_lanes_of_one_writer_take_turns_with_each_other_alone",),
    ),
)
