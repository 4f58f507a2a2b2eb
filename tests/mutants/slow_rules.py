"""Mutants of what tells slow storage from hanging storage, and of how a busy store is treated."""

from .change import Drop, Replace
from .mutant import Mutant

PATIENCE = "tests/unit/cluster/test_patience.py"
PROGRESS = "tests/unit/test_progress.py"
SLICES = "tests/unit/storage/test_slices.py"
PRESSURE = "tests/unit/storage/test_pressure.py"
SLOW = "tests/integration/faults/test_slow_bookies.py"
RECORDS = "tests/unit/cluster/test_records.py"
SETTLED = f"{RECORDS}::test_a_lost_answer_is_settled_by_looking"
TIMEOUT = "tests/unit/metadata/test_patience.py"
SIGNS = "tests/unit/storage/test_signs.py::test_each_sync_but_the_last_is_a_sign"
FAN_OUT = "tests/unit/cluster/test_fan_out.py"

MUTANTS = (
    # --- signs of progress -----------------------------------------------------------------------
    Mutant(
        "a call that moves bytes is given up",
        "Patience.gets_on",
        Replace("before != self._seen", "False"),
        (f"{PATIENCE}::test_an_answer_is_waited_for_as_long_as_it_gets_on",),
    ),
    Mutant(
        "a call that has moved bytes once is waited for for ever",
        "Patience.gets_on",
        Replace("before, self._seen = (self._seen, self._progress.count)", "before = self._seen"),
        (f"{PATIENCE}::test_one_that_hangs_is_given_up_in_its_time",),
    ),
    Mutant(
        "a call behind those of others is given up",
        "Patience.gets_on",
        Replace("moved and devices.is_at_work(self._progress.thread_id)", "False"),
        (f"{PATIENCE}::test_a_slow_disk_is_not",),
    ),
    Mutant(
        "a call that hangs elsewhere is waited for because a disk is busy",
        "Patience.gets_on",
        Replace("moved and devices.is_at_work(self._progress.thread_id)", "moved"),
        (f"{PATIENCE}::test_a_call_that_waits_for_something_else_does_not",),
    ),
    Mutant(
        "a disk that has lost one request is waited for for ever",
        "Patience.gets_on",
        Replace(
            "not has_looked or seen is None or self._others >= OTHERS_MAX",
            "not has_looked or seen is None",
        ),
        (f"{PATIENCE}::test_a_disk_may_lose_one_request_and_serve_others",),
    ),
    Mutant(
        "a call that decodes what it has read is given up",
        "Patience._computes",
        Replace(
            "devices.cpu_ticks(self._progress.thread_id) - self._ticks >= COMPUTING_TICKS",
            "devices.cpu_ticks(self._progress.thread_id) - self._ticks < 0",
        ),
        (f"{PATIENCE}::test_a_call_that_computes_gets_on",),
    ),
    Mutant(
        "a call that learns its disk on the way is given up",
        "Patience.gets_on",
        Replace("not knew_disk and self._knows_disk", "False"),
        (
            f"{PATIENCE}::test_a_call_that_learns_its_disk_has_its_time_once_more",
            f"{FAN_OUT}::test_a_member_whose_disk_is_known_late_has_its_time_once_more",
        ),
    ),
    Mutant(
        "the disk of a metadata store in a folder is not looked at",
        "TimedStore._ask",
        Replace(
            "PendingAnswer(as_new, 'ask-metadata-store', device=devices.device_of(place))",
            "PendingAnswer(as_new, 'ask-metadata-store')",
        ),
        ("tests/unit/cluster/test_timed_store.py::test_the_disk_of_the_store_is_looked_at",),
    ),
    Mutant(
        "a call to a folder of metadata does not say on which disk it works",
        "FileMetadataStore._directory",
        Drop("devices.note"),
        ("tests/unit/cluster/test_timed_store.py::test_the_disk_of_the_store_is_looked_at",),
    ),
    Mutant(
        "a file that is synced shows no progress",
        "posix_calls.put_new",
        Drop("progress.made"),
        (f"{SIGNS}[put_new]",),
    ),
    Mutant(
        "a folder that is synced shows no progress",
        "posix_calls._make_durable",
        Drop("progress.made"),
        (f"{SIGNS}[put_new]",),
    ),
    Mutant(
        "a journal that is made shows no progress",
        "PosixRoot.open_journal",
        Drop("progress.made"),
        (f"{SIGNS}[open_journal]",),
    ),
    Mutant(
        "a file that is finished shows no progress",
        "PosixEntryFile.finish",
        Drop("progress.made"),
        (f"{SIGNS}[finish]",),
    ),
    Mutant(
        "a version of metadata that is synced shows no progress",
        "PosixDirectory._write_and_link",
        Drop("progress.made"),
        (f"{SIGNS}[put_if_absent]",),
    ),
    Mutant(
        "a folder of metadata that is synced shows no progress",
        "PosixDirectory.make_folder",
        Drop("progress.made"),
        (f"{SIGNS}[make_folder]",),
    ),
    Mutant(
        "a call that has learned its disk is never given up",
        "Patience.gets_on",
        Replace(
            "(self._knows_disk, self._progress.device is not None)",
            "(False, self._progress.device is not None)",
        ),
        (f"{PATIENCE}::test_a_call_that_learns_its_disk_has_its_time_once_more",),
    ),
    Mutant(
        "a disk of which nothing is known is looked at again and again",
        "Patience.look",
        Replace("self._has_looked = True", "self._has_looked = self._completed is not None"),
        (f"{PATIENCE}::test_a_disk_of_which_nothing_is_known_is_looked_at_once",),
    ),
    Mutant(
        "what a process was stopped is counted against storage",
        "PendingAnswer.comes_within",
        Replace("overslept(until)", "False"),
        (f"{PATIENCE}::test_the_time_begins_anew_after_the_process_was_stopped",),
    ),
    Mutant(
        "a countdown goes on while the process is stopped",
        "Countdown.left",
        Replace("overslept(self._wakes_at)", "False"),
        (f"{PROGRESS}::test_its_time_begins_anew_after_the_process_was_stopped",),
    ),
    Mutant(
        "what readers beside each other move is no sign",
        "environment.for_each",
        Replace("lambda: context.run(share)", "share"),
        (f"{PROGRESS}::test_what_a_call_hands_to_other_tasks_is_reported_for_it",),
    ),
    Mutant(
        "a question to several does not look at how they get on",
        "_Waited.gets_on",
        Replace("before != heartbeat or is_moving", "before != heartbeat"),
        (f"{FAN_OUT}::test_a_bookie_that_gets_on_is_waited_for",),
    ),
    Mutant(
        "a caller with little time waits as long as a bookie gets on",
        "_Asked._ask",
        Replace(
            "isinstance(waited.own, PendingAnswer) and (not self._timeouts.is_cut)",
            "isinstance(waited.own, PendingAnswer)",
        ),
        (f"{FAN_OUT}::test_whoever_has_less_time_than_a_bookie_waits_no_longer",),
    ),
    # --- writers ---------------------------------------------------------------------------------
    Mutant(
        "a slow bookie is replaced",
        "Deadlines._of_lane",
        Replace("lane.gets_on()", "False"),
        (f"{SLOW}::test_slow_bookies_stay_and_the_entry_is_waited_for",),
    ),
    Mutant(
        "an entry on slow bookies ends its writer",
        "Deadlines._timed_out",
        Replace(
            "self._lanes.has_moved(late.first_entry_id, environment.monotonic() - period)",
            "False and self._lanes.has_moved(late.first_entry_id, "
            "environment.monotonic() - period)",
        ),
        (f"{SLOW}::test_slow_bookies_stay_and_the_entry_is_waited_for",),
    ),
    Mutant(
        "a caller gives up before its writer does",
        "write_handle.is_there_within",
        Replace("backlog.renewals == renewals and (not overslept(until))", "not overslept(until)"),
        (f"{SLOW}::test_a_caller_waits_as_long_as_its_writer",),
    ),
    Mutant(
        "a pause of the process costs its writer the bookies",
        "Deadlines.event",
        Replace("not overslept(self._sleeps_until)", "True"),
        (f"{SLOW}::test_after_a_pause_of_the_process_all_time_begins_anew",),
    ),
    # --- slices ----------------------------------------------------------------------------------
    Mutant(
        "what a disk refuses of a slice is forgotten",
        "posix_calls._call",
        Replace("error in _IS_NOT_OFFERED", "True"),
        (f"{SLICES}::test_what_the_disk_refuses_is_an_error",),
    ),
    Mutant(
        "nothing shows how far a file is written back",
        "posix_calls.write_back",
        Drop("progress.made"),
        (f"{SLICES}::test_each_slice_is_a_sign_and_all_bytes_are_waited_for",),
    ),
    Mutant(
        "much is read by one call",
        "posix_calls._read_all",
        Replace("min(missing, READ_BYTES)", "missing"),
        (f"{SLICES}::test_reading_and_writing_are_seen_to_get_on",),
    ),
    # --- busy stores -----------------------------------------------------------------------------
    Mutant(
        "a busy store is asked again for ever",
        "connection.repeated",
        Replace(
            "not may_repeat or environment.monotonic() + pause - begin > limit", "not may_repeat"
        ),
        (f"{PRESSURE}::test_how_long_is_a_setting",),
    ),
    Mutant(
        "a request that waited for its turn is not tried again",
        "connection.repeated",
        Replace("environment.monotonic() if doubt.asks_for_less else sent_at", "sent_at"),
        (
            f"{PRESSURE}::"
            "test_the_time_of_a_request_that_was_refused_at_last_is_not_that_of_the_store",
        ),
    ),
    Mutant(
        "what a store says about when to come back is not heard",
        "connection.repeated",
        Replace(
            "max(environment.draw() * longest, doubt.retry_after)", "environment.draw() * longest"
        ),
        (f"{PRESSURE}::test_the_store_may_say_how_long_to_wait",),
    ),
    Mutant(
        "an upload is begun again though the first one may be there",
        "connection.repeated",
        Replace("doubt.is_passing and (not only_if_refused)", "doubt.is_passing"),
        (
            f"{PRESSURE}::"
            "test_what_must_not_be_repeated_in_doubt_is_repeated_only_if_it_was_refused",
        ),
    ),
    Mutant(
        "a server that is not there is asked as long as one that is busy",
        "connection.repeated",
        Replace("ABSENT_SECONDS if doubt.is_absent else retry_seconds()", "retry_seconds()"),
        (f"{PRESSURE}::test_a_server_that_is_not_there_is_not_asked_for_long",),
    ),
    Mutant(
        "each task learns by itself that a store is busy",
        "Pressure.was_asked_for_less",
        Replace("min(max(2 * self.interval, _FIRST_INTERVAL), _LONGEST_INTERVAL)", "0.0"),
        (f"{PRESSURE}::test_all_tasks_slow_down_and_recover_together",),
    ),
    Mutant(
        "requests that were on their way slow the process down once each",
        "Pressure.was_asked_for_less",
        Replace("sent_at < self._slowed_at", "False"),
        (f"{PRESSURE}::test_refusals_of_requests_that_were_on_their_way_count_once",),
    ),
    Mutant(
        "a task that waits for a busy store looks as if it hung",
        "connection.rest",
        Drop("progress.made"),
        (f"{PRESSURE}::test_a_waiting_task_is_seen_to_get_on",),
    ),
    # --- metadata --------------------------------------------------------------------------------
    Mutant(
        "a change that may have been stored is made anew with other bytes",
        "Records._put_bytes",
        Replace(
            "self._store.put(self._key(name), data, expected)",
            "self._store.put(self._key(name), data + b' ' * attempt, expected)",
        ),
        (f"{SETTLED}[it was done late-replace]", f"{SETTLED}[it was done late-create]"),
    ),
    Mutant(
        "a change that is not there is not sent again",
        "Records._put_bytes",
        Replace("refusal is not None or settled is PutOutcome.UNKNOWN", "True"),
        (f"{SETTLED}[it was not done-create]", f"{SETTLED}[it was not done-update]"),
    ),
    Mutant(
        "what other clients changed on top is overwritten",
        "records.outcome",
        Replace(
            "PutOutcome.LOST if version == (expected or 0) + 1 else PutOutcome.UNKNOWN",
            "PutOutcome.LOST",
        ),
        (f"{SETTLED}[two changes were made-replace]", f"{SETTLED}[two changes were made-create]"),
    ),
    Mutant(
        "a change that another client was ahead of is unknown",
        "records.outcome",
        Replace(
            "PutOutcome.LOST if version == (expected or 0) + 1 else PutOutcome.UNKNOWN",
            "PutOutcome.UNKNOWN",
        ),
        (f"{SETTLED}[another client was first-replace]",),
    ),
    Mutant(
        "a refusal behind a lost answer is a lost race",
        "Records._put_bytes",
        Replace(
            "refusal is not None and (doubt is None or settled is PutOutcome.LOST)",
            "refusal is not None",
        ),
        (f"{SETTLED}[it was done late and followed-replace]",),
    ),
    Mutant(
        "what a look could not tell hides what became of the change",
        "Records._found_after",
        Replace("raise doubt from None", "raise"),
        (f"{SETTLED}[nobody can look-create]",),
    ),
    Mutant(
        "a change that was sent is called not sent",
        "Records._put_bytes",
        Replace("raise doubt or error from None", "raise error"),
        (f"{SETTLED}[nothing was sent the second time-replace]",),
    ),
    Mutant(
        "what was perhaps sent before is said not to have been sent",
        "Records._put_bytes",
        Replace("NothingSentError", "ZeroDivisionError"),
        (f"{SETTLED}[nothing was sent the second time-create]",),
    ),
    Mutant(
        "the timeout of a client does not reach its store",
        "PatientStore.get",
        Replace(
            "with patience.seconds(self._seconds):\n    ...",
            "if True:\n    return self._inner.get(key)",
        ),
        (f"{TIMEOUT}::test_every_call_inside_knows_it_also_from_another_task",),
    ),
)
